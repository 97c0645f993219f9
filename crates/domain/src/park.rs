//! A session that waits for an answer from outside.

use crate::decision::Decision;
use crate::document::{Document, Payload};
use crate::input::{Content, Form};
use crate::name::Name;
use crate::{Caller, Timestamp, ToolName};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A question to a person, and what waits for the answer. No worker is held meanwhile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Parked {
    /// Counts from 1 within the session.
    pub number: u32,
    pub question: Payload,
    /// What may be answered. Nothing is chosen yet.
    pub offered: Decision,
    /// The record that waits: what would be done, or not, is recorded under this name.
    pub about: Name,
    /// The turn that goes on with the answer.
    pub turn: Name,
    /// The tool that would be called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolName>,
    /// What it would be called with.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub arguments: Map<String, Value>,
    /// What the tool asks for, if it is the tool that asks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forms: Vec<Form>,
    /// Who may answer, by name; none means everybody who may ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub who: Option<Vec<String>>,
    /// Nobody is waited for after this time.
    pub expires: Timestamp,
    /// The option that is taken then.
    pub otherwise: String,
}

/// A parked question is decided: somebody has answered, or nobody has in time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settled {
    pub number: u32,
    /// With the reason that was given, if one was.
    pub decision: Decision,
    /// What is to be used in the place of the arguments that were asked about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Map<String, Value>>,
    /// What the call brought, as somebody knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Document>,
    /// What the tool has asked for, by the names of its forms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Content>,
    /// Who answered; none if nobody did in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Caller>,
}

/// What can be answered.
pub mod answer {
    /// To the question whether a call may be made.
    pub const APPROVE: &str = "approve";
    pub const DENY: &str = "deny";
    /// To the question what is to be done about a call of which nobody knows whether it was made: make it again, go on
    /// without it, or tell what it brought.
    pub const RETRY: &str = "retry";
    pub const CONTINUE: &str = "continue";
    pub const RESULT: &str = "result";
    /// To what a tool asks for: give it, or do not.
    pub const ANSWER: &str = "answer";
    pub const DECLINE: &str = "decline";
}
