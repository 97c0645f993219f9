//! A process is killed while a tool of its run is called that must not be called twice.

use crate::{fails, json, ok, stderr, stdout, trellis};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tempfile::TempDir;

static BOUGHT: AtomicUsize = AtomicUsize::new(0);

/// A shop, whose first customer never hears of it again, and a model.
fn answer(stream: TcpStream) -> Option<()> {
    let mut stream = BufReader::new(stream);
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
    let body = if first.contains("/buy") {
        if BOUGHT.fetch_add(1, Ordering::SeqCst) == 0 {
            // Until whoever asked is gone.
            stream.read_line(&mut line).ok()?;
            return None;
        }
        "sold".to_owned()
    } else {
        model(&serde_json::from_slice(&body).ok()?)
    };
    let reply = format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    stream.get_mut().write_all(reply.as_bytes()).ok()
}

fn model(request: &Value) -> String {
    let said = request["messages"].to_string();
    let text = if said.contains("delivered on Friday") {
        "Thought: I know it.\nFinal Answer: It comes on Friday [1]."
    } else {
        "Thought: I buy it.\nAction: shop\nArgs: {\"what\": \"a trellis\"}"
    };
    let chunk = json!({ "choices": [{ "delta": { "content": text }, "finish_reason": "stop" }] });
    format!("data: {chunk}\n\ndata: [DONE]\n\n")
}

#[test]
fn a_purchase_that_was_cut_off_is_not_made_again_before_somebody_says_so() {
    let address = crate::listen(answer);
    let data = TempDir::new().unwrap();
    let settings = "[tools.http]\nhosts = [\"127.0.0.1\"]\nprivate = true\n";
    std::fs::write(data.path().join("set.toml"), settings).unwrap();
    let shop = json!({
        "type": "http", "name": "shop", "description": "Buys something", "url": format!("http://{address}/buy"),
        "arguments": [{ "name": "what", "type": "string", "description": "What" }], "body": { "what": "{what}" },
    });
    ok(data.path(), &["tools", "add", "shop", &shop.to_string()]);
    let command = |arguments: &[&str]| -> Command {
        let mut command = trellis(data.path(), arguments);
        command
            .env("TRELLIS_SETTINGS", data.path().join("set.toml"))
            .env("OPENAI_BASE_URL", format!("http://{address}/v1"));
        command.env_remove("TRELLIS_MODEL").env("OPENAI_API_KEY", "sk-test").env("OPENAI_MODEL", "moss-1");
        command.env("TRELLIS_MODELS_NATIVE_TOOLS", "false");
        command
    };
    let question = ["ask", "Buy a trellis", "--pattern", "react", "--task-type", "general", "--session", "purchase"];
    let mut asking = command(&question).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while BOUGHT.load(Ordering::SeqCst) == 0 {
        assert!(asking.try_wait().unwrap().is_none(), "it ended before it bought anything");
        std::thread::sleep(Duration::from_millis(10));
    }
    asking.kill().unwrap();
    asking.wait().unwrap();

    let resumed = command(&["resume"]).output().unwrap();
    assert!(stderr(&resumed).contains("waits for an answer"), "{}{}", stdout(&resumed), stderr(&resumed));
    let shown = ok(data.path(), &["run", "show", "last"]);
    assert!(shown.contains("`shop` was about to be called with {\"what\":\"a trellis\"}"), "{shown}");
    let waiting = &json(data.path(), &["run", "show", "last"])["waiting_for"];
    assert_eq!((&waiting[0]["tool"], &waiting[0]["arguments"]["what"]), (&json!("shop"), &json!("a trellis")));
    let asked_again = command(&question).output().unwrap();
    assert_eq!(asked_again.status.code(), Some(130), "{}", stderr(&asked_again));
    assert_eq!(BOUGHT.load(Ordering::SeqCst), 1, "nothing is bought before somebody has said so");
    let (code, told) = fails(data.path(), &["run", "decide", "last", "result"]);
    assert!(code == 2 && told.contains("needs what the call has brought"), "{code} {told}");
    ok(data.path(), &["run", "decide", "last", "result", "--result", "delivered on Friday", "--reason", "they called"]);
    // Whoever asks the same again is not stopped by a question that is answered.
    let asked_again = command(&question).output().unwrap();
    assert!(
        asked_again.status.success() && stdout(&asked_again).contains("It comes on Friday"),
        "{}",
        stderr(&asked_again)
    );
    let shown = json(data.path(), &["run", "show", "last"]);
    assert!(shown.get("waiting_for").is_none(), "{shown}");
    assert_eq!(BOUGHT.load(Ordering::SeqCst), 1, "it was bought once");
    assert!(ok(data.path(), &["verify", "last"]).starts_with("ok"));
    let shown = json(data.path(), &["run", "show", "last"]).to_string();
    assert!(shown.contains("uncertain-call") && shown.contains("they called"), "{shown}");
}
