//! What must not harm anybody.

use crate::house::{House, Socket};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{CloseCode, Data, OpCode};

/// A dialog right now works.
async fn still_serves(house: &House) {
    let mut socket = house.socket().await;
    socket.ask("after", &json!({"answer": "fine"}), false).await;
    assert_eq!(socket.replies().await.pop().unwrap()["response"]["content"], "fine");
}

#[tokio::test]
async fn a_malformed_frame_is_answered_and_the_connection_goes_on() {
    let house = House::open().await;
    let mut socket = house.socket().await;
    for (frame, complaint) in [
        ("", "a frame must be a JSON object"),
        ("{", "a frame must be a JSON object"),
        ("[1]", "a frame must be a JSON object"),
        ("{}", "`id` is missing"),
        (r#"{"id": null, "request": {}}"#, "`id` is missing"),
        (r#"{"id": "1"}"#, "`request` is missing"),
        (&json!({"id": "x".repeat(2000)}).to_string(), "`id` is longer than 1024 bytes"),
        (r#"{"id": "1", "request": 3}"#, "`request` must be an object"),
        (r#"{"id": "1", "request": {}}"#, "unknown service"),
        (r#"{"id": "1", "request": {}, "service": 4}"#, "`service` must be a text"),
        (r#"{"id": "1", "request": {}, "service": "config", "workspace": []}"#, "`workspace` must be a text"),
        (r#"{"id": "1", "request": {}, "service": "agent", "flow": {}}"#, "`flow` must be a text"),
        (r#"{"id": "1", "request": {}, "service": "agent", "flow": "zz"}"#, "Invalid flow default/zz"),
        (r#"{"id": "1", "request": {}, "service": "agent", "flow": "a b<"}"#, ""),
    ] {
        socket.send_text(frame).await;
        let reply = socket.next().await;
        let message = reply["error"]["message"].as_str().unwrap_or_else(|| panic!("{frame}: {reply}"));
        assert!(message.contains(complaint) && !message.is_empty(), "{frame}: {reply}");
        assert_eq!(reply["complete"], true);
    }
    socket
        .0
        .send(Message::binary(br#"{"id":"b","service":"iam","request":{"operation":"whoami"}}"#.to_vec()))
        .await
        .unwrap();
    assert_eq!(socket.next().await["response"]["user"]["username"], "anonymous", "binary frames are read too");
}

#[tokio::test]
async fn the_wrong_type_in_any_member_of_an_agent_request_is_named() {
    let house = House::open().await;
    let members = [
        "question",
        "state",
        "group",
        "history",
        "collection",
        "streaming",
        "session_id",
        "conversation_id",
        "pattern",
        "task_type",
        "framing",
        "correlation_id",
        "parent_session_id",
        "subagent_goal",
        "expected_siblings",
    ];
    for member in members {
        for wrong in [json!({"a": 1}), json!([3])] {
            let mut request = json!({"question": "{}"});
            request[member] = wrong.clone();
            let (status, reply) = house.post("/api/v1/flow/default/service/agent", &request).await;
            let message = reply["error"]["message"].as_str().unwrap_or_else(|| panic!("{member}={wrong}: {reply}"));
            assert_eq!(status, 200);
            let named = format!("this is not a request to an agent: the member `{member}` is wrong: ");
            assert!(message.starts_with(&named), "{member}={wrong}: {message}");
        }
    }
}

#[tokio::test]
async fn the_wrong_type_in_any_member_of_the_other_services_is_named() {
    let house = House::open().await;
    for (kind, request, member) in [
        ("config", json!({"operation": 3}), "operation"),
        ("config", json!({"operation": "get", "keys": 3}), "keys"),
        ("config", json!({"operation": "get", "keys": [3]}), "keys"),
        ("config", json!({"operation": "get", "keys": [{"type": 1, "key": "x"}]}), "type"),
        ("config", json!({"operation": "put", "values": [{"type": "a", "key": "b", "value": {}}]}), "value"),
        ("config", json!({"operation": "put", "values": [{"type": "a", "key": "b"}]}), "value"),
        ("config", json!({"operation": "list"}), "type"),
        ("flow", json!({"operation": "get-flow", "flow-id": []}), "flow-id"),
        ("flow", json!({"operation": "start-flow", "flow-id": "a", "blueprint-name": 1}), "blueprint-name"),
        ("iam", json!({"operation": "create-workspace", "workspace_record": 3}), "workspace-record"),
    ] {
        let (_, reply) = house.post(&format!("/api/v1/{kind}"), &request).await;
        let message = reply["error"]["message"].as_str().unwrap_or_else(|| panic!("{request}: {reply}"));
        assert!(message.contains(member), "{request}: {message}");
    }
}

#[tokio::test]
async fn bodies_that_are_no_objects_or_too_large_are_refused_by_status() {
    let house = House::open().await;
    let path = "/api/v1/config";
    assert_eq!(house.http("POST", path, "", b"{").await, (400, json!({"error": "invalid json"})));
    assert_eq!(house.http("POST", path, "", b"\xff\xfe").await, (400, json!({"error": "invalid json"})));
    assert_eq!(house.http("POST", path, "", b"[]").await, (400, json!({"error": "body must be an object"})));
    let huge = vec![b' '; 100 << 20];
    let (status, _) = house.http("POST", path, "", &huge).await;
    assert!(
        status == 413 || status == 0,
        "refused, or the connection was closed while we were still sending: {status}"
    );
    still_serves(&house).await;
}

#[tokio::test]
async fn a_frame_of_100_mb_ends_its_connection_only() {
    let house = House::open().await;
    let mut socket = house.socket().await;
    let mut other = house.socket().await;
    drop(socket.0.send(Message::text("x".repeat(100 << 20))).await);
    assert_eq!(socket.next().await, Value::Null);
    other.ask("1", &json!({"answer": "unharmed"}), false).await;
    assert_eq!(other.replies().await.pop().unwrap()["response"]["content"], "unharmed");
}

#[tokio::test]
async fn whoever_does_not_read_keeps_nobody_else_waiting() {
    let house = House::open().await;
    let mut lazy = house.socket().await;
    for n in 0..100 {
        lazy.ask(&n.to_string(), &json!({"tools": 3, "answer": "unread ".repeat(20_000)}), true).await;
    }
    still_serves(&house).await;
    drop(lazy);
    still_serves(&house).await;
}

#[tokio::test]
async fn more_requests_than_a_connection_may_have_open_are_refused_one_by_one() {
    let house = House::open().await;
    let mut socket = house.socket().await;
    for n in 0..257 {
        socket.ask(&n.to_string(), &json!({"silent": true}), false).await;
    }
    let refused = loop {
        let reply = socket.next().await;
        if reply["complete"] == true {
            break reply;
        }
    };
    assert_eq!(refused["id"], "256");
    assert!(refused["error"]["message"].as_str().unwrap().contains("unanswered"), "{refused}");
}

#[tokio::test]
async fn half_open_and_rubbish_connections_are_harmless() {
    let house = House::open().await;
    let mut held = Vec::new();
    for n in 0..200 {
        let mut stream = TcpStream::connect(&house.address).await.unwrap();
        let opening: &[u8] = match n % 4 {
            0 => b"",
            1 => b"GET /api/v1/socket HTTP/1.1\r\nHost: x",
            2 => b"\x16\x03\x01\x02\x00\x01\x00\x01",
            _ => b"POST /api/v1/config HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{",
        };
        stream.write_all(opening).await.unwrap();
        if n % 8 == 7 {
            stream.shutdown().await.unwrap();
        }
        held.push(stream);
    }
    for _ in 0..200 {
        held.push(match Socket::connect(&house.address, &[]).await.unwrap().0.into_inner() {
            tokio_tungstenite::MaybeTlsStream::Plain(stream) => stream,
            _ => unreachable!("no TLS here"),
        });
    }
    still_serves(&house).await;
}

/// Whoever has said everything may close that half of the connection.
#[tokio::test]
async fn a_client_that_only_listens_any_more_gets_its_reply() {
    let house = House::open().await;
    for round in 0..20 {
        let body = json!({"operation": "put", "values": [{"type": "note", "key": "k", "value": round.to_string()}]});
        let mut stream = house.request("POST", "/api/v1/config", "", body.to_string().as_bytes()).await;
        stream.shutdown().await.unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).await.unwrap();
        assert!(reply.starts_with("HTTP/1.1 200"), "{round}: {reply:?}");
    }
}

/// Bodies that do not end fill the room for large requests, and nothing else.
#[tokio::test]
async fn large_bodies_take_no_more_than_there_is_room_for() {
    let house = House::open().await;
    let large = vec![b' '; 30 << 20];
    let mut unfinished = Vec::new();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(&house.address).await.unwrap();
        let (host, length) = (&house.address, large.len() + 1);
        let head = format!("POST /api/v1/config HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(&large).await.unwrap();
        unfinished.push(stream);
    }
    // The last bytes may still be on their way.
    let complaint = loop {
        let (status, reply) = house.http("POST", "/api/v1/runs", "", &large[..9 << 20]).await;
        match status {
            503 => break reply,
            // The connection may be closed while we are still sending.
            400 | 0 => tokio::task::yield_now().await,
            _ => panic!("{status}: {reply}"),
        }
    };
    let message = "the server holds as much as it can of large requests; ask again in a moment";
    assert_eq!(complaint, json!({"error": {"type": "unavailable", "message": message}}));
    let mut socket = house.socket().await;
    let large = json!({"id": "1", "service": "iam", "request": {"filler": "x".repeat(9 << 20)}});
    // The server stops listening while we are still sending, and what it says may be lost with the connection.
    socket.0.send(Message::text(large.to_string())).await.ok();
    let told = socket.next().await;
    assert!(told.is_null() || told["error"]["message"] == message, "{told}");
    still_serves(&house).await;
    drop(unfinished);
    while house.http("POST", "/api/v1/config", "", &vec![b' '; 9 << 20]).await.0 != 400 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_peer_that_breaks_the_protocol_is_told_how() {
    let house = House::open().await;
    let text = |bytes: Vec<u8>| Message::Frame(Frame::message(bytes, OpCode::Data(Data::Text), true));
    for (message, code) in [
        (text(b"\xff\xfe".to_vec()), CloseCode::Invalid),
        (Message::Frame(Frame::message(vec![], OpCode::Data(Data::Reserved(3)), true)), CloseCode::Protocol),
        (Message::text("x".repeat((32 << 20) + 1)), CloseCode::Size),
    ] {
        let mut socket = house.socket().await;
        // The server may close before everything is sent.
        socket.0.send(message).await.ok();
        match socket.0.next().await {
            Some(Ok(Message::Close(Some(close)))) => assert_eq!(close.code, code),
            // What we were still sending may have overtaken its farewell.
            Some(Err(_)) if code == CloseCode::Size => {}
            other => panic!("{code}: {other:?}"),
        }
    }
    still_serves(&house).await;
}
