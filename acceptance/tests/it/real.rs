//! One short conversation with a real language model. It is far too small to answer anything: what is asserted must hold
//! with any model.

use acceptance::{Asking, RealModel};

const QUESTION: &str = "What is a trellis? Look it up in the notes.";

#[tokio::test]
#[ignore = "needs the stock clients and a model: run `cargo xtask test`"]
async fn a_run_with_a_real_model_ends_and_can_be_verified() {
    let model = RealModel::start().await;
    let asking = Asking::with(model.environment())
        .set("TRELLIS_MODELS_TEMPERATURE", "0")
        .set("TRELLIS_MODELS_MAX_TOKENS", "48")
        .set("TRELLIS_MODELS_FIRST_TOKEN_TIMEOUT_MS", "400000")
        .set("TRELLIS_MODELS_NATIVE_TOOLS", "false");
    // A short list of tools and few words, and much time: the machine may have other things to do.
    let question = ["ask", QUESTION, "--pattern", "react", "--group", "financial"];
    let limits = ["--limit", "max-iterations=2", "--limit", "run-timeout-ms=600000"];
    let told = asking.trellis_patiently(&[&question[..], &limits].concat()).await;
    let shown = asking.trellis(&["run", "show", "last", "--output", "json"]).await.ok().json();
    let state = shown["state"].as_str().unwrap_or_default();
    assert!(["answered", "answered-partial", "failed", "limit"].contains(&state), "the run has ended: {state}\n{told}");
    asking.trellis(&["verify", "last"]).await.ok();

    let replies = asking.records("replied").await;
    assert!(!replies.is_empty(), "nothing that the model said is on record: {told}");
    for reply in &replies {
        assert!(reply["model"].as_str().is_some_and(|model| model.starts_with("openai/")), "{reply}");
        assert!(reply["out_token"].as_u64().is_some_and(|tokens| tokens > 0), "{reply}");
        assert_eq!(reply["prompt"]["format"], "text", "the tools are in the text: {reply}");
        assert_eq!(reply["prompt"]["parameters"]["stream"], true, "{reply}");
    }

    let prompt = asking.trellis(&["config", "get", "prompt", "template.agent-react"]).await.ok().stdout;
    let answer = told.stdout.trim();
    let is_echo = answer.len() > 20 && words(&prompt.replace("\\n", " ")).contains(&words(answer));
    assert!(!is_echo, "a piece of the prompt came back as the answer: {told}");
}

/// The words with one space between them.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
