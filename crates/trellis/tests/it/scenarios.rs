//! The three scenarios of the rehearsal, from the question to the graph.

use crate::{COMPARE, PARTNER, TRACE, json, ok, run, stderr, stdout, steps, steps_of, trellis};
use serde_json::Value;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tempfile::TempDir;

const SUPERVISED: [&str; 8] =
    ["routing", "decomposition", "finding", "finding", "finding", "finding", "review", "synthesis"];

/// How many solutions a query has.
fn count(data: &Path, pattern: &str) -> usize {
    let query = format!(
        "PREFIX tg: <https://trustgraph.ai/ns/> PREFIX prov: <http://www.w3.org/ns/prov#> \
         PREFIX t: <urn:trellis:ns:> SELECT * WHERE {{ {pattern} }}"
    );
    json(data, &["sparql", &query])["results"]["bindings"].as_array().unwrap().len()
}

#[test]
fn the_worked_example_is_routed_split_joined_and_answered_from_four_findings() {
    let data = TempDir::new().unwrap();
    let output = run(data.path(), &["ask", PARTNER, "--session", "partner"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let (answer, progress) = (stdout(&output), stderr(&output));
    assert!(answer.starts_with("## Partner risk profile: Company X"), "{answer}");
    for expected in [
        "◆ task     ● risk-assessment ○ general ○ research ○ summarisation (by model)",
        "◆ pattern  ● supervisor ○ plan-then-execute ○ react (by model)",
        "signals: complexity: high · independent_dimensions: 4",
        "stated reason: Scripted choice: the task has four independent",
        "≡ split    4 agents at once",
        "#2 Analyse news sentiment and public reputation of Company X  react",
        "#3 Assess supply chain      → tool     supply-chain(company: \"Company X\")",
        "#0 Analyse financial        ✓ ended    final-answer",
        "✓ join     all have ended: 4 of 4 findings",
        "◆ review   enough to answer",
    ] {
        assert!(progress.contains(expected), "{expected} is missing in\n{progress}");
    }
    assert!(!progress.contains("### Financial"), "the answer is on stdout only");

    let show = json(data.path(), &["run", "show", "partner"]);
    assert_eq!((&show["task_type"], &show["pattern"]), (&"risk-assessment".into(), &"supervisor".into()));
    let sessions = show["sessions"].as_array().unwrap();
    assert_eq!(steps(&sessions[0]), SUPERVISED);
    let agents = &sessions[1..];
    assert_eq!(agents.len(), 4);
    let correlation = &steps_of(&sessions[0], "decomposition")[0]["fan_out"]["correlation"];
    for (agent, index) in agents.iter().zip(0..) {
        assert_eq!((&agent["parent"]["index"], &agent["parent"]["correlation"]), (&index.into(), correlation));
        assert_eq!(agent["completion"]["correlation"], *correlation);
        assert_eq!(steps(agent).last(), Some(&"conclusion"));
    }
    let calls = |totals: &str| sessions[0][totals]["model_calls"].as_u64().unwrap();
    assert!(calls("totals_with_subagents") > calls("totals") + 4, "what subagents cost is in the run's total");
    assert_eq!(show["usage"]["model_calls"], calls("totals_with_subagents"));
    assert!(ok(data.path(), &["verify", "partner"]).starts_with("ok: run "));
}

#[test]
fn the_tree_shows_every_part_of_the_worked_example() {
    let data = TempDir::new().unwrap();
    ok(data.path(), &["ask", PARTNER, "--quiet"]);
    let tree = ok(data.path(), &["run", "show", "last"]);
    for expected in [
        "├─ ◆ Routing",
        "task type  ○ general ○ research ● risk-assessment ○ summarisation   by model, from default:agent-task-type v1",
        "pattern    ○ plan-then-execute ○ react ● supervisor   by model",
        "├─ ≡ Decomposition  4 agents",
        "fan-out    expects 4, deadline ",
        "│  ├─ ✓ #0 Analyse financial health and stability of Company X  react · final-answer",
        "│  │  ├─ 1 financial-data(company: \"Company X\")",
        "│  └─ ✓ #3 Assess supply chain dependencies and operational risks for Company X  react · final-answer",
        "├─ ✓ Join  all have ended: 4 of 4 findings",
        "│  ├─ ✓ finding 0  confidence medium (claimed)",
        "round      ○ again ● answer   by model",
        "└─ ✓ Synthesis  subagents-complete",
        "cites      finding 0 (medium), finding 1 (low), finding 2 (low), finding 3 (low)",
        "with its agents  18 model calls",
    ] {
        assert!(tree.contains(expected), "{expected} is missing in\n{tree}");
    }
    let full = ok(data.path(), &["run", "show", "last", "--full"]);
    assert!(full.contains("- Interruptions: eleven days of standstill in the last two years"), "{full}");
    assert!(full.lines().count() > 2 * tree.lines().count());
    let plain = ok(data.path(), &["run", "show", "last", "--ascii"]);
    assert!(plain.contains("|- = Decomposition  4 agents") && !plain.contains(['│', '●', '✓', '≡']), "{plain}");
}

#[test]
fn the_graph_has_every_node_that_the_specification_names() {
    let data = TempDir::new().unwrap();
    ok(data.path(), &["ask", PARTNER, "--session", "partner", "--quiet"]);
    let turtle = ok(data.path(), &["run", "export", "partner"]);
    for node in
        ["tg:RoutingDecision", "tg:FanOut", "tg:SubagentCompletion", "tg:Decomposition", "tg:Finding", "tg:Synthesis"]
    {
        assert!(turtle.contains(node), "{node} is missing");
    }
    let found = |pattern: &str| count(data.path(), pattern);
    let root = "<urn:trustgraph:agent:partner/routing>";
    assert_eq!(found(&format!("{root} a tg:RoutingDecision ; tg:candidatePatterns ?candidate")), 3);
    assert_eq!(found(&format!("{root} tg:selectedPattern ?p ; tg:taskType ?t ; tg:routingRationale ?why")), 1);
    assert_eq!(found("?f a tg:FanOut ; tg:correlationId ?c ; tg:expectedSiblings '4'"), 1);
    assert_eq!(found("?f a tg:FanOut ; tg:subagentGoals ?goal"), 4);
    assert_eq!(
        found(
            "?f a tg:FanOut ; tg:correlationId ?c . ?done a tg:SubagentCompletion ; tg:correlationId ?c ; tg:result ?r"
        ),
        4
    );
    assert_eq!(found("?finding a tg:Finding ; tg:document ?text"), 4);
    assert_eq!(found("?end a tg:Synthesis ; prov:wasDerivedFrom ?finding . ?finding a tg:Finding"), 4);
    // From the answer back to the question, through the subagents.
    assert_eq!(
        found(
            "?end a tg:Synthesis ; prov:wasDerivedFrom+ <urn:trustgraph:agent:partner> . \
               <urn:trustgraph:agent:partner> tg:query ?question"
        ),
        1
    );
}

#[test]
fn a_plan_whose_step_fails_is_revised_and_answers_in_part() {
    let data = TempDir::new().unwrap();
    let output = run(data.path(), &["ask", TRACE, "--session", "trace"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let progress = stderr(&output);
    for expected in [
        "● plan-then-execute ○ react (by model)",
        "≡ plan     4 steps",
        "2 Date each change of ownership of Company X by its documents in the archive  archive-search, after 1",
        "step 1 Search the archive   ✕ result   Error: the model did not answer: the archive is closed",
        "≡ plan     revised: 2 steps",
        "stated reason: Scripted decision: ",
        "step 4 Look up the changes  → tool     regulatory-filings(",
        "answered without step 1",
    ] {
        assert!(progress.contains(expected), "{expected} is missing in\n{progress}");
    }
    let tree = ok(data.path(), &["run", "show", "trace"]);
    for expected in [
        "├─ ≡ Plan  4 steps",
        "│  ├─ ✓ step 0 Find what was reported about the owners of Company X",
        "│  └─ ✕ step 1 Search the archive for earlier owners of Company X  failed",
        "result     ✕ Error: the model did not answer",
        "├─ ≡ Plan, revision 1  2 steps",
        "replan     ○ keep ● revise   by model",
        "replaces   Put the owners of Company X in order",
        "│  └─ ✓ step 5 Put the owners of Company X in order without the archive  after 0, 4",
        "└─ ! Synthesis  plan-partial",
        "cites      step 0, step 4, step 5",
        "missing    step 1",
    ] {
        assert!(tree.contains(expected), "{expected} is missing in\n{tree}");
    }
    let show = json(data.path(), &["run", "show", "trace"]);
    assert_eq!(show["state"], "answered-partial");
    let session = &show["sessions"][0];
    assert_eq!(steps_of(session, "plan").len(), 2);
    let numbers: Vec<_> = steps_of(session, "step-result").iter().map(|step| step["number"].as_u64()).collect();
    assert_eq!(numbers, [Some(0), Some(1), Some(4), Some(5)], "numbers are never used again");
    ok(data.path(), &["verify", "trace"]);
    assert_eq!(json(data.path(), &["ask", TRACE, "--session", "trace"])["missing"], serde_json::json!([1]));
    assert_eq!(run(data.path(), &["ask", TRACE, "--strict", "--quiet"]).status.code(), Some(11));
    assert_eq!(run(data.path(), &["run", "answer", "trace", "--strict"]).status.code(), Some(11));
}

#[test]
fn a_silent_sibling_costs_a_partial_answer_and_not_the_run() {
    let data = TempDir::new().unwrap();
    let asked = ["ask", COMPARE, "--limit", "fan-in-timeout-ms=2000"];
    let output = run(data.path(), &[&asked[..], &["--session", "compare"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let progress = stderr(&output);
    for expected in [
        "#0 Weigh finances and       ≡ split    2 agents at once",
        "#0.1 Review regulatory      ✓ ended    final-answer",
        "#0 Weigh finances and       ✓ join     all have ended: 2 of 2 findings",
        "! join     the deadline has come: 2 of 3 findings",
        "missing: #2 Look up Company X, timeout: ",
        "◆ review   answers now, 1 missing",
        "answered without finding 2",
    ] {
        assert!(progress.contains(expected), "{expected} is missing in\n{progress}");
    }
    let tree = ok(data.path(), &["run", "show", "compare"]);
    for expected in [
        "│  ├─ ✓ #0 Weigh finances and legal exposure of Company X for the comparison  supervisor · subagents-complete",
        "│  │  │  ├─ ✓ #0.0 Analyse financial health and stability of Company X  react · final-answer",
        "│  └─ ✕ #2 Look up Company X and Company Y in the market register  react · timeout",
        "├─ ! Join  the deadline had come: 2 of 3 findings",
        "✕ finding 2 missing  timeout: ",
        "missing    finding 2",
    ] {
        assert!(tree.contains(expected), "{expected} is missing in\n{tree}");
    }
    let show = json(data.path(), &["run", "show", "compare"]);
    assert_eq!((show["sessions"].as_array().unwrap().len(), &show["missing"]), (6, &serde_json::json!([2])));
    ok(data.path(), &["verify", "compare"]);

    let strict = run(data.path(), &[&asked[..], &["--strict", "--quiet", "--session", "strict"]].concat());
    assert_eq!(strict.status.code(), Some(11), "{}", stderr(&strict));
    assert!(stdout(&strict).contains("What is missing"), "the answer is given all the same");
    let listed = |since: &str| {
        let filters = ["--status", "answered-partial", "--pattern", "supervisor"];
        let listed = json(data.path(), &[&["runs", "--since", since][..], &filters].concat());
        listed["runs"].as_array().unwrap().len()
    };
    assert_eq!((listed("1h"), listed("2999-01-01")), (2, 0));
}

#[test]
fn nobody_waits_for_a_silent_call_once_the_run_has_ended() {
    let data = TempDir::new().unwrap();
    let asked = ["ask", COMPARE, "--limit", "fan-in-timeout-ms=500"];
    let mut child = trellis(data.path(), &asked).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // The silent call lasts for minutes, its own limit is two of them.
    let left = (0..200).find_map(|_| {
        std::thread::sleep(Duration::from_millis(100));
        child.try_wait().unwrap()
    });
    if left.is_none() {
        child.kill().unwrap();
    }
    assert_eq!(left.and_then(|status| status.code()), Some(0), "it is still there after 20 seconds");
    assert!(ok(data.path(), &["doctor"]).contains("open runs      none"));
    assert_eq!(ok(data.path(), &["resume"]).trim(), "open runs finished: 0", "it has ended once");
}

#[test]
fn subagents_stream_as_events_under_their_own_names() {
    let data = TempDir::new().unwrap();
    let lines = ok(data.path(), &["ask", PARTNER, "--session", "partner", "--output", "ndjson"]);
    let events: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let seqs: Vec<_> = events.iter().filter_map(|event| event["seq"].as_u64()).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>(), "no gap");
    let of = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
    assert_eq!((of("run.started"), of("agent.started"), of("agent.completed"), of("run.completed")), (1, 4, 4, 1));
    assert_eq!((of("fanout.started"), of("fanout.joined")), (1, 1));
    let last = events.last().unwrap();
    assert_eq!((&last["type"], &last["session_id"]), (&"run.completed".into(), &"partner".into()));
}

#[test]
fn progress_of_subagents_is_plain_without_a_terminal_and_silent_when_quiet() {
    let data = TempDir::new().unwrap();
    let output = run(data.path(), &["ask", PARTNER, "--ascii"]);
    let progress = stderr(&output);
    assert!(progress.is_ascii() && !progress.contains('\u{1b}'), "{progress}");
    assert!(progress.contains("..."), "something was cut: {progress}");
    let tree = ok(data.path(), &["run", "show", "last", "--ascii"]);
    assert!(tree.is_ascii() && tree.contains("..."), "{tree}");
    assert!(progress.contains("= split    4 agents at once"), "{progress}");
    let coloured = trellis(data.path(), &["ask", PARTNER, "--color", "always"]).output().unwrap();
    assert!(stderr(&coloured).contains("\u{1b}["));
    assert!(!stdout(&coloured).contains('\u{1b}'), "the answer is never coloured");
    assert_eq!(stderr(&run(data.path(), &["ask", PARTNER, "--quiet"])), "");
}
