//! `trellis orchestrator` in a TrustGraph deployment, killed (SIGKILL) and started again in the middle of a dialog.

#[allow(dead_code, reason = "tests without a process of ours use more of it")]
#[path = "../../../brokers/tests/trustgraph/neighbours.rs"]
mod neighbours;

use crate::cluster::Cluster;
use crate::{ok, trellis};
use neighbours::{Held, Neighbours, configure, ends, text};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use trellis_servers::{RabbitMq, RabbitMqOptions};

const PATIENCE: Duration = Duration::from_mins(1);

const ORCHESTRATOR: [&str; 5] = ["orchestrator", "--pubsub-backend", "rabbitmq", "--log-level", "WARNING"];

/// A process that ends with the test.
struct Orchestrator(Child);

impl Orchestrator {
    fn start(server: &RabbitMq, data: &Path) -> Self {
        Self::of(server, trellis(data, &ORCHESTRATOR))
    }

    fn of(server: &RabbitMq, mut command: Command) -> Self {
        let child = command
            .env("RABBITMQ_HOST", "127.0.0.1")
            .env("RABBITMQ_PORT", server.port().to_string())
            .env("RABBITMQ_USERNAME", "trellis")
            .env("RABBITMQ_PASSWORD", server.password())
            .stdin(Stdio::null())
            .spawn();
        Self(child.unwrap())
    }

    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Orchestrator {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Waits until it is noted that so much of an answer was told. What a crash leaves no time to note is told again.
async fn noted(data: &Path, answer: &str) {
    let told = || -> String {
        let notes = std::fs::read_dir(data.join("trustgraph")).unwrap().map(|entry| entry.unwrap().path());
        let lines = notes.filter(|path| path.extension().is_some_and(|kind| kind == "lines"));
        let texts = lines.map(|path| std::fs::read_to_string(path).unwrap()).collect::<String>();
        let pieces = texts.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        pieces
            .filter(|piece| piece["kind"] == "answer")
            .map(|piece| piece["text"].as_str().unwrap().to_owned())
            .collect()
    };
    let is_noted = async {
        while told() != answer {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, is_noted).await.expect("what is told is noted");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dialog_goes_on_after_a_crash_as_if_there_had_been_none() {
    let (server, data) = (RabbitMq::shared(), TempDir::new().unwrap());
    let neighbours = Neighbours::start(&server).await;
    configure(&neighbours).await;
    let mut ours = Orchestrator::start(&server, data.path());

    // While a thought is written.
    neighbours.hold(Some(Held { steps: 0, pieces: 3 }));
    let id = neighbours.begin(&json!({"question": "rain?", "streaming": true})).await;
    neighbours.until("prompt", |asked| asked["id"] == "agent-react").await;
    ours.kill();
    // In the middle of the answer.
    neighbours.hold(Some(Held { steps: 1, pieces: 3 }));
    let mut ours = Orchestrator::start(&server, data.path());
    neighbours.until_told(&id, |response| response["message_type"] == "answer").await;
    let begun = text(&neighbours.responses(&id), "answer");
    assert!(!begun.is_empty() && "It says: Rain.".starts_with(&begun) && begun.len() < 14, "{begun:?}");
    noted(data.path(), &begun).await;
    ours.kill();
    neighbours.hold(None);
    let ours = Orchestrator::start(&server, data.path());

    let responses = neighbours.end_of(&id).await;
    assert_eq!(
        (text(&responses, "answer").as_str(), text(&responses, "observation").as_str()),
        ("It says: Rain.", "Rain.")
    );
    let sessions: Vec<_> = responses.iter().map(|response| response["session_id"].as_str().unwrap()).collect();
    assert!(sessions.iter().all(|session| *session == sessions[0]), "{sessions:?}");
    // Whoever was asked already is not asked again, and nothing is ended twice.
    assert_eq!(neighbours.heard("mcp-tool").len(), 1);
    let again = neighbours.ask(&json!({"question": "rain again?"})).await;
    assert_eq!((ends(&again), ends(&neighbours.responses(&id))), (1, 1));
    drop(ours);
    ok(data.path(), &["verify", "last"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_process_has_left_is_told_by_another_one_on_the_same_database() {
    // Its queues have the names that those of every deployment have.
    let (server, cluster) = (RabbitMq::start(RabbitMqOptions::default()), Cluster::new(None));
    let neighbours = Neighbours::start(&server).await;
    configure(&neighbours).await;
    let start = || Orchestrator::of(&server, cluster.command(&ORCHESTRATOR));
    let mut first = start();
    neighbours.hold(Some(Held { steps: 1, pieces: 3 }));
    let id = neighbours.begin(&json!({"question": "rain?", "streaming": true})).await;
    neighbours.until_told(&id, |response| response["message_type"] == "answer").await;
    let begun = text(&neighbours.responses(&id), "answer");
    let _second = start();
    first.kill();
    neighbours.hold(None);

    let responses = neighbours.end_of(&id).await;
    // What it had no time to note is told again.
    let answer = text(&responses, "answer");
    assert!(["", &begun].map(|again| format!("{again}It says: Rain.")).contains(&answer), "{answer}");
    assert_eq!((text(&responses, "observation").as_str(), ends(&responses)), ("Rain.", 1));
    assert_eq!(neighbours.heard("mcp-tool").len(), 1);
    assert_eq!(text(&neighbours.ask(&json!({"question": "rain again?"})).await, "answer"), "It says: Rain.");
    cluster.ok(&["verify", "last"]);
}
