//! A server is asked to stop (SIGTERM) while somebody listens.

use crate::served::Served;
use serde_json::{Value, json};
use std::io::BufRead;
use tempfile::TempDir;

/// The call in flight is finished, recorded and told; the run goes on with the next start.
#[test]
fn a_server_that_is_asked_to_stop_finishes_what_it_is_saying() {
    let data = TempDir::new().unwrap();
    let server =
        Served::start_at(data.path(), "127.0.0.1:0", |command| command.env("TRELLIS_REHEARSAL_DELAY_MS", "20"));
    let body = json!({"question": "What is Company X?", "pattern": "react", "session_id": "mine"}).to_string();
    server.json("POST", "/api/v1/runs", &body);
    let lines = server.request("GET", "/api/v1/runs/mine/events", "", "").lines().map_while(Result::ok);
    let mut events = lines.filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok());
    let spoken = events.by_ref().find(|event| event.get("seq").is_none()).expect("text while it is written");
    server.ask_to_stop();
    let rest: Vec<_> = events.collect();
    let recorded = rest.iter().find(|event| event["seq"].is_u64());
    assert!(recorded.is_some(), "{spoken} was not heard to its end: {rest:?}");
    assert_eq!(server.stopped(), Some(0));
    let server = Served::start(data.path());
    let lines = server.request("GET", "/api/v1/runs/mine/events", "", "").lines().map_while(Result::ok);
    assert!(lines.into_iter().any(|line| line == "event: run.completed"), "it goes on");
}
