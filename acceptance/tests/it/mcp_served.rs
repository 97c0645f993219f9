//! Trellis as an MCP server: the published client and `FastMCP`'s over both transports, and the official conformance suite.

use acceptance::{Folder, Stage};
use serde_json::json;
use std::path::Path;
use tempfile::TempDir;

const TOKEN: &str = "open-sesame";
/// What the conformance suite wants that is not here, with the reasons.
const NOT_HERE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/mcp-conformance.yml");

/// Something to search.
struct Files(TempDir);

impl Files {
    fn write() -> Self {
        let folder = TempDir::new().unwrap();
        let text = "# Bridges\n\nThe old bridge carries 24 tonnes.\n";
        std::fs::write(folder.path().join("bridges.md"), text).unwrap();
        let rdf = r#"<https://example.org/bridge> <http://www.w3.org/2000/01/rdf-schema#label> "The old bridge" ."#;
        std::fs::write(folder.path().join("bridges.ttl"), rdf).unwrap();
        Self(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn the_published_client_asks_and_is_told_why_over_http() {
    let (stage, files) = (Stage::open().await, Files::write());
    stage.trellis(&["load", files.path().to_str().unwrap()]).await.ok();
    stage.python("mcp_client.py").await.ok().says(&["mcp: all well"]);
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn the_published_client_starts_the_program_on_a_folder() {
    let (stage, files) = (Stage::open().await, Files::write());
    let folder = Folder::new(stage.model());
    folder.run(&["load", files.path().to_str().unwrap()]);
    let (program, variables) = (Folder::program().display().to_string(), folder.variables());
    let arguments = json!(["mcp"]).to_string();
    let mut all = vec![program.as_str(), &arguments];
    all.extend(variables.iter().map(String::as_str));
    stage.python_with("mcp_client.py", &all).await.ok().says(&["mcp: all well"]);
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn the_published_client_starts_the_program_in_front_of_a_server() {
    let (stage, files) = (Stage::behind(TOKEN).await, Files::write());
    let token = format!("TRUSTGRAPH_TOKEN={TOKEN}");
    for name in ["bridges.md", "bridges.ttl"] {
        let file = files.path().join(name).display().to_string();
        stage.trellis_as(TOKEN, &["load", &file]).await.ok();
    }
    let (program, arguments) =
        (Folder::program().display().to_string(), json!(["mcp", "--url", stage.url()]).to_string());
    stage
        .python_with("mcp_client.py", &[&program, &arguments, &token, "NO_PROXY=*"])
        .await
        .ok()
        .says(&["mcp: all well"]);
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn a_token_lets_the_published_client_in_and_a_wrong_one_does_not() {
    let (stage, files) = (Stage::behind(TOKEN).await, Files::write());
    stage.trellis_as(TOKEN, &["load", files.path().to_str().unwrap()]).await.ok();
    stage.python_as(TOKEN, "mcp_client.py").await.ok().says(&["mcp: all well"]);
    let refused = stage.python_as("wrong", "mcp_client.py").await;
    assert!(!refused.succeeded && refused.stderr.contains("send a token that is known"), "{refused}");
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn fastmcp_asks_with_progress_and_as_a_task_over_http() {
    let stage = Stage::open().await;
    stage.python("mcp_fastmcp.py").await.ok().says(&["fastmcp: all well"]);
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn fastmcp_asks_with_progress_and_as_a_task_of_the_program_that_it_starts() {
    let stage = Stage::open().await;
    let folder = Folder::new(stage.model());
    let (program, variables) = (Folder::program().display().to_string(), folder.variables());
    let arguments = json!(["mcp"]).to_string();
    let mut all = vec![program.as_str(), &arguments];
    all.extend(variables.iter().map(String::as_str));
    stage.python_with("mcp_fastmcp.py", &all).await.ok().says(&["fastmcp: all well"]);
}

/// The notes of the stage, which nobody looks into without being asked.
async fn careful(stage: &Stage) -> String {
    let mut notes = stage.trellis(&["config", "get", "tool", "search-notes"]).await.ok().json();
    (notes["name"], notes["requires-approval"]) = ("careful-notes".into(), true.into());
    notes.to_string()
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn the_published_client_is_asked_what_a_run_waits_for_over_http() {
    let stage = Stage::open().await;
    let tool = careful(&stage).await;
    stage.trellis(&["tools", "add", "careful-notes", &tool]).await.ok();
    stage.python("mcp_deciding.py").await.ok().says(&["deciding: all well"]);
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn the_published_client_is_asked_what_a_run_waits_for_by_the_program_that_it_starts() {
    let stage = Stage::open().await;
    let (tool, folder) = (careful(&stage).await, Folder::new(stage.model()));
    folder.run(&["tools", "add", "careful-notes", &tool]);
    let (program, variables) = (Folder::program().display().to_string(), folder.variables());
    let arguments = json!(["mcp"]).to_string();
    let mut all = vec![program.as_str(), &arguments];
    all.extend(variables.iter().map(String::as_str));
    stage.python_with("mcp_deciding.py", &all).await.ok().says(&["deciding: all well"]);
}

/// The suite fails if a scenario fails that is not in the list, and if one passes that is.
#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn the_conformance_suite_finds_what_is_known_and_nothing_else() {
    let stage = Stage::open().await;
    let address = format!("{}mcp", stage.url());
    let suite = ["server", "--url", &address, "--suite", "all", "--expected-failures", NOT_HERE];
    let told = stage.node_package("@modelcontextprotocol/conformance/dist/index.js", &suite).await;
    assert!(told.succeeded, "{told}");
    for scenario in ["server-initialize", "ping", "tools-list", "dns-rebinding-protection"] {
        assert!(told.stdout.contains(scenario), "{scenario} was not run: {told}");
    }
}
