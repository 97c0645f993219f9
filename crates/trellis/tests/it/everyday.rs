//! Asking, looking, checking, exporting.

use crate::{PARTNER, TRACE, json, ok, run, stderr, stdout, steps, trellis};
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use tempfile::TempDir;

#[test]
fn the_answer_is_on_stdout_and_the_steps_are_on_stderr() {
    let data = TempDir::new().unwrap();
    let output = run(data.path(), &["ask", PARTNER, "--pattern", "react"]);
    assert!(output.status.success());
    let (answer, steps) = (stdout(&output), stderr(&output));
    assert!(answer.starts_with("## Partner risk profile: Company X"), "{answer}");
    assert!(answer.contains("Scripted by the rehearsal model"), "the rehearsal is honest");
    assert!(!answer.contains("routing") && !answer.contains('\u{1b}'), "nothing but the answer");
    assert!(
        steps.contains("● react ○ debate ○ dispatch ○ plan-then-execute ○ reflexion ○ supervisor (by caller)"),
        "{steps}"
    );
    for word in ["thought", "financial-data(", "regulatory-filings(", "news-search(", "result", "trellis verify"] {
        assert!(steps.contains(word), "{word} is missing in {steps}");
    }
    let told = ok(data.path(), &["verify", "last"]);
    assert!(told.starts_with("ok: run ") && told.contains("\nreplayed: "), "{told}");
    let object = json(data.path(), &["verify", "last"]);
    assert_eq!((&object["replayed"], &object["not_replayed"]), (&true.into(), &serde_json::json!([])));
}

#[test]
fn json_gives_one_object_and_ndjson_one_event_per_line() {
    let data = TempDir::new().unwrap();
    let answer = json(data.path(), &["ask", "What is a trellis?", "--quiet", "--conversation", "c1"]);
    for member in ["run_id", "state", "answer", "pattern", "task_type", "in_token", "out_token", "model", "ms"] {
        assert!(!answer[member].is_null(), "{member} is missing in {answer}");
    }
    assert_eq!(
        (&answer["state"], &answer["pattern"], &answer["model"]),
        (&"answered".into(), &"react".into(), &"rehearsal".into())
    );
    // Live text that is complete before it was read comes with its record alone, so this rehearsal takes its time.
    let mut asked = trellis(data.path(), &["ask", "What is a trellis?", "--output", "ndjson"]);
    let lines = stdout(&asked.env("TRELLIS_REHEARSAL_DELAY_MS", "5").output().unwrap());
    let events: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&events[0]["type"], &events[0]["schema"]), (&"run.started".into(), &1.into()));
    assert_eq!(events.last().unwrap()["type"], "run.completed");
    let seqs: Vec<_> = events.iter().filter_map(|event| event["seq"].as_u64()).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>(), "no gap");
    assert!(events.iter().any(|event| event["type"] == "chunk"));

    let runs = json(data.path(), &["runs", "--limit", "1"]);
    assert_eq!(runs["runs"].as_array().unwrap().len(), 1);
    let next = runs["next"].as_str().unwrap();
    let rest = json(data.path(), &["runs", "--cursor", next]);
    let first = &rest["runs"][0];
    assert_eq!((&first["conversation_id"], &first["run_id"]), (&"c1".into(), &answer["run_id"]));
    let members: BTreeSet<_> = first.as_object().unwrap().keys().map(String::as_str).collect();
    let expected = [
        "run_id",
        "state",
        "question",
        "pattern",
        "task_type",
        "conversation_id",
        "started",
        "ms",
        "in_token",
        "out_token",
    ];
    assert_eq!(members, BTreeSet::from(expected));
}

#[test]
fn show_export_and_sparql_agree_and_a_rebuild_changes_nothing() {
    let data = TempDir::new().unwrap();
    ok(data.path(), &["ask", PARTNER, "--pattern", "react"]);
    ok(data.path(), &["ask", "What else?"]);
    let show = json(data.path(), &["run", "show", "@2"]);
    let session = &show["sessions"][0];
    assert_eq!(session["question"], PARTNER);
    let iteration = ["analysis", "observation"];
    assert_eq!(steps(session), [&["routing"][..], &iteration, &iteration, &iteration, &["conclusion"]].concat());

    // Every statement of the export is in the graph, and the graph has no more about this run.
    let run = show["run_id"].as_str().unwrap();
    let exported = ok(data.path(), &["run", "export", run, "--format", "nquads"]);
    let count = |name: &str| {
        let all = format!(
            "SELECT (COUNT(*) AS ?n) WHERE {{ GRAPH <urn:graph:retrieval> {{ ?s ?p ?o }} FILTER(STRSTARTS(STR(?s), '{name}')) }}"
        );
        let rows = json(data.path(), &["sparql", &all]);
        rows["results"]["bindings"][0]["n"]["value"].as_str().unwrap().parse::<usize>().unwrap()
    };
    let own = count(&format!("urn:trustgraph:agent:{run}"));
    let lines: Vec<_> = exported.lines().collect();
    assert_eq!(lines.iter().filter(|line| line.starts_with(&format!("<urn:trustgraph:agent:{run}"))).count(), own);
    let tools = "SELECT ?tool WHERE { ?s <https://trustgraph.ai/ns/action> ?tool } ORDER BY ?s";
    let before = ok(data.path(), &["sparql", tools]);
    assert!(before.contains("financial-data") && before.contains("news-search"), "{before}");
    let everything = "SELECT * WHERE { GRAPH ?g { ?s ?p ?o } } ORDER BY ?g ?s ?p ?o";
    let all = ok(data.path(), &["sparql", everything, "--output", "csv"]);
    ok(data.path(), &["graph", "rebuild"]);
    assert_eq!(ok(data.path(), &["sparql", everything, "--output", "csv"]), all);

    let turtle = ok(data.path(), &["run", "export", "last"]);
    assert!(turtle.contains("@prefix prov:") && turtle.contains("tg:Conclusion"), "{turtle}");
    let jsonld: Value =
        serde_json::from_str(&ok(data.path(), &["run", "export", "last", "--format", "jsonld"])).unwrap();
    assert!(jsonld.is_object() || jsonld.is_array());
}

/// Every query of the page for auditors, as it can be copied.
#[test]
fn queries_for_auditors_find_something_and_count_the_tools_of_every_pattern() {
    let data = TempDir::new().unwrap();
    ok(data.path(), &["ask", PARTNER, "--quiet"]);
    ok(data.path(), &["ask", TRACE, "--quiet"]);
    let page = include_str!("../../../../docs/audit.md");
    let queries: Vec<_> = page.split("trellis sparql '").skip(1).filter_map(|rest| rest.split('\'').next()).collect();
    let inline = page.split("`SELECT ").skip(1).filter_map(|rest| rest.split('`').next());
    let inline: Vec<_> = inline.map(|rest| format!("SELECT {rest}")).collect();
    let whole = queries.into_iter().filter(|query| !query.contains('…'));
    let all: Vec<&str> = whole.chain(inline.iter().map(String::as_str)).collect();
    assert!(all.len() >= 15, "{all:?}");
    for query in all {
        let rows = json(data.path(), &["sparql", query]);
        assert!(!rows["results"]["bindings"].as_array().unwrap().is_empty(), "{query}");
        if query.contains("GROUP BY ?tool") {
            let text = rows.to_string();
            assert!(text.contains("archive-search"), "tools of plan steps: {text}");
            assert!(text.contains("supply-chain"), "tools of subagents: {text}");
        }
    }
}

#[test]
fn tables_and_lists_are_whole_where_nobody_watches() {
    let data = TempDir::new().unwrap();
    let question = format!("Why {}?", "so ".repeat(90).trim());
    ok(data.path(), &["ask", &question, "--quiet"]);
    let rows = ok(data.path(), &["sparql", "SELECT ?q WHERE { ?run tg:query ?q }"]);
    assert!(rows.contains(&question), "{rows}");
    assert!(ok(data.path(), &["runs"]).contains(&question));
    let prompts = ok(data.path(), &["config", "list", "prompt"]);
    let last = prompts.lines().last().unwrap();
    assert!(last.ends_with("Write the JSON object now.\",\"response-type\":\"json\"}"), "{last}");
}

#[test]
fn a_question_that_is_longer_than_its_summary_is_marked() {
    let data = TempDir::new().unwrap();
    ok(data.path(), &["ask", &"x".repeat(300), "--quiet"]);
    ok(data.path(), &["ask", &"x".repeat(301), "--quiet"]);
    let runs = json(data.path(), &["runs"]);
    assert_eq!(runs["runs"][0]["question_truncated"], true);
    assert!(runs["runs"][1].get("question_truncated").is_none(), "all of it is there");
}

#[test]
fn the_answer_of_a_run_can_be_read_again() {
    let data = TempDir::new().unwrap();
    let answer = ok(data.path(), &["ask", PARTNER, "--quiet"]);
    let again = run(data.path(), &["run", "answer", "last"]);
    assert_eq!((stdout(&again), stderr(&again)), (answer, String::new()));
    run(data.path(), &["ask", PARTNER, "--pattern", "react", "--limit", "max-iterations=1", "--quiet"]);
    let limited = run(data.path(), &["run", "answer", "last"]);
    assert_eq!(limited.status.code(), Some(12), "{}", stderr(&limited));
    assert!(stdout(&limited).contains("No final answer after 1 iteration, which is the limit"), "{}", stdout(&limited));
    assert_eq!(run(data.path(), &["run", "answer", "nothing"]).status.code(), Some(5));
}

#[test]
fn a_run_is_found_by_id_by_prefix_and_by_place() {
    let data = TempDir::new().unwrap();
    let id = json(data.path(), &["ask", "One?", "--session", "first-run"])["run_id"].clone();
    assert_eq!(id, "first-run");
    ok(data.path(), &["ask", "Two?", "--session", "first-runner"]);
    for wish in ["first-run", "first-runn", "last", "@2", "@1"] {
        let found = json(data.path(), &["run", "show", wish])["run_id"].clone();
        let expected = if matches!(wish, "first-run" | "@2") { "first-run" } else { "first-runner" };
        assert_eq!(found, expected, "{wish}");
    }
    let output = run(data.path(), &["run", "show", "first"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("could be first-run, first-runner"), "{}", stderr(&output));
    assert_eq!(run(data.path(), &["verify", "nothing"]).status.code(), Some(5));
    assert_eq!(run(data.path(), &["verify", "@9"]).status.code(), Some(5));
}

#[test]
fn asking_the_same_under_the_same_session_attaches() {
    let data = TempDir::new().unwrap();
    let first = json(data.path(), &["ask", "Same?", "--session", "s"]);
    let again = json(data.path(), &["ask", "Same?", "--session", "s"]);
    assert_eq!(first["run_id"], again["run_id"]);
    assert_eq!(first["answer"], again["answer"]);
    assert_eq!(json(data.path(), &["runs"])["runs"].as_array().unwrap().len(), 1);
    let other = json(data.path(), &["ask", "Different?", "--session", "s"]);
    assert_ne!(other["run_id"], first["run_id"]);
}

#[test]
fn without_streaming_the_answer_is_the_same() {
    let (streamed, whole) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let one = json(streamed.path(), &["ask", PARTNER]);
    let two = json(whole.path(), &["ask", PARTNER, "--no-stream"]);
    assert_eq!(one["answer"], two["answer"]);
    let lines = ok(whole.path(), &["ask", PARTNER, "--no-stream", "--output", "ndjson"]);
    assert!(!lines.contains(r#""type":"chunk""#));
}

#[test]
fn a_question_can_come_from_standard_input() {
    use std::io::Write;
    let data = TempDir::new().unwrap();
    let mut child = trellis(data.path(), &["ask", "-", "--output", "json", "--quiet"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all("Wie geht's, Müller & Söhne?".as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(answer["answer"].as_str().unwrap().contains("Müller & Söhne"));
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let data = TempDir::new().unwrap();
    ok(data.path(), &["ask", "One?"]);
    let mut child = trellis(data.path(), &["run", "export", "last"]).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_failed_run_gives_its_reason_also_when_quiet() {
    let data = TempDir::new().unwrap();
    ok(data.path(), &["ask", "One?"]);
    ok(data.path(), &["config", "delete", "prompt", "template.agent-react"]);
    let output = run(data.path(), &["ask", "Two?", "--pattern", "react", "--quiet"]);
    assert_eq!(output.status.code(), Some(10));
    assert!(
        stderr(&output).contains("there is no prompt `agent-react`; add the configuration item"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn nobody_reading_the_progress_is_no_failure() {
    let data = TempDir::new().unwrap();
    let mut child =
        trellis(data.path(), &["ask", "One?"]).stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));
}

#[test]
fn the_doctor_finds_everything_in_order() {
    let data = TempDir::new().unwrap();
    ok(data.path(), &["ask", "One?"]);
    let report = ok(data.path(), &["doctor"]);
    assert!(report.contains("every hash is right"), "{report}");
    assert!(!report.contains("fault"), "{report}");
    assert_eq!(json(data.path(), &["doctor"])["ok"], true);
}

#[test]
fn the_doctor_finds_damage_in_the_graph_and_says_what_to_do() {
    let data = TempDir::new().unwrap();
    ok(data.path(), &["ask", "One?"]);
    ok(data.path(), &["graph", "rebuild"]);
    let report = ok(data.path(), &["doctor"]);
    assert!(report.contains("1 run, ") && report.contains("as the records say"), "{report}");
    let listed = Command::new("find").arg(data.path().join("view")).args(["-path", "*/tables/*"]).output().unwrap();
    let table = stdout(&listed).lines().next().unwrap().to_owned();
    let mut bytes = std::fs::read(&table).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&table, bytes).unwrap();
    let output = run(data.path(), &["doctor"]);
    let report = stdout(&output);
    assert_eq!(output.status.code(), Some(7), "{report}");
    assert!(report.contains(&table) && report.contains("`trellis graph rebuild`"), "{report}");
    ok(data.path(), &["graph", "rebuild"]);
    ok(data.path(), &["doctor"]);
}
