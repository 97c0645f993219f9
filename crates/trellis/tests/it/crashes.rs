//! A request that kills the server whenever it is handled, among many that do not; and time while no server runs.

use crate::served::Served;
use crate::{json, killed, ok, trellis};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tempfile::TempDir;

const DEADLY: &str = "What is it that kills you?";

/// A model that kills whoever asks it that (SIGKILL), and takes a moment to answer anything else. Gives its address.
fn deadly_model(victim: &Arc<AtomicU32>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    let victim = Arc::clone(victim);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let victim = Arc::clone(&victim);
            std::thread::spawn(move || answer(stream, &victim));
        }
    });
    address
}

fn answer(stream: TcpStream, victim: &AtomicU32) -> Option<()> {
    let mut stream = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    while stream.read_line(&mut line).ok()? > 2 {
        let header = line.to_lowercase();
        length = header.strip_prefix("content-length:").map_or(Some(length), |value| value.trim().parse().ok())?;
        line.clear();
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    std::thread::sleep(Duration::from_millis(150));
    if String::from_utf8_lossy(&body).contains(DEADLY) {
        let pid = victim.load(Ordering::SeqCst).to_string();
        Command::new("kill").args(["-KILL", &pid]).status().ok()?;
        return None;
    }
    std::thread::sleep(Duration::from_millis(150));
    let text = "Thought: known\nFinal Answer: It is so.";
    let chunk = json!({ "choices": [{ "delta": { "content": text }, "finish_reason": "stop" }] });
    let body = format!("data: {chunk}\n\ndata: [DONE]\n\n");
    let reply = format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    stream.get_mut().write_all(reply.as_bytes()).ok()
}

fn serve(data: &Path, model: &str) -> Served {
    Served::start_at(data, "127.0.0.1:0", |command| {
        command.env_remove("TRELLIS_MODEL").env_remove("ANTHROPIC_API_KEY").env_remove("OLLAMA_HOST");
        command.env("OPENAI_API_KEY", "sk-test").env("OPENAI_BASE_URL", model).env("OPENAI_MODEL", "moss-1")
    })
}

fn ask(server: &Served, run: &str, question: &str) {
    let body = json!({"question": question, "session_id": run, "pattern": "react", "task_type": "general"}).to_string();
    assert_eq!(server.json("POST", "/api/v1/runs", &body)["run_id"], run);
}

/// The states of all runs.
fn states(data: &Path) -> Vec<(String, String)> {
    let listed = json(data, &["runs", "--limit", "1000"]);
    let runs = listed["runs"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    runs.map(|run| (text(&run["run_id"]), text(&run["state"]))).collect()
}

#[test]
fn a_question_that_kills_the_server_is_found_among_many_and_nobody_else_pays_for_it() {
    const RUNS: usize = 60;
    let data = TempDir::new().unwrap();
    let victim = Arc::new(AtomicU32::new(0));
    let model = deadly_model(&victim);
    let server = serve(data.path(), &model);
    for n in 0..RUNS {
        ask(&server, &format!("run-{n}"), &format!("Question {n}?"));
    }
    server.kill();
    // The first one that is killed by it has accepted it.
    let mut lives = 0;
    loop {
        let mut server = serve(data.path(), &model);
        victim.store(server.id(), Ordering::SeqCst);
        if lives == 0 {
            ask(&server, "deadly", DEADLY);
        }
        lives += 1;
        assert!(lives < 20, "it was not found: {:?}", states(data.path()));
        if server.has_died_within(Duration::from_secs(8)) {
            continue;
        }
        // It lives: all is well from now on.
        ask(&server, "later", "And now?");
        let later = server.json("GET", "/api/v1/runs/deadly", "");
        assert_eq!(later["state"], "failed", "{later}");
        server.ask_to_stop();
        server.stopped();
        break;
    }
    ok_with(data.path(), &model, &["resume"]);
    for (run, state) in states(data.path()) {
        assert_eq!(state, if run == "deadly" { "failed" } else { "answered" }, "{run}");
    }
    let told = ok(data.path(), &["run", "show", "deadly"]);
    assert!(told.contains("set aside: handling this request was cut short"), "{told}");
    println!("found after {lives} lives");
}

fn ok_with(data: &Path, model: &str, arguments: &[&str]) {
    let mut command = trellis(data, arguments);
    command.env_remove("TRELLIS_MODEL").env("OPENAI_API_KEY", "sk-test").env("OPENAI_BASE_URL", model);
    command.env("OPENAI_MODEL", "moss-1");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", crate::stderr(&output));
}

#[test]
fn time_while_nothing_runs_is_nobody_s_time_and_the_trace_tells_of_it() {
    let data = TempDir::new().unwrap();
    let limited = |arguments: &[&str]| {
        let mut command = trellis(data.path(), arguments);
        command.env("TRELLIS_LIMIT_RUN_TIMEOUT_MS", "3000");
        command
    };
    let mut asked = limited(&["ask", crate::PARTNER, "--output", "ndjson", "--pattern", "react", "--session", "mine"]);
    let child = asked.env("TRELLIS_REHEARSAL_DELAY_MS", "5").stdout(std::process::Stdio::piped()).spawn().unwrap();
    killed::kill_after(child, 4);
    // Longer than the run may take.
    std::thread::sleep(Duration::from_secs(4));
    assert!(limited(&["resume"]).output().unwrap().status.success());
    let show = json(data.path(), &["run", "show", "mine"]);
    assert_eq!(show["state"], "answered", "{show}");
    let [conclusion] = crate::steps_of(&show["sessions"][0], "conclusion")[..] else { panic!("one end: {show}") };
    let outage = conclusion["outage_ms"].as_u64().unwrap();
    assert!((3_900..30_000).contains(&outage), "{outage}");
    assert!(ok(data.path(), &["run", "show", "mine"]).contains("nobody served it for "));
    assert!(ok(data.path(), &["run", "export", "mine"]).contains("outageMs"));
    ok(data.path(), &["verify", "mine"]);
}
