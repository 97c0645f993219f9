//! Several processes that share a state: a gateway, workers, aggregators; some of them are killed.

use crate::served::Served;
use crate::{PARTNER, TRACE, somewhere, until};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tempfile::TempDir;
use trellis_servers::{Nats, Postgres, RabbitMq, RabbitMqOptions};

/// A state of its own, on the server that all of these tests share.
pub(crate) struct Cluster {
    pub(crate) postgres: Arc<Postgres>,
    home: TempDir,
    deployment: String,
    bus: Option<String>,
    delay_ms: u32,
}

/// A process that nobody talks to. It goes with the test.
pub(crate) struct Background(Child);

impl Drop for Background {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

impl Background {
    /// Asks it to stop, as a service manager does, and waits until it has.
    pub(crate) fn stopped(mut self) -> Option<i32> {
        let asked = Command::new("kill").args(["-TERM", &self.0.id().to_string()]).status().unwrap();
        assert!(asked.success());
        self.0.wait().unwrap().code()
    }
}

/// The address of the server: it listens at a socket in its folder.
pub(crate) fn address_of(postgres: &Postgres) -> String {
    let folder = postgres.folder().to_str().unwrap().replace('/', "%2F");
    format!("postgres://trellis:s3cret@{folder}/postgres")
}

impl Cluster {
    pub(crate) fn new(bus: Option<String>) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let deployment = format!("c{}", NEXT.fetch_add(1, Ordering::Relaxed));
        Self { postgres: Postgres::shared(), home: TempDir::new().unwrap(), deployment, bus, delay_ms: 1 }
    }

    /// With models that take so long for each piece of what they say.
    pub(crate) fn slow(delay_ms: u32) -> Self {
        Self { delay_ms, ..Self::new(None) }
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = somewhere(self.home.path(), arguments);
        command
            .env("TRELLIS_STATE", address_of(&self.postgres))
            .env("TRELLIS_DEPLOYMENT", &self.deployment)
            .env("TRELLIS_CONNECTIONS", "4")
            .env("TRELLIS_CLAIM_SECONDS", "3")
            .env("TRELLIS_REHEARSAL_DELAY_MS", self.delay_ms.to_string());
        if let Some(bus) = &self.bus {
            command.env("TRELLIS_BUS", bus);
        }
        command
    }

    pub(crate) fn home(&self) -> &std::path::Path {
        self.home.path()
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// The output of a command that must succeed.
    pub(crate) fn ok(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn status(&self) -> Value {
        serde_json::from_str(&self.ok(&["status", "--output", "json"])).unwrap()
    }

    /// A gateway that leaves the work to others.
    pub(crate) fn gateway(&self) -> Served {
        let listen = ["serve", "--no-workers", "--listen", "127.0.0.1:0", "--log-format", "json"];
        Served::spawn(self.command(&listen), drop)
    }

    pub(crate) fn start(&self, arguments: &[&str]) -> Background {
        let mut command = self.command(&[arguments, &["--log-format", "json"]].concat());
        let mut process = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut log = BufReader::new(process.stderr.take().unwrap()).lines().map_while(Result::ok);
        let told: Vec<_> = log.by_ref().take(20).take_while(|line| !line.contains("\"working\"")).collect();
        assert!(process.try_wait().unwrap().is_none(), "{arguments:?}: {told:?}");
        std::thread::spawn(move || log.for_each(drop));
        Background(process)
    }

    pub(crate) fn worker(&self) -> Background {
        self.start(&["worker", "--no-aggregation"])
    }
}

pub(crate) fn ask(gateway: &Served, question: &str, id: &str, pattern: &str) {
    let body = json!({"question": question, "session_id": id, "pattern": pattern}).to_string();
    let accepted = gateway.json("POST", "/api/v1/runs", &body);
    assert_eq!(accepted["run_id"], id, "{accepted}");
}

pub(crate) fn state_of(gateway: &Served, run: &str) -> Value {
    gateway.json("GET", &format!("/api/v1/runs/{run}"), "")["state"].clone()
}

/// How far a run has come.
fn length_of(gateway: &Served, run: &str) -> usize {
    let records = gateway.json("GET", &format!("/api/v1/runs/{run}/records"), "");
    records["records"].as_array().map_or(0, Vec::len)
}

/// Questions that need teams and plans, to two workers and an aggregator. One worker dies in the middle.
fn one_worker_dies(cluster: &Cluster) {
    let gateway = cluster.gateway();
    let (first, second) = (cluster.worker(), cluster.worker());
    let aggregator = cluster.start(&["aggregator"]);
    let questions = [PARTNER, TRACE, PARTNER, TRACE, PARTNER];
    let runs: Vec<String> = (0..questions.len()).map(|number| format!("run-{number}")).collect();
    std::thread::scope(|scope| {
        for (question, run) in questions.iter().zip(&runs) {
            ask(&gateway, question, run, "");
        }
        let followers: Vec<_> = runs.iter().map(|run| scope.spawn(|| gateway.events(run))).collect();
        until("some of it is done", || length_of(&gateway, &runs[0]) > 10);
        drop(first);
        for (run, follower) in runs.iter().zip(followers) {
            let events = follower.join().unwrap();
            let ends = events.iter().filter(|event| event["type"] == "run.completed").count();
            assert_eq!(ends, 1, "{run} ends once: {events:?}");
            let numbers: Vec<_> = events.iter().filter_map(|event| event["seq"].as_u64()).collect();
            assert!(numbers.iter().copied().eq(1..=numbers.len() as u64), "{run}: {numbers:?}");
            let live = events.iter().filter(|event| event.get("seq").is_none()).count();
            assert!(live > 0, "{run}: text arrives while it is written");
        }
    });
    for run in &runs {
        let state = state_of(&gateway, run);
        assert!(state == "answered" || state == "answered-partial", "{run}: {state}");
        let verified = cluster.ok(&["verify", run]);
        assert!(!verified.contains("not replayed"), "{verified}");
    }
    let url = gateway.url();
    let listed: Value = serde_json::from_str(&cluster.ok(&["runs", "--url", &url, "--output", "json"])).unwrap();
    assert_eq!(listed["runs"].as_array().unwrap().len(), runs.len());
    cluster.ok(&["verify", &runs[0], "--url", &url]);
    let asked = "SELECT ?run WHERE { ?run a tg:AgentQuestion ; tg:query ?question . FILTER NOT EXISTS { ?run prov:wasDerivedFrom ?earlier } }";
    let found = cluster.ok(&["sparql", asked, "--url", &url]);
    assert!(runs.iter().all(|run| found.contains(&format!(":{run}"))), "all runs are in one graph: {found}");
    assert_eq!((second.stopped(), aggregator.stopped()), (Some(0), Some(0)), "whoever is asked to stop does");
    gateway.ask_to_stop();
    assert_eq!(gateway.stopped(), Some(0));
}

#[test]
fn postgresql_alone_keeps_a_cluster_together() {
    one_worker_dies(&Cluster::new(None));
}

#[test]
fn rabbitmq_keeps_a_cluster_together() {
    let rabbitmq = RabbitMq::start(RabbitMqOptions::default());
    one_worker_dies(&Cluster::new(Some(rabbitmq.address())));
}

#[test]
fn nats_keeps_a_cluster_together() {
    let nats = Nats::start();
    one_worker_dies(&Cluster::new(Some(nats.address())));
}

#[cfg(feature = "pulsar")]
#[test]
fn pulsar_keeps_a_cluster_together() {
    let pulsar = trellis_servers::Pulsar::start();
    one_worker_dies(&Cluster::new(Some(pulsar.address())));
}

#[test]
fn a_question_is_left_to_the_workers_of_the_state() {
    let cluster = Cluster::new(None);
    let _worker = cluster.start(&["worker"]);
    assert_eq!(cluster.ok(&["ask", PARTNER, "--session", "left", "--detach"]), "left\n");
    let answer = cluster.ok(&["run", "watch", "left", "--quiet"]);
    assert!(answer.starts_with("## Partner risk profile: Company X"), "{answer}");
}

#[test]
fn a_run_is_cancelled_told_and_decided_wherever_it_is_worked_on() {
    let cluster = Cluster::slow(50);
    let gateway = cluster.gateway();
    let _worker = cluster.start(&["worker"]);
    ask(&gateway, PARTNER, "long", "");
    until("it is under way", || length_of(&gateway, "long") > 3);
    let told =
        gateway.json("POST", "/api/v1/runs/long/tell", &json!({"message": "only the last two years"}).to_string());
    assert!(told["agents"].as_u64().is_some_and(|agents| agents > 0), "{told}");
    gateway.json("POST", "/api/v1/runs/long/cancel", "{}");
    until("nobody works on it", || state_of(&gateway, "long") == "cancelled");
    until("nothing of it is in hand", || cluster.status()["in_hand"] == json!([]));
    let events = gateway.events("long");
    assert!(events.iter().any(|event| event.to_string().contains("only the last two years")), "{events:?}");

    let tool = cluster.ok(&["config", "get", "tool", "financial-data"]);
    let mut tool: Value = serde_json::from_str(&tool).unwrap();
    tool["requires-approval"] = json!(true);
    cluster.ok(&["config", "put", "tool", "financial-data", &tool.to_string()]);
    ask(&gateway, PARTNER, "parked", "react");
    until("it waits for a person", || state_of(&gateway, "parked") == "waiting");
    let status = cluster.status();
    let commands: Vec<_> = status["processes"].as_array().unwrap().iter().map(|one| one["command"].clone()).collect();
    assert!(["serve", "worker"].iter().all(|command| commands.contains(&json!(command))), "{status}");
    assert_eq!((&status["open_runs"], &status["questions"][0]["run_id"]), (&json!(1), &json!("parked")), "{status}");
    assert_eq!(gateway.json("GET", "/api/v1/status", "")["questions"], status["questions"]);
    assert!(cluster.ok(&["status"]).contains("questions to people:"));
    let mut decisions = 0;
    while state_of(&gateway, "parked") != "answered" {
        if state_of(&gateway, "parked") == "waiting" {
            // By another process that has nothing but the state.
            drop(cluster.run(&["run", "decide", "parked", "approve"]));
            decisions += 1;
        }
        assert!(decisions < 20, "it comes to its end");
        std::thread::sleep(Duration::from_millis(20));
    }
    cluster.ok(&["verify", "parked"]);
    assert!(cluster.ok(&["run", "watch", "parked"]).contains("Company X"));
}
