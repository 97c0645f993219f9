//! What a model's reply says, once read, as it is recorded.

use crate::ToolName;
use crate::document::Payload;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What came of a reply, in words that hold for every pattern. What a value means is known to the pattern alone that
/// asked for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Reading {
    /// It calls a tool, or several at once.
    Acted {
        tool: ToolName,
        arguments: Map<String, Value>,
        /// What it calls besides.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        also: Vec<ToolUse>,
        /// What the pattern remembers of it besides; null if nothing.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        value: Value,
    },
    /// It is a text: the answer of the session, or of a part of it.
    Answered {
        text: Payload,
        #[serde(default, skip_serializing_if = "Value::is_null")]
        value: Value,
    },
    /// It decides something, under the pattern's own schema.
    Decided { value: Value },
    /// It could not be used; the reason is shown to the model.
    Unusable { reason: String },
    /// There is no reply: the call failed for good.
    Failed { reason: String },
}

/// A tool that a reply calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolUse {
    pub tool: ToolName,
    pub arguments: Map<String, Value>,
}

impl Reading {
    pub fn acted(tool: impl Into<ToolName>, arguments: Map<String, Value>) -> Self {
        Self::Acted { tool: tool.into(), arguments, also: Vec::new(), value: Value::Null }
    }

    pub fn answered(text: impl Into<Payload>) -> Self {
        Self::Answered { text: text.into(), value: Value::Null }
    }

    /// A decision; null if the value cannot be written as JSON, which no pattern's can.
    pub fn decided(value: impl Serialize) -> Self {
        Self::Decided { value: serde_json::to_value(value).unwrap_or_default() }
    }

    /// Why there is nothing to go on with, if there is not.
    pub fn problem(&self) -> Option<&str> {
        match self {
            Self::Unusable { reason } | Self::Failed { reason } => Some(reason),
            Self::Acted { .. } | Self::Answered { .. } | Self::Decided { .. } => None,
        }
    }

    /// The tools that it calls, with their arguments, in their order.
    pub fn calls(&self) -> impl Iterator<Item = (&ToolName, &Map<String, Value>)> {
        let also = if let Self::Acted { also, .. } = self { also.as_slice() } else { &[] };
        self.call().into_iter().chain(also.iter().map(|ToolUse { tool, arguments }| (tool, arguments)))
    }

    /// The tool that it calls first, with its arguments.
    pub fn call(&self) -> Option<(&ToolName, &Map<String, Value>)> {
        if let Self::Acted { tool, arguments, .. } = self { Some((tool, arguments)) } else { None }
    }

    /// The text that it is.
    pub fn text(&self) -> Option<&Payload> {
        if let Self::Answered { text, .. } = self { Some(text) } else { None }
    }

    /// What it decides, read as the pattern's own type. None if it is no decision, or another one.
    ///
    /// ```
    /// use serde_json::json;
    /// use trellis_domain::reading::Reading;
    ///
    /// let reading = Reading::Decided { value: json!(["keep"]) };
    /// assert_eq!(reading.decision::<Vec<String>>(), Some(vec!["keep".to_owned()]));
    /// assert_eq!(reading.decision::<u32>(), None);
    /// ```
    pub fn decision<'v, T: Deserialize<'v>>(&'v self) -> Option<T> {
        if let Self::Decided { value } = self { T::deserialize(value).ok() } else { None }
    }
}

/// How the note ends that tells of something cut off by a limit.
const LEFT_OUT: &str = ", the rest was left out";

/// What is noted of a reply that named more than a limit allows.
///
/// ```
/// use trellis_domain::reading::{is_left_out, left_out_note};
///
/// assert_eq!(left_out_note("20 goals", 8), "20 goals were named; the limit is 8, the rest was left out");
/// assert!(is_left_out(&left_out_note("20 goals", 8)) && !is_left_out("entry 3 has no goal"));
/// ```
pub fn left_out_note(named: &str, limit: impl std::fmt::Display) -> String {
    format!("{named} were named; the limit is {limit}{LEFT_OUT}")
}

/// Whether a note says that a limit cut something off.
pub fn is_left_out(note: &str) -> bool {
    note.ends_with(LEFT_OUT)
}

/// A step or finding that an answer says it rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Citation {
    pub index: u32,
    /// The model's own word for how sure it is: a claim, not a fact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<String>,
}
