//! What a model's reply says, once read.

use crate::ToolName;
use crate::reading::ToolUse;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One ReAct reply: the model acts, answers, or wrote something that cannot be read.
///
/// ```
/// use trellis_domain::reply::ReactReply;
///
/// let reply = ReactReply::Answer { thought: "Enough is known.".into(), answer: "42".into() };
/// assert_eq!(reply.thought(), "Enough is known.");
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ReactReply {
    Action {
        thought: String,
        tool: ToolName,
        arguments: Map<String, Value>,
        /// What is called besides, at the same time.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        also: Vec<ToolUse>,
    },
    Answer {
        thought: String,
        answer: String,
    },
    /// The reason is written for the model: it is shown to it so that it can correct itself.
    Unreadable {
        thought: String,
        reason: String,
    },
}

impl ReactReply {
    pub fn thought(&self) -> &str {
        match self {
            Self::Action { thought, .. } | Self::Answer { thought, .. } | Self::Unreadable { thought, .. } => thought,
        }
    }
}

/// The JSON in a reply: the whole reply, or the first block of code in it, or the last object that stands in its text,
/// or the last list if there is no object. Models like to think aloud, to wrap and to explain.
///
/// ```
/// use trellis_domain::reply::json_in;
///
/// assert_eq!(json_in("Sure!\n```json\n[1]\n```\nDone.").unwrap(), serde_json::json!([1]));
/// assert_eq!(json_in("I weigh {x} and [1], so {\"a\": [2]}, I think.").unwrap(), serde_json::json!({"a": [2]}));
/// assert!(json_in("no idea").unwrap_err().starts_with("it is not JSON"));
/// ```
pub fn json_in(raw: &str) -> Result<Value, String> {
    let whole = serde_json::from_str(raw);
    let read = match whole {
        Ok(value) => Ok(value),
        Err(error) => {
            let block = first_block(raw).and_then(|block| serde_json::from_str(block).ok());
            block.or_else(|| last_in_text(raw)).ok_or(error)
        }
    };
    read.map_err(|error| format!("it is not JSON: {error}"))
}

/// Looks at every bracket that may begin a value, at most so many: a reply of brackets is no reason to look for ever.
fn last_in_text(raw: &str) -> Option<Value> {
    const LOOKS: usize = 2_000;
    let (mut object, mut list) = (None, None);
    let mut rest = raw;
    for _ in 0..LOOKS {
        let Some(start) = rest.find(['{', '[']) else { break };
        let from = &rest[start..];
        let mut values = serde_json::Deserializer::from_str(from).into_iter::<Value>();
        rest = match values.next() {
            Some(Ok(value)) => {
                if value.is_object() {
                    object = Some(value);
                } else {
                    list = Some(value);
                }
                &from[values.byte_offset()..]
            }
            Some(Err(_)) | None => &from[1..],
        };
    }
    object.or(list)
}

fn first_block(raw: &str) -> Option<&str> {
    let (_, rest) = raw.split_once("```")?;
    let (block, _) = rest.split_once("```").unwrap_or((rest, ""));
    let label = block.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(0);
    // `true` right behind the fence is a value and not the name of a language.
    Some(if block[label..].trim().is_empty() { block } else { &block[label..] })
}
