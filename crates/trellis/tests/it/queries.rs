//! Queries that would end the server if they could, and queries that would keep all others waiting.

use crate::served::Served;
#[cfg(target_os = "linux")]
use crate::until;
use crate::{PARTNER, fails, ok};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::thread;
use tempfile::TempDir;

/// What the whole server has to get by with.
const GIGABYTE: u32 = 1_000_000_000 / 1024;
const PATH: &str = "/api/v1/sparql";
/// Four patterns, 77 bytes, and more rows than atoms in a grain of sand.
const PRODUCT: &str = "SELECT * {?a ?b ?c. ?d ?e ?f. ?g ?h ?i. ?j ?k ?l} ORDER BY ?a";
/// Takes for ever, and hardly any memory.
const COUNTING: &str = "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l }";

fn folder() -> TempDir {
    let data = TempDir::new().unwrap();
    ok(data.path(), &["ask", PARTNER]);
    data
}

/// A text that is made longer in every step.
fn growing(first: &str, step: impl Fn(usize) -> String, steps: usize) -> String {
    let mut query = format!("SELECT (STRLEN(?x{steps}) AS ?n) {{ BIND({first} AS ?x0) ");
    for number in 0..steps {
        write!(query, "BIND({} AS ?x{}) ", step(number), number + 1).unwrap();
    }
    query + "}"
}

/// Some of those that ended the process once; `torture` has more.
fn monsters() -> Vec<(&'static str, String)> {
    let replacing = |n: usize| format!("REPLACE(?x{n}, \"a\", \"aaaaaaaaaaaaaaaa\")");
    let doubling = |n: usize| format!("CONCAT(?x{n}, ?x{n})");
    let values = |name: &str| format!("VALUES ?{name} {{ {} }} ", "1 2 3 4 5 6 7 8 9 0 ".repeat(20));
    vec![
        ("a product that is sorted", PRODUCT.to_owned()),
        ("replacing in what was replaced", growing("\"aaaaaaaaaaaaaaaa\"", replacing, 15)),
        ("doubling a text", growing("\"aaaaaaaaaaaaaaaa\"", doubling, 80)),
        ("encoding what was encoded", growing("\"%%%%%%%%\"", |n| format!("ENCODE_FOR_URI(?x{n})"), 60)),
        (
            "joining all texts",
            "SELECT (GROUP_CONCAT(CONCAT(STR(?a), STR(?d), STR(?g)); separator=\", \") AS ?all) \
             { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }"
                .to_owned(),
        ),
        (
            "a product of values",
            format!("SELECT DISTINCT * {{ {} }} ORDER BY ?d", ["a", "b", "c", "d"].map(values).concat()),
        ),
    ]
}

fn asked(server: &Served, query: &str) -> (u16, Value) {
    server.reply("POST", PATH, &json!({"query": query}).to_string())
}

/// A question that costs nothing is answered.
fn still_answers(server: &Served) {
    let (status, reply) = asked(server, "ASK { ?s tg:query ?q }");
    assert_eq!((status, &reply["ask-result"]), (200, &json!(true)), "{reply}");
}

/// Processes that evaluate a query for the server: they have offered to go first if memory is short.
#[cfg(target_os = "linux")]
fn evaluating(server: u32) -> BTreeSet<u32> {
    let parent = |id: u32| -> Option<u32> {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
    };
    let offered = |id: u32| std::fs::read_to_string(format!("/proc/{id}/oom_score_adj")).is_ok_and(|it| it == "1000\n");
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter(|id| parent(*id) == Some(server) && offered(*id)).collect()
}

#[test]
#[cfg(target_os = "linux")]
fn a_query_that_takes_too_much_memory_says_so() {
    let data = folder();
    let server = Served::start_within(data.path(), GIGABYTE, |command| command.args(["--query-limit", "time-s=5"]));
    let (status, reply) = asked(&server, PRODUCT);
    let expected = "the query takes more than the 256 MiB of memory that a query may have; narrow it, or let the operator \
                    raise memory-mb of queries";
    assert_eq!((status, &reply["error"]), (413, &json!({"type": "too-large", "message": expected})));
    // Over the services of stock clients it is the same evaluation.
    let (status, reply) =
        server.reply("POST", "/api/v1/flow/default/service/sparql", &json!({"query": PRODUCT}).to_string());
    assert_eq!((status, &reply["error"]), (200, &json!({"type": "request-error", "message": expected})));
    until("everything has ended", || evaluating(server.id()).is_empty());
}

#[test]
#[cfg(target_os = "linux")]
fn many_monsters_at_once_do_not_end_the_server() {
    let data = folder();
    let server = Served::start_within(data.path(), GIGABYTE, |command| command.args(["--query-limit", "time-s=5"]));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for (what, query) in monsters() {
                    let (status, reply) = asked(&server, &query);
                    assert!([200, 400, 408, 413, 429].contains(&status), "{what}: {status} {reply}");
                }
            });
        }
    });
    still_answers(&server);
}

#[test]
#[cfg(target_os = "linux")]
fn long_queries_of_one_workspace_leave_room_for_others() {
    let data = folder();
    let server = Served::start(data.path());
    let make = json!({"operation": "create-workspace", "workspace_record": {"id": "other", "name": "Other"}});
    server.json("POST", "/api/v1/iam", &make.to_string());
    let long: Vec<_> = (0..4)
        .map(|_| server.request("POST", PATH, "", &json!({"query": COUNTING, "timeout": 25}).to_string()))
        .collect();
    until("some are evaluated", || evaluating(server.id()).len() == 2);
    let path = format!("{PATH}?workspace=other");
    let (status, reply) = server.reply("POST", &path, &json!({"query": "ASK { ?s ?p ?o }"}).to_string());
    assert_eq!((status, &reply["ask-result"]), (200, &json!(false)), "{reply}");
    // Looking for quads is no evaluation, in whichever workspace.
    let (status, reply) = server.reply("POST", "/api/v1/flow/default/service/triples", "{\"limit\": 1}");
    assert_eq!((status, reply["response"].as_array().map(Vec::len)), (200, Some(1)), "{reply}");
    until("the long ones go on, and have half of the places", || evaluating(server.id()).len() == 2);
    drop(long);
    until("nobody waits for them any more", || evaluating(server.id()).is_empty());
    still_answers(&server);
}

#[test]
fn too_many_waiting_queries_are_refused() {
    let data = folder();
    let server = Served::start_at(data.path(), "127.0.0.1:0", |command| command.args(["--query-limit", "at-once=1"]));
    let body = json!({"query": COUNTING}).to_string();
    let (tell, told) = std::sync::mpsc::channel();
    // One is evaluated, 16 wait, and who comes last is refused while all others are without an answer.
    for _ in 0..18 {
        let (mut reply, tell) = (server.request("POST", PATH, "", &body), tell.clone());
        thread::spawn(move || {
            let mut text = String::new();
            reply.read_to_string(&mut text).ok();
            tell.send(text).ok();
        });
    }
    let first = told.recv().unwrap();
    assert!(first.starts_with("HTTP/1.1 429 "), "{first}");
    assert!(first.contains("\"too-many-queries\"") && first.contains("ask again in a moment"), "{first}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_query_ends_with_its_caller() {
    let data = folder();
    let server = Served::start(data.path());
    let body = json!({"query": COUNTING, "timeout": 30}).to_string();
    let none = || until("nobody waits for it any more", || evaluating(server.id()).is_empty());
    let one = || until("it is evaluated", || evaluating(server.id()).len() == 1);
    for path in [PATH, "/api/v1/flow/default/service/sparql"] {
        let caller = server.request("POST", path, "", &body);
        one();
        drop(caller);
        none();
    }
    let mut socket = WebSocket::open(&server);
    socket.send(&json!({"type": "auth", "token": ""}));
    let request = json!({"query": COUNTING});
    socket.send(&json!({"id": "q", "service": "sparql", "flow": "default", "request": request}));
    one();
    drop(socket);
    none();
    let hurried = json!({"query": COUNTING, "timeout": 1}).to_string();
    let (status, reply) = server.reply("POST", PATH, &hurried);
    assert_eq!((status, &reply["error"]["type"]), (408, &json!("timed-out")), "{reply}");
    none();
    // Without warning: nobody is left to end the query.
    let _caller = server.request("POST", PATH, "", &body);
    one();
    let left = evaluating(server.id());
    server.kill();
    until("it ends with its owner", || !left.iter().any(|id| Path::new(&format!("/proc/{id}")).exists()));
}

#[test]
#[cfg(target_os = "linux")]
fn a_server_that_stops_ends_its_queries() {
    let data = folder();
    let server = Served::start(data.path());
    let caller = server.request("POST", PATH, "", &json!({"query": COUNTING}).to_string());
    until("it is evaluated", || evaluating(server.id()).len() == 1);
    let left = evaluating(server.id());
    server.ask_to_stop();
    assert_eq!(server.stopped(), Some(0));
    until("it has ended", || !left.iter().any(|id| Path::new(&format!("/proc/{id}")).exists()));
    let mut reply = String::new();
    { caller }.read_to_string(&mut reply).unwrap();
    assert!(reply.starts_with("HTTP/1.1 503 "), "{reply}");
}

#[test]
fn the_operators_time_is_the_most_that_a_request_can_have() {
    let data = folder();
    let file = data.path().join("trellis.toml");
    std::fs::write(&file, "[queries]\ntime-s = 1\n").unwrap();
    let settings = file.to_str().unwrap();
    let server = Served::start_at(data.path(), "127.0.0.1:0", |command| command.args(["--settings", settings]));
    let (status, reply) = server.reply("POST", PATH, &json!({"query": COUNTING, "timeout": 600}).to_string());
    let message = "the query took longer than 1 s; narrow it";
    assert_eq!((status, &reply["error"]), (408, &json!({"type": "timed-out", "message": message})));
    server.kill();
    let (code, message) = fails(data.path(), &["sparql", COUNTING, "--settings", settings, "--timeout", "60"]);
    assert_eq!(code, 12, "{message}");
    assert!(message.contains("longer than 1 s; narrow it, or raise --query-limit time-s=SECONDS"), "{message}");
    std::fs::write(&file, "[queries]\ntimes = 1\n").unwrap();
    let (code, message) = fails(data.path(), &["sparql", "ASK {}", "--settings", settings]);
    assert_eq!(code, 2, "{message}");
    assert!(message.contains("line 2, queries.times: there is no limit `times` of queries"), "{message}");
}

#[test]
fn the_command_line_survives_a_query_and_says_what_to_raise() {
    let data = folder();
    let (code, message) = fails(data.path(), &["sparql", PRODUCT, "--query-limit", "memory-mb=64"]);
    assert_eq!(code, 12, "{message}");
    assert!(message.contains("more than the 64 MiB of memory that a query may have"), "{message}");
    let (code, message) = fails(data.path(), &["sparql", COUNTING, "--timeout", "1"]);
    assert_eq!(code, 12, "{message}");
    assert!(message.contains("longer than 1 s; narrow it, or raise --timeout"), "{message}");
    // A text of 20 MiB fits into the query's memory and not into an answer.
    let long = growing("\"aaaaaaaaaaaaaaaaaaaa\"", |n| format!("CONCAT(?x{n}, ?x{n})"), 20).replace("STRLEN", "STR");
    let (code, message) = fails(data.path(), &["sparql", &long, "--query-limit", "memory-mb=1024"]);
    assert_eq!((code, message.contains("the answer takes more than 16 MiB")), (12, true), "{message}");
}

/// Just enough of a WebSocket to ask something.
struct WebSocket(TcpStream);

impl WebSocket {
    fn open(server: &Served) -> Self {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        write!(
            stream,
            "GET /api/v1/socket HTTP/1.1\r\nHost: {}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
            server.address
        )
        .unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        assert!(head.starts_with(b"HTTP/1.1 101 "));
        Self(stream)
    }

    /// A text frame of at most 64 KiB whose length has two bytes, masked with nothing.
    fn send(&mut self, message: &Value) {
        let text = message.to_string();
        let mut frame = vec![0x81, 0xfe];
        frame.extend_from_slice(&u16::try_from(text.len()).unwrap().to_be_bytes());
        frame.extend_from_slice(&[0; 4]);
        frame.extend_from_slice(text.as_bytes());
        self.0.write_all(&frame).unwrap();
    }
}
