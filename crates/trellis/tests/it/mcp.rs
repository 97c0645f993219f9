//! Tools on MCP servers: found, added, called from the command line and by a run.

use crate::served::Served;
use crate::{fails, json, ok, stderr, stdout, trellis, until};
use serde_json::{Value, json};
use std::fs::write;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
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
        let path = first.split(' ').nth(1)?;
        let (status, kind, body) = if path.starts_with("/mcp") {
            said(&request, &token, path)
        } else {
            ("200 OK", "text/event-stream", model(&request))
        };
        let head = format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.get_mut().write_all(head.as_bytes()).ok()?;
        stream.get_mut().write_all(body.as_bytes()).ok()?;
    }
}

const TOKEN: &str = "Bearer tk-weather-1";

/// At `/mcp/odd` it has a tool whose argument nobody can name, besides, and at `/mcp/torn` one that is not described as the
/// protocol says.
fn said(request: &Value, token: &str, path: &str) -> (&'static str, &'static str, String) {
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
            let odd = tool("odd", json!({ "": { "type": "string" } }));
            let usual =
                [tool("weather", city), tool("flood", json!({})), tool("stream", json!({})), tool("lie", json!([3]))];
            done(match path {
                "/mcp/odd" => json!({ "tools": [&odd, &usual[0]] }),
                "/mcp/only-odd" => json!({ "tools": [odd] }),
                "/mcp/torn" => json!({ "tools": [{ "name": "torn", "inputSchema": 3 }, &usual[0]] }),
                _ => json!({ "tools": usual }),
            })
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

/// The file of somebody who has such a server.
pub(crate) fn file() -> String {
    let server =
        json!({ "type": "http", "url": format!("http://{}/mcp", serve()), "headers": { "Authorization": TOKEN } });
    json!({ "mcpServers": { "w": server } }).to_string()
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

/// The server at a path of it.
fn at(address: &str, path: &str) -> Value {
    json!({ "url": format!("http://{address}{path}"), "headers": { "Authorization": "Bearer ${WEATHER_TOKEN}" } })
}

#[test]
fn what_can_be_a_tool_is_added_and_the_rest_is_told_of() {
    let address = serve();
    let data = folder(&json!({ "w": at(&address, "/mcp/odd"), "o": at(&address, "/mcp/only-odd") }));
    let some = with_servers(&data, &["tools", "discover", "w", "--add"]).output().unwrap();
    assert_eq!(some.status.code(), Some(11), "{}", stderr(&some));
    let told = stderr(&some);
    assert!(told.contains("added 1 tool") && told.contains("odd of w can be no tool here"), "{told}");
    assert!(told.contains("entry 1 has no name"), "{told}");
    assert!(tells(&data, &["tools", "test", "--unsafe", "weather", "city=Oslo"]).contains("celsius 7"));
    let none = with_servers(&data, &["tools", "discover", "o", "--add"]).output().unwrap();
    assert_eq!(none.status.code(), Some(6), "{}", stderr(&none));
}

#[test]
fn the_doctor_names_tools_that_are_left_out_and_servers_that_do_not_answer() {
    let address = serve();
    let (torn, gone) = (at(&address, "/mcp/torn"), json!({ "command": "/no/such/program" }));
    // Before there is a folder, and in it.
    let data = folder(&json!({ "w": torn }));
    let fresh = with_servers(&data, &["doctor"]).output().unwrap();
    ok(data.path(), &["ask", "One?"]);
    for output in [fresh, with_servers(&data, &["doctor"]).output().unwrap()] {
        let told = stdout(&output);
        assert_eq!(output.status.code(), Some(0), "{told}{}", stderr(&output));
        assert!(told.contains("ok    MCP servers    1 server with 1 tool\n"), "{told}");
        assert!(
            told.contains("torn of w is left out: it is not described as the protocol says: invalid type"),
            "{told}"
        );
    }
    let data = folder(&json!({ "w": torn, "gone": gone }));
    ok(data.path(), &["ask", "One?"]);
    let output = with_servers(&data, &["doctor"]).output().unwrap();
    let told = stdout(&output);
    assert_eq!(output.status.code(), Some(6), "{told}");
    assert!(
        told.contains("fault MCP servers ") && told.contains("gone: `/no/such/program` cannot be started"),
        "{told}"
    );
    assert!(told.contains("torn of w is left out"), "{told}");
}

/// The operator's file limits who may use a server, and what of it: in lists, at discovery, in configuration and at a call.
#[test]
fn what_the_operator_does_not_offer_is_not_found_not_configured_and_not_called() {
    let address = serve();
    let mut server = at(&address, "/mcp");
    let data = folder(&json!({ "w": server }));
    assert!(tells(&data, &["tools", "discover", "--add"]).contains("added 4 tools"));
    (server["workspaces"], server["tools"]) = (json!(["default"]), json!(["weather"]));
    write(data.path().join("mcp.json"), json!({ "mcpServers": { "w": server } }).to_string()).unwrap();

    let found = tells(&data, &["tools", "discover"]);
    let listed = |tool: &str| found.lines().any(|line| line.starts_with(&format!("w       {tool}")));
    assert!(listed("weather") && !listed("flood"), "{found}");
    assert!(found.contains("the tool `flood` is not found at the server w any more"), "{found}");
    let refusal = "the operator does not offer the tool `flood` of the MCP server `w`; offered are: weather";
    let called = tells(&data, &["tools", "test", "--unsafe", "flood"]);
    assert!(called.contains(refusal), "{called}");
    let doctor = tells(&data, &["doctor"]);
    assert!(doctor.contains(&format!("flood is not offered: {refusal}")), "{doctor}");
    let item = r#"{"type": "mcp-tool", "server": "w", "mcp-tool": "flood"}"#;
    for command in [["tools", "add", "again", item].as_slice(), &["config", "put", "tool", "again", item]] {
        let added = with_servers(&data, command).output().unwrap();
        assert_eq!(added.status.code(), Some(6), "{}", stderr(&added));
        assert!(stderr(&added).contains(refusal), "{}", stderr(&added));
    }

    // Others hear of it as of one that does not exist.
    let other = |arguments: &[&str]| tells(&data, &[arguments, &["--workspace", "other"]].concat());
    assert!(other(&["tools", "discover", "w"]).contains("no MCP server is named"));
    let unknown = "there is no MCP server `w`";
    other(&["tools", "add", "weather", r#"{"type": "mcp-tool", "server": "w", "mcp-tool": "weather"}"#]);
    assert!(other(&["tools", "test", "--unsafe", "weather"]).contains(unknown));
    assert!(tells(&data, &["tools", "test", "--unsafe", "weather", "city=Oslo"]).contains("celsius 7"));

    // And so over a server.
    let over_http = served(&data);
    let (status, reply) = over_http.reply("PUT", "/api/v1/tools/again", item);
    assert!(status == 422 && reply.to_string().contains("does not offer the tool `flood`"), "{status} {reply}");
    let (status, reply) = over_http.reply("POST", "/api/v1/tools/flood/test", r#"{"unsafe": true}"#);
    assert!(status == 409 && reply.to_string().contains("does not offer the tool `flood`"), "{status} {reply}");
    let (status, reply) = over_http.reply("POST", "/api/v1/tools/discover?workspace=other", r#"{"server": "w"}"#);
    assert_eq!(status, 404, "{reply}");
    let (status, reply) = over_http.reply("POST", "/api/v1/tools/weather/test?workspace=other", r#"{"unsafe": true}"#);
    assert!(status == 409 && reply.to_string().contains(unknown), "{status} {reply}");

    (server["workspaces"], server["tools"]) = (json!("default"), Value::Null);
    write(data.path().join("mcp.json"), json!({ "mcpServers": { "w": server } }).to_string()).unwrap();
    let wrong = tells(&data, &["tools", "discover"]);
    assert!(wrong.contains("mcp.json: the server `w`: `workspaces` is to be a list of names"), "{wrong}");
}

fn served(data: &TempDir) -> Served {
    let file = data.path().join("mcp.json");
    Served::start_at(data.path(), "127.0.0.1:0", |command| {
        command.env("TRELLIS_MCP_CONFIG", &file).env("WEATHER_TOKEN", "tk-weather-1")
    })
}

#[test]
fn a_server_asks_servers_for_their_tools_and_adds_them() {
    let address = serve();
    let data = folder(&json!({ "w": at(&address, "/mcp/odd"), "o": at(&address, "/mcp/only-odd") }));
    let served = served(&data);
    let found = served.json("POST", "/api/v1/tools/discover", r#"{"server": "w"}"#);
    let names: Vec<_> = found["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!((names, &found["added"], &found["version"]), (vec!["odd", "weather"], &json!([]), &Value::Null));
    let added = served.json("POST", "/api/v1/tools/discover", r#"{"server": "w", "add": true}"#);
    assert_eq!((&added["added"], &added["not_added"][0]["name"]), (&json!(["weather"]), &json!("odd")), "{added}");
    assert!(added["version"].is_u64() && added["failed"] == json!([]), "{added}");
    let call = r#"{"arguments": {"city": "Oslo"}, "unsafe": true}"#;
    let tried = served.json("POST", "/api/v1/tools/weather/test", call);
    assert_eq!(tried["observation"], r#"celsius 7, asked for {"city":"Oslo"}"#, "{tried}");
    let (status, none) = served.reply("POST", "/api/v1/tools/discover", r#"{"server": "o", "add": true}"#);
    assert!(status == 422 && none.to_string().contains("entry 1 has no name"), "{status} {none}");
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
    until_over(&std::fs::read_to_string(data.path().join("child")).unwrap());
}

fn until_over(process: &str) {
    until(&format!("{process} ends"), || {
        let state = std::fs::read_to_string(format!("/proc/{}/stat", process.trim())).unwrap_or_default();
        state.is_empty() || state.contains(") Z")
    });
}

/// The command that ends programs ends none that it was not started for.
#[test]
fn whoever_types_what_guards_programs_loses_nothing() {
    let script = format!("{} program-guard < /dev/null; echo still here", env!("CARGO_BIN_EXE_trellis"));
    // A group of its own: if it is wrong, it ends that, and not the tests.
    let output = Command::new("sh").args(["-c", &script]).process_group(0).output().unwrap();
    assert_eq!(stdout(&output), "still here\n");
}

/// It neither looks at its input nor hears of anything else.
#[test]
fn a_program_ends_with_all_that_it_started_when_the_server_is_killed() {
    let files = TempDir::new().unwrap();
    let (program, child) = (files.path().join("program"), files.path().join("child"));
    let script =
        format!("trap '' HUP TERM; echo $$ > {}; sleep 600 & echo $! > {}; wait", program.display(), child.display());
    let data = folder(&json!({ "s": { "command": "sh", "args": ["-c", script] } }));
    let served = served(&data);
    // Nobody waits for the answer: there is none.
    let _asked = served.request("POST", "/api/v1/tools/discover", "", r#"{"server": "s"}"#);
    let written = |file: &std::path::Path| std::fs::read_to_string(file).unwrap_or_default();
    until("the program has begun", || written(&child).ends_with('\n'));
    served.kill();
    until_over(&written(&child));
    until_over(&written(&program));
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
