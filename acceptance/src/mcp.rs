//! A server of the published MCP package, as a program for others to start and as an address.

use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tempfile::TempDir;
use tokio::process::{Child, Command};

/// More than a loaded machine needs to start Python.
const PATIENCE: Duration = Duration::from_mins(1);

/// A running server; it ends when this is dropped.
#[derive(Debug)]
pub struct McpServer {
    port: u16,
    folder: TempDir,
    _child: Child,
}

impl McpServer {
    /// Starts it over HTTP, and waits until it can be reached.
    pub async fn start() -> Self {
        let (port, child) = listening(&script()).await;
        Self { port, folder: TempDir::new().expect("a temporary folder can be made"), _child: child }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    /// A file that names the same server twice: as a `program`, and by its address as `web`.
    pub fn file(&self) -> PathBuf {
        let program = json!({ "command": python(), "args": [script()] });
        let servers = json!({ "mcpServers": { "program": program, "web": { "type": "http", "url": self.url() } } });
        let file = self.folder.path().join("mcp.json");
        std::fs::write(&file, servers.to_string()).expect("a temporary folder can be written to");
        file
    }
}

/// Starts a server of Python's at a free port, and waits until it can be reached.
pub(crate) async fn listening(script: &Path) -> (u16, Child) {
    let port = free_port();
    let child = Command::new(python())
        .arg(script)
        .arg(port.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("the server can be started");
    let listens = async {
        while tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, listens).await.expect("the server listens");
    (port, child)
}

fn python() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/clients/bin/python")
}

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("python/mcp_server.py")
}

/// Nobody else is given it for a while.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    listener.local_addr().expect("a listener has an address").port()
}
