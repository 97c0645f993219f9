//! How the replies to the prompts are read. Reading is lenient: what can be understood is, and what cannot becomes a
//! reason that the model is shown.

use crate::{choice, plan, supervisor, synthesis};
use trellis_domain::decision::Decision;
use trellis_domain::document::Document;
use trellis_domain::reading::Citation;
use trellis_domain::record::Reading;

/// How the reply to one prompt is read, and what it may refer to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reader {
    /// The text grammar; chooses among the tools that are offered.
    React,
    /// One name of the only offered set.
    Choice,
    Plan(plan::PlanRules),
    /// One tool of the only offered set, or none of them. The words say what the step is about.
    Step {
        about: String,
    },
    Revision(plan::PlanRules),
    Goals(supervisor::GoalRules),
    Review(supervisor::GoalRules),
    /// Text that cites steps or findings by these numbers.
    Synthesis {
        known: Vec<u32>,
    },
}

/// A reply, read.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadReply {
    /// What the agent says about it while it works; shown and stored.
    pub thought: Option<Document>,
    pub reading: Reading,
    pub decisions: Vec<Decision>,
    pub citations: Vec<Citation>,
}

impl ReadReply {
    pub fn new(thought: &str, reading: Reading, decisions: Vec<Decision>) -> Self {
        Self { thought: Document::stored(thought), reading, decisions, citations: Vec::new() }
    }

    /// A reply that cannot be used: the offered sets stay without a choice.
    pub fn unreadable(reason: impl Into<String>, decisions: Vec<Decision>) -> Self {
        Self::new("", Reading::Unreadable { reason: reason.into() }, decisions)
    }
}

impl Reader {
    /// Reads a whole reply.
    pub fn read(&self, raw: &str, offered: Vec<Decision>) -> ReadReply {
        match self {
            Self::React => crate::react::read(raw, offered),
            Self::Choice => choice::read(raw, offered),
            Self::Plan(rules) => plan::read_plan(raw, rules, offered),
            Self::Step { about } => plan::read_step(raw, about, offered),
            Self::Revision(rules) => plan::read_revision(raw, rules, offered),
            Self::Goals(rules) => supervisor::read_goals(raw, rules, offered),
            Self::Review(rules) => supervisor::read_review(raw, rules, offered),
            Self::Synthesis { known } => synthesis::read(raw, known, offered),
        }
    }

    /// Whether the whole reply is text for the caller while it is written.
    pub fn is_answer(&self) -> bool {
        matches!(self, Self::Synthesis { .. })
    }
}
