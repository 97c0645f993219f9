//! A tool on an MCP server that asks a person for input: the run waits, and the call is made again with what was typed.

use crate::served::Served;
use crate::{fails, json, ok, stderr, stdout, trellis, until};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use tempfile::TempDir;

/// A server of the newest protocol at `/mcp`, and a model everywhere else.
fn answer(stream: TcpStream) -> Option<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let (mut first, mut line, mut length) = (String::new(), String::new(), 0);
        stream.read_line(&mut first).ok()?;
        while stream.read_line(&mut line).ok()? > 2 {
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            }
            line.clear();
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).ok()?;
        let request: Value = serde_json::from_slice(&body).unwrap_or_default();
        let (kind, body) = if first.split(' ').nth(1)?.starts_with("/mcp") {
            let reply = json!({ "jsonrpc": "2.0", "id": request["id"], "result": said(&request) });
            ("application/json", reply.to_string())
        } else {
            ("text/event-stream", model(&request))
        };
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.get_mut().write_all(head.as_bytes()).ok()?;
        stream.get_mut().write_all(body.as_bytes()).ok()?;
    }
}

fn said(request: &Value) -> Value {
    let parameters = &request["params"];
    match request["method"].as_str().unwrap_or_default() {
        "server/discover" => json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} },
            "ttlMs": 0, "cacheScope": "private", "serverInfo": { "name": "tables", "version": "1" },
        }),
        "tools/list" => {
            let schema = json!({ "type": "object", "properties": { "place": { "type": "string" } } });
            let book = json!({ "name": "book", "description": "Books a table", "inputSchema": schema });
            json!({ "resultType": "complete", "tools": [book], "ttlMs": 0, "cacheScope": "private" })
        }
        "tools/call" => called(parameters),
        _ => json!({ "resultType": "complete" }),
    }
}

/// Asks twice: for how many, and for when.
fn called(parameters: &Value) -> Value {
    let text = |text: String| json!({ "resultType": "complete", "content": [{ "type": "text", "text": text }] });
    let capabilities = &parameters["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    if !capabilities["elicitation"]["form"].is_object() {
        return text("nobody can be asked".to_owned());
    }
    let (state, answers) = (parameters["requestState"].as_str().unwrap_or_default(), &parameters["inputResponses"]);
    match state {
        _ if answers["q"]["action"] == "decline" => text("the guest did not want to say".to_owned()),
        "" => form("How many people?", "people", &json!({ "type": "integer", "minimum": 1 }), "people:"),
        "people:" => {
            let people = answers["q"]["content"]["people"].to_string();
            form("When?", "when", &json!({ "type": "string", "enum": ["noon", "night"] }), &format!("when:{people}"))
        }
        _ => text(format!("booked for {} at {}", state.trim_start_matches("when:"), answers["q"]["content"]["when"])),
    }
}

fn form(message: &str, field: &str, schema: &Value, state: &str) -> Value {
    let schema = json!({ "type": "object", "properties": { field: schema }, "required": [field] });
    let asked = json!({ "mode": "form", "message": message, "requestedSchema": schema });
    let requests = json!({ "q": { "method": "elicitation/create", "params": asked } });
    json!({ "resultType": "input_required", "inputRequests": requests, "requestState": state })
}

/// Books, and tells what came of it.
fn model(request: &Value) -> String {
    let said = request["messages"].to_string();
    let text = if said.contains("booked for 4 at") {
        "Thought: I know it.\nFinal Answer: There is a table for four [1]."
    } else if said.contains("did not want to say") {
        "Thought: I know it.\nFinal Answer: Nothing was booked [1]."
    } else {
        "Thought: I book.\nAction: book\nArgs: {\"place\": \"the inn\"}"
    };
    let chunk = json!({ "choices": [{ "delta": { "content": text }, "finish_reason": "stop" }] });
    format!("data: {chunk}\n\ndata: [DONE]\n\n")
}

struct Inn {
    data: TempDir,
    address: String,
}

impl Inn {
    fn new() -> Self {
        let (data, address) = (TempDir::new().unwrap(), crate::listen(answer));
        let servers = json!({ "mcpServers": { "inn": { "url": format!("http://{address}/mcp") } } });
        std::fs::write(data.path().join("mcp.json"), servers.to_string()).unwrap();
        let inn = Self { data, address };
        let added = inn.with(trellis(inn.data.path(), &["tools", "discover", "--add"])).output().unwrap();
        assert!(stderr(&added).contains("added 1 tool"), "{}", stderr(&added));
        inn
    }

    fn with(&self, mut command: Command) -> Command {
        command.env("TRELLIS_MCP_CONFIG", self.data.path().join("mcp.json"));
        command
            .env("OPENAI_BASE_URL", format!("http://{}/v1", self.address))
            .env("TRELLIS_MODELS_NATIVE_TOOLS", "false");
        command.env_remove("TRELLIS_MODEL").env("OPENAI_API_KEY", "sk-test").env("OPENAI_MODEL", "moss-1");
        command
    }

    fn tell(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let output = self.with(trellis(self.data.path(), arguments)).output().unwrap();
        (output.status.code(), format!("{}{}", stdout(&output), stderr(&output)))
    }

    fn ask(&self) -> String {
        let question = ["ask", "Book a table", "--pattern", "react", "--task-type", "general"];
        let (code, told) = self.tell(&question);
        assert_eq!(code, Some(130), "{told}");
        told
    }

    fn decide(&self, content: &str) {
        ok(self.data.path(), &["run", "decide", "last", "answer", "--content", content]);
    }
}

#[test]
fn a_run_waits_for_what_a_tool_asks_and_goes_on_with_it() {
    let inn = Inn::new();
    let data = inn.data.path();
    let told = inn.ask();
    assert!(told.contains("> How many people?") && told.contains("Fields: people (integer, required)"), "{told}");
    let shown = json(data, &["run", "show", "last"]);
    let open = &shown["waiting_for"][0];
    assert_eq!((&open["options"], &open["otherwise"]), (&json!(["answer", "decline"]), &json!("decline")), "{shown}");
    assert_eq!(open["forms"][0]["schema"]["properties"]["people"]["type"], "integer", "{shown}");

    for (content, why) in [
        (Some(r#"{"people": "four"}"#), "`people` must be a whole number"),
        (Some(r#"{"people": 0}"#), "`people` must be at least 1"),
        (Some("[4]"), "--content must be a JSON object"),
        (None, "`answer` needs what the tool asks for"),
    ] {
        let content = content.map(|content| vec!["--content", content]).unwrap_or_default();
        let (code, told) = fails(data, &[["run", "decide", "last", "answer"].as_slice(), &content].concat());
        assert!(code == 2 && told.contains(why), "{code} {told}");
    }
    inn.decide(r#"{"people": 4}"#);
    let (_, told) = inn.tell(&["resume"]);
    assert!(told.contains("waits for an answer"), "{told}");
    let shown = json(data, &["run", "show", "last"]);
    assert!(shown["waiting_for"][0]["question"].to_string().contains("> When?"), "{shown}");
    inn.decide(r#"{"when": "night"}"#);
    let (code, told) = inn.tell(&["resume"]);
    assert_eq!(code, Some(0), "{told}");
    assert!(ok(data, &["run", "answer", "last"]).contains("a table for four"));
    let verified = ok(data, &["verify", "last"]);
    assert!(verified.starts_with("ok") && !verified.contains("not replayed"), "{verified}");
    let events = ok(data, &["run", "watch", "last", "--output", "ndjson"]);
    assert!(events.contains("input.required") && events.contains(r#""content":{"q":{"people":4}}"#), "{events}");
    assert!(json(data, &["run", "show", "last"]).to_string().contains("tool-input"));
}

#[test]
fn a_decline_goes_back_to_the_server_and_what_it_says_then_is_the_observation() {
    let inn = Inn::new();
    inn.ask();
    ok(inn.data.path(), &["run", "decide", "last", "decline", "--reason", "none of its business"]);
    let (code, told) = inn.tell(&["resume"]);
    assert_eq!(code, Some(0), "{told}");
    assert!(ok(inn.data.path(), &["run", "answer", "last"]).contains("Nothing was booked"));
    assert!(ok(inn.data.path(), &["verify", "last"]).starts_with("ok"));
}

/// What a server process has recorded when it is killed is asked no second time.
#[test]
fn a_killed_server_leaves_the_question_and_the_next_one_takes_the_answer() {
    let inn = Inn::new();
    let file = inn.data.path().join("mcp.json");
    let start = || {
        Served::start_at(inn.data.path(), "127.0.0.1:0", |command| {
            command.env("TRELLIS_MCP_CONFIG", &file).env("OPENAI_API_KEY", "sk-test").env("OPENAI_MODEL", "moss-1");
            command.env_remove("TRELLIS_MODEL").env("TRELLIS_MODELS_NATIVE_TOOLS", "false");
            command.env("OPENAI_BASE_URL", format!("http://{}/v1", inn.address))
        })
    };
    let body = json!({ "question": "Book a table", "pattern": "react", "task_type": "general" }).to_string();
    let served = start();
    let run = served.json("POST", "/api/v1/runs", &body)["run_id"].as_str().unwrap().to_owned();
    let shown = |served: &Served| served.json("GET", &format!("/api/v1/runs/{run}/trace"), "");
    let waiting = |served: &Served, word: &str| {
        until(word, || shown(served)["waiting_for"][0]["question"].as_str().is_some_and(|asked| asked.contains(word)));
        shown(served)
    };
    waiting(&served, "How many people?");
    served.kill();

    let served = start();
    let asked = waiting(&served, "How many people?");
    assert_eq!(asked["waiting_for"][0]["park"], "park/1", "{asked}");
    let place = format!("/api/v1/runs/{run}/decide");
    let (status, wrong) = served.reply("POST", &place, r#"{"choice": "answer", "content": {"persons": 4}}"#);
    assert!(status == 400 && wrong.to_string().contains("the field `people` is missing"), "{status} {wrong}");
    served.json("POST", &place, r#"{"choice": "answer", "content": {"people": 4}}"#);
    waiting(&served, "When?");
    served.json("POST", &place, r#"{"choice": "answer", "content": {"when": "noon"}}"#);
    until("the run is answered", || shown(&served)["state"] == "answered");
    assert!(shown(&served).to_string().contains("a table for four"), "{}", shown(&served));
}

/// Outside of runs nobody can be asked, and whoever tries a tool is told so.
#[test]
fn a_trial_of_a_tool_that_asks_says_that_only_a_run_can() {
    let inn = Inn::new();
    let (_, told) = inn.tell(&["tools", "test", "--unsafe", "book", "place=inn"]);
    assert!(told.contains("the server asks for input, and only in a run somebody can be asked"), "{told}");
}
