//! A PostgreSQL server of our own, on a socket in a folder that goes with it.

use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use trellis_postgres::{Database, DatabaseSettings};
use trellis_servers::postgres_program;

pub(crate) struct Server {
    folder: TempDir,
    /// The number of its socket, and of its port if it listens on one.
    port: u16,
    /// Settings besides those of all tests.
    more: Vec<&'static str>,
    process: Option<Child>,
}

impl Server {
    /// Starts a server with an empty database.
    pub(crate) fn start() -> Self {
        let folder = TempDir::new().unwrap();
        let mut server = Self { folder, port: 5432, more: Vec::new(), process: None };
        let data = server.folder.path().join("data");
        let made =
            server.command("initdb").args(["-U", "trellis", "-A", "trust", "-E", "UTF8", "-D"]).arg(&data).status();
        assert!(made.unwrap().success(), "initdb failed");
        server.run();
        server
    }

    /// From now on it listens on a port, and lets nobody in from there without encryption. Gives the port.
    pub(crate) fn encrypt(&mut self, certificate: &str, key: &str) -> u16 {
        self.crash();
        let data = self.folder.path().join("data");
        for (name, text) in [("server.crt", certificate), ("server.key", key)] {
            // The server wants its key to be its own, and closed to others: as its other files are.
            let path = data.join(name);
            std::fs::copy(data.join("PG_VERSION"), &path).unwrap();
            std::fs::write(&path, text).unwrap();
            let owner = std::fs::metadata(&data).unwrap();
            chown(&path, Some(owner.uid()), Some(owner.gid())).unwrap();
        }
        std::fs::write(data.join("pg_hba.conf"), "local all all trust\nhostssl all all samehost trust\n").unwrap();
        self.port = TcpListener::bind("localhost:0").unwrap().local_addr().unwrap().port();
        self.more = vec!["ssl=on", "listen_addresses=localhost"];
        self.run();
        self.port
    }

    fn command(&self, program: &str) -> Command {
        let mut command = postgres_program(program, self.folder.path());
        command.stdout(Stdio::null()).stderr(Stdio::null());
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
            .args(["-c", &format!("port={}", self.port)])
            .args(self.more.iter().flat_map(|setting| ["-c", setting]))
            .arg("-k")
            .arg(self.folder.path())
            .stderr(std::fs::File::create(self.folder.path().join("log")).unwrap())
            .spawn();
        self.process = Some(process.unwrap());
        let begun = Instant::now();
        let is_ready = || {
            let mut look = self.command("pg_isready");
            look.args(["-q", "-d", "postgres", "-p", &self.port.to_string(), "-h"]).arg(self.folder.path());
            let look = look.status();
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
        let address = format!("host={} port={} user=trellis dbname=postgres", self.folder.path().display(), self.port);
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
