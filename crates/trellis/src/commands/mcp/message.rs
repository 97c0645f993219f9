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
    /// It is none of the protocol's messages. This is said to it.
    Wrong(String),
}

/// Messages of one batch.
const MOST_TOGETHER: usize = 256;

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

/// What a line says: one message, or those of a batch. Servers take them one by one, so that is how they are passed on, and
/// each is answered by itself.
pub(super) fn read(line: &str) -> Vec<ClientLine> {
    const UNREADABLE: i32 = -32700;
    if line.trim().is_empty() {
        return Vec::new();
    }
    match serde_json::from_str::<Value>(line) {
        Err(error) => vec![ClientLine::Wrong(error_line(&Value::Null, UNREADABLE, &format!("not JSON: {error}")))],
        Ok(Value::Array(batch)) if batch.is_empty() => vec![invalid(&Value::Null, "the batch is empty")],
        Ok(Value::Array(batch)) if batch.len() > MOST_TOGETHER => {
            vec![invalid(&Value::Null, &format!("a batch has at most {MOST_TOGETHER} messages"))]
        }
        Ok(Value::Array(batch)) => batch.iter().map(|message| read_one(message, message.to_string())).collect(),
        Ok(message) => vec![read_one(&message, line.to_owned())],
    }
}

fn invalid(id: &Value, why: &str) -> ClientLine {
    const INVALID: i32 = -32600;
    ClientLine::Wrong(error_line(id, INVALID, why))
}

fn error_line(id: &Value, code: i32, why: &str) -> String {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": why}}).to_string()
}

fn read_one(message: &Value, text: String) -> ClientLine {
    let (id, params) = (&message["id"], &message["params"]);
    let Some(method) = message["method"].as_str() else {
        // What a client answers to a server that asked nothing.
        let is_answer = message.get("result").is_some() || message.get("error").is_some();
        return if is_answer { ClientLine::Ignored } else { invalid(id, "the message has no `method`") };
    };
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
        text,
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
        error_line(&self.id, INTERNAL, why)
    }

    /// Whether a line is the answer to this, and not only said on the way there.
    pub(super) fn is_answered_by(&self, line: &str) -> bool {
        let Ok(said) = serde_json::from_str::<Value>(line) else { return false };
        let is_answer = said.get("result").is_some() || said.get("error").is_some();
        is_answer && said["id"] == self.id
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
        match read(&message.to_string()).remove(0) {
            ClientLine::Request(request) => *request,
            other @ (ClientLine::Cancel(_) | ClientLine::Ignored | ClientLine::Wrong(_)) => panic!("{other:?}"),
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
        assert_eq!(read(&cancelled.to_string()), [ClientLine::Cancel("\"7\"".to_owned())]);
        assert_eq!(read(" "), []);
        for line in [r#"{"method": "notifications/initialized"}"#, r#"{"id": 1, "result": {}}"#] {
            assert_eq!(read(line), [ClientLine::Ignored], "{line}");
        }
        assert_eq!(agreed_version(r#"{"result": {"protocolVersion": "2025-11-25"}}"#).as_deref(), Some("2025-11-25"));
    }

    #[test]
    fn a_batch_is_taken_apart_and_what_is_no_message_is_told_so() {
        let batch = r#"[{"id": 1, "method": "ping"}, {"method": "notifications/initialized"}, {"id": 2}]"#;
        let read_apart = read(batch);
        let [ClientLine::Request(first), ClientLine::Ignored, ClientLine::Wrong(last)] = read_apart.as_slice() else {
            panic!("{read_apart:?}")
        };
        assert_eq!(
            (&first.id, serde_json::from_str(&first.text).ok()),
            (&json!(1), Some(json!({"id": 1, "method": "ping"})))
        );
        let last: Value = serde_json::from_str(last).unwrap();
        assert_eq!((&last["id"], &last["error"]["code"]), (&json!(2), &json!(-32600)));
        let many = format!("[{}0]", "0,".repeat(MOST_TOGETHER));
        for (line, code) in [("{", -32700), ("[]", -32600), ("7", -32600), (many.as_str(), -32600)] {
            let told = read(line);
            let [ClientLine::Wrong(told)] = told.as_slice() else { panic!("{line}: {told:?}") };
            let told: Value = serde_json::from_str(told).unwrap();
            assert_eq!((&told["id"], &told["error"]["code"]), (&Value::Null, &json!(code)), "{line}");
        }
    }

    #[test]
    fn only_a_result_or_an_error_of_the_same_id_is_an_answer() {
        let ping = request(&json!({"id": "a", "method": "ping"}));
        assert!(
            ping.is_answered_by(r#"{"id": "a", "result": {}}"#) && ping.is_answered_by(r#"{"id": "a", "error": {}}"#)
        );
        for line in
            [r#"{"method": "notifications/progress"}"#, r#"{"id": "b", "result": {}}"#, r#"{"id": "a", "method": "m"}"#]
        {
            assert!(!ping.is_answered_by(line), "{line}");
        }
    }
}
