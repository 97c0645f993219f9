//! A long conversation with a model that cannot read much.

use crate::{json, ok, stderr, stdout, trellis};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;

const ITERATIONS: usize = 200;
/// What the model can read, and what a tool brings.
const CONTEXT_TOKENS: usize = 8_000;
const OBSERVATION: usize = 10_000;

const GOALS: [&str; 5] = ["past", "present", "future", "here", "there"];

/// What the model has seen.
#[derive(Debug, Default)]
struct Seen {
    /// Tokens of each prompt that it answered.
    tokens: Vec<usize>,
    /// The processor time of whoever asked, at each of them.
    times: Vec<Duration>,
    /// Those that it found too long.
    refused: Vec<String>,
    client: u32,
    /// A supervisor asks, and its subagents bring one long answer each.
    is_team: bool,
}

fn model() -> (String, Arc<Mutex<Seen>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    let seen = Arc::new(Mutex::new(Seen::default()));
    let shared = Arc::clone(&seen);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let seen = Arc::clone(&shared);
            std::thread::spawn(move || serve(stream, &seen));
        }
    });
    (address, seen)
}

/// Answers on one connection until it is closed.
fn serve(stream: TcpStream, seen: &Mutex<Seen>) -> Option<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let (mut line, mut length, mut prompt) = (String::new(), 0, String::new());
        while stream.read_line(&mut line).ok()? > 2 {
            let (name, value) = line.split_once(':').unwrap_or((&line, ""));
            match name.to_lowercase().as_str() {
                "content-length" => length = value.trim().parse().ok()?,
                "x-trellis-prompt" => value.trim().clone_into(&mut prompt),
                _ => {}
            }
            line.clear();
        }
        if length == 0 {
            return None;
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).ok()?;
        crate::recording::keep("/v1/chat/completions", &body);
        let (status, body) = reply(&prompt, &serde_json::from_slice(&body).ok()?, &mut seen.lock().unwrap());
        let reply = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        stream.get_mut().write_all(reply.as_bytes()).ok()?;
    }
}

fn reply(prompt: &str, request: &Value, seen: &mut Seen) -> (&'static str, String) {
    let tokens = request["messages"].to_string().len() / 4;
    if tokens > CONTEXT_TOKENS {
        seen.refused.push(prompt.to_owned());
        let message = format!("This model's maximum context length is {CONTEXT_TOKENS} tokens, you sent {tokens}.");
        let error = json!({ "message": message, "type": "invalid_request_error", "code": "context_length_exceeded" });
        return ("400 Bad Request", json!({ "error": error }).to_string());
    }
    let delta = match prompt {
        "agent-react" if seen.is_team => {
            said("final_answer", 1, &json!({ "thought": "enough", "answer": observation() }))
        }
        "agent-react" => {
            seen.tokens.push(tokens);
            seen.times.push(processor_time(seen.client));
            called(seen.tokens.len())
        }
        "supervisor-decompose" => {
            json!({ "content": json!({ "goals": GOALS.map(|goal| json!({ "goal": goal })) }).to_string() })
        }
        "supervisor-review" => json!({ "content": json!({ "decision": "answer", "reason": "enough" }).to_string() }),
        "supervisor-synthesise" => json!({ "content": "They agree [finding 0]." }),
        _ => json!({ "content": observation() }),
    };
    let usage = json!({ "prompt_tokens": tokens, "completion_tokens": 20 });
    let chunk = json!({ "choices": [{ "delta": delta, "finish_reason": "stop" }], "usage": usage });
    ("200 OK", format!("data: {chunk}\n\ndata: [DONE]\n\n"))
}

fn called(number: usize) -> Value {
    if number < ITERATIONS {
        said("ask-model", number, &json!({ "thought": "more", "question": format!("What about number {number}?") }))
    } else {
        said("final_answer", number, &json!({ "thought": "enough", "answer": "It was long." }))
    }
}

fn said(name: &str, number: usize, arguments: &Value) -> Value {
    let function = json!({ "name": name, "arguments": arguments.to_string() });
    json!({ "tool_calls": [{ "index": 0, "id": format!("call{number:05}"), "type": "function", "function": function }] })
}

/// A text that does not repeat itself.
fn observation() -> String {
    let mut text = String::new();
    for number in 0.. {
        if text.len() > OBSERVATION {
            break;
        }
        write!(text, "fact {} of {number}; ", number * number % 9973).unwrap();
    }
    text
}

/// The processor time that the threads of a process have used.
fn processor_time(process: u32) -> Duration {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let times = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("schedstat")).ok());
    Duration::from_nanos(times.filter_map(|times| times.split(' ').next()?.parse::<u64>().ok()).sum())
}

fn asked(data: &TempDir, address: &str, question: &[&str]) -> Command {
    let mut command = trellis(data.path(), question);
    command.env_remove("TRELLIS_MODEL").env("OPENAI_API_KEY", "sk-test-0123456789");
    command.env("OPENAI_BASE_URL", address).env("OPENAI_MODEL", "moss-1");
    command
}

#[test]
fn two_hundred_steps_with_a_model_that_reads_little_end_in_an_answer_and_do_not_become_dearer() {
    let (data, (address, seen)) = (TempDir::new().unwrap(), model());
    let question = ["ask", "How long can this go on?", "--pattern", "react", "--task-type", "general"];
    let mut command = asked(&data, &address, &question);
    let limits = [
        ("TRELLIS_LIMIT_MAX_ITERATIONS", "250"),
        ("TRELLIS_LIMIT_MAXIMUM_MAX_ITERATIONS", "250"),
        ("TRELLIS_LIMIT_MAX_MODEL_CALLS", "1000"),
        ("TRELLIS_LIMIT_MAX_TOKENS", "20000000"),
    ];
    let child = command.envs(limits).stdout(std::process::Stdio::piped()).spawn().unwrap();
    seen.lock().unwrap().client = child.id();
    let output = child.wait_with_output().unwrap();
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("It was long."),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    let seen = seen.lock().unwrap();
    assert_eq!(seen.tokens.len(), ITERATIONS);
    assert!((1..=3).contains(&seen.refused.len()), "{} refusals", seen.refused.len());
    let mean = |range: std::ops::Range<usize>| seen.tokens[range.clone()].iter().sum::<usize>() / range.len();
    let time =
        |from: usize, to: usize| seen.times[to].saturating_sub(seen.times[from]) / u32::try_from(to - from).unwrap();
    let (early, late) = (mean(5..35), mean(170..200));
    let (soon, at_last) = (time(5, 35), time(169, 199));
    println!("an iteration takes {early} tokens and {soon:?} in the beginning, {late} and {at_last:?} in the end");
    assert!(late * 10 <= early * 12, "{early} tokens in the beginning, {late} in the end");
    // Other tests run beside this one, so time is not exact. If each step cost more than the one before, it would be tenfold.
    assert!(at_last <= soon * 3, "{soon:?}, then {at_last:?}");
    ok(data.path(), &["verify", "last"]);
    let shown = json(data.path(), &["run", "show", "last"]).to_string();
    assert!(shown.contains("was too long for the model"), "{shown}");
}

/// A model that reads this little is asked once with everything, and then with what it can read.
#[test]
fn findings_that_are_too_much_for_the_model_are_shown_in_part_and_answered_from() {
    let (data, (address, seen)) = (TempDir::new().unwrap(), model());
    seen.lock().unwrap().is_team = true;
    let question = ["ask", "What is there?", "--pattern", "supervisor", "--task-type", "research"];
    let output = asked(&data, &address, &question).output().unwrap();
    assert!(stdout(&output).contains("They agree"), "{}{}", stdout(&output), stderr(&output));
    let refused = std::mem::take(&mut seen.lock().unwrap().refused);
    assert_eq!(refused, ["supervisor-review", "supervisor-synthesise"]);
    ok(data.path(), &["verify", "last"]);
    // Where it is known what the model can read, nothing is refused.
    let mut known = asked(&data, &address, &question);
    std::fs::write(data.path().join("set.toml"), "[models.\"openai/moss-1\"]\ncontext-tokens = 8000\n").unwrap();
    let output = known.env("TRELLIS_SETTINGS", data.path().join("set.toml")).output().unwrap();
    assert!(stdout(&output).contains("They agree"), "{}{}", stdout(&output), stderr(&output));
    assert_eq!(seen.lock().unwrap().refused, Vec::<String>::new());
}
