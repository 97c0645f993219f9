//! Tools on MCP servers: found, added, called from the command line and by a run.

use crate::{fails, json, ok, stderr, stdout, trellis};
use serde_json::{Value, json};
use std::fs::write;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use tempfile::TempDir;

/// A server as they were before the newest protocol, at `/mcp`, and a model everywhere else.
fn serve() -> String {
    crate::listen(answer)
}

fn answer(stream: TcpStream) -> Option<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let (mut first, mut line, mut length, mut token) = (String::new(), String::new(), 0, String::new());
        stream.read_line(&mut first).ok()?;
        while stream.read_line(&mut line).ok()? > 2 {
            let (name, value) = line.split_once(':').unwrap_or((&line, ""));
            match name.to_lowercase().as_str() {
                "content-length" => length = value.trim().parse().ok()?,
                "authorization" => value.trim().clone_into(&mut token),
                _ => {}
            }
            line.clear();
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).ok()?;
        let request: Value = serde_json::from_slice(&body).unwrap_or_default();
        let is_mcp = first.split(' ').nth(1)?.starts_with("/mcp");
        let (status, kind, body) =
            if is_mcp { said(&request, &token) } else { ("200 OK", "text/event-stream", model(&request)) };
        let head = format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.get_mut().write_all(head.as_bytes()).ok()?;
        stream.get_mut().write_all(body.as_bytes()).ok()?;
    }
}

const TOKEN: &str = "Bearer tk-weather-1";

fn said(request: &Value, token: &str) -> (&'static str, &'static str, String) {
    if token != TOKEN {
        return ("401 Unauthorized", "text/plain", "who are you?".to_owned());
    }
    let done = |result: Value| {
        ("200 OK", "application/json", json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }).to_string())
    };
    let text = |text: String| json!({ "content": [{ "type": "text", "text": text }] });
    match request["method"].as_str().unwrap_or_default() {
        "initialize" => {
            let server = json!({ "name": "weather", "version": "1" });
            done(json!({ "protocolVersion": "2025-03-26", "capabilities": { "tools": {} }, "serverInfo": server }))
        }
        "tools/list" => {
            let tool = |name: &str, properties: Value| {
                let schema = json!({ "type": "object", "properties": properties });
                json!({ "name": name, "description": format!("the {name}"), "inputSchema": schema })
            };
            let city = json!({ "city": { "type": "string" }, "days": { "type": "integer" } });
            done(
                json!({ "tools": [tool("weather", city), tool("flood", json!({})), tool("stream", json!({})), tool("lie", json!([3]))] }),
            )
        }
        "tools/call" => match request["params"]["name"].as_str().unwrap_or_default() {
            "weather" if request["params"]["_meta"]["trellis/idempotency-key"].is_string() => {
                done(text(format!("celsius 7, asked for {}", request["params"]["arguments"])))
            }
            "flood" => done(text("x".repeat(9 << 20))),
            "stream" => {
                let event = done(text("x".repeat(9 << 20))).2;
                ("200 OK", "text/event-stream", format!("event: message\ndata: {event}\n\n"))
            }
            _ => ("200 OK", "application/json", "{\"jsonrpc\": \"2.0\", \"id\":".to_owned()),
        },
        _ if request.get("id").is_none() => ("202 Accepted", "text/plain", String::new()),
        _ => ("400 Bad Request", "text/plain", "no session".to_owned()),
    }
}

/// Looks at the weather once, and tells what it was.
fn model(request: &Value) -> String {
    let said = request["messages"].to_string();
    let text = if said.contains("celsius 7") {
        "Thought: I know it.\nFinal Answer: It is 7 degrees in Oslo [1]."
    } else {
        "Thought: I look.\nAction: weather\nArgs: {\"city\": \"Oslo\", \"days\": null}"
    };
    let chunk = json!({ "choices": [{ "delta": { "content": text }, "finish_reason": "stop" }] });
    format!("data: {chunk}\n\ndata: [DONE]\n\n")
}

/// A folder whose operator has named a server.
fn folder(servers: &Value) -> TempDir {
    let data = TempDir::new().unwrap();
    write(data.path().join("mcp.json"), json!({ "mcpServers": servers }).to_string()).unwrap();
    data
}

fn with_servers(data: &TempDir, arguments: &[&str]) -> Command {
    let mut command = trellis(data.path(), arguments);
    command.env("TRELLIS_MCP_CONFIG", data.path().join("mcp.json")).env("WEATHER_TOKEN", "tk-weather-1");
    command
}

fn tells(data: &TempDir, arguments: &[&str]) -> String {
    let output = with_servers(data, arguments).output().unwrap();
    format!("{}{}", stdout(&output), stderr(&output))
}

#[test]
fn what_a_server_has_is_found_added_and_called() {
    let address = serve();
    let headers = json!({ "Authorization": "Bearer ${WEATHER_TOKEN}" });
    let data = folder(&json!({ "w": { "type": "http", "url": format!("http://{address}/mcp"), "headers": headers } }));
    let found = tells(&data, &["tools", "discover"]);
    assert!(found.contains("weather") && found.contains("city, days") && found.contains("--add"), "{found}");
    let added = tells(&data, &["tools", "discover", "--add"]);
    assert!(added.contains("added 4 tools"), "{added}");
    let again = tells(&data, &["tools", "discover", "w", "--add", "--only", "weather"]);
    assert!(again.contains("added 1 tool") && again.trim_end().ends_with(": weather"), "{again}");
    let brought = tells(&data, &["tools", "test", "--unsafe", "weather", "city=Oslo", "days=2"]);
    assert_eq!(brought.trim(), r#"celsius 7, asked for {"city":"Oslo","days":2}"#);
    let wrong = tells(&data, &["tools", "test", "--unsafe", "weather", "days=soon"]);
    assert!(wrong.contains("`days` is to be a whole number"), "{wrong}");
    let flood = tells(&data, &["tools", "test", "--unsafe", "flood"]);
    assert!(flood.contains("its answer is longer than 8 MB"), "{flood}");
    let stream = tells(&data, &["tools", "test", "--unsafe", "stream"]);
    assert!(stream.contains("its answer is longer than 8 MB"), "{stream}");
    let lie = tells(&data, &["tools", "test", "--unsafe", "lie"]);
    assert!(lie.contains("which is no message of this protocol"), "{lie}");
    // Without the operator's file it can be called by nobody.
    let (_, why) = fails(data.path(), &["tools", "test", "--unsafe", "weather", "city=Oslo"]);
    assert!(why.contains("there is no MCP server `w`"), "{why}");
    let listed = json(data.path(), &["tools", "list"]);
    let tool = listed["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "weather").unwrap();
    assert_eq!(tool["can_be_called"], json!(false), "{tool}");
}

#[test]
fn a_run_calls_the_tool_and_its_trace_says_so() {
    let address = serve();
    let headers = json!({ "Authorization": "Bearer ${WEATHER_TOKEN}" });
    let data = folder(&json!({ "w": { "url": format!("http://{address}/mcp"), "headers": headers } }));
    tells(&data, &["tools", "discover", "--add", "--only", "weather"]);
    let question = ["ask", "How warm is it in Oslo?", "--pattern", "react", "--task-type", "general"];
    let mut command = with_servers(&data, &question);
    command.env_remove("TRELLIS_MODEL").env("OPENAI_API_KEY", "sk-test").env("OPENAI_MODEL", "moss-1");
    command.env("OPENAI_BASE_URL", format!("http://{address}/v1")).env("TRELLIS_MODELS_NATIVE_TOOLS", "false");
    let output = command.output().unwrap();
    assert!(stdout(&output).contains("It is 7 degrees in Oslo"), "{}{}", stdout(&output), stderr(&output));
    let shown = json(data.path(), &["run", "show", "last"]).to_string();
    // What the model left out is not sent.
    assert!(shown.contains(r#"celsius 7, asked for {\"city\":\"Oslo\"}"#), "{shown}");
    assert!(!shown.contains("tk-weather-1"), "{shown}");
    assert!(ok(data.path(), &["verify", "last"]).starts_with("ok"));
}

/// As TrustGraph has them: the address is the workspace's, and whether it is called the operator's decision.
#[test]
fn a_server_of_a_workspace_is_called_where_the_operator_allows_it() {
    let address = serve();
    let data = folder(&json!({}));
    let item =
        json!({ "url": format!("http://{address}/mcp"), "remote-name": "weather", "auth-token": "tk-weather-1" });
    ok(data.path(), &["config", "put", "mcp", "w", &item.to_string()]);
    ok(data.path(), &["tools", "add", "warmth", r#"{"type": "mcp-tool", "mcp-tool": "w"}"#]);
    let refused = tells(&data, &["tools", "test", "--unsafe", "warmth", r#"{"city": "Oslo"}"#]);
    assert!(refused.contains("does not allow calls to 127.0.0.1"), "{refused}");
    let mut command = with_servers(&data, &["tools", "test", "--unsafe", "warmth", r#"{"city": "Oslo"}"#]);
    command.env("TRELLIS_TOOLS_HTTP_HOSTS", "127.0.0.1").env("TRELLIS_TOOLS_HTTP_PRIVATE", "true");
    let brought = stdout(&command.output().unwrap());
    assert_eq!(brought.trim(), r#"celsius 7, asked for {"city":"Oslo"}"#);
    ok(data.path(), &["tools", "add", "other", r#"{"type": "mcp-tool", "mcp-tool": "nothing"}"#]);
    let missing = tells(&data, &["tools", "test", "--unsafe", "other"]);
    assert!(missing.contains("there is no `mcp` item `nothing`"), "{missing}");
}

#[test]
fn servers_that_are_none_are_told_apart_and_end() {
    let program = |script: &str| json!({ "command": "sh", "args": ["-c", script], "startupTimeout": 1500 });
    let address = serve();
    let data = folder(&json!({
        "gone": { "command": "/no/such/program" },
        "fails": program("echo the key is missing >&2; exit 1"),
        "silent": program("sleep 60 & echo $! > child; wait"),
        "floods": program("yes"),
        "endless": program("tr '\\0' x < /dev/zero"),
        "shut": { "url": "http://127.0.0.1:9/mcp" },
        "asks": { "url": format!("http://{address}/mcp") },
    }));
    let output = with_servers(&data, &["tools", "discover"]).current_dir(data.path()).output().unwrap();
    assert!(!output.status.success());
    let told = stderr(&output);
    for words in [
        "gone: `/no/such/program` cannot be started: No such file",
        "fails: `sh` was started, but it ended before it answered (the key is missing)",
        "silent: `sh` was started, but it did not answer within 1",
        "floods: `sh` was started, but it ended before it answered (what it writes are no messages of this protocol)",
        "endless: `sh` was started, but it ended before it answered (its answer is longer than 8 MB)",
        "shut: http://127.0.0.1:9/mcp: Connection refused",
        "asks: ",
        "401 Unauthorized: who are you?",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
    // Whatever a program has started ends with it.
    let child = std::fs::read_to_string(data.path().join("child")).unwrap();
    let is_over = || {
        let state = std::fs::read_to_string(format!("/proc/{}/stat", child.trim())).unwrap_or_default();
        state.is_empty() || state.contains(") Z")
    };
    for _ in 0..1_000 {
        if is_over() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    panic!("{child} goes on");
}

#[test]
fn a_program_gets_no_keys_but_its_own() {
    let server = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"server/discover"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{\"code\":-32601,\"message\":\"what?\"}}" ;;
    *'"initialize"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"protocolVersion\":\"2024-11-05\",\"capabilities\":{},\"serverInfo\":{\"name\":\"s\",\"version\":\"1\"}}}" ;;
    *'"tools/call"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"key=$OPENAI_API_KEY own=$OWN\"}]}}" ;;
    *) ;;
  esac
done"#;
    let program = json!({ "command": "sh", "args": ["-c", server], "env": { "OWN": "${WEATHER_TOKEN}" } });
    let data = folder(&json!({ "s": program }));
    ok(data.path(), &["tools", "add", "keys", r#"{"type": "mcp-tool", "server": "s", "mcp-tool": "keys"}"#]);
    let mut command = with_servers(&data, &["tools", "test", "--unsafe", "keys"]);
    let brought = stdout(&command.env("OPENAI_API_KEY", "sk-test-123").output().unwrap());
    assert_eq!(brought.trim(), "key= own=[redacted]", "what it was let in with is in no record");
    // One that lacks something keeps nobody from the others.
    let mut command = with_servers(&data, &["tools", "test", "--unsafe", "keys"]);
    let told = stderr(&command.env_remove("WEATHER_TOKEN").output().unwrap());
    assert!(told.contains("the MCP server `s` cannot be used: the variable WEATHER_TOKEN is not set"), "{told}");
    let asked = with_servers(&data, &["ask", "Is it there?"]).env_remove("WEATHER_TOKEN").output().unwrap();
    assert!(asked.status.success(), "{}", stderr(&asked));
}
