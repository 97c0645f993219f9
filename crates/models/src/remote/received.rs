//! What was received of a reply so far, and who listens to it.

use super::{Said, SchemaEnforcement};
use crate::provider::OnPiece;
use crate::thinking::{Thinking, UNMARKED, behind_thinking};
use std::ops::ControlFlow;
use trellis_domain::parts::{CallPiece, Piece, ReplyPart};

/// The largest piece that a listener gets at once, so that what it stops is not much longer than it wanted.
const LARGEST_PIECE: usize = 4 << 10;
/// More than the largest reply that any limit allows, and than any reply calls.
const LONGEST: usize = 4 << 20;
const MOST_CALLS: usize = 1000;
/// So much of what a model thinks is kept.
const KEPT_THOUGHT: usize = 1 << 20;

pub(super) struct Received<'a, 's> {
    parts: Vec<Growing>,
    on_piece: &'a mut OnPiece<'s>,
    /// The listener wants no more.
    pub(super) enough: bool,
    /// Functions were offered: what is called is a call, and not the reply itself.
    offered: bool,
    thinking: Thinking,
    /// How many bytes were said, and how many of what was thought were kept.
    size: usize,
    thought: usize,
}

/// A part of a reply that may still grow.
#[derive(Debug)]
enum Growing {
    Thought {
        text: String,
        /// Nothing is added to a thought that has one.
        signature: Option<String>,
    },
    Text(String),
    Refusal(String),
    Call {
        place: u64,
        id: Option<String>,
        function: String,
        arguments: String,
    },
}

/// What a reply came to.
#[derive(Debug, Default)]
pub(super) struct Complete {
    pub(super) parts: Vec<ReplyPart>,
    /// What had to be put right.
    pub(super) repairs: Vec<String>,
}

impl<'a, 's> Received<'a, 's> {
    pub(super) fn new(on_piece: &'a mut OnPiece<'s>, enforcement: &SchemaEnforcement<'_>) -> Self {
        let offered = matches!(enforcement, SchemaEnforcement::Functions { .. });
        let (parts, thinking) = (Vec::new(), Thinking::default());
        Self { parts, on_piece, enough: false, offered, thinking, size: 0, thought: 0 }
    }

    pub(super) fn has_received_nothing(&self) -> bool {
        self.parts.is_empty()
    }

    /// It is longer than any limit allows.
    pub(super) fn exceeds_limit(&self) -> bool {
        self.size > LONGEST || self.parts.len() > MOST_CALLS
    }

    pub(super) fn take(&mut self, said: Said) -> ControlFlow<()> {
        match said {
            Said::Thought(text) => self.think(&text),
            Said::Signature(signature) => self.sign(signature),
            Said::Text(text) => {
                let spoken = self.thinking.spoken(text);
                let thought = self.thinking.take_thought();
                self.think(&thought);
                self.speak(&spoken, false);
            }
            Said::Refusal(text) => self.speak(&text, true),
            Said::Call(piece) if self.offered => self.call(&piece),
            // The only function there can be takes the reply.
            Said::Call(piece) => self.speak(&piece.arguments, false),
        }
        if self.enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Thoughts are kept and not listened to: they are not the reply.
    fn think(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let kept = &text[..text.floor_char_boundary(KEPT_THOUGHT - self.thought)];
        self.thought += kept.len();
        match self.since_last_call(Growing::is_open_thought) {
            Some(Growing::Thought { text, .. }) => text.push_str(kept),
            Some(_) | None => self.parts.push(Growing::Thought { text: kept.to_owned(), signature: None }),
        }
    }

    fn sign(&mut self, signature: String) {
        self.thought = KEPT_THOUGHT.min(self.thought + signature.len());
        // A thought of which only the beginning was kept is not the one that was signed.
        if self.thought == KEPT_THOUGHT {
            return;
        }
        let signature = Some(signature);
        match self.since_last_call(Growing::is_open_thought) {
            Some(Growing::Thought { signature: place, .. }) => *place = signature,
            Some(_) | None => self.parts.push(Growing::Thought { text: String::new(), signature }),
        }
    }

    /// The part that goes on. Some servers send thoughts and words by turns: each kind is one part up to the next call.
    fn since_last_call(&mut self, is_meant: impl Fn(&Growing) -> bool) -> Option<&mut Growing> {
        let since = self.parts.iter_mut().rev().take_while(|part| !matches!(part, Growing::Call { .. }));
        since.into_iter().find(|part| is_meant(part))
    }

    fn speak(&mut self, text: &str, refuses: bool) {
        let mut rest = text;
        while !rest.is_empty() && !self.enough {
            let (piece, after) = rest.split_at(rest.floor_char_boundary(LARGEST_PIECE));
            rest = after;
            let is_meant = |part: &Growing| match part {
                Growing::Text(_) => !refuses,
                Growing::Refusal(_) => refuses,
                Growing::Thought { .. } | Growing::Call { .. } => false,
            };
            match self.since_last_call(is_meant) {
                Some(Growing::Text(spoken) | Growing::Refusal(spoken)) => spoken.push_str(piece),
                Some(_) | None if refuses => self.parts.push(Growing::Refusal(piece.to_owned())),
                Some(_) | None => self.parts.push(Growing::Text(piece.to_owned())),
            }
            self.size += piece.len();
            self.enough = (self.on_piece)(Piece::Text(piece)).is_break();
        }
    }

    fn call(&mut self, piece: &CallPiece) {
        if self.exceeds_limit() {
            // One message may bring any number of them.
            return;
        }
        let known = self.parts.iter().position(
            |part| matches!(part, Growing::Call { place, id, .. } if piece.belongs_to(*place, id.as_deref())),
        );
        let at = known.unwrap_or_else(|| {
            let (id, function) = (piece.id.clone(), piece.function.clone().unwrap_or_default());
            self.parts.push(Growing::Call { place: piece.place, id, function, arguments: String::new() });
            self.parts.len() - 1
        });
        let mut rest = piece.arguments.as_str();
        let mut function = piece.function.clone();
        loop {
            let (arguments, after) = rest.split_at(rest.floor_char_boundary(LARGEST_PIECE));
            rest = after;
            if let Growing::Call { arguments: all, .. } = &mut self.parts[at] {
                all.push_str(arguments);
            }
            self.size += arguments.len();
            let (place, id) = (piece.place, piece.id.clone());
            let part = CallPiece { place, id, function: function.take(), arguments: arguments.to_owned() };
            self.enough = (self.on_piece)(Piece::Call(&part)).is_break();
            if rest.is_empty() || self.enough {
                return;
            }
        }
    }

    /// The reply is complete, unless somebody had enough of it.
    pub(super) fn finish(mut self) -> Complete {
        let rest = self.thinking.rest();
        let thought = self.thinking.take_thought();
        self.think(&thought);
        self.speak(&rest, false);
        let mut repairs = self.mark_thinking();
        if self.thought >= KEPT_THOUGHT {
            repairs.push("of what it thought, only the beginning was kept".to_owned());
        }
        Complete { parts: self.parts.into_iter().map(Growing::into_part).collect(), repairs }
    }

    /// Only the end of the thinking may be marked. Whoever listened has received too much then, and gets the right text
    /// with the reply.
    fn mark_thinking(&mut self) -> Vec<String> {
        let [Growing::Text(text)] = self.parts.as_slice() else { return Vec::new() };
        let Some(spoken) = behind_thinking(text).map(str::to_owned) else { return Vec::new() };
        let thought = text[..text.len() - spoken.len()].to_owned();
        self.parts = vec![Growing::Thought { text: thought, signature: None }, Growing::Text(spoken)];
        vec![UNMARKED.to_owned()]
    }
}

impl Growing {
    fn is_open_thought(&self) -> bool {
        matches!(self, Self::Thought { signature: None, .. })
    }

    fn into_part(self) -> ReplyPart {
        match self {
            Self::Thought { text, signature } => {
                ReplyPart::Thought { text: text.into(), signature: signature.map(Into::into) }
            }
            Self::Text(text) => ReplyPart::Text { text: text.into() },
            Self::Refusal(text) => ReplyPart::Refusal { text: text.into() },
            Self::Call { id, function, arguments, .. } => ReplyPart::Call { id, function, arguments: arguments.into() },
        }
    }
}
