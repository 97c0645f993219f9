//! Trellis in the place of OpenAI: the packages that programs use for it, unchanged.

use acceptance::Stage;

const TOKEN: &str = "sk-open-sesame";

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn the_python_package_chats_asks_for_responses_and_understands_errors() {
    let stage = Stage::open().await;
    stage.python("openai_server.py").await.ok().says(&["openai: all well"]);
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn a_wrong_key_is_an_authentication_error() {
    let stage = Stage::behind(TOKEN).await;
    stage.python_as(TOKEN, "openai_access.py").await.ok().says(&["access: all well"]);
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn the_node_package_chats_asks_for_responses_and_understands_errors() {
    let stage = Stage::open().await;
    stage.node("openai_server.cjs").await.ok().says(&["openai: all well"]);
}
