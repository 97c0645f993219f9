//! A deployment of TrustGraph's: its own gateway, orchestrator and commands, with stand-ins for what is around them.

use crate::clients::{Clients, Output, command};
use crate::server::program;
use parking_lot::Mutex;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};

/// More than a loaded machine needs to start Python four times.
const PATIENCE: Duration = Duration::from_mins(2);

/// The RabbitMQ of a deployment.
#[derive(Debug, Clone, Copy)]
pub struct Broker<'a> {
    pub port: u16,
    pub user: &'a str,
    pub password: &'a str,
    /// As it stands in an address: the original writes it there as it is.
    pub escaped_password: &'a str,
}

/// A deployment in which our orchestrator and the original share the work. Everything ends when this is dropped.
#[derive(Debug)]
pub struct Deployment {
    clients: Arc<Clients>,
    gateway: String,
    stand_ins: Running,
    original: Running,
    ours: Running,
    our_command: OurCommand,
    _gateway: Running,
}

/// How our process is started, again and again on the same folder.
#[derive(Debug)]
struct OurCommand {
    folder: TempDir,
    variables: Vec<(&'static str, String)>,
}

impl Deployment {
    pub async fn start(broker: Broker<'_>) -> Self {
        let clients = Arc::new(Clients::of_trustgraph());
        let variables = |password: &str| {
            vec![
                ("PUBSUB_BACKEND", "rabbitmq".to_owned()),
                ("RABBITMQ_HOST", "127.0.0.1".to_owned()),
                ("RABBITMQ_PORT", broker.port.to_string()),
                ("RABBITMQ_USERNAME", broker.user.to_owned()),
                ("RABBITMQ_PASSWORD", password.to_owned()),
            ]
        };
        let of_original = variables(broker.escaped_password);
        let start = |program: &str, arguments: &[&str]| {
            let pairs: Vec<_> = of_original.iter().map(|(name, value)| (*name, value.as_str())).collect();
            Running::start(program, clients.command(program, arguments, &pairs))
        };
        let port = free_port().to_string();
        let script = script("trustgraph_deployment.py");
        let stand_ins = start("python", &[script.to_str().expect("the project lies in a folder with a plain name")]);
        let alone = ["--no-loki-enabled", "--no-metrics"];
        let gateway = start("api-gateway", &[&["--port", &port], &alone[..]].concat());
        let original = start("agent-orchestrator", &alone);
        let folder = TempDir::new().expect("a temporary folder can be made");
        let our_command = OurCommand { folder, variables: variables(broker.password) };
        let ours = our_command.start();
        stand_ins.says("\"ready\"").await;
        gateway.says("Config loader initialised").await;
        original.says("Applied startup config").await;
        ours.says("a flow is served").await;
        let url = format!("http://127.0.0.1:{port}/");
        Self { clients, gateway: url, stand_ins, original, ours, our_command, _gateway: gateway }
    }

    /// Where the gateway listens.
    pub fn url(&self) -> &str {
        &self.gateway
    }

    /// From now on we are alone.
    pub async fn stop_original(&mut self) {
        self.original.kill().await;
    }

    /// Our process ends as in a crash, and another one takes its place.
    pub async fn crash_ours(&mut self) {
        self.ours.kill().await;
        self.ours = self.our_command.start();
    }

    /// Runs one of the stock commands against the gateway.
    pub async fn tg(&self, command: &str, arguments: &[&str]) -> Output {
        self.clients.run(command, arguments, &[("TRUSTGRAPH_URL", &self.gateway)]).await
    }

    /// The same, running beside whatever else is done with the deployment.
    pub fn begin(
        &self,
        command: &'static str,
        arguments: &'static [&'static str],
    ) -> impl Future<Output = Output> + use<> {
        let (clients, url) = (Arc::clone(&self.clients), self.gateway.clone());
        async move { clients.run(command, arguments, &[("TRUSTGRAPH_URL", &url)]).await }
    }

    /// Runs a script of ours with the published packages.
    pub async fn python(&self, name: &str, arguments: &[&str]) -> Output {
        let script = script(name);
        let script = script.to_str().expect("the project lies in a folder with a plain name");
        self.tg("python", &[&[script], arguments].concat()).await
    }

    /// What the stand-ins have told so far.
    pub fn told(&self) -> Vec<Value> {
        let read = |line: &String| serde_json::from_str(line).ok();
        self.stand_ins.log.lock().iter().filter_map(read).collect()
    }

    /// Waits until the stand-ins have told something.
    pub async fn until_told(&self, is_it: impl Fn(&Value) -> bool) {
        let is_so = || self.told().iter().any(&is_it);
        assert!(in_time(is_so).await, "{:?}", self.told());
    }

    /// How often our process has said something.
    pub fn said(&self, words: &str) -> usize {
        self.ours.log.lock().iter().filter(|line| line.contains(words)).count()
    }

    /// Waits until our process has said something more often than that.
    pub async fn until_said_again(&self, words: &str, before: usize) {
        assert!(in_time(|| self.said(words) > before).await, "it does not say {words:?} again");
    }
}

impl OurCommand {
    fn start(&self) -> Running {
        let pairs: Vec<_> = self.variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let folder = self.folder.path();
        let mut command = command(&program(), &["orchestrator"], &pairs, folder);
        command
            .env("TRELLIS_DATA", folder.join("data"))
            .env("XDG_CONFIG_HOME", folder)
            .env("NO_COLOR", "1")
            .env_remove("TRELLIS_SETTINGS");
        Running::start("trellis orchestrator", command)
    }
}

/// A process, and the lines that it has said.
#[derive(Debug)]
struct Running {
    name: String,
    child: Child,
    log: Arc<Mutex<Vec<String>>>,
}

impl Running {
    fn start(name: &str, mut command: Command) -> Self {
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = child.unwrap_or_else(|error| panic!("{name} cannot be started: {error}"));
        let log = Arc::default();
        listen(child.stdout.take().expect("stdout is piped"), Arc::clone(&log));
        listen(child.stderr.take().expect("stderr is piped"), Arc::clone(&log));
        Self { name: name.to_owned(), child, log }
    }

    async fn says(&self, words: &str) {
        let is_so = || self.log.lock().iter().any(|line| line.contains(words));
        assert!(in_time(is_so).await, "{} does not say {words:?}", self.name);
    }

    async fn kill(&mut self) {
        self.child.kill().await.expect("a process can be killed");
    }
}

impl Drop for Running {
    /// A failed test shows what everybody had to say.
    #[allow(clippy::print_stderr, reason = "for whoever reads the failure")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- what {} said\n{}", self.name, self.log.lock().join("\n"));
        }
    }
}

fn listen(output: impl AsyncRead + Send + Unpin + 'static, log: Arc<Mutex<Vec<String>>>) {
    tokio::spawn(async move {
        let mut lines = BufReader::new(output).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            log.lock().push(line);
        }
    });
}

async fn in_time(is_so: impl Fn() -> bool) -> bool {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.is_ok()
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("python").join(name)
}

/// Nobody else is given it for a while.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    listener.local_addr().expect("a listener has an address").port()
}
