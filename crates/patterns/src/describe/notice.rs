//! What a reply means to whoever follows a run while it goes on.

use serde::Serialize;
use serde_json::{Map, Value};
use std::borrow::Cow;
use trellis_domain::ToolName;
use trellis_domain::record::{Reading, Replied};

/// A reply in the words of its pattern.
#[derive(Debug)]
pub struct Notice<'r> {
    /// The word for what happened, such as `plan`.
    pub kind: &'static str,
    /// What programs are told of it, by name.
    pub details: Map<String, Value>,
    pub spoken: Option<Spoken<'r>>,
    /// The tools that it calls, with their arguments.
    pub calls: Vec<(&'r ToolName, &'r Map<String, Value>)>,
    pub shown: Shown,
    /// Parts of the session that this begins, in the order of their numbers, which go on behind those before.
    pub parts: Vec<Part>,
}

/// What people are shown of a reply.
#[derive(Debug)]
pub enum Shown {
    /// What any reply shows: its thought, then the call, the answer, or the problem.
    Plain,
    /// The call alone.
    Call,
    /// A later record tells more.
    Later,
    Line(ShownLine),
}

/// One line, with its parts and the model's reasons below it.
#[derive(Debug)]
pub struct ShownLine {
    pub tone: Tone,
    pub word: &'static str,
    pub text: String,
    /// What takes the place of the text if findings are missing.
    pub if_missing: Option<&'static str>,
    /// What had to be put right.
    pub repairs: Vec<String>,
    pub with_reasons: bool,
}

impl ShownLine {
    pub(crate) fn new(tone: Tone, word: &'static str, text: impl Into<String>) -> Self {
        Self { tone, word, text: text.into(), if_missing: None, repairs: Vec::new(), with_reasons: false }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    Choice,
    /// Several things at once.
    Many,
    Good,
}

/// A part of a session that works by itself, such as a plan step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    pub goal: String,
    /// What is said behind it.
    pub aside: String,
}

/// A text that the reply is for the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spoken<'r> {
    /// The answer of the session.
    Answer(&'r str),
    /// What the session found out without a tool.
    Observation(Cow<'r, str>),
}

impl<'r> Notice<'r> {
    pub(crate) fn new(kind: &'static str) -> Self {
        Self { kind, details: Map::new(), spoken: None, calls: Vec::new(), shown: Shown::Plain, parts: Vec::new() }
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

/// What any reply means.
pub(crate) fn plain(replied: &Replied) -> Notice<'_> {
    match &replied.reading {
        Reading::Acted { tool, arguments, also, .. } => {
            let notice = Notice::new("analysis").with("tool", tool).with("arguments", arguments);
            let notice = if also.is_empty() { notice } else { notice.with("also", also) };
            Notice { calls: replied.reading.calls().collect(), ..notice.with("mended", &replied.repairs) }
        }
        Reading::Unusable { reason } => Notice::new("analysis").with("error", reason),
        Reading::Failed { reason } => Notice::new("error").with("error", reason),
        Reading::Decided { value } => Notice { shown: Shown::Later, ..Notice::new("choice").with("chosen", value) },
        Reading::Answered { text, .. } => {
            let notice = Notice::new("answer").with("content", text.text()).with("cites", &replied.citations);
            notice.spoken(Spoken::Answer(text.text()))
        }
    }
}
