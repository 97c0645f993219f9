//! A server of its own process, for one test.

use crate::trellis;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

pub(crate) struct Served {
    process: Child,
    /// Host and port.
    pub(crate) address: String,
}

impl Served {
    pub(crate) fn start(data: &Path) -> Self {
        Self::start_at(data, "127.0.0.1:0", |command| command)
    }

    /// At an address, with whatever is added to its command.
    pub(crate) fn start_at(data: &Path, listen: &str, with: impl Fn(&mut Command) -> &mut Command) -> Self {
        let mut command = trellis(data, &["serve", "--listen", listen, "--log-format", "json"]);
        command.env("TRELLIS_REHEARSAL_DELAY_MS", "1");
        with(&mut command);
        Self::spawn(command, drop)
    }

    /// With so much address space, in KiB.
    pub(crate) fn start_within(data: &Path, kib: u32, with: impl Fn(&mut Command) -> &mut Command) -> Self {
        let mut usual = trellis(data, &["serve", "--listen", "127.0.0.1:0", "--log-format", "json"]);
        with(&mut usual);
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("ulimit -v {kib}; exec \"$0\" \"$@\"")).arg(usual.get_program());
        command.args(usual.get_args());
        for (name, value) in usual.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        Self::spawn(command, drop)
    }

    /// Whatever it logs once it serves is handed over line by line.
    pub(crate) fn spawn(mut command: Command, mut told: impl FnMut(String) + Send + 'static) -> Self {
        let mut process = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut log = BufReader::new(process.stderr.take().unwrap()).lines();
        let serving = log.by_ref().map(|line| line.unwrap()).find(|line| line.contains("\"serving\"")).unwrap();
        let serving: Value = serde_json::from_str(&serving).unwrap();
        let url = serving["fields"]["url"].as_str().unwrap();
        let address = url.trim_start_matches("http://").trim_end_matches('/').to_owned();
        // Nobody must be held up by a full pipe.
        std::thread::spawn(move || log.map_while(Result::ok).for_each(&mut told));
        Self { process, address }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    pub(crate) fn request(&self, method: &str, path: &str, headers: &str, body: &str) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let (host, length) = (&self.address, body.len());
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\nConnection: close\r\n{headers}\r\n{body}"
        )
        .unwrap();
        BufReader::new(stream)
    }

    pub(crate) fn json(&self, method: &str, path: &str, body: &str) -> Value {
        let mut reply = String::new();
        self.request(method, path, "", body).read_to_string(&mut reply).unwrap();
        serde_json::from_str(reply.split_once("\r\n\r\n").unwrap().1).unwrap_or_else(|_| panic!("{reply}"))
    }

    /// The status and the body of a reply.
    pub(crate) fn reply(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let mut reply = String::new();
        self.request(method, path, "", body).read_to_string(&mut reply).unwrap();
        let (head, body) = reply.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no reply: {reply:?}"));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap_or_else(|_| panic!("{reply}")))
    }

    /// The events of a run as they come, until it has ended.
    pub(crate) fn events(&self, run: &str) -> Vec<Value> {
        let stream = self.request("GET", &format!("/api/v1/runs/{run}/events"), "", "");
        let lines = stream.lines().map_while(Result::ok);
        lines.filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok()).collect()
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// As a service manager does.
    pub(crate) fn ask_to_stop(&self) {
        let asked = Command::new("kill").args(["-TERM", &self.process.id().to_string()]).status().unwrap();
        assert!(asked.success());
    }

    /// Waits until it has stopped by itself; gives its exit code.
    pub(crate) fn stopped(mut self) -> Option<i32> {
        self.process.wait().unwrap().code()
    }

    /// Whether it dies in that time.
    pub(crate) fn has_died_within(&mut self, timeout: Duration) -> bool {
        let pause = Duration::from_millis(20);
        let looks = timeout.as_millis() / pause.as_millis();
        (0..looks).any(|_| {
            std::thread::sleep(pause);
            self.process.try_wait().unwrap().is_some()
        })
    }

    pub(crate) fn kill(self) {
        drop(self);
    }
}

impl Drop for Served {
    /// Without warning: whatever is worth keeping is on disk.
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}
