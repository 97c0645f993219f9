//! Tools on a server of the published MCP package, over both of its ways.

use acceptance::{McpServer, Stage};

async fn stage(server: &McpServer) -> Stage {
    let file = server.file();
    let file = file.to_str().expect("a temporary folder has a plain name");
    let host = ("TRELLIS_TOOLS_HTTP_HOSTS", "127.0.0.1");
    Stage::with(&[("TRELLIS_MCP_CONFIG", file), host, ("TRELLIS_TOOLS_HTTP_PRIVATE", "true")]).await
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn what_servers_have_is_discovered_and_used_by_agents() {
    let server = McpServer::start().await;
    let (stage, file) = (stage(&server).await, server.file());
    let discover = ["tools", "discover", "--add", "--mcp-config", file.to_str().unwrap()];
    stage.trellis(&discover).await.ok().says(&["forecast", "program", "web"]);
    stage.tg("tg-show-tools", &[]).await.ok().says(&["web_forecast", "The forecast for a place."]);
    for tool in ["forecast", "web_forecast"] {
        let question = format!("Use {tool} for Paris");
        let answered = stage.tg("tg-invoke-agent", &["-q", &question, "-v", "-p", "react"]).await.ok();
        answered.says(&[&format!("with {tool} first"), "Snow tomorrow"]);
        stage.trellis(&["tools", "remove", tool]).await.ok();
    }
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn a_server_that_falls_over_is_told_of_and_started_again() {
    let server = McpServer::start().await;
    let (stage, file) = (stage(&server).await, server.file());
    let discover = ["tools", "discover", "program", "--add", "--mcp-config", file.to_str().unwrap()];
    stage.trellis(&discover).await.ok().says(&["fall_over"]);
    let told = stage.tg("tg-invoke-agent", &["-q", "Use fall_over for Paris", "-v", "-p", "react"]).await.ok();
    told.says(&["the server has gone away", "I fall over"]);
    let answered = stage.tg("tg-invoke-agent", &["-q", "Use forecast for Paris", "-v", "-p", "react"]).await.ok();
    answered.says(&["Snow tomorrow"]);
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn what_a_tool_asks_a_person_for_is_shown_and_answered_over_mcp() {
    let server = McpServer::start().await;
    let (stage, file) = (stage(&server).await, server.file());
    let discover = ["tools", "discover", "web", "--add", "--only", "book", "--mcp-config", file.to_str().unwrap()];
    stage.trellis(&discover).await.ok().says(&["book"]);
    stage.python("mcp_asking.py").await.ok().says(&["asking: all well"]);
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn the_stock_command_calls_a_tool_of_the_workspace() {
    let server = McpServer::start().await;
    let (stage, url) = (stage(&server).await, server.url());
    stage.tg("tg-set-mcp-tool", &["-i", "snow", "-r", "forecast", "--tool-url", &url]).await.ok();
    let called = stage.tg("tg-invoke-mcp-tool", &["-n", "snow", "-P", r#"{"place": "Paris"}"#]).await.ok();
    called.says(&["Snow tomorrow: Paris"]);
    let refused = stage.tg("tg-invoke-mcp-tool", &["-n", "snow", "-P", r#"{"place": "Atlantis"}"#]).await;
    refused.refused("forecast");
    let tool = ["--id", "snow", "--name", "snow", "--description", "Snow", "--type", "mcp-tool", "--mcp-tool", "snow"];
    stage.tg("tg-set-tool", &[&tool[..], &["--argument", "place:string:Where"]].concat()).await.ok();
    let used = stage.tg("tg-invoke-agent", &["-q", "Use snow for Paris", "-v", "-p", "react"]).await.ok();
    used.says(&["with snow first", "Snow tomorrow"]);
}
