//! A server is killed (SIGKILL) while somebody follows a run; the next one goes on where the follower was.

use crate::{PARTNER, trellis};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use tempfile::TempDir;

/// A server of its own process.
struct Served {
    process: Child,
    address: String,
}

impl Served {
    fn start(data: &Path) -> Self {
        let mut command = trellis(data, &["serve", "--listen", "127.0.0.1:0", "--log-format", "json"]);
        let mut process = command.env("TRELLIS_REHEARSAL_DELAY_MS", "1").stderr(Stdio::piped()).spawn().unwrap();
        let mut log = BufReader::new(process.stderr.take().unwrap()).lines();
        let serving = log.by_ref().map(|line| line.unwrap()).find(|line| line.contains("\"serving\"")).unwrap();
        let serving: Value = serde_json::from_str(&serving).unwrap();
        let url = serving["fields"]["url"].as_str().unwrap();
        let address = url.trim_start_matches("http://").trim_end_matches('/').to_owned();
        // Nobody must be held up by a full pipe.
        std::thread::spawn(move || log.for_each(drop));
        Self { process, address }
    }

    fn request(&self, method: &str, path: &str, headers: &str, body: &str) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let (host, length) = (&self.address, body.len());
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\nConnection: close\r\n{headers}\r\n{body}"
        )
        .unwrap();
        BufReader::new(stream)
    }

    fn json(&self, method: &str, path: &str, body: &str) -> Value {
        let mut reply = String::new();
        self.request(method, path, "", body).read_to_string(&mut reply).unwrap();
        serde_json::from_str(reply.split_once("\r\n\r\n").unwrap().1).unwrap_or_else(|_| panic!("{reply}"))
    }

    /// Durable events behind `seen`, until the stream ends or so many were read.
    fn follow(&self, run: &str, seen: u64, most: usize) -> Vec<Value> {
        let resume = if seen == 0 { String::new() } else { format!("Last-Event-ID: {seen}\r\n") };
        let stream = self.request("GET", &format!("/api/v1/runs/{run}/events"), &resume, "");
        let lines = stream.lines().map_while(Result::ok);
        // The body's chunks are whole events: between their lengths lie the lines.
        let data = lines.filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok());
        data.filter(|event| event.get("seq").is_some()).take(most).collect()
    }

    fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

#[test]
fn a_follower_who_comes_back_after_the_server_was_killed_misses_nothing_and_hears_nothing_twice() {
    let data = TempDir::new().unwrap();
    let body = json!({"question": PARTNER, "session_id": "mine"}).to_string();
    let mut server = Served::start(data.path());
    let begun = server.json("POST", "/api/v1/runs", &body);
    assert_eq!((&begun["run_id"], &begun["attached"]), (&json!("mine"), &json!(false)));
    let mut heard: Vec<Value> = Vec::new();
    let mut kills = 0;
    while heard.last().is_none_or(|event| event["type"] != "run.completed") {
        let seen = heard.len() as u64;
        heard.extend(server.follow("mine", seen, 7));
        server.kill();
        kills += 1;
        assert!(kills < 40, "the run goes on between the kills: {heard:?}");
        server = Served::start(data.path());
    }
    assert!(kills > 3, "it was killed in the middle");
    assert_eq!(server.json("POST", "/api/v1/runs", &body)["attached"], true, "the same request attaches");
    let numbers: Vec<_> = heard.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert!(numbers.iter().copied().eq(1..=heard.len() as u64), "{numbers:?}");
    assert_eq!(server.follow("mine", 0, usize::MAX), heard, "what was heard in pieces is the whole");
    let whole = server.json("GET", "/api/v1/runs/mine", "");
    assert_eq!((&whole["state"], &whole["answer"]), (&json!("answered"), &heard.last().unwrap()["answer"]));
    server.kill();
}
