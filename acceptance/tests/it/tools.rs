//! Tools and MCP servers of an agent, changed while the server runs.

use acceptance::Stage;

const WEATHER: [&str; 14] = [
    "--id",
    "weather",
    "--name",
    "weather-report",
    "--description",
    "The weather of a place",
    "--type",
    "prompt",
    "--template",
    "weather",
    "--argument",
    "place:string:Where",
    "--group",
    "default",
];

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn a_tool_set_while_the_server_runs_is_used_by_the_next_dialog() {
    let stage = Stage::open().await;
    let question = ["-q", "Use weather-report for Paris", "-v", "-p", "react"];
    stage.tg("tg-invoke-agent", &question).await.ok().never_says("Sunshine");
    let prompt = ["--id", "weather", "--prompt", "Sunshine in {{ place }}", "--response", "text"];
    stage.tg("tg-set-prompt", &prompt).await.ok().says(&["Prompt set."]);
    stage.tg("tg-set-tool", &WEATHER).await.ok().says(&["Tool set."]);
    stage.tg("tg-show-tools", &[]).await.ok().says(&["weather-report", "The weather of a place", "place: string"]);
    // What the client wraps is looked for in pieces.
    let used = stage.tg("tg-invoke-agent", &question).await.ok();
    used.says(&["weather-report", "Scripted reply to: Sunshine in"]);
    stage.tg("tg-delete-tool", &["--id", "weather"]).await.ok().says(&["Tool 'weather' deleted successfully."]);
    stage.tg("tg-invoke-agent", &question).await.ok().never_says("Sunshine");
    stage.tg("tg-delete-tool", &["--id", "weather"]).await.says(&["Tool configuration for 'weather' not found."]);
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn the_seeded_tools_are_shown() {
    let stage = Stage::open().await;
    stage.tg("tg-show-tools", &[]).await.ok().says(&["search-notes", "ask-model", "text-completion", "financial-data"]);
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn a_tool_without_description_is_still_a_tool() {
    let stage = Stage::open().await;
    let tool = ["--id", "bare", "--name", "bare-tool", "--type", "text-completion"];
    stage.tg("tg-set-tool", &tool).await.ok().says(&["Tool set."]);
    stage.tg("tg-show-tools", &[]).await.ok().says(&["bare-tool"]);
    let used = stage.tg("tg-invoke-agent", &["-q", "Ask bare-tool", "-v", "-p", "react"]).await.ok();
    used.says(&["bare-tool first", "💡", "Scripted reply to"]);
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn an_mcp_tool_is_set_shown_and_deleted() {
    let stage = Stage::open().await;
    let tool = ["-i", "clock", "-r", "time", "--tool-url", "http://127.0.0.1:1/mcp", "--auth-token", "secret"];
    stage.tg("tg-set-mcp-tool", &tool).await.ok();
    let shown = stage.tg("tg-show-mcp-tools", &[]).await.ok();
    shown.says(&["clock", "time", "http://127.0.0.1:1/mcp", "Yes (configured)"]).never_says("secret");
    stage.tg("tg-delete-mcp-tool", &["--id", "clock"]).await.ok().says(&["deleted successfully"]);
    stage.tg("tg-show-mcp-tools", &[]).await.ok().never_says("clock");
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn an_mcp_tool_that_cannot_be_called_is_told_in_words() {
    let stage = Stage::open().await;
    let tool = ["-i", "clock", "-r", "time", "--tool-url", "http://127.0.0.1:1/mcp"];
    stage.tg("tg-set-mcp-tool", &tool).await.ok();
    let time = ["-n", "clock", "-P", "{\"zone\": \"UTC\"}"];
    stage.tg("tg-invoke-mcp-tool", &time).await.refused("the operator does not allow calls to 127.0.0.1");
    stage.tg("tg-invoke-mcp-tool", &["-n", "nothing", "-P", "{}"]).await.refused("there is no mcp item `nothing`");
}
