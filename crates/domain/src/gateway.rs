//! The gateway's dialect: compact JSON that leaves out what is not set.

use crate::message::{AgentRequest, AgentResponse};
use serde_json::{Map, Value, json};

/// A request as a client sends it: the question and what differs from the defaults.
pub fn request(request: &AgentRequest) -> Value {
    let wide = crate::broker::request(request);
    let usual = crate::broker::request(&AgentRequest::default());
    let Value::Object(members) = wide else { return wide };
    let set = members.into_iter().filter(|(name, value)| name == "question" || usual.get(name) != Some(value));
    Value::Object(set.collect())
}

/// A response as the gateway forwards it. The two end flags are always there.
///
/// ```
/// use trellis_domain::{gateway, message::AgentResponse};
///
/// let response = AgentResponse { message_type: "thought".into(), content: "hm".into(), ..Default::default() };
/// assert_eq!(
///     gateway::response(&response).to_string(),
///     r#"{"message_type":"thought","content":"hm","end_of_message":false,"end_of_dialog":false}"#
/// );
/// ```
pub fn response(response: &AgentResponse) -> Value {
    let mut members = Map::new();
    let mut put = |name: &str, value: Value| members.insert(name.to_owned(), value);
    let text = |text: &str| (!text.is_empty()).then(|| json!(text));
    if let Some(value) = text(&response.message_type) {
        put("message_type", value);
    }
    if let Some(value) = text(&response.content) {
        put("content", value);
    }
    put("end_of_message", json!(response.end_of_message));
    put("end_of_dialog", json!(response.end_of_dialog));
    if let Some(value) = text(&response.message_id) {
        put("message_id", value);
    }
    if let Some(value) = text(&response.session_id) {
        put("session_id", value);
    }
    if let Some(id) = response.explain_id.as_deref().and_then(text) {
        put("explain_id", id);
    }
    if let Some(graph) = &response.explain_graph {
        put("explain_graph", json!(graph));
    }
    if !response.explain_triples.is_empty() {
        put("explain_triples", json!(response.explain_triples));
    }
    if let Some(error) = &response.error {
        put("error", json!(error));
    }
    if let Some(count) = response.in_token {
        put("in_token", json!(count));
    }
    if let Some(count) = response.out_token {
        put("out_token", json!(count));
    }
    if let Some(model) = &response.model {
        put("model", json!(model));
    }
    Value::Object(members)
}
