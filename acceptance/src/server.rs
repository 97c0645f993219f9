//! The real program, started with an empty data folder.

use parking_lot::Mutex;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;

/// More than a loaded machine needs to start the program.
const PATIENCE: Duration = Duration::from_mins(1);

/// A running `trellis serve`; it is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Trellis {
    pub(crate) url: String,
    log: Log,
    child: Child,
    _folder: TempDir,
}

/// What the program said so far.
type Log = Arc<Mutex<Vec<String>>>;

impl Trellis {
    /// Starts the program and waits until it tells its address.
    pub(crate) async fn start(model: &str, model_url: &str, environment: &[(&str, &str)]) -> Self {
        let folder = TempDir::new().expect("a temporary folder can be made");
        let settings = folder.path().join("settings.toml");
        std::fs::write(&settings, "").expect("a temporary folder can be written to");
        connect_notes(folder.path());
        let mut child = Command::new(program())
            .args(["serve", "--listen", "127.0.0.1:0", "--drain", "1"])
            .env("TRELLIS_DATA", folder.path().join("data"))
            .env("OPENAI_BASE_URL", model_url)
            .env("OPENAI_API_KEY", "sk-acceptance-0123456789")
            .env("OPENAI_MODEL", model)
            // As a model elsewhere would be asked.
            .env("TRELLIS_MODELS_ONE_CALL_ROUTING", "true")
            .env("NO_PROXY", "*")
            .env("NO_COLOR", "1")
            .env("TRELLIS_SETTINGS", settings)
            .env_remove("RUST_LOG")
            .env_remove("ANTHROPIC_API_KEY")
            .env_remove("OLLAMA_HOST")
            .env_remove("TRELLIS_MODEL")
            .env_remove("TRELLIS_TOKEN")
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the program can be started");
        let log = Log::default();
        let (found, mut address) = watch::channel(None);
        listen(child.stdout.take().expect("stdout is piped"), Arc::clone(&log), found.clone());
        listen(child.stderr.take().expect("stderr is piped"), Arc::clone(&log), found);
        let told = tokio::time::timeout(PATIENCE, address.wait_for(Option::is_some)).await;
        let url = told.ok().and_then(Result::ok).and_then(|address| address.clone());
        let url = url.unwrap_or_else(|| panic!("`trellis serve` told no address:\n{}", text(&log)));
        Self { url, log, child, _folder: folder }
    }
}

/// Connects a tool that searches notes, in the place of the sample, which is not offered to a model: the data folder is
/// `data` in this one, the settings file `settings.toml`.
pub(crate) fn connect_notes(folder: &Path) {
    let template = include_str!("../../crates/trellis/seeds/prompts/sample-notes.txt");
    let groups = ["default", "financial", "legal", "reputation", "operations"];
    let argument = json!({ "name": "query", "type": "string", "description": "What to look for" });
    let tool = json!({
        "type": "prompt", "name": "search-notes", "description": "Search the notes on a topic", "template": "notes",
        "group": groups, "arguments": [argument],
    });
    let items = json!({ "items": [
        { "type": "prompt", "key": "template.notes", "value": { "prompt": template, "response-type": "text" } },
        { "type": "tool", "key": "search-notes", "value": tool },
    ] });
    let file = folder.join("notes.json");
    std::fs::write(&file, items.to_string()).expect("a temporary folder can be written to");
    let imported = std::process::Command::new(program())
        .args(["config", "import"])
        .arg(file)
        .env("TRELLIS_DATA", folder.join("data"))
        .env("TRELLIS_SETTINGS", folder.join("settings.toml"))
        .output()
        .expect("the program can be started");
    assert!(imported.status.success(), "{}", String::from_utf8_lossy(&imported.stderr));
}

impl Trellis {
    /// Asks the program to stop, as a service manager does, and waits until it has.
    pub(crate) async fn stop(&mut self) {
        let id = self.child.id().expect("the program runs until it is stopped").to_string();
        let asked = Command::new("kill").args(["-TERM", &id]).status().await;
        assert!(asked.is_ok_and(|status| status.success()), "the program cannot be asked to stop");
        let ended = tokio::time::timeout(PATIENCE, self.child.wait()).await;
        let ended = ended.unwrap_or_else(|_| panic!("`trellis serve` did not stop:\n{}", text(&self.log)));
        assert!(ended.is_ok_and(|status| status.success()), "`trellis serve` stopped badly:\n{}", text(&self.log));
    }
}

impl Drop for Trellis {
    /// A failed test shows what the server had to say.
    #[allow(clippy::print_stderr, reason = "for whoever reads the failure")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- what `trellis serve` said\n{}", text(&self.log));
        }
    }
}

/// The binary that lies where this test was built.
pub(crate) fn program() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own path");
    let folder = test.parent().and_then(Path::parent).expect("tests are built into deps");
    let program = folder.join(format!("trellis{}", std::env::consts::EXE_SUFFIX));
    assert!(program.exists(), "{} is not built: run `cargo xtask test`", program.display());
    program
}

/// Keeps every line, and reports the first address among them.
fn listen(output: impl AsyncRead + Send + Unpin + 'static, log: Log, found: watch::Sender<Option<String>>) {
    tokio::spawn(async move {
        let mut lines = BufReader::new(output).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            if let Some(url) = address_in(&line) {
                found.send_if_modified(|known| known.replace(url).is_none());
            }
            log.lock().push(line);
        }
    });
}

/// The address that the line `serving` names.
fn address_in(line: &str) -> Option<String> {
    let (_, rest) = line.split_once("serving")?;
    let word = &rest[rest.find("http://127.0.0.1:")?..];
    Some(word.split(|c: char| c.is_whitespace() || c == '"').next().unwrap_or(word).to_owned())
}

fn text(log: &Log) -> String {
    log.lock().join("\n")
}
