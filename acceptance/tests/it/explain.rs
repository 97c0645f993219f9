//! `tg-list-explain-traces` and `tg-show-explain-trace`: whole traces of all patterns.

use acceptance::Stage;
use serde_json::Value;

/// Asks, and finds the session in the list.
async fn asked(stage: &Stage, question: &str) -> String {
    stage.tg("tg-invoke-agent", &["-q", question]).await.ok();
    let sessions = stage.tg("tg-list-explain-traces", &["--format", "json"]).await.ok().json();
    let sessions: Vec<&Value> = sessions.as_array().unwrap().iter().filter(|one| one["question"] == question).collect();
    assert_eq!(sessions.len(), 1, "one session per question, subagents left out: {sessions:?}");
    assert_eq!(sessions[0]["type"], "Agent");
    assert!(sessions[0]["time"].as_str().unwrap().starts_with("20"), "{:?}", sessions[0]);
    sessions[0]["id"].as_str().unwrap().to_owned()
}

/// The types of the steps, in order.
async fn steps(stage: &Stage, session: &str) -> Vec<String> {
    let trace = stage.tg("tg-show-explain-trace", &[session, "--format", "json"]).await.ok().json();
    assert_eq!(trace["session_id"], session);
    trace["steps"].as_array().unwrap().iter().map(|step| step["type"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn nothing_was_asked_yet() {
    let stage = Stage::open().await;
    stage.tg("tg-list-explain-traces", &[]).await.ok().says(&["No explainability sessions found."]);
    assert_eq!(stage.tg("tg-list-explain-traces", &["--format", "json"]).await.ok().json(), serde_json::json!([]));
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn sessions_are_listed_newest_first() {
    let stage = Stage::open().await;
    asked(&stage, "Who was Ada?").await;
    asked(&stage, "Who was Charles?").await;
    let table = stage.tg("tg-list-explain-traces", &[]).await.ok();
    let table = table.says(&["Session ID", "Type", "Question", "Time", "urn:trustgraph:agent:", "Agent"]);
    let place = |words: &str| table.stdout.find(words).unwrap_or_else(|| panic!("{words} is missing:\n{table}"));
    assert!(place("Who was Charles?") < place("Who was Ada?"), "{table}");
    let newest = stage.tg("tg-list-explain-traces", &["--limit", "1"]).await.ok();
    newest.says(&["Who was Charles?"]).never_says("Who was Ada?");
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn a_trace_of_react_shows_every_step_with_its_words() {
    let stage = Stage::open().await;
    let session = asked(&stage, "Who was Ada?").await;
    let shown = stage.tg("tg-show-explain-trace", &[&session]).await.ok();
    shown.never_says("[Error").says(&[
        "Question: Who was Ada?",
        "Time: 20",
        "--- Analysis ---",
        "Action: search-notes",
        "\"query\": \"Who was Ada?\"",
        "--- Observation ---",
        "Sample data",
        "--- Conclusion ---",
        "The script answers: Who was Ada?",
    ]);
    assert_eq!(steps(&stage, &session).await, ["analysis", "observation", "conclusion"]);
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn the_thought_of_a_step_can_be_read() {
    let stage = Stage::open().await;
    let session = asked(&stage, "Who was Ada?").await;
    let trace = stage.tg("tg-show-explain-trace", &[&session, "--format", "json"]).await.ok().json();
    let thought = trace["steps"][0]["thought"].as_str().unwrap().to_owned();
    stage.tg("tg-get-document-content", &[&thought]).await.ok().says(&["look"]);
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn a_trace_of_a_plan_shows_plan_steps_and_answer() {
    let stage = Stage::open().await;
    let session = asked(&stage, "Make a plan: who was Ada?").await;
    let shown = stage.tg("tg-show-explain-trace", &[&session, "--show-provenance"]).await.ok();
    shown.never_says("[Error").says(&[
        "--- Plan ---",
        "Plan with 2 steps:",
        "0: Search the notes for: Make a plan: who was Ada?",
        "1: Weigh what the notes say",
        "--- Step Result ---",
        "Step: Weigh what the notes say",
        "Sample data",
        "The notes of step 0 suffice.",
        "--- Synthesis ---",
        "The plan answers \"Make a plan: who was Ada?\" [step 0], weighed [step 1].",
    ]);
    let steps = steps(&stage, &session).await;
    let count = |kind: &str| steps.iter().filter(|step| *step == kind).count();
    assert_eq!([count("plan"), count("step-result"), count("synthesis")], [1, 2, 1], "{steps:?}");
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn a_trace_of_a_team_shows_threads_findings_and_answer() {
    let stage = Stage::open().await;
    let session = asked(&stage, "Ask the team: who was Ada?").await;
    let shown = stage.tg("tg-show-explain-trace", &[&session]).await.ok();
    shown.never_says("[Error").says(&[
        "--- Decomposition ---",
        "Decomposed into 2 research threads:",
        "Find the first half of: Ask the group: who was Ada?",
        "--- Finding ---",
        "Goal: Find the second half of: Ask the group: who was Ada?",
        "The script answers: Find the first half of: Ask the group: who was Ada?",
        "--- Synthesis ---",
        "Both halves answer \"Ask the team: who was Ada?\" [finding 0] [finding 1].",
    ]);
    let steps = steps(&stage, &session).await;
    let count = |kind: &str| steps.iter().filter(|step| *step == kind).count();
    assert_eq!([count("decomposition"), count("finding")], [1, 2], "{steps:?}");
    assert!(count("synthesis") >= 1, "{steps:?}");
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn a_question_that_ended_badly_has_a_trace_too() {
    let stage = Stage::open().await;
    stage.tg("tg-invoke-agent", &["-q", "Please refuse this."]).await;
    let sessions = stage.tg("tg-list-explain-traces", &["--format", "json"]).await.ok().json();
    let session = sessions[0]["id"].as_str().unwrap();
    stage.tg("tg-show-explain-trace", &[session]).await.ok().says(&["Please refuse this."]).never_says("[Error");
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn a_trace_of_reflexion_shows_each_critique_as_an_observation() {
    let stage = Stage::open().await;
    let session = asked(&stage, "With critique: who was Ada?").await;
    let shown = stage.tg("tg-show-explain-trace", &[&session]).await.ok();
    shown.never_says("[Error").says(&[
        "Action: search-notes",
        "Sample data",
        "The script says: answer now.",
        "--- Conclusion ---",
        "The script answers: With critique: who was Ada?",
    ]);
    assert_eq!(steps(&stage, &session).await, ["analysis", "observation", "observation", "conclusion"]);
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn a_trace_of_a_dispatch_shows_the_one_call() {
    let stage = Stage::open().await;
    let session = asked(&stage, "To pass on: who was Ada?").await;
    let shown = stage.tg("tg-show-explain-trace", &[&session]).await.ok();
    shown.never_says("[Error").says(&[
        "Action: search-notes",
        "--- Observation ---",
        "--- Conclusion ---",
        "Sample data",
    ]);
    assert_eq!(steps(&stage, &session).await, ["analysis", "observation", "conclusion"]);
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn a_trace_of_a_debate_shows_its_rounds_and_the_verdict() {
    let stage = Stage::open().await;
    let session = asked(&stage, "To debate: who was Ada?").await;
    let shown = stage.tg("tg-show-explain-trace", &[&session]).await.ok();
    shown.never_says("[Error").says(&[
        "--- Decomposition ---",
        "yes: To debate: who was Ada?",
        "no, rebuttal 1: To debate: who was Ada?",
        "--- Finding ---",
        "--- Synthesis ---",
        "The judge answers \"To debate: who was Ada?\" [finding 2].",
        "How long.",
    ]);
    let steps = steps(&stage, &session).await;
    let count = |kind: &str| steps.iter().filter(|step| *step == kind).count();
    assert_eq!([count("decomposition"), count("finding")], [2, 4], "{steps:?}");
}
