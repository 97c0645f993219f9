//! `trellis mcp`: the program as a client starts it, on the folder and in front of a server.

use crate::served::Served;
use crate::{json as told, ok, somewhere, stderr, trellis};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use tempfile::TempDir;

/// A client that has started the program and agreed on a version with it.
struct Client {
    process: Child,
    input: Option<ChildStdin>,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Client {
    fn start(mut command: Command) -> Self {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut client = Self { input: process.stdin.take(), process, lines };
        let about = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about});
        let hello = client.ask(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}));
        assert_eq!(hello["result"]["protocolVersion"], "2025-06-18", "{hello}");
        client.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    fn say(&mut self, message: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    /// The next message; nothing else may stand on stdout.
    fn hear(&mut self) -> Value {
        let line = self.lines.next().unwrap().unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    fn ask(&mut self, message: &Value) -> Value {
        self.say(message);
        self.hear()
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        self.ask(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}))["result"].clone()
    }

    /// Closes the input, as clients leave; the exit code and what was said on the side.
    fn leave(mut self) -> (Option<i32>, String) {
        drop(self.input.take());
        let rest: Vec<_> = self.lines.by_ref().collect();
        assert!(rest.is_empty(), "{rest:?}");
        let output = self.process.wait_with_output().unwrap();
        (output.status.code(), stderr(&output))
    }
}

fn on_folder(data: &Path) -> Client {
    Client::start(trellis(data, &["mcp"]))
}

#[test]
fn a_client_asks_on_the_folder_and_what_it_is_told_is_what_the_commands_tell() {
    let data = TempDir::new().unwrap();
    let mut client = on_folder(data.path());
    let asked = client.call("ask", &json!({"question": "Who was Ada?", "conversation_id": "c1"}));
    let value = &asked["structuredContent"];
    assert_eq!((&value["state"], &value["verified"]), (&json!("answered"), &json!(true)), "{asked}");
    let run = value["run_id"].as_str().unwrap().to_owned();
    let explained = client.call("explain_run", &json!({"run_id": run, "full": true}))["structuredContent"].clone();
    assert_eq!(client.leave(), (Some(0), String::new()));
    assert_eq!(told(data.path(), &["run", "answer", &run])["answer"], value["answer"]);
    let shown = ok(data.path(), &["run", "show", &run, "--full"]);
    assert_eq!(explained["explanation"].as_str().unwrap(), shown.trim_end());
    assert!(shown.contains("(mcp)"), "{shown}");
}

#[test]
fn a_run_that_is_given_up_goes_on_with_the_next_start() {
    let data = TempDir::new().unwrap();
    let mut slow = trellis(data.path(), &["mcp"]);
    slow.env("TRELLIS_REHEARSAL_DELAY_MS", "600000");
    let mut client = Client::start(slow);
    let asked = client.call("ask", &json!({"question": "Who was Ada?", "wait": 0}));
    let run = json!({"run_id": asked["structuredContent"]["run_id"]});
    assert_eq!(asked["structuredContent"]["ended"], false, "{asked}");
    let waits = json!({"name": "wait_for_run", "arguments": run});
    client.say(&json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": waits}));
    client.say(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}}));
    let listed = client.call("list_runs", &json!({}));
    assert_ne!(listed["structuredContent"]["runs"][0]["state"], "cancelled", "{listed}");
    let (code, said) = client.leave();
    assert_eq!(code, Some(0));
    assert!(said.contains("open runs: 1"), "{said}");
    let mut next = on_folder(data.path());
    assert_eq!(next.call("wait_for_run", &run)["structuredContent"]["state"], "answered");
    next.leave();
}

#[test]
fn in_front_of_a_server_everything_is_passed_on() {
    let data = TempDir::new().unwrap();
    let home = TempDir::new().unwrap();
    let server = Served::start_at(data.path(), "127.0.0.1:0", |command| command.env("TRELLIS_TOKEN", "s3cret"));
    let bridge = |token: &str| {
        let mut command = somewhere(home.path(), &["mcp", "--url", &server.url()]);
        command.env("TRUSTGRAPH_TOKEN", token);
        command
    };
    let mut client = Client::start(bridge("s3cret"));
    let asked = client.call("ask", &json!({"question": "Who was Ada?"}));
    assert_eq!(asked["structuredContent"]["state"], "answered", "{asked}");
    let unknown =
        client.ask(&json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "nonsense"}}));
    assert_eq!((&unknown["id"], &unknown["error"]["code"]), (&json!(9), &json!(-32602)), "{unknown}");
    assert_eq!(client.leave(), (Some(0), String::new()));

    let mut refused = bridge("wrong").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    writeln!(refused.stdin.take().unwrap(), "{list}").unwrap();
    let output = refused.wait_with_output().unwrap();
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(said["error"]["message"].as_str().unwrap().contains("does not know the token"), "{said}");
}

/// Whoever has the folder is asked: a client need not know.
#[test]
fn a_folder_that_is_served_is_asked_for_there() {
    let data = TempDir::new().unwrap();
    let server = Served::start(data.path());
    let mut client = on_folder(data.path());
    let run = client.call("ask", &json!({"question": "Who was Ada?"}))["structuredContent"]["run_id"].clone();
    client.leave();
    let known = server.json("GET", &format!("/api/v1/runs/{}", run.as_str().unwrap()), "");
    assert_eq!((&known["state"], &known["asked_by"]["surface"]), (&json!("answered"), &json!("mcp")));
}

/// A server that says something, and never the answer.
fn evasive(stream: TcpStream) -> Option<()> {
    let mut stream = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    while stream.read_line(&mut line).ok()? > 2 {
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().ok()?;
        }
        line.clear();
    }
    stream.read_exact(&mut vec![0; length]).ok()?;
    let body = "data: {\"jsonrpc\": \"2.0\", \"method\": \"notifications/message\"}\n\n";
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close";
    stream.get_mut().write_all(format!("{head}\r\n\r\n{body}").as_bytes()).ok()
}

#[test]
fn every_request_has_an_answer_also_those_of_a_batch() {
    let home = TempDir::new().unwrap();
    let url = format!("http://{}", crate::listen(evasive));
    let mut command = somewhere(home.path(), &["mcp", "--url", &url]);
    let mut bridge = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let ping = |id: u32| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
    writeln!(bridge.stdin.take().unwrap(), "{}\n{}\nnonsense", ping(1), json!([ping(2), ping(3)])).unwrap();
    let output = bridge.wait_with_output().unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    let mut answers: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    answers.retain(|message| message.get("error").is_some());
    answers.sort_by_key(|answer| answer["id"].as_u64());
    let ids: Vec<_> = answers.iter().map(|answer| answer["id"].clone()).collect();
    assert_eq!(ids, [Value::Null, json!(1), json!(2), json!(3)], "{lines}");
    assert!(answers[1]["error"]["message"].as_str().unwrap().contains("ended without an answer"), "{lines}");
}
