//! RabbitMQ without its scripts: they expect a user, folders and a port mapper of the whole machine.

use crate::owned::{Recipe, Server, answers, free_port, note};
use crate::programs::find;
use parking_lot::Mutex;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, OnceLock};
use tempfile::TempDir;

/// A node of its own, with a port mapper of its own.
#[derive(Debug)]
pub struct RabbitMq {
    server: Server,
    ports: Ports,
}

#[derive(Debug, Clone, Copy, Default)]
pub struct RabbitMqOptions {
    /// It believes that it has no memory left, and takes no messages.
    pub out_of_memory: bool,
}

#[derive(Debug, Clone, Copy)]
struct Ports {
    amqp: u16,
    /// Where other nodes would come in.
    distribution: u16,
    /// Which nodes there are.
    mapper: u16,
}

struct RabbitMqRecipe {
    erlang: PathBuf,
    runtime: PathBuf,
    rabbitmq: PathBuf,
    ports: Ports,
    mapper: Mutex<Option<Child>>,
}

/// Characters that an address has to escape are part of it on purpose.
const PASSWORD: &str = "p@ss/w:rd";

impl RabbitMq {
    /// The server that all tests of this process share. It goes with the process.
    pub fn shared() -> Arc<Self> {
        static SHARED: OnceLock<Arc<RabbitMq>> = OnceLock::new();
        Arc::clone(SHARED.get_or_init(|| Arc::new(Self::start(RabbitMqOptions::default()))))
    }

    pub fn start(options: RabbitMqOptions) -> Self {
        let folder = TempDir::new().expect("there is room for a folder");
        let ports = Ports { amqp: free_port(), distribution: free_port(), mapper: free_port() };
        let memory = if options.out_of_memory { "1" } else { "1GB" };
        let settings = format!(
            "listeners.tcp.default = 127.0.0.1:{}\nnum_acceptors.tcp = 2\nlog.console = true\nlog.file = false\n\
             vm_memory_high_watermark.absolute = {memory}\ndisk_free_limit.absolute = 10MB\ndefault_user = trellis\n\
             default_pass = {PASSWORD}\n",
            ports.amqp
        );
        let write = |file: &str, text: &str| std::fs::write(folder.path().join(file), text);
        write("rabbitmq.conf", &settings).expect("a folder of ours can be written");
        write("enabled_plugins", "[].\n").expect("a folder of ours can be written");
        let recipe = RabbitMqRecipe {
            erlang: find("Erlang", "usr/lib/erlang"),
            runtime: find("Erlang", "usr/lib/erlang/erts-*/bin"),
            rabbitmq: find("RabbitMQ", "usr/lib/rabbitmq/lib/rabbitmq_server-*"),
            ports,
            mapper: Mutex::new(None),
        };
        Self { server: Server::start("RabbitMQ", folder, Box::new(recipe)), ports }
    }

    pub fn port(&self) -> u16 {
        self.ports.amqp
    }

    pub fn password(&self) -> &'static str {
        PASSWORD
    }

    /// The address of this server, at another port if there is something in between.
    pub fn address_at(&self, port: u16) -> String {
        format!("amqp://trellis:p%40ss%2Fw%3Ard@127.0.0.1:{port}/%2f")
    }

    pub fn address(&self) -> String {
        self.address_at(self.ports.amqp)
    }
}

impl Deref for RabbitMq {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

impl RabbitMqRecipe {
    /// Starts the port mapper, which lives as long as the folder.
    fn keep_mapper(&self, folder: &Path) {
        let mut mapper = self.mapper.lock();
        if mapper.is_some() {
            return;
        }
        let child = Command::new(self.runtime.join("epmd"))
            .args(["-port", &self.ports.mapper.to_string(), "-address", "127.0.0.1"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("Erlang's port mapper can be started");
        note(folder, "mapper", &child);
        *mapper = Some(child);
    }
}

impl Recipe for RabbitMqRecipe {
    fn command(&self, folder: &Path) -> Command {
        self.keep_mapper(folder);
        let plugins = self.rabbitmq.join("plugins");
        let mut command = Command::new(self.runtime.join("erlexec"));
        command
            .args(["-noinput", "-s", "rabbit", "boot", "-boot", "start_sasl", "+W", "w", "-start_epmd", "false"])
            // Two cores are enough for a test, and an idle node does not wait in a loop.
            .args(["+S", "2:2", "+sbwt", "none", "+sbwtdcpu", "none", "+sbwtdio", "none", "+B", "i"])
            .args(["-syslog", "logger", "[]", "-syslog", "syslog_error_logger", "false"])
            .args(["-kernel", "inet_dist_use_interface", "{127,0,0,1}", "prevent_overlapping_partitions", "false"])
            .env("ROOTDIR", &self.erlang)
            .env("BINDIR", &self.runtime)
            .env("EMU", "beam")
            .env("PROGNAME", "erl")
            .env("HOME", folder)
            .env("ERL_LIBS", &plugins)
            .env("ERL_EPMD_PORT", self.ports.mapper.to_string())
            .env("ERL_EPMD_ADDRESS", "127.0.0.1")
            .env("ERL_MAX_PORTS", "4096")
            .env("RABBITMQ_HOME", &self.rabbitmq)
            .env("RABBITMQ_NODENAME", format!("trellis{}@localhost", self.ports.amqp))
            .env("RABBITMQ_DIST_PORT", self.ports.distribution.to_string())
            .env("RABBITMQ_CONF_ENV_FILE", "/dev/null")
            .env("RABBITMQ_PLUGINS_DIR", &plugins);
        let own = [
            ("RABBITMQ_MNESIA_BASE", "mnesia"),
            ("RABBITMQ_LOG_BASE", "logs"),
            ("RABBITMQ_CONFIG_FILE", "rabbitmq.conf"),
            ("RABBITMQ_ADVANCED_CONFIG_FILE", "advanced.config"),
            ("RABBITMQ_GENERATED_CONFIG_DIR", "config"),
            ("RABBITMQ_ENABLED_PLUGINS_FILE", "enabled_plugins"),
            ("RABBITMQ_PLUGINS_EXPAND_DIR", "expanded"),
            ("RABBITMQ_FEATURE_FLAGS_FILE", "feature_flags"),
            ("RABBITMQ_PID_FILE", "rabbitmq"),
        ];
        command.envs(own.map(|(name, file)| (name, folder.join(file))));
        command
    }

    fn is_ready(&self, _: &Path) -> bool {
        answers(self.ports.amqp)
    }
}

impl Drop for RabbitMqRecipe {
    fn drop(&mut self) {
        // The keeper has stopped it already.
        if let Some(mut child) = self.mapper.lock().take() {
            drop(child.kill());
            drop(child.wait());
        }
    }
}
