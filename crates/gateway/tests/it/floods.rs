//! Floods of a bounded size: what is sent without end, and what is not read.

use crate::house::{House, Setup, Socket};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{CloseCode, Data, OpCode};
use trellis_gateway::{Access, Identity, Token};

async fn guarded() -> House {
    let access = Access::Tokens(vec![(Token::new("al"), Identity::user("alice", []))]);
    House::with(Setup { access, ..Setup::default() }).await
}

/// The status of the first reply on a connection.
async fn status(stream: &mut TcpStream) -> String {
    let mut status = [0; 12];
    stream.read_exact(&mut status).await.unwrap();
    String::from_utf8_lossy(&status).into_owned()
}

/// A connection that is a socket, without a library that would behave.
async fn raw_socket(house: &House) -> TcpStream {
    let mut stream = TcpStream::connect(&house.address).await.unwrap();
    let head = format!(
        "GET /api/v1/socket HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        house.address
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    assert_eq!(status(&mut stream).await, "HTTP/1.1 101");
    stream
}

/// The head of a masked frame. The mask is nothing, so that content is as it is written.
fn head(code: u8, length: u64) -> Vec<u8> {
    let mut head = vec![0x80 | code, 0xff];
    head.extend(length.to_be_bytes());
    head.extend([0; 4]);
    head
}

/// Whether the other end has closed, or closes before long. What it says meanwhile is not looked at.
async fn is_closed(stream: &mut TcpStream) -> bool {
    let mut rest = Vec::new();
    tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut rest)).await.is_ok()
}

#[tokio::test]
async fn a_stranger_that_announces_much_is_not_listened_to() {
    let house = guarded().await;
    let mut strangers = Vec::new();
    for _ in 0..100 {
        let mut stream = raw_socket(&house).await;
        stream.write_all(&head(1, 31 << 20)).await.unwrap();
        strangers.push(stream);
    }
    for stream in &mut strangers {
        assert!(is_closed(stream).await);
    }
}

#[tokio::test]
async fn a_stranger_that_pings_without_end_is_not_listened_to() {
    let house = guarded().await;
    let mut stream = raw_socket(&house).await;
    let mut ping = vec![0x89, 0xfd, 0, 0, 0, 0];
    ping.extend([b'x'; 125]);
    let pings = ping.repeat(1_000);
    // A megabyte, of which it reads a part.
    for _ in 0..8 {
        if stream.write_all(&pings).await.is_err() {
            return;
        }
    }
    assert!(is_closed(&mut stream).await);
}

/// What is announced counts, and nobody needs to send it for that.
#[tokio::test]
async fn messages_that_are_never_finished_take_the_room_and_no_more() {
    let house = guarded().await;
    let known = async || {
        let mut socket = Socket::connect(&house.address, &[]).await.unwrap();
        socket.send(json!({"type": "auth", "token": "al"})).await;
        assert_eq!(socket.next().await["type"], "auth-ok");
        socket
    };
    let begin = |bytes: usize| Message::Frame(Frame::message(vec![b' '; bytes], OpCode::Data(Data::Text), false));
    let (mut unfinished, mut refused) = (Vec::new(), 0);
    for _ in 0..8 {
        let mut socket = known().await;
        drop(socket.0.send(begin(20 << 20)).await);
        unfinished.push(socket);
    }
    for socket in &mut unfinished {
        let told = tokio::time::timeout(Duration::from_millis(500), socket.0.next()).await;
        let Ok(told) = told else { continue };
        refused += 1;
        if let Some(Ok(Message::Text(text))) = told {
            assert!(text.contains("holds as much as it can"), "{text}");
            if let Some(Ok(Message::Close(Some(close)))) = socket.0.next().await {
                assert_eq!(close.code, CloseCode::Again);
            }
        }
    }
    assert_eq!(refused, 7, "there is room for one: pieces are gathered in twice the room");
    let mut other = known().await;
    other.send(json!({"id": "1", "service": "iam", "request": {"operation": "whoami"}})).await;
    assert_eq!(other.next().await["response"]["user"]["username"], "alice", "small ones go on");
    drop(unfinished);
    // Room comes back, as soon as the server has noticed.
    let long = json!({"id": "2", "service": "iam", "request": {"operation": "whoami", "filler": "x".repeat(20 << 20)}});
    while tokio::time::timeout(Duration::from_secs(20), async {
        let mut socket = known().await;
        socket.0.send(Message::text(long.to_string())).await.ok();
        socket.next().await["response"].is_null()
    })
    .await
    .unwrap()
    {}
}

#[tokio::test]
async fn wrong_tokens_are_counted_and_then_not_looked_at() {
    let house = guarded().await;
    let with = async |token: &str| {
        let header = format!("Authorization: Bearer {token}\r\n");
        house.raw("GET", "/api/v1/runs", &header, b"").await
    };
    let mut told = Vec::new();
    for n in 0..25 {
        let reply = String::from_utf8(with(&format!("wrong-{n}")).await).unwrap();
        told.push(reply[9..12].to_owned());
        if reply.starts_with("HTTP/1.1 429") {
            let seconds =
                reply.to_lowercase().split_once("retry-after: ").unwrap().1.split_once('\r').unwrap().0.to_owned();
            assert!((1..=61).contains(&seconds.parse::<u32>().unwrap()), "{reply}");
        }
    }
    assert_eq!(told, [vec!["401"; 20], vec!["429"; 5]].concat());
    assert!(with("al").await.starts_with(b"HTTP/1.1 429"), "a right one is not told apart");
    let mut socket = Socket::connect(&house.address, &[]).await.unwrap();
    socket.send(json!({"type": "auth", "token": "al"})).await;
    assert_eq!(socket.next().await["type"], "auth-failed");
    assert_eq!(socket.next().await, Value::Null, "and the connection ends");
    assert_eq!(house.http("GET", "/healthz", "", b"").await.0, 200, "who claims nothing is answered");
}

/// Strangers go when there are too many. Whoever is known stays, and whoever is new gets in.
#[tokio::test]
async fn idle_strangers_keep_nobody_out() {
    let house = guarded().await;
    let mut known = Socket::connect(&house.address, &[]).await.unwrap();
    known.send(json!({"type": "auth", "token": "al"})).await;
    assert_eq!(known.next().await["type"], "auth-ok");
    let mut strangers = Vec::new();
    for n in 0..700 {
        let mut stream = TcpStream::connect(&house.address).await.unwrap();
        if n % 2 == 0 {
            stream.write_all(b"GET /api/v1/runs HTTP/1.1\r\nHost: localhost\r\nX-Slow: ").await.unwrap();
        }
        strangers.push(stream);
    }
    assert!(is_closed(&mut strangers[0]).await, "the oldest had to leave");
    known.send(json!({"id": "1", "service": "iam", "request": {"operation": "whoami"}})).await;
    assert_eq!(known.next().await["response"]["user"]["username"], "alice");
    assert_eq!(house.http("GET", "/api/v1/runs", "Authorization: Bearer al\r\n", b"").await.0, 200);
}

/// Each takes a piece, not the whole document, and those that wait for room get it when others are closed.
#[tokio::test]
async fn replies_that_nobody_reads_do_not_keep_others_from_theirs() {
    let house = House::open().await;
    let content = vec![b'x'; 20 << 20];
    let about = json!({"id": "d", "kind": "text/plain"});
    let add = json!({"operation": "add-document", "document-metadata": about, "content": STANDARD.encode(&content)});
    assert_eq!(house.post("/api/v1/librarian", &add).await.0, 200);
    let get = json!({"operation": "get-document-content", "document-id": "d"});
    let mut unread = Vec::new();
    for n in 0..120 {
        unread.push(match n % 2 {
            0 => house.request("POST", "/api/v1/librarian", "", get.to_string().as_bytes()).await,
            _ => house.request("GET", "/api/v1/document-stream?document-id=d", "", b"").await,
        });
    }
    let (status, reply) = house.post("/api/v1/librarian", &get).await;
    assert_eq!(status, 200);
    assert!(STANDARD.decode(reply["content"].as_str().unwrap()).unwrap() == content, "whole and right");
}
