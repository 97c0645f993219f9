//! Prompts, and the language model without an agent.

use acceptance::{MODEL, Stage};

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn a_prompt_is_set_shown_and_invoked() {
    let stage = Stage::open().await;
    let prompt = ["--id", "greet", "--prompt", "Say hello to {{ name }}.", "--response", "text"];
    stage.tg("tg-set-prompt", &prompt).await.ok().says(&["Prompt set."]);
    stage.tg("tg-show-prompts", &[]).await.ok().says(&["greet:", "Say hello to {{ name }}.", "agent-react:"]);
    for more in [&[][..], &["--no-streaming"]] {
        let arguments = [&["greet", "name=Ada", "--show-usage"], more].concat();
        let told = stage.tg("tg-invoke-prompt", &arguments).await.ok();
        let told = told.says(&["Scripted reply to: Say hello to Ada."]);
        told.notes(&["Input tokens: ", "Model: ", MODEL]);
    }
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn a_prompt_that_wants_json_gets_it() {
    let stage = Stage::open().await;
    let schema = r#"{"type":"object","required":["name"],"properties":{"name":{"type":"string"}}}"#;
    let prompt = ["--id", "person", "--prompt", "Name somebody.", "--response", "json", "--schema", schema];
    stage.tg("tg-set-prompt", &prompt).await.ok();
    for more in [&[][..], &["--no-streaming"]] {
        let told = stage.tg("tg-invoke-prompt", &[&["person"], more].concat()).await.ok();
        assert_eq!(told.json(), serde_json::json!({ "name": "scripted" }));
    }
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn the_system_prompt_is_set_and_shown() {
    let stage = Stage::open().await;
    stage.tg("tg-set-prompt", &["--system", "Be terse."]).await.ok().says(&["System prompt set."]);
    stage.tg("tg-show-prompts", &[]).await.ok().says(&["System prompt:", "Be terse."]);
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn an_unknown_prompt_is_told_in_words() {
    let stage = Stage::open().await;
    for more in [&[][..], &["--no-streaming"]] {
        stage.tg("tg-invoke-prompt", &[&["zz"], more].concat()).await.refused("zz");
    }
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn the_language_model_answers_directly() {
    let stage = Stage::open().await;
    for more in [&[][..], &["--no-streaming"]] {
        let arguments = [&["Be brief.", "What is 2 + 2?", "--show-usage"], more].concat();
        let told = stage.tg("tg-invoke-llm", &arguments).await.ok();
        let told = told.says(&["Scripted reply to: What is 2 + 2?"]);
        let told = told.notes(&["Output tokens: ", "Model: ", MODEL]);
        assert!(!told.stderr.contains("None"), "{told}");
    }
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn a_model_that_refuses_is_told_in_words() {
    let stage = Stage::open().await;
    for more in [&[][..], &["--no-streaming"]] {
        let arguments = [&["Be brief.", "Please refuse."], more].concat();
        stage.tg("tg-invoke-llm", &arguments).await.refused("the script refuses this question");
    }
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn the_models_are_listed() {
    let stage = Stage::open().await;
    stage.tg("tg-list-models", &[]).await.ok().says(&[MODEL]);
    let models = stage.tg("tg-list-models", &["--json"]).await.ok().json();
    assert_eq!(models[0]["id"], format!("openai/{MODEL}"));
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn retrieval_from_nothing_is_told_in_words() {
    let stage = Stage::open().await;
    for more in [&[][..], &["-x"]] {
        let told = stage.tg("tg-invoke-graph-rag", &[&["-q", "Who was Ada?"], more].concat()).await.ok();
        told.says(&["The collection `default` has no knowledge."]);
    }
}
