//! The two orchestrators as operators start them, one at a time.

use super::asking::REQUESTS;
use crate::machine::cpu_of_family;
use crate::setup;
use anyhow::{Context, Result, bail, ensure};
use lapin::options::{QueueDeclareOptions, QueueDeleteOptions};
use lapin::types::FieldTable;
use lapin::{Connection, ConnectionProperties};
use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tempfile::TempDir;
use tokio::process::{Child, Command};
use trellis_servers::RabbitMq;

/// Python takes some seconds to start on a busy machine.
const START: Duration = Duration::from_mins(1);
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The queue that both take requests from.
const SUBSCRIPTION: &str = "agent-manager--default--default--request";
/// Variables of the caller's own environment that must not lead a program elsewhere.
const FOREIGN: [&str; 5] = ["RUST_LOG", "TRELLIS_BUS", "TRELLIS_GRAPH", "TRELLIS_SETTINGS", "TRELLIS_STATE"];

/// A process that answers agents' requests. It ends when this is dropped.
pub(super) struct Contestant {
    child: Child,
    id: u32,
    connection: Connection,
    /// Where it works, and what it says.
    folder: TempDir,
}

impl Contestant {
    /// TrustGraph's `agent-orchestrator`, as its packages install it.
    pub(super) async fn original(server: &RabbitMq) -> Result<Self> {
        let folder = TempDir::new()?;
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/trustgraph/bin/agent-orchestrator");
        ensure!(program.exists(), "{} is missing; `cargo xtask bench` installs it", program.display());
        let mut command = Command::new(program);
        command.args(["--no-loki-enabled", "--no-metrics"]);
        // It writes the password into an address as it is.
        let address = server.address();
        let password = address.split_once('@').and_then(|(before, _)| before.rsplit_once(':'));
        let (_, password) = password.context("an address has a password")?;
        Self::start(command, folder, server, password).await
    }

    /// The `trellis orchestrator` that was built beside this program, with a journal in a new folder.
    pub(super) async fn ours(server: &RabbitMq) -> Result<Self> {
        let folder = TempDir::new()?;
        let mut command = Command::new(setup::program()?);
        command.arg("orchestrator").env("TRELLIS_DATA", folder.path().join("data"));
        Self::start(command, folder, server, server.password()).await
    }

    /// Starts it and waits until it takes requests.
    async fn start(mut command: Command, folder: TempDir, server: &RabbitMq, password: &str) -> Result<Self> {
        let connection = Connection::connect(&server.address(), ConnectionProperties::default()).await?;
        for name in FOREIGN {
            command.env_remove(name);
        }
        let log = File::create(folder.path().join("log"))?;
        let child = command
            .env("PUBSUB_BACKEND", "rabbitmq")
            .env("RABBITMQ_HOST", "127.0.0.1")
            .env("RABBITMQ_PORT", server.port().to_string())
            .env("RABBITMQ_USERNAME", "trellis")
            .env("RABBITMQ_PASSWORD", password)
            .env("XDG_CONFIG_HOME", folder.path())
            .env("NO_COLOR", "1")
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .kill_on_drop(true)
            .spawn()?;
        let id = child.id().context("a process that was just started has an id")?;
        let mut contestant = Self { child, id, connection, folder };
        match tokio::time::timeout(START, contestant.until_it_takes_requests()).await {
            Ok(taking) => taking?,
            Err(_) => bail!("it takes no requests: {}", contestant.said()),
        }
        Ok(contestant)
    }

    async fn until_it_takes_requests(&mut self) -> Result<()> {
        let passive = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
        loop {
            if let Some(status) = self.child.try_wait()? {
                bail!("it ends at once, {status}: {}", self.said());
            }
            // A queue that is not there closes the channel.
            let channel = self.connection.create_channel().await?;
            let queue = format!("{REQUESTS}.{SUBSCRIPTION}");
            let found = channel.queue_declare(queue.as_str().into(), passive, FieldTable::default()).await;
            if found.is_ok_and(|queue| queue.consumer_count() > 0) {
                return Ok(());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// CPU time so far, once it is at rest: what it leaves for later counts as well.
    pub(super) async fn cpu(&self) -> Duration {
        const AT_REST: Duration = Duration::from_millis(500);
        const LITTLE: Duration = Duration::from_millis(20);
        const LOOKS: usize = 20;
        let mut before = cpu_of_family(self.id);
        for _ in 0..LOOKS {
            tokio::time::sleep(AT_REST).await;
            let now = cpu_of_family(self.id);
            if now.saturating_sub(before) <= LITTLE {
                return now;
            }
            before = now;
        }
        before
    }

    /// The last lines of what it has written.
    pub(super) fn said(&self) -> String {
        let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        let lines: Vec<_> = log.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }

    /// Ends it, and leaves nothing for the next one.
    pub(super) async fn stop(mut self) -> Result<()> {
        self.child.kill().await?;
        let channel = self.connection.create_channel().await?;
        let queue = format!("{REQUESTS}.{SUBSCRIPTION}");
        channel.queue_delete(queue.as_str().into(), QueueDeleteOptions::default()).await?;
        Ok(())
    }
}
