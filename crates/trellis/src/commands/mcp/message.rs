//! Messages of a client, as far as whoever passes them on has to understand them. Pure.

use serde_json::{Value, json};

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// What is to be done with a line of a client.
#[derive(Debug, PartialEq)]
pub(super) enum ClientLine {
    /// It is to be answered.
    Request(Box<Request>),
    /// The client does not wait for this request any more.
    Cancel(String),
    /// A server without sessions has no use for it.
    Ignored,
}

#[derive(Debug, PartialEq)]
pub(super) struct Request {
    /// The id as it is written.
    pub(super) id: Value,
    pub(super) method: String,
    /// What HTTP wants to know of it besides the version.
    name: Option<String>,
    version: Option<String>,
    pub(super) text: String,
}

/// The id of a request as a key.
pub(super) fn key(id: &Value) -> String {
    id.to_string()
}

pub(super) fn read(line: &str) -> ClientLine {
    let Ok(message) = serde_json::from_str::<Value>(line) else { return ClientLine::Ignored };
    let (Some(method), params) = (message["method"].as_str(), &message["params"]) else { return ClientLine::Ignored };
    let id = &message["id"];
    if id.is_null() {
        let wanted = &params["requestId"];
        return match method {
            "notifications/cancelled" if !wanted.is_null() => ClientLine::Cancel(key(wanted)),
            _ => ClientLine::Ignored,
        };
    }
    let name = match method {
        "tools/call" | "prompts/get" => &params["name"],
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => &params["uri"],
        "tasks/get" | "tasks/update" | "tasks/cancel" => &params["taskId"],
        _ => &Value::Null,
    };
    ClientLine::Request(Box::new(Request {
        id: id.clone(),
        method: method.to_owned(),
        name: name.as_str().map(str::to_owned),
        version: params["_meta"][VERSION].as_str().map(str::to_owned),
        text: line.to_owned(),
    }))
}

impl Request {
    /// The headers that say the same as the message; what the version asks for is that of the message, else the one that was
    /// agreed on.
    pub(super) fn headers(&self, agreed: Option<&str>) -> Vec<(&'static str, String)> {
        // What a header cannot hold is left out, and the server says so.
        let plain = |text: &&str| text.bytes().all(|byte| (0x20..0x7f).contains(&byte));
        let given = |name, value: Option<&str>| value.filter(plain).map(|value| (name, value.to_owned()));
        let version = if self.method == "initialize" { None } else { self.version.as_deref().or(agreed) };
        let all = [
            given("mcp-protocol-version", version),
            given("mcp-method", Some(&self.method)),
            given("mcp-name", self.name.as_deref()),
        ];
        all.into_iter().flatten().collect()
    }

    /// What is said if there is no answer.
    pub(super) fn failed(&self, why: &str) -> String {
        const INTERNAL: i32 = -32603;
        json!({"jsonrpc": "2.0", "id": self.id, "error": {"code": INTERNAL, "message": why}}).to_string()
    }
}

/// The version that a reply to `initialize` agrees on.
pub(super) fn agreed_version(reply: &str) -> Option<String> {
    let reply: Value = serde_json::from_str(reply).ok()?;
    reply["result"]["protocolVersion"].as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(message: &Value) -> Request {
        match read(&message.to_string()) {
            ClientLine::Request(request) => *request,
            other @ (ClientLine::Cancel(_) | ClientLine::Ignored) => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_request_has_the_headers_that_say_what_it_says() {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "ask"}});
        let expected = |version: &str| {
            let all = [("mcp-protocol-version", version), ("mcp-method", "tools/call"), ("mcp-name", "ask")];
            all.map(|(name, value)| (name, value.to_owned())).to_vec()
        };
        assert_eq!(request(&call).headers(Some("2025-06-18")), expected("2025-06-18"));
        assert_eq!(request(&call).headers(None), expected("")[1..]);
        let mut newer = call;
        newer["params"]["_meta"] = json!({VERSION: "2026-07-28"});
        assert_eq!(request(&newer).headers(Some("2025-06-18")), expected("2026-07-28"));
        let odd = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "a\r\nb"}});
        assert_eq!(request(&odd).headers(None), [("mcp-method", "tools/call".to_owned())]);
        let first = json!({"jsonrpc": "2.0", "id": "a", "method": "initialize", "params": {}});
        assert_eq!(request(&first).headers(Some("2025-06-18")), [("mcp-method", "initialize".to_owned())]);
    }

    #[test]
    fn only_requests_are_passed_on_and_their_cancellations_understood() {
        let cancelled = json!({"method": "notifications/cancelled", "params": {"requestId": "7"}});
        assert_eq!(read(&cancelled.to_string()), ClientLine::Cancel("\"7\"".to_owned()));
        for line in ["", "{", "[]", r#"{"method": "notifications/initialized"}"#, r#"{"id": 1, "result": {}}"#] {
            assert_eq!(read(line), ClientLine::Ignored, "{line}");
        }
        assert_eq!(agreed_version(r#"{"result": {"protocolVersion": "2025-11-25"}}"#).as_deref(), Some("2025-11-25"));
    }
}
