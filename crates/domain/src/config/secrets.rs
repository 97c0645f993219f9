//! Configuration snapshots without the secrets in them, for those who check a run elsewhere.

use super::settings::StoredSnapshot;
use serde_json::Value;

/// What stands in the place of a secret.
const REDACTED: &str = "[redacted]";

/// The kinds of items that say how to reach others, and so with which keys.
const KINDS: [&str; 3] = ["mcp", "tool", "tool-service"];

/// What is in the name of a member that holds a secret, such as `auth-token`.
const WORDS: [&str; 8] =
    ["token", "secret", "password", "passphrase", "api-key", "apikey", "credential", "authorization"];

/// The snapshot without its secrets. None if there are none in it, or if it cannot be read.
///
/// ```
/// use trellis_domain::config::without_secrets;
///
/// let item = r#"{"type":"mcp","key":"m","value":"{\"url\":\"https://a.example\",\"auth-token\":\"s3cret\"}"}"#;
/// let text = without_secrets(&format!(r#"{{"version":1,"items":[{item}]}}"#)).unwrap();
/// assert!(!text.contains("s3cret") && text.contains("https://a.example"));
/// assert_eq!(without_secrets(&text), None);
/// ```
pub fn without_secrets(snapshot: &str) -> Option<String> {
    let mut snapshot: StoredSnapshot = serde_json::from_str(snapshot).ok()?;
    let mut found = false;
    for item in snapshot.items.iter_mut().filter(|item| KINDS.contains(&item.kind.as_str())) {
        let value = redacted(&item.value);
        found |= value != item.value;
        item.value = value;
    }
    found.then(|| serde_json::to_string(&snapshot).expect("texts and numbers are always JSON"))
}

/// A value as it was if nothing in it is secret. Nobody knows what is in a value that cannot be read.
fn redacted(text: &str) -> String {
    let Ok(value) = serde_json::from_str::<Value>(text) else { return REDACTED.to_owned() };
    let mut other = value.clone();
    members(&mut other);
    if other == value { text.to_owned() } else { other.to_string() }
}

fn members(value: &mut Value) {
    match value {
        Value::Object(object) => {
            for (name, member) in object {
                if is_secret(name) {
                    blank(member);
                } else if let Some(url) = member.as_str().filter(|_| name == "url") {
                    *member = without_credentials(url).into();
                } else {
                    members(member);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(members),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn is_secret(name: &str) -> bool {
    let name = name.to_lowercase().replace('_', "-");
    WORDS.iter().any(|word| name.contains(word))
}

/// Something of the same kind: whether an item is valid must not depend on its secrets.
fn blank(value: &mut Value) {
    match value {
        Value::String(text) => REDACTED.clone_into(text),
        Value::Number(_) => *value = 0.into(),
        Value::Array(items) => items.iter_mut().for_each(blank),
        Value::Object(object) => object.values_mut().for_each(blank),
        Value::Null | Value::Bool(_) => {}
    }
}

/// An address without user, password and query.
fn without_credentials(url: &str) -> String {
    let (address, query) = url.split_once('?').map_or((url, ""), |(address, _)| (address, "?[redacted]"));
    let (scheme, rest) = address.split_once("://").unwrap_or(("", address));
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    match host.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}://{REDACTED}@{host}{path}{query}"),
        None => format!("{address}{query}"),
    }
}
