//! NATS with JetStream.

use crate::owned::{Recipe, Server, answers, free_port};
use crate::programs::find;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};
use tempfile::TempDir;

/// A NATS server whose JetStream lies in its folder.
#[derive(Debug)]
pub struct Nats {
    server: Server,
    port: u16,
}

struct NatsRecipe {
    program: PathBuf,
    port: u16,
}

/// Characters that an address has to escape are part of it on purpose.
const PASSWORD: &str = "p@ss/w:rd";

impl Nats {
    /// The server that all tests of this process share. It goes with the process.
    pub fn shared() -> Arc<Self> {
        static SHARED: OnceLock<Arc<Nats>> = OnceLock::new();
        Arc::clone(SHARED.get_or_init(|| Arc::new(Self::start())))
    }

    pub fn start() -> Self {
        let folder = TempDir::new().expect("there is room for a folder");
        let (program, port) = (find("NATS", "usr/sbin/nats-server"), free_port());
        let settings = format!(
            "host: 127.0.0.1\nport: {port}\njetstream {{ store_dir: \"{}\", max_mem: 64MB, max_file: 200GB }}\n\
             authorization {{ user: trellis, password: {PASSWORD:?} }}\n",
            folder.path().join("data").display()
        );
        std::fs::write(folder.path().join("nats.conf"), settings).expect("a folder of ours can be written");
        Self { server: Server::start("NATS", folder, Box::new(NatsRecipe { program, port })), port }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn password(&self) -> &'static str {
        PASSWORD
    }

    /// The address of this server, at another port if there is something in between.
    pub fn address_at(&self, port: u16) -> String {
        format!("nats://trellis:p%40ss%2Fw%3Ard@127.0.0.1:{port}")
    }

    pub fn address(&self) -> String {
        self.address_at(self.port)
    }
}

impl Deref for Nats {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

impl Recipe for NatsRecipe {
    fn command(&self, folder: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("--config").arg(folder.join("nats.conf"));
        command
    }

    fn is_ready(&self, _: &Path) -> bool {
        answers(self.port)
    }
}
