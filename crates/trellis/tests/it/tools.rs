//! A tool of the user's own: an address that is called, from the command line and by a run.

use crate::{fails, json, ok, stderr, stdout, trellis};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use tempfile::TempDir;

/// Answers requests until the test ends: what is asked of `/now/…`, and as a model everything else.
fn serve() -> String {
    crate::listen(answer)
}

fn answer(stream: TcpStream) -> Option<()> {
    let mut stream = BufReader::new(stream);
    let (mut first, mut line, mut length, mut key) = (String::new(), String::new(), 0, String::new());
    stream.read_line(&mut first).ok()?;
    while stream.read_line(&mut line).ok()? > 2 {
        let (name, value) = line.split_once(':').unwrap_or((&line, ""));
        match name.to_lowercase().as_str() {
            "content-length" => length = value.trim().parse().ok()?,
            "x-key" => value.trim().clone_into(&mut key),
            _ => {}
        }
        line.clear();
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    let path = first.split(' ').nth(1)?;
    let body = match path.strip_prefix("/now/") {
        _ if path == "/openapi.json" => openapi().to_string(),
        _ if path == "/jokes" => joke(&serde_json::from_slice(&body).ok()?),
        Some(city) => json!({ "city": city, "celsius": 7, "with_key": key == "sk-weather-1" }).to_string(),
        None => model(&serde_json::from_slice(&body).ok()?),
    };
    let reply = format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    stream.get_mut().write_all(reply.as_bytes()).ok()
}

/// One operation, which needs a key and is where the document is.
fn openapi() -> Value {
    let city =
        json!({ "name": "city", "in": "path", "required": true, "schema": { "$ref": "#/components/schemas/City" } });
    let operation = json!({ "operationId": "now", "summary": "The weather in a city now", "parameters": [city] });
    let keys = json!({ "key": { "type": "apiKey", "in": "header", "name": "x-key" } });
    let types = json!({ "City": { "type": "string", "maxLength": 20 } });
    json!({
        "openapi": "3.1.0", "info": { "title": "Weather", "version": "1" }, "security": [{ "key": [] }],
        "paths": { "/now/{city}": { "get": operation } },
        "components": { "securitySchemes": keys, "schemas": types },
    })
}

/// A service as TrustGraph's, which tells its reply in pieces.
fn joke(request: &Value) -> String {
    let read = |name: &str| serde_json::from_str::<Value>(request[name].as_str().unwrap()).unwrap();
    let pieces = [json!({ "response": read("config")["style"] }), json!({ "response": "" })];
    let last = json!({ "response": format!(" joke about {}", read("arguments")["topic"]), "end_of_stream": true });
    pieces.iter().chain([&last]).map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// Looks at the weather once, and tells what it was.
fn model(request: &Value) -> String {
    let said = request["messages"].to_string();
    let text = if said.contains("celsius") {
        "Thought: I know it.\nFinal Answer: It is 7 degrees in Oslo [1]."
    } else {
        "Thought: I look.\nAction: weather\nArgs: {\"city\": \"Oslo\"}"
    };
    let chunk = json!({ "choices": [{ "delta": { "content": text }, "finish_reason": "stop" }] });
    format!("data: {chunk}\n\ndata: [DONE]\n\n")
}

fn weather(address: &str) -> String {
    let argument = json!({ "name": "city", "type": "string", "description": "The name of the city" });
    json!({
        "type": "http", "name": "weather", "description": "The weather in a city now", "arguments": [argument],
        "url": format!("http://{address}/now/{{city}}"), "headers": { "x-key": "{secret:WEATHER}" },
    })
    .to_string()
}

/// A folder with the tool, and the settings of an operator who allows it.
fn folder(address: &str) -> TempDir {
    let data = TempDir::new().unwrap();
    let settings = "[tools.http]\nhosts = [\"127.0.0.1\"]\nprivate = true\n\
                    [tools.secrets.WEATHER]\nkey-env = \"WEATHER_KEY\"\nhosts = [\"127.0.0.1\"]\n";
    std::fs::write(data.path().join("set.toml"), settings).unwrap();
    ok(data.path(), &["tools", "add", "weather", &weather(address)]);
    data
}

fn allowed(data: &TempDir, arguments: &[&str]) -> std::process::Command {
    let mut command = trellis(data.path(), arguments);
    command.env("TRELLIS_SETTINGS", data.path().join("set.toml")).env("WEATHER_KEY", "sk-weather-1");
    command
}

#[test]
fn a_tool_of_ones_own_is_added_tried_and_removed() {
    let data = folder(&serve());
    let output = allowed(&data, &["tools", "test", "weather", "city=Oslo"]).output().unwrap();
    assert_eq!(stdout(&output).trim(), r#"{"city":"Oslo","celsius":7,"with_key":true}"#, "{}", stderr(&output));
    let listed = stdout(&allowed(&data, &["tools", "list"]).output().unwrap());
    let line = listed.lines().find(|line| line.starts_with("weather")).unwrap();
    assert!(line.contains("http") && line.trim_end().ends_with("yes"), "{line}");
    let (code, message) = fails(data.path(), &["tools", "test", "weather", "city=Oslo"]);
    assert_eq!((code, message.contains("does not allow calls to 127.0.0.1")), (10, true), "{message}");
    let without_key = stdout(&allowed(&data, &["tools", "list"]).env_remove("WEATHER_KEY").output().unwrap());
    assert!(without_key.contains("there is no secret `WEATHER`: the variable WEATHER_KEY is not set"), "{without_key}");
    let listed = json(data.path(), &["tools", "list"]);
    let tool = listed["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "weather").unwrap();
    assert_eq!(tool["can_be_called"], json!(false), "{tool}");
    let doctor = ok(data.path(), &["doctor"]);
    assert!(doctor.contains("weather is not offered: the operator does not allow calls to 127.0.0.1"), "{doctor}");
    ok(data.path(), &["tools", "remove", "weather"]);
    let (code, message) = fails(data.path(), &["tools", "test", "weather"]);
    assert_eq!((code, message.contains("there is no tool `weather`")), (5, true), "{message}");
    let (code, message) = fails(data.path(), &["tools", "add", "weather", r#"{"type": "http"}"#]);
    assert_eq!((code, message.contains("url")), (6, true), "{message}");
}

#[test]
fn a_run_calls_the_tool_and_its_trace_says_so() {
    let address = serve();
    let data = folder(&address);
    let question = ["ask", "How warm is it in Oslo?", "--pattern", "react", "--task-type", "general"];
    let with_model = |mut command: std::process::Command| {
        command.env_remove("TRELLIS_MODEL").env("OPENAI_API_KEY", "sk-test").env("OPENAI_MODEL", "moss-1");
        command.env("OPENAI_BASE_URL", format!("http://{address}/v1")).env("TRELLIS_MODELS_NATIVE_TOOLS", "false");
        command
    };
    let output = with_model(allowed(&data, &question)).output().unwrap();
    assert!(stdout(&output).contains("It is 7 degrees in Oslo"), "{}{}", stdout(&output), stderr(&output));
    let shown = json(data.path(), &["run", "show", "last"]).to_string();
    assert!(shown.contains("weather") && shown.contains("celsius"), "{shown}");
    assert!(!shown.contains("sk-weather-1"), "{shown}");
    assert!(shown.contains("its sample data is for rehearsals"), "sample tools are not offered: {shown}");
    assert!(ok(data.path(), &["verify", "last"]).starts_with("ok"));
    // Where the operator does not allow it, it is not offered.
    let output = with_model(trellis(data.path(), &question)).output().unwrap();
    assert!(!stdout(&output).contains("7 degrees"), "{}", stdout(&output));
    let shown = json(data.path(), &["run", "show", "last"]).to_string();
    assert!(shown.contains("not here: the operator does not allow calls to 127.0.0.1"), "{shown}");
}

#[test]
fn an_operation_of_a_published_document_is_a_tool() {
    let address = serve();
    let data = folder(&address);
    ok(data.path(), &["tools", "remove", "weather"]);
    let document = format!("http://{address}/openapi.json");
    let add = |more: &[&str]| {
        let arguments = [&["tools", "add", "weather", "http", "--openapi", &document], more].concat();
        allowed(&data, &arguments).output().unwrap()
    };
    let unnamed = stderr(&add(&[]));
    assert!(unnamed.contains("name one of its operations: now") && unnamed.contains("--operation"), "{unnamed}");
    let keyless = stderr(&add(&["--operation", "now"]));
    assert!(keyless.contains("needs a key (`key`, the header x-key)") && keyless.contains("--secret"), "{keyless}");
    let added = add(&["--operation", "now", "--secret", "WEATHER"]);
    assert!(added.status.success(), "{}", stderr(&added));
    let stored = ok(data.path(), &["config", "get", "tool", "weather"]);
    assert!(
        stored.contains(&format!("http://{address}/now/{{city}}")) && stored.contains("{secret:WEATHER}"),
        "{stored}"
    );
    let tried = allowed(&data, &["tools", "test", "weather", "city=Oslo"]).output().unwrap();
    assert_eq!(stdout(&tried).trim(), r#"{"city":"Oslo","celsius":7,"with_key":true}"#, "{}", stderr(&tried));
    let long =
        stderr(&allowed(&data, &["tools", "test", "weather", "city=Llanfairpwllgwyngyllgogerych"]).output().unwrap());
    assert!(long.contains("longer than 20"), "{long}");
    std::fs::write(data.path().join("api.yaml"), "openapi: 3.1.0\n").unwrap();
    let file = data.path().join("api.yaml");
    let (code, yaml) = fails(data.path(), &["tools", "add", "x", "http", "--openapi", file.to_str().unwrap()]);
    assert!(code == 2 && yaml.contains("it is YAML, and only JSON is read"), "{code} {yaml}");
}

#[test]
fn a_tool_of_a_service_is_called_over_http_and_one_with_queues_alone_is_refused() {
    let address = serve();
    let data = folder(&address);
    let queues = r#"{"request-queue": "request:tg:joke", "response-queue": "response:tg:joke"}"#;
    let (code, refused) = fails(data.path(), &["config", "put", "tool-service", "joke", queues]);
    assert!(code != 0 && refused.contains("message broker") && refused.contains("add the `url`"), "{refused}");
    let service =
        json!({ "url": format!("http://{address}/jokes"), "config-params": [{ "name": "style", "required": true }] });
    ok(data.path(), &["config", "put", "tool-service", "joke", &service.to_string()]);
    let argument = json!({ "name": "topic", "type": "string", "description": "what about" });
    let tool = json!({ "type": "tool-service", "service": "joke", "style": "dry", "arguments": [argument] });
    ok(data.path(), &["tools", "add", "joke", &tool.to_string()]);
    let call = ["tools", "test", "joke", "topic=moss"];
    let unsafe_one = allowed(&data, &call).output().unwrap();
    assert_eq!(unsafe_one.status.code(), Some(2), "{}", stdout(&unsafe_one));
    assert!(stderr(&unsafe_one).contains("--unsafe calls it all the same"), "{}", stderr(&unsafe_one));
    let told = allowed(&data, &[&call[..], &["--unsafe"]].concat()).output().unwrap();
    assert_eq!(stdout(&told).trim(), r#"dry joke about "moss""#, "{}", stderr(&told));
    let doctor = ok(data.path(), &["doctor"]);
    assert!(doctor.contains("joke is not offered: the operator does not allow calls to 127.0.0.1"), "{doctor}");
}

#[test]
fn a_question_names_the_tools_that_may_be_offered() {
    let address = serve();
    let data = folder(&address);
    let ask = |tools: &[&str]| {
        let question = ["ask", "How warm is it in Oslo?", "--pattern", "react", "--task-type", "general"];
        let tools = tools.iter().flat_map(|name| ["--tool", name]);
        let mut command = allowed(&data, &question.into_iter().chain(tools).collect::<Vec<_>>());
        command.env_remove("TRELLIS_MODEL").env("OPENAI_API_KEY", "sk-test").env("OPENAI_MODEL", "moss-1");
        command.env("OPENAI_BASE_URL", format!("http://{address}/v1")).env("TRELLIS_MODELS_NATIVE_TOOLS", "false");
        command.output().unwrap()
    };
    let unknown = stderr(&ask(&["wether"]));
    assert!(unknown.contains("there is no tool `wether`; choose from") && unknown.contains("weather"), "{unknown}");
    assert!(ask(&["weather"]).status.success());
    let shown = json(data.path(), &["run", "show", "last"]).to_string();
    assert!(shown.contains("not asked for"), "{shown}");
    assert!(ok(data.path(), &["verify", "last"]).starts_with("ok"));
}
