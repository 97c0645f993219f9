//! Bodies of older formats, brought into the form that this program works with. What is stored stays as it is.

use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The newest record format. Older ones keep loading.
pub const FORMAT: u16 = 4;

/// Since this format a reading says in neutral words what came of a reply.
pub(crate) const NEUTRAL_READINGS: u16 = 4;

/// Brings a body of that format up to date.
pub(crate) fn upgrade(format: u16, body: &mut Value) {
    if format >= NEUTRAL_READINGS {
        return;
    }
    let Some(body) = body.as_object_mut() else { return };
    let Some(Value::Object(reading)) = body.get_mut("reading") else { return };
    let (neutral, repaired) = neutral(std::mem::take(reading));
    *reading = neutral;
    if let Some(Value::Array(notes)) = repaired {
        let all = body.entry("mended").or_insert_with(|| json!([]));
        all.as_array_mut().into_iter().for_each(|all| all.extend(notes.iter().cloned()));
    }
}

/// Whether a stored body has a reading in words that there were not in its format.
pub(crate) fn has_later_words(format: u16, body: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct OldBody {
        reading: OldKind,
    }
    #[derive(Deserialize)]
    struct OldKind {
        kind: String,
    }
    let later = |kind: &str| ["acted", "answered", "decided", "unusable"].contains(&kind);
    format < NEUTRAL_READINGS && serde_json::from_slice::<OldBody>(body).is_ok_and(|body| later(&body.reading.kind))
}

/// The reading in neutral words, and what had to be put right in the reply.
fn neutral(mut old: Map<String, Value>) -> (Map<String, Value>, Option<Value>) {
    let repaired = old.remove("mended");
    let mut take = |name: &str| old.remove(name).unwrap_or_default();
    let kind = take("kind");
    let members = match kind.as_str() {
        Some("action") => vec![("kind", "acted".into()), ("tool", take("tool")), ("arguments", take("arguments"))],
        Some("answer") => vec![("kind", "answered".into()), ("text", take("answer"))],
        Some("chosen") => vec![("kind", "decided".into()), ("value", take("name"))],
        Some("plan" | "revision") => vec![("kind", "decided".into()), ("value", json!({ "steps": take("steps") }))],
        Some("goals") => vec![("kind", "decided".into()), ("value", json!({ "goals": take("goals") }))],
        Some("review") => vec![("kind", "decided".into()), ("value", json!({ "goals": take("again") }))],
        Some("unreadable") => vec![("kind", "unusable".into()), ("reason", take("reason"))],
        Some("step") => step(take),
        Some(_) | None => return (std::iter::once(("kind".to_owned(), kind)).chain(old).collect(), repaired),
    };
    (members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(), repaired)
}

/// A plan step: one tool, or an answer without any.
fn step(mut take: impl FnMut(&str) -> Value) -> Vec<(&'static str, Value)> {
    let surprising = take("surprising") == true;
    let value = if surprising { json!({ "surprising": true }) } else { Value::Null };
    let (tool, arguments, answer) = (take("tool"), take("arguments"), take("answer"));
    if tool.is_string() {
        let arguments = if arguments.is_object() { arguments } else { json!({}) };
        return vec![("kind", "acted".into()), ("tool", tool), ("arguments", arguments), ("value", value)];
    }
    let text = if answer.is_null() { "".into() } else { answer };
    vec![("kind", "answered".into()), ("text", text), ("value", value)]
}
