//! `tg-invoke-agent`, in all its ways.

use acceptance::{MODEL, Stage};

const PATTERNS: [(&str, &str); 3] = [
    ("react", "The script answers: Who was Ada?"),
    ("plan-then-execute", "The plan answers \"Who was Ada?\" [step 0], weighed [step 1]."),
    ("supervisor", "Both halves answer \"Who was Ada?\" [finding 0] [finding 1]."),
];

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn a_question_is_answered_in_a_stream() {
    let stage = Stage::open().await;
    let answer = stage.tg("tg-invoke-agent", &["-q", "Who was Ada?"]).await.ok();
    assert_eq!(answer.stdout.trim(), "The script answers: Who was Ada?");
}

/// The model is asked again, and what was printed of its answer is not printed twice.
#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn an_answer_that_breaks_off_goes_on_where_it_stopped() {
    let stage = Stage::open().await;
    let question = "Who was Ada, and did she ever lose the line in a conversation?";
    let answer = stage.tg("tg-invoke-agent", &["-q", question, "-p", "react"]).await.ok();
    assert_eq!(answer.stdout.trim(), format!("The script answers: {question}"));
    let asked = stage.model().asked();
    assert_eq!(
        asked.iter().filter(|prompt| *prompt == "agent-react").count(),
        3,
        "a tool, half an answer, a whole one"
    );
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn a_question_is_answered_in_one_piece() {
    let stage = Stage::open().await;
    let answer = stage.tg("tg-invoke-agent", &["-q", "Who was Ada?", "--no-streaming"]).await.ok();
    assert_eq!(answer.stdout.trim(), "The script answers: Who was Ada?");
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn every_pattern_can_be_forced_streaming_and_not() {
    let stage = Stage::open().await;
    for (pattern, answer) in PATTERNS {
        let arguments = ["-q", "Who was Ada?", "-p", pattern];
        stage.tg("tg-invoke-agent", &arguments).await.ok().says(&[answer]);
        let arguments = [&arguments[..], &["--no-streaming"]].concat();
        stage.tg("tg-invoke-agent", &arguments).await.ok().says(&[answer]);
    }
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn thoughts_and_observations_are_shown_to_whoever_wants_them() {
    let stage = Stage::open().await;
    for more in [&["-v"][..], &["-v", "--no-streaming"]] {
        let arguments = [&["-q", "Who was Ada?"], more].concat();
        let shown = stage.tg("tg-invoke-agent", &arguments).await.ok();
        // The client wraps lines, so only short words are looked for.
        shown.says(&["❓ Who was Ada?", "🤔", "look", "💡", "Sample data", "The script answers: Who was Ada?"]);
    }
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn the_cost_of_an_answer_is_told() {
    let stage = Stage::open().await;
    let told = stage.tg("tg-invoke-agent", &["-q", "Who was Ada?", "--show-usage"]).await.ok();
    let told = told.notes(&["Input tokens: ", "Output tokens: ", "Model: ", MODEL]);
    assert!(!told.stderr.contains("None"), "{told}");
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn an_explained_answer_of_react_names_each_step() {
    let stage = Stage::open().await;
    let told = stage.tg("tg-invoke-agent", &["-q", "Who was Ada?", "-x"]).await.ok();
    let told = told.says(&["The script answers: Who was Ada?"]);
    told.notes(&[
        "[session] urn:trustgraph:agent:",
        "Query: Who was Ada?",
        "[analysis: search-notes]",
        "[observation]",
    ])
    .notes(&["[conclusion]", "Document: urn:trustgraph:agent:"]);
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn an_explained_answer_of_a_plan_names_its_steps() {
    let stage = Stage::open().await;
    let told = stage.tg("tg-invoke-agent", &["-q", "Make a plan: who was Ada?", "-x"]).await.ok();
    told.says(&["The plan answers \"Make a plan: who was Ada?\""]).notes(&[
        "[plan]",
        "Step 0: Search the notes for: Make a plan: who was Ada?",
        "Step 1: Weigh what the notes say",
        "[step-result]",
        "[synthesis]",
    ]);
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn an_explained_answer_of_a_team_names_its_threads() {
    let stage = Stage::open().await;
    let told = stage.tg("tg-invoke-agent", &["-q", "Ask the team: who was Ada?", "-x"]).await.ok();
    told.says(&["Both halves answer \"Ask the team: who was Ada?\""]).notes(&[
        "[decompose]",
        "Thread 0: Find the first half of: Ask the group: who was Ada?",
        "Thread 1: Find the second half of: Ask the group: who was Ada?",
        "[finding]",
        "[synthesis]",
    ]);
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn the_router_leads_to_the_pattern_that_the_words_ask_for() {
    let stage = Stage::open().await;
    stage.tg("tg-invoke-agent", &["-q", "Make a plan: who was Ada?"]).await.ok().says(&["The plan answers"]);
    stage.tg("tg-invoke-agent", &["-q", "Ask the team: who was Ada?"]).await.ok().says(&["Both halves answer"]);
    let asked = stage.model().asked();
    for prompt in ["route", "plan-create", "supervisor-decompose", "supervisor-review"] {
        assert!(asked.contains(&prompt.to_owned()), "{prompt} was not asked: {asked:?}");
    }
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn groups_and_states_are_understood() {
    let stage = Stage::open().await;
    // No tool belongs to this group, so the agent answers at once.
    let arguments = ["-q", "Who was Ada?", "-v", "-g", "nobody", "-s", "begun", "-C", "default"];
    stage.tg("tg-invoke-agent", &arguments).await.ok().says(&["The script answers"]).never_says("💡");
    let arguments = ["-q", "Who was Ada?", "-v", "-g", "legal", "financial"];
    stage.tg("tg-invoke-agent", &arguments).await.ok().says(&["The script answers", "💡"]);
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn an_unknown_flow_is_told_in_words() {
    let stage = Stage::open().await;
    for more in [&[][..], &["--no-streaming"], &["-x"]] {
        let arguments = [&["-q", "Who was Ada?", "-f", "zz"], more].concat();
        stage.tg("tg-invoke-agent", &arguments).await.refused("zz");
    }
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn a_model_that_refuses_is_told_in_words() {
    let stage = Stage::open().await;
    for more in [&[][..], &["--no-streaming"], &["-x"]] {
        let arguments = [&["-q", "Please refuse this."], more].concat();
        stage.tg("tg-invoke-agent", &arguments).await.refused("the script refuses this question");
    }
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn an_empty_question_is_told_in_words() {
    let stage = Stage::open().await;
    stage.tg("tg-invoke-agent", &["-q", ""]).await.refused("question");
}

/// A client of which the server takes leave without a word would wait for ever.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn whoever_waits_when_the_server_stops_is_told_in_words() {
    let mut stage = Stage::open().await;
    let questions = [&["--no-streaming"][..], &["-x"], &["-p", "plan-then-execute"], &["-p", "supervisor"]];
    let waiting = questions.map(|more| {
        let arguments = [&["-q", "Please keep me waiting."], more].concat();
        tokio::spawn(stage.begin("tg-invoke-agent", &arguments))
    });
    stage.model().was_asked(questions.len()).await;
    stage.stop().await;
    for client in waiting {
        client.await.unwrap().refused("stop");
    }
}
