//! What leaves this process, and what is remembered of it.

use super::endpoint::Endpoint;
use crate::provider::Sent;
use serde_json::{Map, Value, json};
use trellis_domain::Hash;

/// The members that hold the texts of the prompt.
const TEXTS: [&str; 6] = ["messages", "system", "input", "instructions", "contents", "systemInstruction"];
/// Members that are longer than this as JSON are remembered by their hash. They are schemas and functions, which follow
/// from the configuration.
const LARGE: usize = 256;

/// The bytes of a request, and what is remembered of them.
pub(super) fn sealed(body: &Value, endpoint: &Endpoint) -> (String, Sent) {
    let bytes = body.to_string();
    let sent = Sent {
        hash: Hash::of(&bytes),
        parameters: parameters(body, endpoint.address()),
        body: endpoint.settings.keep_requests.then(|| endpoint.redacted(&bytes)),
    };
    (bytes, sent)
}

fn parameters(body: &Value, address: &str) -> Map<String, Value> {
    let members = body.as_object().into_iter().flatten().filter(|(name, _)| !TEXTS.contains(&name.as_str()));
    let small = members.map(|(name, value)| {
        let written = value.to_string();
        let value = if written.len() <= LARGE { value.clone() } else { json!({ "sha256": Hash::of(written) }) };
        (name.clone(), value)
    });
    [("address".to_owned(), json!(address))].into_iter().chain(small).collect()
}
