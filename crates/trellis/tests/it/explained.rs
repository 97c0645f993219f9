//! What a run says of itself in sentences: why, its decisions, how it differs from another, and where its time went.

use crate::{COMPARE, PARTNER, TRACE, fails, json, ok, run, stderr, stdout};
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

#[test]
fn an_answer_says_what_it_rests_on_and_how_it_was_chosen() {
    let data = TempDir::new().unwrap();
    ok(data.path(), &["ask", PARTNER, "--session", "partner", "--quiet"]);
    let told = ok(data.path(), &["run", "why", "partner"]);
    for expected in [
        "The answer rests on 4 findings, ",
        " tool results.",
        "1. Task type: risk-assessment was chosen out of 4, by the model.",
        "2. Pattern: supervisor was chosen out of 3, by the model.",
        "The options come from agent-task-type “risk-assessment”, configuration version 1.",
        "Not offered: ",
        "Stated reason, a claim that nobody checked: “Scripted choice: ",
        "Goals of the agents: 4 goals named by the model.",
        "; 0 outside of its set",
        "all of them: trellis run decisions partner",
    ] {
        assert!(told.contains(expected), "{expected} is missing in\n{told}");
    }
    let object = json(data.path(), &["run", "why", "partner"]);
    assert_eq!((&object["basis"]["findings"], &object["basis"]["failed"]), (&4.into(), &0.into()));
    assert!(object["basis"]["tool_results"].as_u64() >= Some(4), "{object}");

    for (step, expected) in [
        ("routing", "routing, of the run itself."),
        ("finding 0", "What an agent found that was sent after: Analyse financial health"),
        ("#0", "#0 answer, of #0 Analyse financial health and stability"),
        ("#0 call 1", "A call of the tool financial-data."),
        ("#0 result 1", "It brought: "),
        ("review 1", "Answer, or another round: answer was chosen out of 2, by the model."),
    ] {
        let told = ok(data.path(), &["run", "why", "partner", step]);
        assert!(told.contains(expected), "{step}: {expected} is missing in\n{told}");
    }
    let (code, message) = fails(data.path(), &["run", "why", "partner", "finding 9"]);
    assert_eq!((code, message.contains("has no step `finding 9`")), (5, true), "{message}");
}

#[test]
fn a_sentence_is_told_by_what_it_cites_and_by_sources_with_the_same_words() {
    let data = TempDir::new().unwrap();
    ok(data.path(), &["ask", PARTNER, "--session", "partner", "--quiet"]);
    let answer = ok(data.path(), &["run", "answer", "partner"]);
    // A line of a section that cites a finding.
    let sentence = answer.lines().find(|line| line.starts_with("- ") && line.len() > 40).unwrap();
    let told = ok(data.path(), &["run", "why", "partner", sentence.trim_start_matches("- ")]);
    for expected in
        ["On record: what is cited.", "[finding 0], cited ", "Same words, which is a comparison of texts", " %  "]
    {
        assert!(told.contains(expected), "{expected} is missing for {sentence} in\n{told}");
    }
    let object = json(data.path(), &["run", "why", "partner", sentence.trim_start_matches("- ")]);
    assert_eq!(object["in_answer"], true);
    assert!(object["passages"][0]["shared_percent"].as_u64() >= Some(50), "{object}");
    let told = ok(data.path(), &["run", "why", "partner", "Zebras graze quietly beneath distant volcanoes tonight"]);
    for expected in ["The answer does not have this sentence", "no source has half of its telling words"] {
        assert!(told.contains(expected), "{expected} is missing in\n{told}");
    }
}

#[test]
fn a_step_is_shown_with_everything_on_record_of_it() {
    let data = TempDir::new().unwrap();
    ok(data.path(), &["ask", PARTNER, "--session", "single", "--pattern", "react", "--quiet"]);
    let show = |step: &str| ok(data.path(), &["run", "show", "single", "--step", step]);
    let told = show("1");
    for expected in [
        "call 1, of the run itself.\nurn:trustgraph:agent:single/i1\nIt calls the tool ",
        " chosen out of ",
        "Model call i1: prompt “",
        "Prompt: its text was not kept; TRELLIS_KEEP_REQUESTS=1 keeps what is sent.",
        "Reply:\n  ",
        "Usage: ",
    ] {
        assert!(told.contains(expected), "{expected} is missing in\n{told}");
    }
    assert!(!told.contains("Model call i2"), "nothing of other steps: {told}");
    for same in ["call 1", "urn:trustgraph:agent:single/i1"] {
        assert_eq!(ok(data.path(), &["run", "show", "single", "--step", same]), told, "{same}");
    }
    let brought = show("result 1");
    assert!(brought.contains("It brought:\n  ") && brought.contains("The tool took "), "{brought}");
    let (answer, whole) = (show("answer"), ok(data.path(), &["run", "answer", "single"]));
    assert!(whole.lines().filter(|line| !line.is_empty()).all(|line| answer.contains(line)), "{answer}");
    assert!(answer.contains("Model call i"), "the reply that was the answer: {answer}");
    let routing = show("routing");
    assert!(routing.contains("Task type: ") && routing.contains("no model was asked"), "{routing}");
    let object = json(data.path(), &["run", "show", "single", "--step", "1"]);
    assert_eq!((&object["step"]["step"], &object["step_name"]), (&"analysis".into(), &"call 1".into()));
    assert_eq!(object["records"].as_array().unwrap().len(), 1, "{object}");
    assert_eq!(object["records"][0]["header"]["name"], "i1");
    let (code, message) = fails(data.path(), &["run", "show", "single", "--step", "99"]);
    assert_eq!((code, message.contains("has no step `99`")), (5, true), "{message}");
}

#[test]
fn decisions_are_listed_with_their_options_and_who_chose() {
    let data = TempDir::new().unwrap();
    ok(data.path(), &["ask", TRACE, "--session", "trace", "--quiet"]);
    let told = ok(data.path(), &["run", "decisions", "trace"]);
    for expected in [
        "  1  routing: Task type: ",
        "● plan-then-execute  ○ react",
        "Keep or change the plan: revise was chosen out of 2, by the model.",
        "○ keep  ● revise",
        "Set checked afterwards: The reply was held against the set",
    ] {
        assert!(told.contains(expected), "{expected} is missing in\n{told}");
    }
    let list = json(data.path(), &["run", "decisions", "trace"]);
    assert_eq!(list["decisions"][0]["step_name"], "routing");
    let graph = json(data.path(), &["sparql", "SELECT ?d WHERE { ?d t:decisionKind ?k }"]);
    assert_eq!(
        list["decisions"].as_array().unwrap().len(),
        graph["results"]["bindings"].as_array().unwrap().len(),
        "all of them"
    );
}

#[test]
fn two_runs_differ_first_where_their_decisions_do() {
    let data = TempDir::new().unwrap();
    ok(data.path(), &["ask", PARTNER, "--session", "team", "--quiet"]);
    ok(data.path(), &["ask", PARTNER, "--session", "again", "--quiet"]);
    ok(data.path(), &["ask", PARTNER, "--session", "single", "--pattern", "react", "--quiet"]);
    let same = ok(data.path(), &["run", "diff", "team", "again"]);
    assert!(same.contains("All decisions are the same") && same.contains("The answers are the same."), "{same}");
    let told = ok(data.path(), &["run", "diff", "team", "single"]);
    for expected in [
        "First difference, ",
        "  pattern        supervisor  |  react",
        "tool calls",
        "The answers differ, first in line ",
    ] {
        assert!(told.contains(expected), "{expected} is missing in\n{told}");
    }
    let object = json(data.path(), &["run", "diff", "team", "single"]);
    assert_eq!(object["same_answer"], false);
    assert!(!object["decisions"].as_array().unwrap().is_empty());
}

#[test]
fn the_time_of_a_run_is_told_as_running_and_waiting() {
    let data = TempDir::new().unwrap();
    ok(data.path(), &["ask", COMPARE, "--session", "compare", "--limit", "fan-in-timeout-ms=1500", "--quiet"]);
    let told = ok(data.path(), &["run", "slow", "compare", "--top", "3"]);
    assert!(told.contains("run compare took ") && told.contains(" nothing did."), "{told}");
    assert_eq!(told.lines().count(), 5, "a head and three calls: {told}");
    let object = json(data.path(), &["run", "slow", "compare"]);
    let times = &object["times"];
    let ms = |name: &str| times[name].as_u64().unwrap();
    assert!(ms("busy_ms") + ms("waiting_ms") + ms("person_ms") <= ms("total_ms") + 1, "{times}");
    assert!(ms("waiting_ms") > 500, "it waited for a silent agent: {times}");
}

/// Runs that never change, at three widths. `UPDATE_SNAPSHOTS=1` writes what is shown now.
#[test]
fn runs_are_readable_in_narrow_and_wide_terminals() {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let folder = TempDir::new().unwrap();
    let unpacked =
        Command::new("tar").arg("xzf").arg(place.join("folders/format-3.tar.gz")).arg("-C").arg(folder.path()).status();
    assert!(unpacked.unwrap().success());
    let data = folder.path().join("format-3");
    for session in ["s-react", "s-plan", "s-silent", "s-team"] {
        is_as_kept(&data, &format!("{session}.show"), &["run", "show", session]);
        is_as_kept(&data, &format!("{session}.why"), &["run", "why", session]);
        is_as_kept(&data, &format!("{session}.slow"), &["run", "slow", session]);
    }
    for session in ["s-react", "s-plan"] {
        is_as_kept(&data, &format!("{session}.decisions"), &["run", "decisions", session]);
    }
    is_as_kept(&data, "s-react.diff", &["run", "diff", "s-react", "s-plan"]);
}

fn is_as_kept(data: &Path, name: &str, command: &[&str]) {
    for columns in [50, 80, 120] {
        let width = columns.to_string();
        let told = ok(data, &[command, &["--width", &width, "--color", "never"]].concat());
        let widest = told.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= columns, "{name}: {widest} columns in {columns}\n{told}");
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/snapshots/{name}.{columns}.txt"));
        if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
            std::fs::write(&file, &told).unwrap();
        }
        let kept = std::fs::read_to_string(&file).unwrap();
        assert_eq!(told, kept, "{name} at {columns} columns");
    }
}

/// With the configuration of a new folder.
#[test]
fn a_route_is_readable_in_narrow_and_wide_terminals() {
    let data = TempDir::new().unwrap();
    is_as_kept(data.path(), "route", &["route", PARTNER]);
}

#[test]
fn the_route_of_a_question_is_told_and_nothing_is_recorded() {
    let data = TempDir::new().unwrap();
    let told = ok(data.path(), &["route", PARTNER]);
    assert!(told.starts_with("risk-assessment → supervisor\n"), "{told}");
    assert!(told.contains("Pattern: supervisor was chosen out of 3, by the model."), "{told}");
    assert_eq!(json(data.path(), &["runs"])["runs"], serde_json::json!([]));
    // The configuration of the folder counts.
    ok(data.path(), &["config", "delete", "agent-task-type", "risk-assessment"]);
    let object = json(data.path(), &["route", PARTNER]);
    assert_ne!(object["task_type"], "risk-assessment");
}

#[test]
fn the_configuration_is_told_at_a_glance() {
    let data = TempDir::new().unwrap();
    let matrix = ok(data.path(), &["config", "matrix"]);
    let line = matrix.lines().find(|line| line.starts_with("risk-assessment")).unwrap();
    assert!(matrix.lines().next().unwrap().contains("supervisor") && line.contains("✓ first"), "{matrix}");
    let narrow = ok(data.path(), &["config", "matrix", "--width", "40"]);
    assert!(narrow.lines().any(|line| line.starts_with("risk-assessment  supervisor")), "{narrow}");
    ok(data.path(), &["config", "put", "agent", "limits", "{\"max-tokens\": 500000}"]);
    let log = ok(data.path(), &["config", "log"]);
    assert!(log.lines().next().unwrap().ends_with("  agent/limits"), "{log}");
    assert!(log.lines().nth(1).unwrap().contains(" and "), "the seeds: {log}");
    assert_eq!(json(data.path(), &["config", "log", "--limit", "1"])["versions"].as_array().unwrap().len(), 1);
}

#[test]
fn shells_and_man_know_the_commands_and_typos_are_put_right() {
    let data = TempDir::new().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let script = ok(data.path(), &["completions", shell]);
        assert!(script.contains("decisions") && script.contains("resume"), "{shell}");
    }
    let pages = data.path().join("man");
    ok(data.path(), &["man", pages.to_str().unwrap()]);
    assert!(pages.join("trellis.1").exists() && pages.join("trellis-run-why.1").exists());
    let mistyped = run(data.path(), &["rum", "show", "last"]);
    assert_eq!((mistyped.status.code(), stderr(&mistyped).contains("'run'")), (Some(2), true), "{}", stderr(&mistyped));
    let help = stdout(&run(data.path(), &["ask", "--help"]));
    assert!(help.contains("Options of all commands:") && help.contains("Examples:"), "{help}");
    let bare = run(data.path(), &[]);
    assert_eq!((bare.status.code(), stderr(&bare).contains("Usage: trellis")), (Some(2), true), "{}", stderr(&bare));
}
