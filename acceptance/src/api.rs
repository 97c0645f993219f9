//! A server of Python's `FastAPI`, which describes itself in `OpenAPI`.

use crate::mcp::listening;
use std::path::Path;
use tokio::process::Child;

/// A running server; it ends when this is dropped.
#[derive(Debug)]
pub struct ApiServer {
    port: u16,
    _child: Child,
}

impl ApiServer {
    pub async fn start() -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/api_server.py");
        let (port, child) = listening(&script).await;
        Self { port, _child: child }
    }

    /// Where it publishes its description.
    pub fn description(&self) -> String {
        format!("http://127.0.0.1:{}/openapi.json", self.port)
    }
}
