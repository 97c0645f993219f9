//! Tools of services that somebody wrote for TrustGraph: the same requests and replies, over HTTP.
//!
//! How a request gets there is one function, [`replies`]: queues of a broker would be another one.

use crate::http::{Filled, Http, Template};
use serde_json::{Map, Value, json};
use trellis_domain::config::{ONLY_QUEUES, Settings, ToolItem, ToolServiceItem};
use trellis_orchestrator::ports::{ToolCall, ToolError, ToolOutput};

/// The event streams' name of what carries a reply.
const DATA: &str = "data:";

/// Why a tool cannot be called here, as far as that shows before it is.
pub(crate) fn obstacle(http: &Http, tool: &ToolItem, settings: &Settings) -> Option<String> {
    let service = service(tool, settings);
    service.and_then(template).and_then(|template| http.check(&template).and(request(&template, Value::Null))).err()
}

pub(crate) async fn call(http: &Http, call: &ToolCall) -> Result<ToolOutput, ToolError> {
    let service = service(&call.tool, &call.settings).map_err(ToolError::new)?;
    let config = service.config_params.iter().filter_map(|(name, _)| Some((name, call.tool.settings.get(name)?)));
    let config: Map<_, _> = config.map(|(name, value)| (name.clone(), value.clone())).collect();
    // Both are texts that hold JSON, as on the queues.
    let body = json!({ "config": json!(config).to_string(), "arguments": json!(call.arguments).to_string() });
    let text = replies(http, service, body, call).await.and_then(|text| joined(&text)).map_err(ToolError::new)?;
    Ok(ToolOutput { text, ..ToolOutput::default() })
}

fn service<'s>(tool: &ToolItem, settings: &'s Settings) -> Result<&'s ToolServiceItem, String> {
    let key = tool.setting("service").unwrap_or_default();
    settings.tool_services.get(key).ok_or_else(|| format!("there is no tool-service `{key}`"))
}

/// Sends a request, and gives its replies as they came.
async fn replies(http: &Http, service: &ToolServiceItem, body: Value, call: &ToolCall) -> Result<String, String> {
    let filled = request(&template(service)?, body)?;
    let received = http.exchange(filled, call, &mut |line| is_last(line)).await?;
    if received.is_cut {
        return Err("the service sent more than 1 MB, which is not read".to_owned());
    }
    Ok(received.text)
}

fn template(service: &ToolServiceItem) -> Result<Template, String> {
    let Some(url) = &service.url else {
        return Err(format!("{ONLY_QUEUES}; its item needs a `url` that takes the same requests over HTTP"));
    };
    let settings = json!({ "url": url, "method": "POST", "headers": service.headers });
    let settings = settings.as_object().cloned().unwrap_or_default();
    Template::read(&settings).map_err(|(_, why)| format!("its service cannot be called: {why}"))
}

/// What is asked is in the body: nothing that a model says gets into the address or the headers.
fn request(template: &Template, body: Value) -> Result<Filled, String> {
    let filled = template.fill(&Map::new());
    let filled = filled.map_err(|_| "the `url` and `headers` of a tool-service have no places for arguments")?;
    Ok(Filled { body: Some(body), ..filled })
}

fn is_last(line: &str) -> bool {
    let reply = serde_json::from_str::<Value>(line.strip_prefix(DATA).unwrap_or(line));
    reply.is_ok_and(|reply| reply["end_of_stream"] == true)
}

/// The text of all replies up to the last one. They come as one object, as objects one after the other, or as events.
fn joined(received: &str) -> Result<String, String> {
    let events: Vec<_> = received.lines().filter_map(|line| line.strip_prefix(DATA)).collect();
    let is_stream = !received.trim_start().starts_with('{') && !events.is_empty();
    let received = if is_stream { events.join("\n") } else { received.to_owned() };
    let (mut text, mut count) = (String::new(), 0);
    for reply in serde_json::Deserializer::from_str(&received).into_iter::<Value>() {
        let reply = reply.map_err(|error| unreadable(&error.to_string()))?;
        let Value::Object(reply) = reply else { return Err(unreadable("a reply is no object")) };
        if let Some(error) = reply.get("error").filter(|error| !error.is_null()) {
            let message = error.get("message").and_then(Value::as_str).filter(|message| !message.is_empty());
            return Err(message.map_or_else(|| error.to_string(), str::to_owned));
        }
        match reply.get("response") {
            None | Some(Value::Null) => {}
            Some(Value::String(piece)) => text.push_str(piece),
            Some(other) => text.push_str(&other.to_string()),
        }
        count += 1;
        if reply.get("end_of_stream") == Some(&Value::Bool(true)) {
            return Ok(text);
        }
    }
    match count {
        0 => Err(unreadable("there is none")),
        // Whoever gives one reply need not say that it is the last.
        1 => Ok(text),
        _ => Err("the service stopped before the end of its replies".to_owned()),
    }
}

fn unreadable(why: &str) -> String {
    format!(
        "the replies of the service cannot be read: {why}; they are objects with `response`, `error`, `end_of_stream`"
    )
}

#[cfg(test)]
#[path = "service_tests.rs"]
mod tests;
