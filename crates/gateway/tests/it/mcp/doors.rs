//! Tokens, workspaces, origins, versions and messages that are none.

use super::{HEADERS, NEWEST, call, newest, newest_headers, question, speak, use_tool, waiting};
use crate::house::{House, Setup};
use serde_json::{Value, json};
use trellis_domain::Workspace;
use trellis_gateway::{Access, Identity, Token};

fn initialize(version: &str) -> Value {
    let client = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": client});
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
}

#[tokio::test]
async fn every_version_is_agreed_on_without_a_session() {
    let house = House::with(waiting()).await;
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let reply = house.raw("POST", "/mcp", HEADERS, initialize(version).to_string().as_bytes()).await;
        let reply = String::from_utf8(reply).unwrap();
        assert!(reply.contains(&format!("\"protocolVersion\":\"{version}\"")), "{reply}");
        assert!(!reply.to_lowercase().contains("mcp-session-id"), "{reply}");
    }
    let discover = newest(json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {}}), &json!({}));
    let (_, found) = speak(&house, &newest_headers(&discover), &discover).await;
    let versions = found[0]["result"]["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&json!(NEWEST)) && versions.contains(&json!("2024-11-05")), "{found:?}");
    house.shut().await;
}

#[tokio::test]
async fn whoever_has_no_token_stays_outside_and_nobody_reads_the_runs_of_others() {
    let user = |name: &str| Identity::user(name, [Workspace::new(name).unwrap()]);
    let access = Access::Tokens(vec![(Token::new("s3cret"), user("alice")), (Token::new("other"), user("bob"))]);
    let house = House::with(Setup { access, ..waiting() }).await;
    for headers in ["", "Authorization: Bearer wrong\r\n"] {
        let (status, body) = house.http("POST", "/mcp", &format!("{HEADERS}{headers}"), b"{}").await;
        assert_eq!((status, &body["error"]["data"]["type"]), (401, &json!("unauthorized")), "{body}");
        assert_eq!(house.http("GET", "/mcp", headers, b"").await.0, 401);
    }
    let (alice, bob) = ("Authorization: Bearer s3cret\r\n", "Authorization: Bearer other\r\n");
    let list = call("list_runs", &json!({}));
    assert_eq!(speak(&house, alice, &list).await.1[0]["result"]["isError"], false);
    let mut arguments = question(&json!({}));
    (arguments["wait"], arguments["pattern"]) = (json!(0), Value::Null);
    let (_, asked) = speak(&house, alice, &call("ask", &arguments)).await;
    let run =
        asked[0]["result"]["structuredContent"]["run_id"].as_str().unwrap_or_else(|| panic!("{asked:?}")).to_owned();
    for tool in ["explain_run", "list_decisions", "wait_for_run", "cancel_run"] {
        let named = call(tool, &json!({"run_id": run}));
        let (_, refused) = speak(&house, bob, &named).await;
        assert_eq!(refused[0]["result"]["isError"], true, "{tool}: {refused:?}");
    }
    assert_eq!(speak(&house, bob, &list).await.1[0]["result"]["structuredContent"]["runs"], json!([]));
    let elsewhere = house.http("POST", "/mcp?workspace=bob", &format!("{HEADERS}{alice}"), b"{}").await;
    assert_eq!(elsewhere.0, 403);
    house.shut().await;
}

#[tokio::test]
async fn pages_of_other_sites_and_names_that_lead_here_by_a_trick_are_refused() {
    let house = House::with(waiting()).await;
    for headers in ["Origin: https://evil.example\r\n", "Host: evil.example\r\n"] {
        let (status, body) = house.http("POST", "/mcp", &format!("{HEADERS}{headers}"), b"{}").await;
        assert_eq!((status, &body["error"]["data"]["type"]), (403, &json!("forbidden")), "{body}");
    }
    let own = format!("Origin: http://{}\r\n", house.address);
    assert_eq!(speak(&house, &own, &initialize("2025-06-18")).await.0, 200);
    house.shut().await;
}

#[tokio::test]
async fn what_is_no_message_is_refused_and_what_is_too_much_is_not_read() {
    let house = House::with(waiting()).await;
    let many = format!("[{}0]", "0,".repeat(300_000));
    for (method, headers, body, status) in [
        ("GET", HEADERS, "", 405),
        ("DELETE", HEADERS, "", 405),
        ("POST", "Content-Type: application/json\r\n", "{}", 406),
        ("POST", "Accept: application/json, text/event-stream\r\n", "{}", 415),
        ("POST", HEADERS, "{", 415),
        ("POST", HEADERS, many.as_str(), 413),
        ("POST", HEADERS, r#"{"jsonrpc": "2.0", "method": "notifications/initialized"}"#, 202),
    ] {
        let (found, said) = house.http(method, "/mcp", headers, body.as_bytes()).await;
        assert_eq!(found, status, "{method} {headers} {said}");
    }
    house.shut().await;
}

#[tokio::test]
async fn the_newest_version_is_held_to_its_headers() {
    let house = House::open().await;
    let message = newest(call("ask", &question(&json!({"answer": "so"}))), &json!({}));
    let (status, told) = speak(&house, &newest_headers(&message), &message).await;
    let result = &told[0]["result"];
    assert_eq!((status, &result["structuredContent"]["answer"]), (200, &json!("so")), "{told:?}");
    assert_eq!(result["resultType"], "complete");
    let (status, _) = speak(&house, &format!("MCP-Protocol-Version: {NEWEST}\r\nMcp-Method: ping\r\n"), &message).await;
    assert_eq!(status, 400);
    // An older client is not told what it does not know.
    let older = use_tool(&house, "ask", &question(&json!({"answer": "so"}))).await;
    assert_eq!(older["resultType"], Value::Null);
    house.shut().await;
}
