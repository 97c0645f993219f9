//! Flows and their blueprints.

use acceptance::Stage;

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn the_built_in_flow_and_its_blueprint_are_shown() {
    let stage = Stage::open().await;
    stage.tg("tg-show-flows", &[]).await.ok().says(&["| id        | default", "trellis"]);
    stage.tg("tg-show-flow-blueprints", &[]).await.ok().says(&["| name        | trellis", "description"]);
    let definition = stage.tg("tg-get-flow-blueprint", &["-n", "trellis"]).await.ok().json();
    assert!(definition["description"].is_string(), "{definition}");
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn a_flow_is_started_used_and_stopped() {
    let stage = Stage::open().await;
    let ask = ["-q", "Who was Ada?", "-f", "second"];
    stage.tg("tg-invoke-agent", &ask).await.refused("second");
    let start = ["-n", "trellis", "-i", "second", "-d", "Another way in", "--param", "colour=green"];
    assert_eq!(stage.tg("tg-start-flow", &start).await.ok().stdout, "");
    stage.tg("tg-show-flows", &[]).await.ok().says(&["second", "Another way in", "colour"]);
    stage.tg("tg-invoke-agent", &ask).await.ok().says(&["The script answers: Who was Ada?"]);
    stage.tg("tg-start-flow", &start).await.refused("second");
    assert_eq!(stage.tg("tg-stop-flow", &["-i", "second"]).await.ok().stdout, "");
    stage.tg("tg-show-flows", &[]).await.ok().never_says("second");
    stage.tg("tg-stop-flow", &["-i", "second"]).await.refused("second");
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn a_blueprint_is_put_shown_and_deleted() {
    let stage = Stage::open().await;
    let definition = r#"{"description": "My own", "tags": ["mine"], "parameters": {}}"#;
    stage.tg("tg-put-flow-blueprint", &["-n", "own", "-c", definition]).await.ok();
    stage.tg("tg-show-flow-blueprints", &[]).await.ok().says(&["own", "My own", "mine"]);
    stage.tg("tg-delete-flow-blueprint", &["-n", "own"]).await.ok();
    stage.tg("tg-show-flow-blueprints", &[]).await.ok().never_says("My own");
    stage.tg("tg-start-flow", &["-n", "own", "-i", "x", "-d", "y"]).await.refused("own");
}
