//! A server is killed (SIGKILL) while somebody follows a run; the next one goes on where the follower was.

use crate::PARTNER;
use crate::served::Served;
use serde_json::{Value, json};
use std::io::BufRead;
use tempfile::TempDir;

/// Durable events behind `seen`, until the stream ends or so many were read.
fn follow(server: &Served, run: &str, seen: u64, most: usize) -> Vec<Value> {
    let resume = if seen == 0 { String::new() } else { format!("Last-Event-ID: {seen}\r\n") };
    let stream = server.request("GET", &format!("/api/v1/runs/{run}/events"), &resume, "");
    let lines = stream.lines().map_while(Result::ok);
    // The body's chunks are whole events: between their lengths lie the lines.
    let data = lines.filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok());
    data.filter(|event| event.get("seq").is_some()).take(most).collect()
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
        heard.extend(follow(&server, "mine", seen, 7));
        server.kill();
        kills += 1;
        assert!(kills < 40, "the run goes on between the kills: {heard:?}");
        server = Served::start(data.path());
    }
    assert!(kills > 3, "it was killed in the middle");
    assert_eq!(server.json("POST", "/api/v1/runs", &body)["attached"], true, "the same request attaches");
    let numbers: Vec<_> = heard.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert!(numbers.iter().copied().eq(1..=heard.len() as u64), "{numbers:?}");
    assert_eq!(follow(&server, "mine", 0, usize::MAX), heard, "what was heard in pieces is the whole");
    let whole = server.json("GET", "/api/v1/runs/mine", "");
    assert_eq!((&whole["state"], &whole["answer"]), (&json!("answered"), &heard.last().unwrap()["answer"]));
    server.kill();
}
