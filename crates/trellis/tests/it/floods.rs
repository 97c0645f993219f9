//! Floods of a bounded size against a server that has no more than 1 GB of addresses.

use crate::served::Served;
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;
use tempfile::TempDir;

/// A gigabyte.
const KIB: u32 = 976_562;
const TOKEN: &str = "Authorization: Bearer tok\r\n";

fn server(data: &TempDir) -> Served {
    Served::start_within(data.path(), KIB, |command| command.env("TRELLIS_TOKEN", "tok"))
}

/// The server answers whoever has a token.
fn still_serves(server: &Served) {
    let mut reply = String::new();
    server.request("GET", "/api/v1/runs", TOKEN, "").read_to_string(&mut reply).unwrap();
    assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
}

/// A connection that is a socket; it says who it is if it is to be known.
fn socket(server: &Served, known: bool) -> TcpStream {
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(2))).unwrap();
    write!(
        stream,
        "GET /api/v1/socket HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        server.address
    )
    .unwrap();
    if known {
        let hello = json!({"type": "auth", "token": "tok"}).to_string();
        stream.write_all(&head(1, hello.len())).unwrap();
        stream.write_all(hello.as_bytes()).unwrap();
        let mut told = Vec::new();
        while !told.windows(7).any(|window| window == b"auth-ok") {
            let mut some = [0; 512];
            let count = stream.read(&mut some).unwrap();
            assert!(count > 0, "{}", String::from_utf8_lossy(&told));
            told.extend_from_slice(&some[..count]);
        }
    }
    stream
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

#[test]
fn messages_that_are_never_finished() {
    let data = TempDir::new().unwrap();
    let server = server(&data);
    let some = vec![b' '; 1 << 20];
    for known in [false, true] {
        let mut held = Vec::new();
        for _ in 0..70 {
            let mut stream = socket(&server, known);
            drop(stream.write_all(&head(1, 31 << 20)));
            send(&mut stream, &some, 8);
            held.push(stream);
        }
        still_serves(&server);
    }
}

#[test]
fn pings_whose_answers_nobody_reads() {
    let data = TempDir::new().unwrap();
    let server = server(&data);
    let mut ping = vec![0x89, 0xfd, 0, 0, 0, 0];
    ping.extend([b'x'; 125]);
    let pings = ping.repeat(8_000);
    for known in [false, true] {
        let mut held: Vec<_> = (0..4).map(|_| socket(&server, known)).collect();
        for stream in &mut held {
            send(stream, &pings, 100);
        }
        still_serves(&server);
    }
}

#[test]
fn replies_that_nobody_reads() {
    let data = TempDir::new().unwrap();
    let server = server(&data);
    let content = "eHh4".repeat(5 << 20);
    let about = json!({"id": "d", "kind": "text/plain", "title": "t"});
    let add = json!({"operation": "add-document", "document-metadata": about, "content": content}).to_string();
    let mut reply = String::new();
    server.request("POST", "/api/v1/librarian", TOKEN, &add).read_to_string(&mut reply).unwrap();
    assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
    let get = json!({"operation": "get-document-content", "document-id": "d"}).to_string();
    let unread = |n: u32| match n % 3 {
        0 => server.request("GET", "/api/v1/document-stream?document-id=d&chunk-size=4194304", TOKEN, ""),
        1 => {
            server.request("POST", "/api/v1/librarian", TOKEN, &get.replace("get-document-content", "stream-document"))
        }
        _ => server.request("POST", "/api/v1/librarian", TOKEN, &get),
    };
    let held: Vec<_> = (0..90).map(unread).collect();
    still_serves(&server);
    let mut whole = Vec::new();
    server.request("POST", "/api/v1/librarian", TOKEN, &get).read_to_end(&mut whole).unwrap();
    assert!(whole.len() > content.len(), "whoever reads gets all of it: {}", whole.len());
    drop(held);
}

#[test]
fn values_that_are_small_as_text_and_large_in_memory() {
    let data = TempDir::new().unwrap();
    let server = server(&data);
    let many = format!("{{\"operation\":\"get\",\"keys\":[{}0]}}", "0,".repeat(15 << 20));
    let mut reply = String::new();
    server.request("POST", "/api/v1/config", TOKEN, &many).read_to_string(&mut reply).unwrap();
    assert!(reply.starts_with("HTTP/1.1 413"), "{reply}");
    still_serves(&server);
}
