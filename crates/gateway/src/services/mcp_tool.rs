//! Tools on MCP servers without an agent around them. Nothing of this belongs to a run, so nothing is recorded.

use super::model::begin;
use crate::call::Call;
use crate::error::{Code, ServiceError};
use crate::inside::Gateway;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use trellis_domain::Collection;
use trellis_domain::config::{ConfigItem, ToolItem, validate};
use trellis_orchestrator::permits::Permit;
use trellis_orchestrator::ports::{CallInput, ToolCall};

/// Calls the server of an `mcp` item. Clients tell a text from a value by the name of the member.
pub(super) async fn answer(gateway: &Gateway, call: Call) -> Result<Value, ServiceError> {
    let _in_flight = begin(gateway)?;
    let (members, inside) = (call.members(), &call.inside);
    let name = members.required("name")?;
    let arguments = match call.members().text("parameters").ok().flatten() {
        // On the queues it travels as text.
        Some(text) => serde_json::from_str(text)
            .map_err(|error| ServiceError::request(format!("`parameters` are not JSON: {error}")))?,
        None => members.object("parameters")?.cloned().unwrap_or_default(),
    };
    let settings = inside.config().pin(call.workspace()).await?;
    if !settings.mcp.contains_key(name) {
        return Err(ServiceError::new(
            Code::NotFound,
            format!("there is no mcp item `{name}`; add it with tg-set-mcp-tool"),
        ));
    }
    let tool = tool(name)?;
    if let Some(why) = inside.tools().obstacle(inside.workspace(), &tool, &settings) {
        return Err(ServiceError::gateway(why));
    }
    let limits = inside.limits();
    let timeout = Duration::from_millis(limits.tool_timeout_ms);
    let wanted = ToolCall {
        scope: call.scope(),
        collection: Collection::default(),
        settings,
        tool,
        arguments,
        idempotency_key: inside.world().fresh_id(),
        step: None,
        document: None,
        timeout,
        max_reply_bytes: limits.max_reply_bytes,
        labels: None,
        permit: Permit::default(),
        input: CallInput::Nobody,
    };
    let brought = tokio::time::timeout(timeout, inside.tools().call(wanted)).await;
    let late = |_| ServiceError::gateway(format!("the tool did not answer within {} s", timeout.as_secs()));
    let brought = brought.map_err(late)?.map_err(|error| ServiceError::gateway(error.reason))?;
    let value = Some(&brought.text).filter(|text| text.starts_with(['{', '[']));
    let value = value.and_then(|text| serde_json::from_str::<Value>(text).ok());
    Ok(value.map_or_else(|| json!({ "text": brought.text }), |value| json!({ "object": value })))
}

/// The tool that an `mcp` item is, if nothing more is said about it.
fn tool(name: &str) -> Result<Arc<ToolItem>, ServiceError> {
    let item = json!({ "type": "mcp-tool", "mcp-tool": name }).to_string();
    match validate("tool", name, &item) {
        Ok(ConfigItem::Tool(tool)) => Ok(tool),
        Ok(_) | Err(_) => Err(ServiceError::request(format!("`{name}` can be no tool"))),
    }
}
