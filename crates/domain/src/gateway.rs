//! The gateway's dialect: compact JSON that leaves out what is not set.

use crate::message::{AgentRequest, AgentResponse, ErrorInfo};
use crate::rdf::Quad;
use serde::Serialize;
use serde_json::Value;

/// A request as a client sends it: the question and what differs from the defaults.
pub fn request(request: &AgentRequest) -> Value {
    let wide = crate::broker::request(request);
    let usual = crate::broker::request(&AgentRequest::default());
    let Value::Object(members) = wide else { return wide };
    let set = members.into_iter().filter(|(name, value)| name == "question" || usual.get(name) != Some(value));
    Value::Object(set.collect())
}

/// A response as the gateway forwards it: what is not set is left out, the two end flags are always there. Written
/// straight from the message, because explanations are long and there are many.
///
/// ```
/// use trellis_domain::{gateway, message::AgentResponse};
///
/// let response = AgentResponse { message_type: "thought".into(), content: "hm".into(), ..Default::default() };
/// assert_eq!(
///     serde_json::to_string(&gateway::Compact::from(&response))?,
///     r#"{"message_type":"thought","content":"hm","end_of_message":false,"end_of_dialog":false}"#
/// );
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Serialize)]
pub struct Compact<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    message_type: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    content: &'a str,
    end_of_message: bool,
    end_of_dialog: bool,
    #[serde(skip_serializing_if = "str::is_empty")]
    message_id: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    session_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    explain_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    explain_graph: Option<&'a str>,
    #[serde(skip_serializing_if = "<[Quad]>::is_empty")]
    explain_triples: &'a [Quad],
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a ErrorInfo>,
    #[serde(skip_serializing_if = "Option::is_none")]
    in_token: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    out_token: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
}

impl<'a> From<&'a AgentResponse> for Compact<'a> {
    fn from(response: &'a AgentResponse) -> Self {
        Self {
            message_type: &response.message_type,
            content: &response.content,
            end_of_message: response.end_of_message,
            end_of_dialog: response.end_of_dialog,
            message_id: &response.message_id,
            session_id: &response.session_id,
            explain_id: response.explain_id.as_deref().filter(|id| !id.is_empty()),
            explain_graph: response.explain_graph.as_deref(),
            explain_triples: &response.explain_triples,
            error: response.error.as_ref(),
            in_token: response.in_token,
            out_token: response.out_token,
            model: response.model.as_deref(),
        }
    }
}

/// The same as a value, for whoever adds to it.
pub fn response(response: &AgentResponse) -> Value {
    serde_json::to_value(Compact::from(response)).expect("messages are always JSON")
}
