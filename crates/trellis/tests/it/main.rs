//! The real binary, as a person or a script uses it.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test may fail loudly")]

mod approval;
mod bad_input;
mod cancelled;
mod cluster;
mod cluster_documents;
mod cluster_trouble;
mod configuration;
mod conversation;
mod crashes;
mod deploy;
#[cfg(unix)]
mod documented;
mod documents;
mod erased;
mod evaluated;
mod everyday;
mod example;
mod explained;
mod facts;
mod graph_rag;
mod killed;
mod limits;
mod loaded;
mod long;
mod mcp;
mod mcp_asking;
mod mcp_served;
mod models;
mod older;
mod queries;
#[cfg(target_os = "linux")]
mod read_only;
#[path = "../../../../acceptance/src/recording.rs"]
mod recording;
mod remote;
mod remote_graph;
mod remote_trouble;
mod restarted;
mod scenarios;
mod served;
mod steering;
mod stopped;
mod tables;
mod templates;
#[cfg(unix)]
mod terminal;
mod tools;
mod trustgraph;
mod uncertain;
mod who;

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

/// The specification's worked example: a supervisor with four subagents.
pub(crate) const PARTNER: &str = "Assess the risk profile of Company X as a potential partner";
/// A plan with a step that fails, and its revision.
pub(crate) const TRACE: &str = "Trace step by step how Company X came to its present owners";
/// A supervisor below a supervisor, and a sibling that stays silent.
pub(crate) const COMPARE: &str = "Compare Company X and Company Y as potential partners by risk";

/// Looks until it is so, for two minutes: machines that build are slow.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..12_000 {
        if is_so() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("not so: {what}");
}

/// A command on this data folder, with a rehearsal that does not dawdle.
pub(crate) fn trellis(data: &Path, arguments: &[&str]) -> Command {
    let mut command = somewhere(data, arguments);
    command.arg("--data").arg(data);
    command
}

/// A command that is told nothing about where to work. What it might find by itself is below this folder.
pub(crate) fn somewhere(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trellis"));
    command.args(arguments).env_remove("RUST_LOG").env("TRELLIS_REHEARSAL_DELAY_MS", "0");
    command.env_remove("TRELLIS_DATA").env("XDG_DATA_HOME", home.join("own-data"));
    for name in ["TRUSTGRAPH_URL", "TRUSTGRAPH_TOKEN", "TRUSTGRAPH_WORKSPACE", "TRELLIS_TOKEN", "TRELLIS_TOKENS"] {
        command.env_remove(name);
    }
    for name in [
        "STATE",
        "BUS",
        "GRAPH",
        "GRAPH_PASSWORD",
        "GRAPH_TOKEN",
        "DEPLOYMENT",
        "CONNECTIONS",
        "CLAIM_SECONDS",
        "REPLICAS",
    ] {
        command.env_remove(format!("TRELLIS_{name}"));
    }
    // Nobody's own key is used here.
    command.env("TRELLIS_MODEL", "rehearsal");
    // Nobody's own settings count here.
    command.env_remove("TRELLIS_SETTINGS").env("XDG_CONFIG_HOME", home.join("no-settings"));
    command
}

pub(crate) fn run(data: &Path, arguments: &[&str]) -> Output {
    trellis(data, arguments).output().unwrap()
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The output of a command that must succeed.
pub(crate) fn ok(data: &Path, arguments: &[&str]) -> String {
    let output = run(data, arguments);
    assert!(output.status.success(), "{arguments:?}: {}\n{}", output.status, stderr(&output));
    stdout(&output)
}

pub(crate) fn json(data: &Path, arguments: &[&str]) -> Value {
    let text = ok(data, &[arguments, &["--output", "json"]].concat());
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The words for the steps of a session of `run show`.
pub(crate) fn steps(session: &Value) -> Vec<&str> {
    session["steps"].as_array().unwrap().iter().map(|step| step["step"].as_str().unwrap()).collect()
}

/// The steps of that kind.
pub(crate) fn steps_of<'a>(session: &'a Value, kind: &str) -> Vec<&'a Value> {
    session["steps"].as_array().unwrap().iter().filter(|step| step["step"] == kind).collect()
}

/// The exit code and message of a command that must fail.
pub(crate) fn fails(data: &Path, arguments: &[&str]) -> (i32, String) {
    let output = run(data, arguments);
    (output.status.code().unwrap_or(-1), stderr(&output))
}

/// Listens until the test ends, with a thread for each connection. Gives the address.
pub(crate) fn listen(answer: impl Fn(std::net::TcpStream) -> Option<()> + Clone + Send + 'static) -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = answer.clone();
            std::thread::spawn(move || answer(stream));
        }
    });
    address
}
