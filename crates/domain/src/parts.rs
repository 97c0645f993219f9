//! A model's reply in parts, as its provider gave them, and the turns of a conversation with a model.

use crate::decision::words;
use crate::document::Payload;
use crate::prompt_use::ReplyFormat;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The present rules of reading and deciding. They count up whenever the same records may lead to something else, so
/// that older runs go on by their own rules and can be proven. From 1 on, calls in texts are
/// read, echoes of the prompt are refused, and the same unreadable reply again and again is a loop. From 2 on, observations
/// have numbers, tools are offered in the order of the groups that were asked for, calls that bring nothing new are
/// not shown again and are a loop also by turns, and task type and pattern are asked for in one call where the workspace
/// has a prompt for it. From 3 on, all material of a prompt together has a limit, and a prompt that was too long is asked
/// again with less of it; and a router's reply that repeats a description means what it describes, whatever name follows.
/// From 4 on, it is recorded that an unsafe call is about to be made, and one of which nobody knows whether it was made is
/// not made again without being asked for. From 5 on, what people have told a session reaches its subagents beside their framing
/// (before: as the end of it), and counts in the room of a prompt; and a tool may ask a person for input. From 6 on, a call
/// that was sent and brought no reply counts in the budget as one that did. From 7 on, an answer after nothing but failed
/// calls of tools, or made of nothing but partial findings, is a partial one. From 8 on, a plan that others have begun and findings
/// that others have joined are gone on with where they stand (before: planned and sought anew, with them as context).
pub const REVISION: u32 = 8;

/// One part of a reply, as the model wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "part", rename_all = "kebab-case")]
pub enum ReplyPart {
    /// What the model thought before it spoke, where that can be told apart.
    Thought {
        text: Payload,
        /// What the provider wants back with it, unchanged. Only the dialect that wrote it can read it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<Payload>,
    },
    Text {
        text: Payload,
    },
    /// A function that it called. The arguments are what it wrote: they need not be JSON.
    Call {
        /// The provider's name for this call, if it has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        function: String,
        arguments: Payload,
    },
    /// Why it does not want to reply, where the provider tells that apart.
    Refusal {
        text: Payload,
    },
}

impl ReplyPart {
    /// How many bytes the model wrote of it.
    pub fn len(&self) -> usize {
        match self {
            Self::Thought { text, .. } | Self::Text { text } | Self::Refusal { text } => text.text().len(),
            Self::Call { function, arguments, .. } => function.len() + arguments.text().len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

words!(
    /// Why a model stopped writing.
    StopReason {
        /// It had said what it wanted to say.
        End,
        /// It wants to know what came of its calls.
        Calls,
        /// It came to its limit of tokens.
        Length,
    }
);

/// A whole reply.
///
/// ```
/// use trellis_domain::parts::{Reply, ReplyPart};
///
/// let thought = ReplyPart::Thought { text: "easy".into(), signature: None };
/// let text = ReplyPart::Text { text: "Forty-two.".into() };
/// assert_eq!(Reply { parts: vec![thought, text], ..Reply::default() }.text(), "Forty-two.");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reply {
    pub parts: Vec<ReplyPart>,
    /// How the model was asked to say which tool it wants; none if it was not.
    pub format: Option<ReplyFormat>,
    /// The rules by which it is read; see [`crate::record::REVISION`].
    pub revision: u32,
}

impl Reply {
    /// A reply that is nothing but text.
    pub fn of_text(text: impl Into<Payload>) -> Self {
        Self { parts: vec![ReplyPart::Text { text: text.into() }], format: None, revision: REVISION }
    }

    /// The same reply, to be read by these rules.
    #[must_use]
    pub fn under(self, revision: u32) -> Self {
        Self { revision, ..self }
    }

    /// What was said in words, without thoughts and calls.
    pub fn text(&self) -> Cow<'_, str> {
        let mut texts = self.parts.iter().filter_map(|part| match part {
            ReplyPart::Text { text } | ReplyPart::Refusal { text } => Some(text.text()),
            ReplyPart::Thought { .. } | ReplyPart::Call { .. } => None,
        });
        let first = Cow::Borrowed(texts.next().unwrap_or_default());
        texts.fold(first, |all, text| all + text)
    }
}

/// One turn of a conversation that follows the rendered prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChatTurn {
    User {
        text: Payload,
    },
    /// What the model replied.
    Assistant {
        parts: Vec<ReplyPart>,
    },
    /// What came of a call.
    ToolResult {
        /// The id of the call that it answers, if the provider gave it one.
        call: Option<String>,
        function: String,
        text: Payload,
        is_error: bool,
    },
}

/// A piece of a reply while it arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'p> {
    Text(&'p str),
    Call(&'p CallPiece),
}

impl Piece<'_> {
    /// How many bytes the model wrote of it.
    pub fn len(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Call(piece) => piece.function.as_ref().map_or(0, String::len) + piece.arguments.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A piece of a call, as providers send them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallPiece {
    /// Which of several calls it belongs to.
    pub place: u64,
    /// The same in the provider's words. Some say it once, some always, some never.
    pub id: Option<String>,
    pub function: Option<String>,
    pub arguments: String,
}

impl CallPiece {
    /// Whether it goes on with the call that began with this place and id.
    pub fn belongs_to(&self, place: u64, id: Option<&str>) -> bool {
        let is_another = self.id.as_deref().zip(id).is_some_and(|(said, known)| said != known);
        self.place == place && !is_another
    }
}
