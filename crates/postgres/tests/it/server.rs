//! A PostgreSQL server of our own, on a socket in a folder that goes with it.

use std::os::unix::fs::{MetadataExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use trellis_postgres::{Database, DatabaseSettings};

pub(crate) struct Server {
    folder: TempDir,
    process: Option<Child>,
}

/// The server does not run as root. Any other user will do.
const NOBODY: u32 = 65_534;

impl Server {
    /// Starts a server with an empty database.
    pub(crate) fn start() -> Self {
        let folder = TempDir::new().unwrap();
        let mut server = Self { folder, process: None };
        if server.is_root() {
            chown(server.folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let data = server.folder.path().join("data");
        let made =
            server.command("initdb").args(["-U", "trellis", "-A", "trust", "-E", "UTF8", "-D"]).arg(&data).status();
        assert!(made.unwrap().success(), "initdb failed");
        server.run();
        server
    }

    fn is_root(&self) -> bool {
        let made = self.folder.path().join("whose");
        std::fs::write(&made, "").unwrap();
        std::fs::metadata(made).unwrap().uid() == 0
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(programs().join(program));
        command.current_dir(self.folder.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if self.is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    /// Starts it, or starts it again.
    #[allow(clippy::disallowed_methods, reason = "a test waits in real time")]
    pub(crate) fn run(&mut self) {
        let process = self
            .command("postgres")
            .arg("-D")
            .arg(self.folder.path().join("data"))
            .args(["-c", "listen_addresses=", "-c", "max_connections=200"])
            .arg("-k")
            .arg(self.folder.path())
            .stderr(std::fs::File::create(self.folder.path().join("log")).unwrap())
            .spawn();
        self.process = Some(process.unwrap());
        let begun = Instant::now();
        let is_ready = || {
            let look = self.command("pg_isready").args(["-q", "-d", "postgres", "-h"]).arg(self.folder.path()).status();
            look.is_ok_and(|status| status.success())
        };
        while !is_ready() {
            let told = || std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            assert!(begun.elapsed() < Duration::from_mins(1), "the server does not start: {}", told());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Stops it as a loss of power would, as far as the server knows.
    pub(crate) fn crash(&mut self) {
        self.signal("QUIT");
        drop(self.process.take().unwrap().wait());
    }

    /// Sends a signal to the server's first process.
    pub(crate) fn signal(&self, signal: &str) {
        let process = self.process.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args([&format!("-{signal}"), &process]).status().unwrap().success());
    }

    /// The same to all of its processes.
    pub(crate) fn signal_all(&self, signal: &str) {
        let process = self.process.as_ref().unwrap().id().to_string();
        drop(Command::new("pkill").args([&format!("-{signal}"), "-P", &process]).status());
        self.signal(signal);
    }

    pub(crate) fn settings(&self, schema: &str) -> DatabaseSettings {
        let address = format!("host={} user=trellis dbname=postgres", self.folder.path().display());
        DatabaseSettings { schema: schema.to_owned(), connections: 8, ..DatabaseSettings::of(&address) }
    }

    pub(crate) async fn database(&self, schema: &str) -> Database {
        Database::open(self.settings(schema)).await.unwrap()
    }

    /// A connection of the test's own.
    pub(crate) async fn look(&self) -> tokio_postgres::Client {
        let address = self.settings("").address;
        let (client, connection) = tokio_postgres::connect(&address, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            // Not killed: its children and its memory go with it.
            drop(Command::new("kill").args(["-QUIT", &process.id().to_string()]).status());
            drop(process.wait());
        }
    }
}

/// Where Debian has the programs of its newest version, or else wherever they are found.
fn programs() -> PathBuf {
    let versions = Path::new("/usr/lib/postgresql");
    let installed = std::fs::read_dir(versions).into_iter().flatten().flatten().map(|entry| entry.path().join("bin"));
    let on_path: Vec<_> = std::env::var_os("PATH").iter().flat_map(std::env::split_paths).collect();
    let has_all = |bin: &PathBuf| ["postgres", "initdb", "pg_isready"].iter().all(|name| bin.join(name).exists());
    let found = installed.filter(has_all).max().or_else(|| on_path.into_iter().find(has_all));
    found.expect("these tests start a PostgreSQL server, and none is installed: apt-get install postgresql")
}
