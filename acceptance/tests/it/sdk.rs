//! The Python SDK, by our own programs: each checks its results itself.

use acceptance::Stage;

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn the_sdk_asks_agents_over_rest_and_sockets_at_once_and_in_turn() {
    let stage = Stage::open().await;
    stage.python("sdk_agent.py").await.ok().says(&["agent: all well"]);
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn the_sdk_manages_what_a_workspace_holds() {
    let stage = Stage::open().await;
    stage.python("sdk_workspace.py").await.ok().says(&["workspace: all well"]);
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn the_sdk_reads_the_graph_and_explains_answers() {
    let stage = Stage::open().await;
    stage.python("sdk_explain.py").await.ok().says(&["explain: all well"]);
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn the_sdk_raises_errors_that_can_be_read() {
    let stage = Stage::open().await;
    stage.python("sdk_errors.py").await.ok().says(&["errors: all well"]);
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn the_sdk_never_waits_in_vain_for_something_large() {
    let stage = Stage::open().await;
    stage.python("sdk_large.py").await.ok().says(&["large: all well"]);
}
