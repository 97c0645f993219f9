//! Who asked and who changed something is on record, and what they proved it with is nowhere.

use crate::killed::{alone, kill_after};
use crate::served::Served;
use crate::{json, ok, trellis};
use serde_json::Value;
use std::io::Read;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;
use tempfile::TempDir;

/// The user that this test runs as.
fn me() -> String {
    let output = Command::new("id").arg("-un").output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn a_question_from_the_command_line_is_the_users() {
    let data = TempDir::new().unwrap();
    ok(data.path(), &["config", "put", "note", "k", "1"]);
    ok(data.path(), &["ask", "Why?", "--quiet"]);
    let shown = ok(data.path(), &["run", "show", "last"]);
    let line = shown.lines().nth(1).unwrap();
    assert!(line.starts_with(&format!("asked by {} (command-line) in default, request ", me())), "{shown}");
    assert!(line.ends_with(&format!("made by {} (command-line)", me())), "{shown}");
    let run = json(data.path(), &["run", "show", "last"]);
    assert_eq!(run["asked_by"], serde_json::json!({"name": me(), "surface": "command-line"}));
    assert_eq!((&run["workspace"], run["request_id"].as_str().map(str::is_empty)), (&"default".into(), Some(false)));
    let graph = ok(data.path(), &["run", "export", "last"]);
    for words in ["prov:wasAttributedTo <urn:trustgraph:agent:", "a prov:Agent", "trellis:surface \"command-line\""] {
        assert!(graph.contains(words), "{words} in {graph}");
    }
    let history = json(data.path(), &["config", "history", "note", "k"]);
    assert_eq!(history["versions"][0]["by"], run["asked_by"]);
}

#[test]
fn a_run_that_is_cancelled_says_by_whom() {
    let data = TempDir::new().unwrap();
    let data = data.path();
    kill_after(alone(data, "mine", "0"), 4);
    ok(data, &["run", "cancel", "mine"]);
    let who = serde_json::json!({"name": me(), "surface": "command-line"});
    let shown = ok(data, &["run", "show", "mine"]);
    assert_eq!(shown.lines().nth(2), Some(format!("cancelled by {} (command-line)", me()).as_str()), "{shown}");
    assert_eq!(json(data, &["run", "show", "mine"])["cancelled_by"], who);
    let graph = ok(data, &["run", "export", "mine"]);
    assert!(graph.contains("prov:wasAttributedTo <urn:trustgraph:agent:mine/cancelled-by>"), "{graph}");
    assert!(ok(data, &["verify", "mine"]).starts_with("ok: "));
    // And at a server.
    kill_after(alone(data, "theirs", "0"), 4);
    std::fs::write(data.join("tokens"), "alice s3cret-of-alice default\n").unwrap();
    let mut command = trellis(data, &["serve", "--listen", "127.0.0.1:0", "--log-format", "json"]);
    command.arg("--tokens").arg(data.join("tokens")).env("TRELLIS_REHEARSAL_DELAY_MS", "60000");
    let server = Served::spawn(command, drop);
    let ask = |method: &str, path: &str| -> Value {
        let mut reply = String::new();
        let header = "Authorization: Bearer s3cret-of-alice\r\n";
        server.request(method, path, header, "").read_to_string(&mut reply).unwrap();
        serde_json::from_str(reply.split_once("\r\n\r\n").unwrap().1).unwrap_or(Value::Null)
    };
    assert_eq!(ask("POST", "/api/v1/runs/theirs/cancel")["state"], "cancelled");
    let who = serde_json::json!({"name": "alice", "surface": "api"});
    assert_eq!(ask("GET", "/api/v1/runs/theirs")["cancelled_by"], who);
}

/// Everything below a folder, as text.
fn all_bytes(folder: &Path) -> Vec<u8> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| if path.is_dir() { all_bytes(&path) } else { std::fs::read(path).unwrap_or_default() })
        .collect()
}

#[test]
fn users_of_a_server_are_on_record_and_their_tokens_are_not() {
    let folder = TempDir::new().unwrap();
    let (data, tokens) = (folder.path().join("data"), folder.path().join("tokens"));
    std::fs::write(&tokens, "alice s3cret-of-alice acme\n").unwrap();
    let mut command = trellis(&data, &["serve", "--listen", "127.0.0.1:0", "--log-format", "json"]);
    command.arg("--tokens").arg(&tokens).env("TRELLIS_TOKEN", "s3cret-of-operator");
    let (log, logged) = mpsc::channel();
    let server = Served::spawn(command, move |line| drop(log.send(line)));
    let ask = |token: &str, method: &str, path: &str, body: &str| -> (String, Value) {
        let mut reply = String::new();
        let header = format!("Authorization: Bearer {token}\r\n");
        server.request(method, path, &header, body).read_to_string(&mut reply).unwrap();
        let (head, body) = reply.split_once("\r\n\r\n").unwrap();
        (head[9..12].to_owned(), serde_json::from_str(body).unwrap_or(Value::Null))
    };
    assert_eq!(ask("s3cret-of-mallory", "GET", "/api/v1/runs", "").0, "401");
    let refused = logged.recv_timeout(Duration::from_secs(20)).unwrap();
    assert!(refused.contains("a login was refused") && refused.contains("127.0.0.1"), "{refused}");
    let item = r#"{"items": [{"type": "note", "key": "k", "value": "1"}]}"#;
    for (token, name, workspace) in
        [("s3cret-of-alice", "alice", "acme"), ("s3cret-of-operator", "operator", "default")]
    {
        assert_eq!(ask(token, "POST", "/api/v1/configuration", item).0, "200");
        let (_, history) = ask(token, "GET", "/api/v1/configuration/note/k/history", "");
        let who = serde_json::json!({"name": name, "surface": "api"});
        assert_eq!(history["versions"][0]["by"], who);
        let (status, begun) = ask(token, "POST", "/api/v1/runs", r#"{"question": "Why?"}"#);
        assert_eq!(status, "202", "{begun}");
        let (_, run) = ask(token, "GET", begun["links"]["self"].as_str().unwrap(), "");
        assert_eq!((&run["asked_by"], &run["workspace"], &run["configured"]["by"]), (&who, &workspace.into(), &who));
    }
    drop(server);
    let told: Vec<_> = logged.try_iter().chain([refused]).collect();
    assert!(told.iter().all(|line| !line.contains("s3cret")), "{told:?}");
    let kept = all_bytes(&data);
    assert!(!kept.windows(6).any(|window| window == b"s3cret"), "no token is in the folder");
}
