//! Real models, as far as a stub behind a real connection is one.

use crate::served::Served;
use crate::{fails, ok, stderr, stdout, trellis};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::sync::{Arc, mpsc};
use tempfile::TempDir;

const KEY: &str = "sk-test-0123456789";

/// Serves chat completions until the test ends. Gives its address.
pub(crate) fn serve(status: &'static str) -> String {
    serve_and_tell(status).0
}

/// The same, and tells of every prompt that it answered.
pub(crate) fn serve_and_tell(status: &'static str) -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    let (asked, prompts) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let asked = asked.clone();
            // Nobody has to listen.
            std::thread::spawn(move || answer(stream, status).map(|prompt| drop(asked.send(prompt))));
        }
    });
    (address, prompts)
}

/// The same behind TLS, with a certificate of its own. Gives its address and the certificate.
fn serve_securely() -> (String, String) {
    let rcgen::CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = signing_key.serialize_der().try_into().unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth().with_single_cert(vec![cert.der().clone()], key).unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("localhost:0").unwrap();
    let address = format!("https://localhost:{}/v1", listener.local_addr().unwrap().port());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            std::thread::spawn(move || answer(StreamOwned::new(connection, stream), "200 OK"));
        }
    });
    (address, cert.pem())
}

/// Answers one request. Gives the prompt that was asked.
fn answer(stream: impl Read + Write, status: &str) -> Option<String> {
    let mut stream = BufReader::new(stream);
    let mut headers = BTreeMap::new();
    let mut line = String::new();
    stream.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    loop {
        line.clear();
        stream.read_line(&mut line).ok()?;
        let Some((name, value)) = line.split_once(':') else { break };
        headers.insert(name.to_lowercase(), value.trim().to_owned());
    }
    let mut body = vec![0; headers.get("content-length")?.parse().ok()?];
    stream.read_exact(&mut body).ok()?;
    crate::recording::keep(&path, &body);
    let request: Value = serde_json::from_slice(&body).ok()?;
    let body = if status == "200 OK" {
        let text = said(&headers["x-trellis-prompt"], &request["model"]);
        let chunk = json!({ "model": request["model"], "choices": [{ "delta": { "content": text }, "finish_reason": "stop" }],
            "usage": { "prompt_tokens": 5, "completion_tokens": 3 } });
        format!("data: {chunk}\n\ndata: [DONE]\n\n")
    } else {
        json!({ "error": { "message": format!("this key is wrong: {}", headers["authorization"]) } }).to_string()
    };
    let length = body.len();
    let reply = format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}");
    stream.get_mut().write_all(reply.as_bytes()).ok()?;
    stream.get_mut().flush().ok()?;
    headers.remove("x-trellis-prompt")
}

fn said(prompt: &str, model: &Value) -> String {
    match prompt {
        "probe" if model == "rebel" => json!({ "colour": "blue" }).to_string(),
        "probe" => json!({ "colour": "red" }).to_string(),
        "examination" => json!({ "size": "large" }).to_string(),
        "route" => {
            let signals = json!({ "complexity": "low", "independent_dimensions": 1, "urgency": "normal" });
            let route = json!({ "task_type": "general", "pattern": "react" });
            json!({ "rationale": "simple", "signals": signals, "route": route }).to_string()
        }
        "task-type-classify" => {
            json!({ "to_do": "do or decide something else", "task_type": "general", "rationale": "anything" })
                .to_string()
        }
        "pattern-select" => json!({
            "how": "look around and decide on the way what comes next", "pattern": "react", "rationale": "simple",
            "signals": { "complexity": "low", "independent_dimensions": 1, "urgency": "normal" },
        })
        .to_string(),
        _ => "Thought: known\nFinal Answer: Because of chlorophyll.".to_owned(),
    }
}

/// A command with nothing in its environment but this server.
fn asking(folder: &TempDir, address: &str, arguments: &[&str]) -> Command {
    let mut command = trellis(folder.path(), arguments);
    command.env_remove("TRELLIS_MODEL").env_remove("ANTHROPIC_API_KEY").env_remove("OLLAMA_HOST");
    command.env("OPENAI_API_KEY", KEY).env("OPENAI_BASE_URL", address).env("OPENAI_MODEL", "moss-1");
    command
}

#[test]
fn a_model_that_is_set_is_asked_and_held_to_its_options() {
    let (folder, address) = (TempDir::new().unwrap(), serve("200 OK"));
    let output = asking(&folder, &address, &["ask", "Why is moss green?"]).env("RUST_LOG", "trace").output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stdout(&output).trim(), "Because of chlorophyll.");
    assert!(!stderr(&output).contains(KEY), "not even in the most talkative log");
    let turtle = ok(folder.path(), &["run", "export", "last"]);
    assert_eq!(turtle.matches("\"decoding\"").count(), 2, "task type and pattern: {turtle}");
    assert!(turtle.contains("\"openai/moss-1\""), "{turtle}");
    assert!(ok(folder.path(), &["verify", "last"]).starts_with("ok"));
    let output = asking(&folder, &address, &["doctor"]).output().unwrap();
    let expected = format!("openai/moss-1 at {address}, with a key");
    assert!(stdout(&output).contains(&expected) && !stdout(&output).contains(KEY), "{}", stdout(&output));
}

/// Certificates are those of the system, or of the file that other programs read, too.
#[test]
fn a_model_behind_tls_is_asked_if_its_certificate_is_trusted() {
    let (folder, (address, certificate)) = (TempDir::new().unwrap(), serve_securely());
    let file = folder.path().join("trusted.pem");
    std::fs::write(&file, certificate).unwrap();
    let arguments = ["ask", "Why is moss green?", "--quiet"];
    let output = asking(&folder, &address, &arguments).env("SSL_CERT_FILE", &file).output().unwrap();
    assert_eq!(stdout(&output).trim(), "Because of chlorophyll.", "{}", stderr(&output));
    let output = asking(&folder, &address, &arguments).env_remove("SSL_CERT_FILE").output().unwrap();
    let told = stderr(&output);
    assert!(told.contains("certificate") && !output.status.success(), "{told}");
}

#[test]
fn a_wrong_key_is_told_and_not_repeated() {
    let (folder, address) = (TempDir::new().unwrap(), serve("401 Unauthorized"));
    let arguments = ["ask", "Why is moss green?", "--pattern", "react"];
    let output = asking(&folder, &address, &arguments).env("RUST_LOG", "trace").output().unwrap();
    let told = format!("{}{}", stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(10), "{told}");
    assert!(told.contains("openai answered 401 Unauthorized: this key is wrong: Bearer [redacted]"), "{told}");
    assert!(!told.contains(KEY) && !ok(folder.path(), &["run", "export", "last"]).contains(KEY));
}

/// The first model cannot, the second one can.
#[test]
fn the_next_model_in_the_list_answers() {
    let (folder, address) = (TempDir::new().unwrap(), serve("401 Unauthorized"));
    let arguments = ["ask", "Why is moss green?", "--model", "openai/moss-1", "--model", "rehearsal"];
    let output = asking(&folder, &address, &arguments).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).contains("Scripted by the rehearsal model"), "{}", stdout(&output));
}

/// Two models, and the caller says which.
#[test]
fn a_question_to_a_server_chooses_its_model() {
    let (folder, home, address) = (TempDir::new().unwrap(), TempDir::new().unwrap(), serve("200 OK"));
    let mut command = asking(&folder, &address, &["serve", "--listen", "127.0.0.1:0", "--log-format", "json"]);
    command.args(["--model", "openai/moss-1", "--model", "rehearsal"]);
    let server = Served::spawn(command, drop);
    let url = server.url();
    let asks = |model: &[&str]| {
        let arguments = [&["ask", "Why is moss green?", "--quiet", "--url", &url], model].concat();
        trellis(home.path(), &arguments).output().unwrap()
    };
    for (model, answer) in [
        (&[][..], "Because of chlorophyll."),
        (&["--model", "openai/moss-1"], "Because of chlorophyll."),
        (&["--model", "rehearsal"], "Scripted by the rehearsal model"),
    ] {
        let output = asks(model);
        assert!(stdout(&output).contains(answer), "{model:?}: {}{}", stdout(&output), stderr(&output));
    }
    let unknown = asks(&["--model", "openai/fern-9"]);
    assert_eq!(unknown.status.code(), Some(2), "{}", stderr(&unknown));
    assert!(stderr(&unknown).contains("openai/fern-9"), "{}", stderr(&unknown));
}

#[test]
fn a_model_that_cannot_be_asked_is_refused_before_anything_happens() {
    let folder = TempDir::new().unwrap();
    let (code, told) = fails(folder.path(), &["ask", "Why?", "--model", "gpt-4"]);
    assert_eq!(code, 2);
    assert!(told.contains("there is no provider `gpt-4`; write PROVIDER/MODEL"), "{told}");
    assert!(!folder.path().join("format").exists(), "no folder is made for a wrong word");
    let output = asking(&folder, "not an address", &["ask", "Why?"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}

#[test]
fn a_workspace_names_its_model_and_the_doctor_says_which_can_be_asked() {
    let (folder, address) = (TempDir::new().unwrap(), serve("200 OK"));
    let (code, told) = fails(folder.path(), &["config", "put", "agent", "model", "3"]);
    assert_eq!((code, told.contains("agent/model: field `value`: expected the name of a model")), (6, true), "{told}");
    ok(folder.path(), &["config", "put", "agent", "model", "openai/moss-2"]);
    let prompt = r#"{"prompt":"{{ question }}","model":["anthropic/x","openai/moss-3"]}"#;
    ok(folder.path(), &["config", "put", "prompt", "template.agent-react", prompt]);
    let output = asking(&folder, &address, &["ask", "Why is moss green?"]).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let turtle = ok(folder.path(), &["run", "export", "last"]);
    for model in ["\"openai/moss-2\"", "\"openai/moss-3\"", "\"native-tools\""] {
        assert!(turtle.contains(model), "{model} in {turtle}");
    }
    let output = asking(&folder, &address, &["doctor"]).output().unwrap();
    let told = stdout(&output);
    assert_eq!(output.status.code(), Some(6), "a model without a key is a fault: {told}");
    assert!(told.contains(&format!("agent/model: openai/moss-2 at {address}, with a key")), "{told}");
    let fault =
        "prompt/template.agent-react: anthropic/x cannot be asked: anthropic needs a key; set ANTHROPIC_API_KEY";
    assert!(told.contains(fault), "{told}");
}

#[test]
fn wrong_settings_of_models_are_refused_before_anything_happens() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("trellis.toml");
    std::fs::write(&file, "[models]\ntemperature = 9\n").unwrap();
    let data = folder.path().join("data");
    let (code, told) = fails(&data, &["ask", "Why?", "--settings", file.to_str().unwrap()]);
    assert_eq!(code, 2);
    assert!(told.contains("line 2, models.temperature: \"9\" is not a number between 0 and 2"), "{told}");
    assert!(!data.join("format").exists(), "no folder is made for a wrong setting");
}

/// A settings file with a provider of one's own.
fn settings(folder: &TempDir, address: &str) -> String {
    let file = folder.path().join("settings.toml");
    let text = format!("[providers.work]\ndialect = \"openai\"\naddress = \"{address}\"\nkey-env = \"WORK_KEY\"\n");
    std::fs::write(&file, text).unwrap();
    file.display().to_string()
}

#[test]
fn a_provider_of_the_settings_file_is_asked_and_examined() {
    let (folder, address) = (TempDir::new().unwrap(), serve("200 OK"));
    let file = settings(&folder, &address);
    let run = |model: &str, arguments: &[&str]| {
        let arguments = [arguments, &["--settings", &file, "--model", model]].concat();
        trellis(folder.path(), &arguments).env("WORK_KEY", KEY).output().unwrap()
    };
    let output = run("work/moss-1", &["ask", "Why is moss green?"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stdout(&output).trim(), "Because of chlorophyll.");
    assert!(!stderr(&output).contains("warning:"), "{}", stderr(&output));
    let output = run("work/rebel", &["ask", "Why is moss green?"]);
    assert!(
        stderr(&output).contains("warning: work/rebel took a schema and did not keep to it"),
        "{}",
        stderr(&output)
    );
    let turtle = ok(folder.path(), &["run", "export", "last"]);
    assert_eq!(turtle.matches("\"decoding\"").count(), 0, "{turtle}");
    assert!(ok(folder.path(), &["verify", "last"]).starts_with("ok"));
    let output = run("work/rebel", &["doctor", "--models"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let told = stdout(&output);
    assert!(told.starts_with("work/rebel\n  reply      yes"), "{told}");
    assert!(told.contains("  schema     partly  taken and overlooked") && !told.contains(KEY), "{told}");
}

#[test]
fn a_model_that_cannot_be_reached_is_found_by_the_doctor() {
    let (folder, address) = (TempDir::new().unwrap(), serve("401 Unauthorized"));
    let file = settings(&folder, &address);
    let arguments = ["doctor", "--models", "--settings", &file, "--model", "work/moss-1", "--output", "json"];
    let output = trellis(folder.path(), &arguments).env("WORK_KEY", KEY).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", stdout(&output));
    let told: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!((&told["ok"], &told["models"][0]["reached"]), (&json!(false), &json!(false)));
    assert!(told.to_string().contains("401") && !told.to_string().contains(KEY), "{told}");
}
