//! Who is let in, and where.

use crate::house::{House, Setup, Socket};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use trellis_gateway::{Access, Identity, Token};

async fn guarded() -> House {
    let alice = Identity::user("alice", []);
    let access = Access::Tokens(vec![(Token::new("tg_secret"), alice)]);
    House::with(Setup { access, ..Setup::default() }).await
}

#[tokio::test]
async fn nothing_is_served_on_a_socket_before_its_owner_is_known() {
    let house = guarded().await;
    let mut socket = Socket::connect(&house.address, &[]).await.unwrap();
    socket.ask("1", &json!({}), true).await;
    let refused = json!({"message": "auth failure", "type": "auth-required"});
    assert_eq!(socket.next().await, json!({"id": "1", "error": refused, "complete": true}));
    socket.send(json!({"type": "auth", "token": "wrong"})).await;
    assert_eq!(socket.next().await["type"], "auth-failed");
    socket.ask("2", &json!({}), true).await;
    assert_eq!(socket.next().await["error"]["type"], "auth-required");
    socket.send(json!({"type": "auth", "token": "tg_secret"})).await;
    assert_eq!(socket.next().await["type"], "auth-ok");
    socket.ask("3", &json!({"answer": "welcome"}), false).await;
    assert_eq!(socket.replies().await.pop().unwrap()["response"]["content"], "welcome");
}

#[tokio::test]
async fn rest_wants_the_token_too() {
    let house = guarded().await;
    let body = json!({"operation": "whoami"}).to_string();
    for header in ["", "Authorization: Bearer wrong\r\n", "Authorization: tg_secret\r\n"] {
        let reply = house.http("POST", "/api/v1/iam", header, body.as_bytes()).await;
        assert_eq!(reply, (401, json!({"error": "auth failure"})));
    }
    let (status, reply) =
        house.http("POST", "/api/v1/iam", "Authorization: Bearer tg_secret\r\n", body.as_bytes()).await;
    assert_eq!((status, &reply["user"]["username"]), (200, &json!("alice")));
}

#[tokio::test]
async fn a_page_of_another_site_cannot_use_the_server() {
    let house = House::open().await;
    let evil = [("origin", "https://evil.example")];
    assert!(Socket::connect(&house.address, &evil).await.err().unwrap().contains("403"));
    let own = format!("http://{}", house.address);
    assert!(Socket::connect(&house.address, &[("origin", &own)]).await.is_ok());
    let body = br#"{"operation":"whoami"}"#;
    let (status, _) = house.http("POST", "/api/v1/iam", "Origin: null\r\n", body).await;
    assert_eq!(status, 403);
    let (status, _) = house.http("POST", "/api/v1/iam", "Host: rebound.example:8888\r\n", body).await;
    assert_eq!(status, 403, "a foreign name that leads here is no way in");
    let (status, _) = house.http("POST", "/api/v1/iam", "Host: localhost:8888\r\n", body).await;
    assert_eq!(status, 200);
}

#[tokio::test]
async fn health_and_readiness_tell_apart_living_from_serving() {
    let house = House::open().await;
    assert_eq!(house.http("GET", "/healthz", "", b"").await, (200, json!({"status": "ok"})));
    assert_eq!(house.http("GET", "/readyz", "", b"").await, (200, json!({"status": "ready", "open_runs": 0})));
}

#[tokio::test]
async fn the_words_of_the_graph_and_the_figures_can_be_had() {
    let house = House::open().await;
    let (status, words) = house.http("GET", "/ontology", "", b"").await;
    assert_eq!((status, words.as_str().map(|words| words.contains("owl:Ontology"))), (200, Some(true)));
    let (status, figures) = house.http("GET", "/api/metrics", "", b"").await;
    assert_eq!((status, figures.as_str().map(|text| text.ends_with("trellis_open_runs 0\n"))), (200, Some(true)));
    assert_eq!(guarded().await.http("GET", "/api/metrics", "", b"").await.0, 401);
    assert_eq!(house.http("GET", "/", "", b"").await.0, 307, "a program is led to the documentation");
    let (status, page) = house.http("GET", "/", "Accept: text/html\r\n", b"").await;
    assert!(
        status == 200 && page.as_str().is_some_and(|page| page.contains("<title>Trellis</title>")),
        "a person gets the page"
    );
}

#[tokio::test]
async fn what_somebody_unknown_sends_is_not_read() {
    let house = guarded().await;
    // The body that is announced never comes, and nobody waits for it.
    for path in ["/api/v1/config", "/api/v1/flow/default/service/agent", "/api/v1/runs", "/api/v1/configuration"] {
        let mut stream = tokio::net::TcpStream::connect(&house.address).await.unwrap();
        let (host, length) = (&house.address, 30_000_000);
        let head = format!("POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut status = [0; 12];
        stream.read_exact(&mut status).await.unwrap();
        assert_eq!(status, *b"HTTP/1.1 401", "{path}");
    }
    let mut socket = Socket::connect(&house.address, &[]).await.unwrap();
    socket.send_text(&format!("[{}0]", "0,".repeat(100_000))).await;
    assert_eq!(socket.next().await["error"]["type"], "auth-required");
    assert_eq!(socket.next().await, Value::Null, "then the connection ends");
}

#[tokio::test]
async fn what_is_not_there_is_told_in_the_shape_of_its_path() {
    let house = House::open().await;
    let nothing = "there is nothing at this address; /api/docs says what there is";
    assert_eq!(house.http("GET", "/nowhere", "", b"").await, (404, json!({"error": nothing})));
    let ours = json!({"error": {"type": "not-found", "message": nothing}});
    assert_eq!(house.http("GET", "/api/v1/runs/a/b/c", "", b"").await, (404, ours));
    let impossible = "PATCH is not possible here; /api/docs says what is";
    let ours = json!({"error": {"type": "method-not-allowed", "message": impossible}});
    assert_eq!(house.http("PATCH", "/api/v1/runs", "", b"").await, (405, ours));
    assert_eq!(house.http("PATCH", "/readyz", "", b"").await, (405, json!({"error": impossible})));
}

#[tokio::test]
async fn the_scheme_of_a_token_may_be_written_in_any_case() {
    let house = guarded().await;
    for (scheme, status) in [("Bearer", 200), ("bearer", 200), ("BEARER", 200), ("Basic", 401)] {
        let headers = format!("Authorization: {scheme} tg_secret\r\n");
        assert_eq!(house.http("GET", "/api/v1/runs", &headers, b"").await.0, status, "{scheme}");
    }
}
