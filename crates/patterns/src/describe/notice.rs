//! What a reply means to whoever follows a run while it goes on.

use crate::contract::owner_of;
use serde::Serialize;
use serde_json::{Map, Value};
use trellis_domain::document::Payload;
use trellis_domain::record::{Reading, Replied};

/// A reply in the words of its pattern.
#[derive(Debug)]
pub struct Notice<'r> {
    /// The word for what happened, such as `plan`.
    pub kind: &'static str,
    /// What programs are told of it, by name.
    pub details: Map<String, Value>,
    pub spoken: Option<Spoken<'r>>,
}

/// A text that the reply is for the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spoken<'r> {
    /// The answer of the session.
    Answer(&'r str),
    /// What a part of the session found out without a tool.
    Observation(&'r str),
}

impl<'r> Notice<'r> {
    pub(crate) fn new(kind: &'static str) -> Self {
        Self { kind, details: Map::new(), spoken: None }
    }

    pub(crate) fn with(mut self, name: &str, value: impl Serialize) -> Self {
        let value = serde_json::to_value(value).expect("what a reply says is always JSON");
        self.details.insert(name.to_owned(), value);
        self
    }

    pub(crate) fn spoken(self, spoken: Spoken<'r>) -> Self {
        Self { spoken: Some(spoken), ..self }
    }
}

/// What a reply means, as the pattern says that asked for it.
pub fn notice(replied: &Replied) -> Notice<'_> {
    let own = owner_of(&replied.prompt.id).and_then(|pattern| pattern.notice(replied));
    own.unwrap_or_else(|| plain(replied))
}

/// What any reply means.
fn plain(replied: &Replied) -> Notice<'_> {
    match &replied.reading {
        Reading::Action { tool, arguments } => {
            let mended = &replied.mended;
            Notice::new("analysis").with("tool", tool).with("arguments", arguments).with("mended", mended)
        }
        Reading::Unreadable { reason } => Notice::new("analysis").with("error", reason),
        Reading::Failed { reason } => Notice::new("error").with("error", reason),
        Reading::Chosen { name } => Notice::new("choice").with("chosen", name),
        Reading::Answer { answer } => {
            let notice = Notice::new("answer").with("content", answer.text()).with("cites", &replied.citations);
            notice.spoken(Spoken::Answer(answer.text()))
        }
        Reading::Step { answer, .. } => {
            let text = answer.as_ref().map(Payload::text);
            Notice { spoken: text.map(Spoken::Observation), ..Notice::new("decision") }
        }
        Reading::Plan { .. } | Reading::Revision { .. } | Reading::Goals { .. } | Reading::Review { .. } => {
            Notice::new("decision")
        }
    }
}
