//! The contract between patterns and the shell: what a pattern may order.

use crate::react::React;
use crate::session::Session;
use serde_json::{Map, Value};
use trellis_domain::Timestamp;
use trellis_domain::decision::Decision;
use trellis_domain::record::{Body, Name};
use trellis_domain::run::Termination;

/// A pattern is a reconciler over folded records: the same records always give the same orders, and
/// the order in which outcomes arrived cannot matter.
pub trait Pattern: Send + Sync + std::fmt::Debug {
    fn name(&self) -> &'static str;

    /// What is due in this turn. Orders whose outcome is recorded already are not repeated.
    fn decide(&self, session: &Session, turn: &Turn) -> Vec<Order>;
}

/// The implemented patterns.
pub const IMPLEMENTED: &[&str] = &[React::NAME];

/// The pattern of that name; an unknown name falls back to `react`, as in the original.
pub fn pattern(_name: &str) -> &'static dyn Pattern {
    &React
}

/// The handling of one request: an iteration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    pub name: Name,
    /// When this handling looked at the clock.
    pub now: Timestamp,
}

/// Exhaustive on purpose: a new order must be handled by every shell.
#[derive(Debug, Clone, PartialEq)]
pub enum Order {
    /// Do this and record its outcome under the name.
    Perform(Name, Effect),
    /// Close this turn and open another.
    Open(Name),
    /// Close this turn and end the session.
    End(Ending),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    AskModel(Box<PromptOrder>),
    CallTool {
        tool: String,
        arguments: Map<String, Value>,
    },
    /// Tells the model why nothing was called. Needs nothing from the world.
    Report {
        error: String,
    },
}

/// A prompt to send, and the set that its reply chooses from.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptOrder {
    pub id: &'static str,
    pub variables: Map<String, Value>,
    /// The decision as it stands before the reply: options, no choice yet.
    pub offered: Decision,
}

/// How a session ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    pub reason: Termination,
    pub answer: String,
    pub error: Option<String>,
}

impl Ending {
    pub fn failed(reason: Termination, error: impl Into<String>) -> Self {
        Self { reason, answer: String::new(), error: Some(error.into()) }
    }

    /// The record of this end.
    pub fn into_body(self, session: &Session) -> Body {
        Body::Ended(trellis_domain::record::Ended {
            reason: self.reason,
            answer: trellis_domain::document::Document::stored(self.answer),
            error: self.error,
            usage: session.usage().clone(),
        })
    }
}
