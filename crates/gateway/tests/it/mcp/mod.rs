//! `/mcp`: what clients of the Model Context Protocol meet, as bytes on the wire.

mod asking;
mod checked;
mod deciding;
mod doors;
mod memory;
mod tasks;

use crate::house::{House, Setup};
use serde_json::{Value, json};
use trellis_domain::config::StoredItem;
use trellis_domain::{Caller, Workspace};

pub(super) const NEWEST: &str = "2026-07-28";
const HEADERS: &str = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";

fn waiting() -> Setup {
    Setup { at_work: false, ..Setup::default() }
}

/// A call of a tool, as clients of older versions make it.
fn call(tool: &str, arguments: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
}

/// A question that is played.
fn question(scene: &Value) -> Value {
    json!({"question": scene.to_string(), "pattern": "react"})
}

/// The same as clients of the newest version send it, with what they can do.
fn newest(mut message: Value, extensions: &Value) -> Value {
    message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(NEWEST);
    message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({ "extensions": extensions });
    message["params"]["_meta"]["io.modelcontextprotocol/clientInfo"] = json!({"name": "test", "version": "1"});
    message
}

fn with_progress(mut message: Value) -> Value {
    message["params"]["_meta"]["progressToken"] = json!("p1");
    message
}

/// The headers that a message of the newest version needs.
fn newest_headers(message: &Value) -> String {
    let method = message["method"].as_str().unwrap();
    let name = message["params"]["name"].as_str().or_else(|| message["params"]["taskId"].as_str());
    let name = name.map(|name| format!("Mcp-Name: {name}\r\n")).unwrap_or_default();
    format!("MCP-Protocol-Version: {NEWEST}\r\nMcp-Method: {method}\r\n{name}")
}

/// Status and messages of a reply.
async fn speak(house: &House, headers: &str, message: &Value) -> (u16, Vec<Value>) {
    let reply = house.raw("POST", "/mcp", &format!("{HEADERS}{headers}"), message.to_string().as_bytes()).await;
    let reply = String::from_utf8(reply).unwrap();
    let status = reply.split(' ').nth(1).unwrap().parse().unwrap();
    let body = reply.split_once("\r\n\r\n").unwrap().1;
    let lines = body.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
    (status, lines.filter_map(|line| serde_json::from_str(line).ok()).filter(Value::is_object).collect())
}

/// What a tool brings to a caller who needs no token.
async fn use_tool(house: &House, tool: &str, arguments: &Value) -> Value {
    let (status, messages) = speak(house, "", &call(tool, arguments)).await;
    assert_eq!((status, messages.len()), (200, 1), "{messages:?}");
    let result = messages[0]["result"].clone();
    assert!(result.is_object(), "{messages:?}");
    result
}

/// The words of a tool that refuses.
async fn refusal(house: &House, tool: &str, arguments: &Value) -> String {
    let result = use_tool(house, tool, arguments).await;
    assert_eq!(result["isError"], true, "{result}");
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

/// A server whose tool is called only with somebody's approval.
async fn careful() -> House {
    let house = House::open().await;
    let tool = json!({"type": "text-completion", "name": "search", "description": "finds", "requires-approval": true});
    let item = StoredItem { kind: "tool".to_owned(), key: "search".to_owned(), value: tool.to_string() };
    let config = &house.bench.orchestrator.ports.config;
    config.put(&Workspace::default(), vec![item], Caller::program()).await.unwrap();
    house
}
