//! Callers who want all the memory, from a server that has no more than 1 GB of addresses.

use crate::program::within;
use crate::{Programs, Server};
use anyhow::{Context, Result, bail, ensure};
use serde_json::json;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

/// What the whole server has to get by with.
pub const GIGABYTE: u64 = 1_000_000_000;
const TOKEN: &str = "Authorization: Bearer tok\r\n";

/// What somebody does to a server.
pub type Attack = fn(&Server) -> Result<()>;

pub const ATTACKS: [(&str, Attack); 9] = [
    ("messages that are never finished", unfinished_messages),
    ("pings whose answers nobody reads", unread_pongs),
    ("replies that nobody reads", unread_replies),
    ("values that are small as text and large in memory", small_as_text),
    ("queries that grow without end", greedy_queries),
    ("templates that grow without end", greedy_templates),
    ("questions that are copied into every part of a run", large_questions),
    ("uploads that nobody completes", unfinished_uploads),
    ("wrong tokens", wrong_tokens),
];

/// A server with a token and little memory.
pub fn server(programs: &Programs, data: &Path) -> Result<Server> {
    let mut command = programs.serve(data);
    command.args(["--query-limit", "time-s=2"]).env("TRELLIS_TOKEN", "tok");
    Server::start(within(&command, GIGABYTE))
}

/// Does it, and looks whether the same process still serves.
pub fn survives(server: &mut Server, what: &str, attack: Attack) -> Result<()> {
    let done = attack(server);
    ensure!(server.is_alive(), "{what}: the server ended: {}", server.last_words());
    done.with_context(|| what.to_owned())?;
    let reply = server.reply("GET", "/api/v1/runs?limit=1", TOKEN, "");
    ensure!(server.is_alive(), "{what}: the server ended afterwards: {}", server.last_words());
    let (status, reply) =
        reply.with_context(|| format!("afterwards: {}", server.last_words())).context(what.to_owned())?;
    ensure!(status == 200, "{what}: afterwards {status} {reply}");
    Ok(())
}

/// The most memory that a process ever had, in MB.
pub fn peak_mb(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()? / 1024)
}

/// A connection that is a socket; it says who it is if it is to be known.
fn socket(server: &Server, known: bool) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(&server.address)?;
    stream.set_write_timeout(Some(Duration::from_secs(2)))?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    write!(
        stream,
        "GET /api/v1/socket HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        server.address
    )?;
    if known {
        send_message(&mut stream, &json!({"type": "auth", "token": "tok"}).to_string())?;
        let mut told = Vec::new();
        while !told.windows(7).any(|window| window == b"auth-ok") {
            let mut some = [0; 512];
            let count = stream.read(&mut some)?;
            ensure!(count > 0, "not let in: {}", String::from_utf8_lossy(&told));
            told.extend_from_slice(&some[..count]);
        }
    }
    Ok(stream)
}

fn send_message(stream: &mut TcpStream, text: &str) -> std::io::Result<()> {
    stream.write_all(&head(1, text.len()))?;
    stream.write_all(text.as_bytes())
}

/// The head of a whole message under a mask that changes nothing.
fn head(code: u8, length: usize) -> Vec<u8> {
    let mut head = vec![0x80 | code, 0xff];
    head.extend((length as u64).to_be_bytes());
    head.extend([0; 4]);
    head
}

/// Sends as much as the other end takes, up to so many times.
fn send(stream: &mut TcpStream, bytes: &[u8], times: usize) {
    for _ in 0..times {
        if stream.write_all(bytes).is_err() {
            return;
        }
    }
}

#[allow(clippy::unnecessary_wraps, reason = "an attack like the others, which may fail")]
fn unfinished_messages(server: &Server) -> Result<()> {
    let some = vec![b' '; 1 << 20];
    for known in [false, true] {
        let mut held = Vec::new();
        for _ in 0..70 {
            // Who is not let in has nothing to send.
            let Ok(mut stream) = socket(server, known) else { continue };
            drop(stream.write_all(&head(1, 31 << 20)));
            send(&mut stream, &some, 8);
            held.push(stream);
        }
    }
    Ok(())
}

fn unread_pongs(server: &Server) -> Result<()> {
    let mut ping = vec![0x89, 0xfd, 0, 0, 0, 0];
    ping.extend([b'x'; 125]);
    let pings = ping.repeat(8_000);
    for known in [false, true] {
        let mut held = (0..4).map(|_| socket(server, known)).collect::<Result<Vec<_>>>()?;
        for stream in &mut held {
            send(stream, &pings, 100);
        }
    }
    Ok(())
}

fn unread_replies(server: &Server) -> Result<()> {
    let content = "eHh4".repeat(5 << 20);
    let about = json!({"id": "d", "kind": "text/plain", "title": "t"});
    let add = json!({"operation": "add-document", "document-metadata": about, "content": content}).to_string();
    let (status, reply) = server.reply("POST", "/api/v1/librarian", TOKEN, &add)?;
    ensure!(status == 200 || reply.to_string().contains("exists"), "{status} {reply}");
    let get = json!({"operation": "get-document-content", "document-id": "d"}).to_string();
    let streamed = get.replace("get-document-content", "stream-document");
    let path = "/api/v1/document-stream?document-id=d&chunk-size=4194304";
    let unread = |number: usize| match number % 3 {
        0 => server.request("GET", path, TOKEN, ""),
        1 => server.request("POST", "/api/v1/librarian", TOKEN, &streamed),
        _ => server.request("POST", "/api/v1/librarian", TOKEN, &get),
    };
    let _held = (0..90).map(unread).collect::<Result<Vec<_>>>()?;
    let mut whole = Vec::new();
    server.request("POST", "/api/v1/librarian", TOKEN, &get)?.read_to_end(&mut whole)?;
    ensure!(whole.len() > content.len(), "whoever reads gets all of it, not {} bytes", whole.len());
    Ok(())
}

fn small_as_text(server: &Server) -> Result<()> {
    let many = format!("{{\"operation\":\"get\",\"keys\":[{}0]}}", "0,".repeat(15 << 20));
    let (status, reply) = server.reply("POST", "/api/v1/config", TOKEN, &many)?;
    ensure!(status == 413, "{status} {reply}");
    Ok(())
}

/// A text that is made longer in every step.
fn growing(first: &str, step: impl Fn(usize) -> String, steps: usize) -> String {
    let mut query = format!("SELECT (STRLEN(?x{steps}) AS ?n) {{ BIND({first} AS ?x0) ");
    for number in 0..steps {
        write!(query, "BIND({} AS ?x{}) ", step(number), number + 1).expect("a text takes whatever is written to it");
    }
    query + "}"
}

fn nested(open: &str, middle: &str, close: &str, times: usize) -> String {
    format!("{}{middle}{}", open.repeat(times), close.repeat(times))
}

/// Queries of which each ended the process once, or could.
fn queries() -> Vec<String> {
    let replacing = |n: usize| format!("REPLACE(?x{n}, \"a\", \"aaaaaaaaaaaaaaaa\")");
    let values = |name: &str| format!("VALUES ?{name} {{ {} }} ", "1 2 3 4 5 6 7 8 9 0 ".repeat(20));
    let digits = "9".repeat(7000);
    let mut queries = vec![
        "SELECT * {?a ?b ?c. ?d ?e ?f. ?g ?h ?i. ?j ?k ?l} ORDER BY ?a".to_owned(),
        growing("\"aaaaaaaaaaaaaaaa\"", replacing, 15),
        growing("\"aaaaaaaaaaaaaaaa\"", |n| format!("CONCAT(?x{n}, ?x{n})"), 80),
        growing("\"%%%%%%%%\"", |n| format!("ENCODE_FOR_URI(?x{n})"), 60),
        "SELECT (GROUP_CONCAT(CONCAT(STR(?a), STR(?d), STR(?g)); separator=\", \") AS ?all) \
         { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }"
            .to_owned(),
        format!("SELECT DISTINCT * {{ {} }} ORDER BY ?d", ["a", "b", "c", "d"].map(values).concat()),
        "SELECT DISTINCT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i FILTER(?a != ?d) }".to_owned(),
        "SELECT * { ?a (!<urn:x>)* ?b . ?c (!<urn:x>)* ?d . ?e (!<urn:x>)* ?f } ORDER BY ?a".to_owned(),
        "CONSTRUCT { ?a ?e ?i } { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }".to_owned(),
        format!("SELECT (xsd:decimal(\"{digits}.{digits}\") * xsd:integer(\"{digits}\") AS ?n) {{}}"),
        "SELECT * { BIND(CONCAT(\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\", \"!\") AS ?t) \
         FILTER(REGEX(?t, \"^((((a{1,60}){1,60}){1,60}){1,60})*$\")) }"
            .to_owned(),
    ];
    // As deep as a query may be long, and much longer.
    for times in [1_000, 100_000] {
        queries.extend([
            format!("SELECT * {{ ?s ?p ?o FILTER({}) }}", nested("(", "1", ")", times)),
            format!("SELECT * {}", nested("{", "", "}", times)),
            format!("SELECT * {{ ?s ?p ?o FILTER({}true) }}", "!".repeat(times)),
            format!("SELECT * {{ ?s ?p {} }}", nested("(", "", ")", times)),
            format!("SELECT * {{ ?s ?p {} }}", nested("[ ?p ", "1", "]", times)),
            format!("SELECT * {{ ?s {} ?o }}", nested("(", "a", ")*", times)),
            format!("SELECT * {{ {} }}", nested("OPTIONAL{?s ?p ?o ", "", "}", times / 2)),
            format!("SELECT * {}", nested("{{} UNION ", "{}", "}", times / 2)),
            format!("SELECT * {{ {} }}", nested("FILTER EXISTS{?s ?p ?o ", "", "}", times / 2)),
        ]);
    }
    queries
}

fn greedy_queries(server: &Server) -> Result<()> {
    for query in queries() {
        let (status, reply) = server.reply("POST", "/api/v1/sparql", TOKEN, &json!({ "query": query }).to_string())?;
        let short: String = query.chars().take(80).collect();
        ensure!([200, 400, 408, 413].contains(&status), "{short}: {status} {reply}");
        ensure!(status == 200 || reply["error"]["message"].is_string(), "{short}: {reply}");
    }
    Ok(())
}

/// Each of these made a text, a list or a stack grow without end.
const TEMPLATES: [&str; 8] = [
    "{{ question | indent(100000000000000, true) }}",
    "{% set ns = namespace(x=question) %}{% for i in range(64) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
    "{{ range(100000) | join('x' * 1000000) }}",
    "{{ ('x' * 1000000) | replace('x', 'x' * 1000000) }}",
    "{{ '%99999999999s' | format('a') }}",
    "{% set ns = namespace(x=[1]) %}{% for i in range(64) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}",
    "{{ [1] * 100000000 | length }}{{ range(100000) * 100000 }}",
    "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
];

fn greedy_templates(server: &Server) -> Result<()> {
    for (number, template) in TEMPLATES.into_iter().enumerate() {
        let value = json!({ "prompt": template }).to_string();
        let item = json!({"type": "prompt", "key": "template.agent-react", "value": value});
        let put = json!({"operation": "put", "values": [item]}).to_string();
        let (status, reply) = server.reply("POST", "/api/v1/config", TOKEN, &put)?;
        ensure!(status == 200, "{template}: {status} {reply}");
        let run = format!("template-{number}-{}", server.id());
        let body = json!({"question": "Two?", "pattern": "react", "session_id": run}).to_string();
        let (status, reply) = server.reply("POST", "/api/v1/runs", TOKEN, &body)?;
        ensure!(status < 300, "{template}: {status} {reply}");
        wait_for(server, &run, &["failed"])?;
    }
    let delete =
        json!({"operation": "delete", "keys": [{"type": "prompt", "key": "template.agent-react"}]}).to_string();
    server.reply("POST", "/api/v1/config", TOKEN, &delete)?;
    Ok(())
}

fn wait_for(server: &Server, run: &str, states: &[&str]) -> Result<()> {
    for _ in 0..3_000 {
        let (_, shown) = server.reply("GET", &format!("/api/v1/runs/{run}"), TOKEN, "")?;
        let state = shown["state"].as_str().unwrap_or("");
        if states.contains(&state) {
            return Ok(());
        }
        ensure!(["queued", "running", "waiting"].contains(&state), "run {run}: {shown}");
        std::thread::sleep(Duration::from_millis(20));
    }
    bail!("run {run} does not end")
}

/// Over each socket. A program that was not built for speed needs minutes for more.
const LARGE_QUESTIONS: usize = if cfg!(debug_assertions) { 15 } else { 60 };

/// As large as a question may be, many at once over many sockets, and nobody reads what is said.
fn large_questions(server: &Server) -> Result<()> {
    let question = "why ".repeat(230_000);
    let mut held = Vec::new();
    for socket_number in 0..20 {
        let mut stream = socket(server, true)?;
        for number in 0..LARGE_QUESTIONS {
            let request = json!({"question": question, "pattern": "supervisor", "streaming": true});
            let id = format!("{socket_number}-{number}");
            let message = json!({"id": id, "service": "agent", "flow": "default", "request": request}).to_string();
            if send_message(&mut stream, &message).is_err() {
                break;
            }
        }
        held.push(stream);
    }
    for field in ["framing", "user", "group", "history", "state"] {
        let body = json!({"question": "Why?", field: "x".repeat(6 << 20)}).to_string();
        match server.reply("POST", "/api/v1/runs", TOKEN, &body) {
            // 503 while the questions before hold all there is for large requests.
            Ok((status, reply)) => {
                ensure!((400..500).contains(&status) || status == 503, "{field} of 6 MB: {status} {reply}");
            }
            Err(error) => ensure!(is_hang_up(&error), "{field} of 6 MB: {error:#}"),
        }
    }
    Ok(())
}

/// A server with no room for a request, or that has waited too long for it, answers without reading the rest and closes: then
/// whoever still writes may miss the answer.
fn is_hang_up(error: &anyhow::Error) -> bool {
    let kind = error.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
    matches!(kind, Some(std::io::ErrorKind::BrokenPipe | std::io::ErrorKind::ConnectionReset))
}

fn unfinished_uploads(server: &Server) -> Result<()> {
    let mut refused = false;
    for number in 0..300 {
        let about = json!({"id": format!("u{number}"), "kind": "text/plain", "title": "t"});
        let begin = json!({"operation": "begin-upload", "document-metadata": about, "total-size": 200 << 20});
        let (status, reply) = server.reply("POST", "/api/v1/librarian", TOKEN, &begin.to_string())?;
        refused |= status >= 400 || reply.get("error").is_some();
        let Some(upload) = reply["upload-id"].as_str() else { break };
        let piece = json!({"operation": "upload-chunk", "upload-id": upload, "chunk-index": 0, "content": "eHh4".repeat(1 << 18)});
        server.reply("POST", "/api/v1/librarian", TOKEN, &piece.to_string())?;
    }
    ensure!(refused, "uploads have no end");
    Ok(())
}

fn wrong_tokens(server: &Server) -> Result<()> {
    let mut refused = Vec::new();
    for number in 0..300 {
        let header = format!("Authorization: Bearer {number}\r\n");
        let (status, _) = server.reply("GET", "/api/v1/runs", &header, "")?;
        refused.push(status);
    }
    ensure!(refused.iter().all(|status| [401, 429].contains(status)), "{refused:?}");
    Ok(())
}
