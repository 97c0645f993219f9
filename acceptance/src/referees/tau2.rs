//! A domain of tau2-bench: its tools on an MCP server, and its tasks solved by runs of the program, also of one that is killed.

use super::{Call, Player, folder};
use crate::Asking;
use crate::clients::Clients;
use axum::Router;
use axum::extract::State;
use axum::routing::post;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Child;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// More than a loaded machine needs for anything that is done here.
const PATIENCE: Duration = Duration::from_mins(2);
/// More iterations than any task has calls.
const ITERATIONS: &str = "max-iterations=60";
const SIGKILL: i32 = 9;

/// The server of a domain, a data folder with its tools, and the model.
#[derive(Debug)]
pub struct Domain {
    player: Player,
    asking: Asking,
    port: u16,
    /// Asks for the death of the program, and tells when it has come.
    deaths: mpsc::Receiver<oneshot::Sender<()>>,
    executioner: String,
    tasks: BTreeMap<String, Vec<Call>>,
    /// How many tasks were begun: each run has a name of its own.
    solved: usize,
    listening: JoinHandle<()>,
    _server: Child,
    folder: TempDir,
}

/// When the program is killed, counted from each start of it.
#[derive(Debug, Clone, Copy)]
pub struct Kill {
    /// Which call, or which question to the model.
    pub at: usize,
    pub moment: Moment,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// A call has come to the server, which does not make it.
    Lost,
    /// A call has come to the server, which makes it afterwards.
    Before,
    /// A call was made, and its outcome is still on the way.
    After,
    /// So many milliseconds after the model was asked: wherever the program is then.
    Asked(u64),
}

/// How a task was solved.
#[derive(Debug)]
pub struct Solved {
    /// The database as it is, and as it has to be.
    pub state: String,
    pub right: String,
    /// The calls that the server has made, in their order.
    pub made: Vec<Call>,
    /// The calls that somebody was asked about, and what was answered.
    pub decided: Vec<(Call, &'static str)>,
    /// How often the program was killed.
    pub killed: usize,
}

impl Domain {
    /// Starts the server and makes its tools those of an empty data folder.
    pub async fn open(name: &str) -> Self {
        let port = free_port();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/tau2_server.py");
        let server = tokio::process::Command::new(Clients::installed().program("python"))
            .arg(script)
            .arg(folder())
            .args([name, &port.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("the installed Python can be started");
        let reached = async {
            while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(PATIENCE, reached).await.expect("the server of the domain listens");
        let folder = TempDir::new().expect("a temporary folder can be made");
        let file = folder.path().join("mcp.json");
        let address = format!("http://127.0.0.1:{port}/mcp");
        let servers = json!({ "mcpServers": { name: { "type": "http", "url": address } } });
        std::fs::write(&file, servers.to_string()).expect("a temporary folder can be written to");
        let player = Player::start().await;
        let asking = Asking::with(player.environment()).set("TRELLIS_MCP_CONFIG", &file.display().to_string());
        asking.trellis(&["tools", "discover", "--add"]).await.ok();
        let (executioner, deaths, listening) = executioner().await;
        let tasks = tasks(&exchange(port, "GET", "/tasks", &Value::Null).await);
        Self { player, asking, port, deaths, executioner, tasks, solved: 0, listening, _server: server, folder }
    }

    /// The tasks, by their names, with the calls that solve them.
    pub fn tasks(&self) -> &BTreeMap<String, Vec<Call>> {
        &self.tasks
    }

    /// The tools as they were discovered: their names with what their calls change.
    pub async fn effects(&self) -> BTreeMap<String, String> {
        let listed = self.asking.trellis(&["config", "export"]).await.ok().json();
        let items = listed["items"].as_array().into_iter().flatten();
        let tools = items.map(|item| &item["value"]).filter(|value| value["type"] == "mcp-tool");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        tools.map(|tool| (text(&tool["name"]), text(&tool["effect"]))).collect()
    }

    /// Has a task solved by a run, killing the program at these moments, one after the other.
    ///
    /// # Panics
    ///
    /// If the run does not end well, or cannot be verified.
    pub async fn solve(&mut self, task: &str, kills: &[Kill]) -> Solved {
        let begun = exchange(self.port, "POST", "/begin", &json!({ "task": task })).await;
        let right = begun["right"].as_str().expect("the server tells the right state").to_owned();
        self.player.play(&self.tasks[task], "It is done.");
        self.solved += 1;
        let (question, session) = (format!("Do what task {task} asks for."), format!("task-{task}-{}", self.solved));
        let ask = ["ask", &question, "--session", &session, "--pattern", "react", "--limit", ITERATIONS];
        let (mut killed, mut decided) = (0, Vec::new());
        loop {
            let status = self.live(&ask, kills.get(killed).copied()).await;
            if status.signal() == Some(SIGKILL) {
                killed += 1;
            } else if !status.success() {
                let about = self.decide(&session).await;
                let said = std::fs::read_to_string(self.said()).unwrap_or_default();
                assert!(
                    !about.is_empty(),
                    "task {task}: the program ended with {status} and waits for nobody:\n{said}"
                );
                decided.extend(about);
            } else {
                break;
            }
        }
        self.asking.trellis(&["verify", &session]).await.ok();
        let told = exchange(self.port, "GET", "/state", &Value::Null).await;
        let state = told["state"].as_str().expect("the server tells its state").to_owned();
        Solved { state, right, made: made(&told), decided, killed }
    }

    /// One life of the program.
    async fn live(&mut self, arguments: &[&str], kill: Option<Kill>) -> ExitStatus {
        let (at, word, delay) = match kill.map(|kill| (kill.at, kill.moment)) {
            Some((at, Moment::Lost)) => (at, "lost", None),
            Some((at, Moment::Before)) => (at, "before", None),
            Some((at, Moment::After)) => (at, "after", None),
            Some((at, Moment::Asked(delay))) => (0, "never", Some((at, Duration::from_millis(delay)))),
            None => (0, "never", None),
        };
        let order = json!({ "url": self.executioner, "call": at, "moment": word });
        exchange(self.port, "POST", "/kill", &order).await;
        let asked = self.player.times_asked();
        let mut command = self.asking.command(arguments);
        let said = std::fs::File::create(self.said()).expect("a temporary folder can be written to");
        let mut child = command.stdout(Stdio::null()).stderr(said).spawn().expect("the program can be started");
        let time_has_come = async {
            let Some((times, delay)) = delay else { return std::future::pending().await };
            self.player.was_asked(asked + times).await;
            tokio::time::sleep(delay).await;
        };
        let told = tokio::select! {
            ended = tokio::time::timeout(PATIENCE, child.wait()) => {
                return ended.expect("the program ends").expect("its end can be waited for");
            }
            death = self.deaths.recv() => death,
            () = time_has_come => None,
        };
        child.start_kill().expect("a program can be killed");
        let status = child.wait().await.expect("the end of a program can be waited for");
        // Whoever asked for it may have been cut off with the program.
        if let Some(told) = told {
            told.send(()).ok();
        }
        status
    }

    /// Answers what the run waits for, by what the server has on record.
    async fn decide(&self, run: &str) -> Vec<(Call, &'static str)> {
        let shown = self.asking.trellis(&["run", "show", run, "--output", "json"]).await.ok().json();
        let told = exchange(self.port, "GET", "/state", &Value::Null).await;
        let mut decided = Vec::new();
        for question in shown["waiting_for"].as_array().into_iter().flatten() {
            let call = call(&question["tool"], &question["arguments"]);
            let mut entries = told["journal"].as_array().into_iter().flatten();
            let entry = entries.rfind(|entry| self::call(&entry["tool"], &entry["arguments"]) == call);
            let choice = if entry.is_some() { "result" } else { "retry" };
            let result = entry.map(|entry| entry["result"].as_str().unwrap_or_default());
            let mut decide = vec!["run", "decide", run, choice];
            decide.extend(result.into_iter().flat_map(|result| ["--result", result]));
            self.asking.trellis(&decide).await.ok();
            decided.push((call, choice));
        }
        decided
    }

    /// What the program said in its last life.
    fn said(&self) -> PathBuf {
        self.folder.path().join("said.txt")
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

/// The calls that the server has made.
fn made(told: &Value) -> Vec<Call> {
    let entries = told["journal"].as_array().into_iter().flatten();
    entries.map(|entry| call(&entry["tool"], &entry["arguments"])).collect()
}

fn call(tool: &Value, arguments: &Value) -> Call {
    let tool = tool.as_str().unwrap_or_default().to_owned();
    Call { tool, arguments: arguments.as_object().cloned().unwrap_or_else(Map::new) }
}

fn tasks(told: &Value) -> BTreeMap<String, Vec<Call>> {
    let actions = |actions: &Value| {
        let actions = actions.as_array().into_iter().flatten();
        actions.map(|action| call(&action["name"], &action["arguments"])).collect()
    };
    let tasks = told.as_object().expect("the server lists its tasks");
    tasks.iter().map(|(name, task)| (name.clone(), actions(task))).collect()
}

/// Where a server can ask for the death of the program that calls it; it is told when the program is dead.
async fn executioner() -> (String, mpsc::Receiver<oneshot::Sender<()>>, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("this machine has a free port");
    let address = listener.local_addr().expect("a bound socket has an address");
    let (ask, asked) = mpsc::channel::<oneshot::Sender<()>>(1);
    let kill = |State(ask): State<mpsc::Sender<oneshot::Sender<()>>>| async move {
        let (tell, told) = oneshot::channel();
        if ask.send(tell).await.is_ok() {
            drop(told.await);
        }
    };
    let routes = Router::new().route("/", post(kill)).with_state(ask);
    let listening = tokio::spawn(async move {
        axum::serve(listener, routes).await.expect("a bound socket can be served");
    });
    (format!("http://{address}/"), asked, listening)
}

/// One request to the server of the domain, and its answer.
async fn exchange(port: u16, method: &str, path: &str, body: &Value) -> Value {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    let exchanged = async {
        let mut line = TcpStream::connect(("127.0.0.1", port)).await?;
        line.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        line.read_to_string(&mut answer).await.map(|_| answer)
    };
    let answer = tokio::time::timeout(PATIENCE, exchanged).await.expect("the server of the domain answers");
    let answer = answer.expect("the server of the domain can be reached");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    assert!(head.starts_with("HTTP/1.1 200"), "{method} {path}: {answer}");
    serde_json::from_str(body).unwrap_or_else(|error| panic!("{method} {path} told no JSON ({error}): {answer}"))
}

/// Nobody else is given it for a while.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    listener.local_addr().expect("a listener has an address").port()
}
