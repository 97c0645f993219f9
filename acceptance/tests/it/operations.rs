//! Operations of an API that describes itself, as tools.

use acceptance::{ApiServer, Output, Stage};

const FORECAST: &str = "forecast_forecast__place__get";
const WISH: &str = "wish_wishes_post";

fn fails(output: &Output, words: &str) {
    assert!(
        !output.succeeded && output.stderr.contains(words),
        "`{}` did not say {words:?}: {}",
        output.command,
        output.stderr
    );
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn an_operation_that_fastapi_describes_is_used_by_an_agent() {
    let server = ApiServer::start().await;
    let allowed = [("TRELLIS_TOOLS_HTTP_HOSTS", "127.0.0.1"), ("TRELLIS_TOOLS_HTTP_PRIVATE", "true")];
    let (stage, document) = (Stage::with(&allowed).await, server.description());
    let add = |name, operation| ["tools", "add", name, "http", "--openapi", &document, "--operation", operation];
    fails(&stage.trellis(&add("forecast", "forcast")).await, FORECAST);
    stage.trellis(&add("forecast", FORECAST)).await.ok();
    let tried = r#"{"place": "Tromsø", "tag": ["a b", "c"], "days": 3}"#;
    let tried = stage.trellis(&["tools", "test", "forecast", tried]).await.ok();
    tried.says(&["Snow tomorrow: Tromsø", r#"["a b","c"]"#, r#""days":3"#]);
    fails(&stage.trellis(&["tools", "test", "forecast", "place=Oslo", "days=9"]).await, "`days`: 9 is not valid");
    fails(&stage.trellis(&["tools", "test", "forecast", "place=Atlantis"]).await, "there is no such place");
    // The script gives every argument the same text.
    stage.trellis(&add("snow", "GET /snow/{place}")).await.ok();
    let answered = stage.tg("tg-invoke-agent", &["-q", "Use snow for Paris", "-v", "-p", "react"]).await.ok();
    answered.says(&["with snow first", "Snow tomorrow"]);
    stage.trellis(&["verify", "last"]).await.ok();
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn an_operation_that_needs_a_key_asks_for_the_name_of_a_secret() {
    let server = ApiServer::start().await;
    let (stage, document) = (Stage::open().await, server.description());
    let add = ["tools", "add", "wish", "http", "--openapi", &document, "--operation", WISH];
    fails(&stage.trellis(&add).await, "--secret names it");
    stage.trellis(&[&add[..], &["--secret", "WISHES"]].concat()).await.ok();
    let listed = stage.trellis(&["tools", "list", "--output", "json"]).await.ok();
    listed.says(&[r#""name":"wish""#, r#""effect":"unsafe""#, "does not allow calls to 127.0.0.1"]);
    stage.trellis(&["config", "get", "tool", "wish"]).await.ok().says(&[
        "Bearer {secret:WISHES}",
        "/wishes",
        r#""days""#,
    ]);
}
