//! A data folder whose tools are those of an MCP server that lists whatever it is told to.

use super::{Call, Player, folder};
use crate::Asking;
use crate::clients::{Clients, Output};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// More iterations than any run here has calls.
const ITERATIONS: &str = "max-iterations=100";

/// A tool as a server lists it.
#[derive(Debug, Clone)]
pub struct ListedTool {
    pub name: String,
    pub description: String,
    pub schema: Value,
    /// What every call of it brings; without it, what it was called with.
    pub answer: Option<String>,
}

/// The folder, its tools and the model.
#[derive(Debug)]
pub struct Listed {
    player: Player,
    asking: Asking,
    folder: TempDir,
}

impl Listed {
    /// A folder with these tools, discovered from a server.
    pub async fn open(tools: &[ListedTool]) -> Self {
        let folder = TempDir::new().expect("a temporary folder can be made");
        let (list, servers) = (folder.path().join("tools.jsonl"), folder.path().join("mcp.json"));
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/listed_server.py");
        let program = json!({ "command": Clients::installed().program("python"), "args": [script, list] });
        let write =
            |path: &Path, text: String| std::fs::write(path, text).expect("a temporary folder can be written to");
        write(&servers, json!({ "mcpServers": { "listed": program } }).to_string());
        let tools: Vec<_> = tools.iter().map(|tool| tool.written().to_string()).collect();
        write(&list, tools.join("\n"));
        let player = Player::start().await;
        let asking = Asking::with(player.environment()).set("TRELLIS_MCP_CONFIG", &servers.display().to_string());
        let this = Self { player, asking, folder };
        this.trellis(&["tools", "discover", "--add"]).await.ok();
        this
    }

    pub async fn trellis(&self, arguments: &[&str]) -> Output {
        self.asking.trellis(arguments).await
    }

    /// Writes a file beside the data folder, and gives its path.
    pub fn file(&self, name: &str, text: &str) -> String {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("it lies in a folder")).expect("a folder can be made");
        std::fs::write(&path, text).expect("a temporary folder can be written to");
        path.display().to_string()
    }

    /// Has the model make these calls in a run of its own, and answer then.
    ///
    /// # Panics
    ///
    /// If the run does not end well, or cannot be verified.
    pub async fn play(&self, question: &str, calls: &[Call], answer: &str) -> Played {
        self.player.play(calls, answer);
        let ask = ["ask", question, "--pattern", "react", "--limit", ITERATIONS];
        let said = self.trellis(&ask).await.ok().says(&[answer]);
        self.trellis(&["verify", "last"]).await.ok();
        let requests = self.player.requests();
        Played {
            results: requests.last().map(results_in).unwrap_or_default(),
            requests,
            others: self.player.others(),
            said,
        }
    }
}

/// A run that was played.
#[derive(Debug)]
pub struct Played {
    /// What each call brought, as the model was shown it.
    pub results: Vec<(Call, String)>,
    /// Everything that the model was asked for a step.
    pub requests: Vec<Value>,
    /// Everything else that it was asked, with the ids of the prompts: what tools had to ask.
    pub others: Vec<(String, Value)>,
    /// What the program printed meanwhile.
    pub said: Output,
}

impl ListedTool {
    fn written(&self) -> Value {
        let Self { name, description, schema, answer } = self;
        let mut tool = json!({ "name": name, "description": description, "schema": schema });
        if let Some(answer) = answer {
            tool["answer"] = json!(answer);
        }
        tool
    }
}

/// The calls that a conversation shows, each with what stands below it.
fn results_in(request: &Value) -> Vec<(Call, String)> {
    let messages = request["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut results = Vec::new();
    for pair in messages.windows(2) {
        let function = &pair[0]["tool_calls"][0]["function"];
        let Some(tool) = function["name"].as_str() else { continue };
        let mut arguments: Map<String, Value> =
            serde_json::from_str(function["arguments"].as_str().unwrap_or_default()).unwrap_or_default();
        arguments.remove(super::player::THOUGHT);
        let shown = pair[1]["content"].as_str().unwrap_or_default().to_owned();
        results.push((Call { tool: tool.to_owned(), arguments }, shown));
    }
    results
}

/// The lines of a file that `cargo xtask acceptance` made, as JSON.
pub fn lines(name: &str) -> Vec<Value> {
    let path = folder().join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(|line| serde_json::from_str(line).expect("lines of JSON")).collect()
}

/// The documents of tau2's bank, by their ids.
pub fn documents() -> BTreeMap<String, String> {
    let read = |path: PathBuf| {
        let id = path.file_stem()?.to_str()?.to_owned();
        Some((id, std::fs::read_to_string(&path).ok()?))
    };
    let files = std::fs::read_dir(folder().join("banking")).expect("`cargo xtask acceptance` has made it");
    files.filter_map(|file| read(file.ok()?.path())).collect()
}
