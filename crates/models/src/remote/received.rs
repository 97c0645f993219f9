//! What was received of a reply so far, and who listens to it.

use super::{Said, SchemaEnforcement};
use crate::functions::{ReplyEnd, Transcript};
use crate::provider::OnText;
use crate::thinking::{Thinking, UNMARKED, behind_thinking};
use std::ops::ControlFlow;

/// The largest piece that a listener gets at once, so that what it stops is not much longer than it wanted.
const LARGEST_PIECE: usize = 4 << 10;

pub(super) struct Received<'a, 's, 'f> {
    pub(super) text: String,
    on_text: &'a mut OnText<'s>,
    /// The listener wants no more.
    pub(super) enough: bool,
    /// There if functions were offered: calls become text.
    transcript: Option<Transcript<'f>>,
    thinking: Thinking,
}

impl<'a, 's, 'f> Received<'a, 's, 'f> {
    pub(super) fn new(on_text: &'a mut OnText<'s>, enforcement: &SchemaEnforcement<'f>) -> Self {
        let transcript = match enforcement {
            SchemaEnforcement::Functions { functions, .. } => Some(Transcript::new(functions)),
            SchemaEnforcement::Free | SchemaEnforcement::Guided(_) | SchemaEnforcement::Strict(_) => None,
        };
        Self { text: String::new(), on_text, enough: false, transcript, thinking: Thinking::default() }
    }

    pub(super) fn has_received_nothing(&self) -> bool {
        self.text.is_empty()
    }

    /// More is held back than any reply may have.
    pub(super) fn exceeds_limit(&self) -> bool {
        self.transcript.as_ref().is_some_and(Transcript::is_too_long)
    }

    pub(super) fn take(&mut self, said: Said) -> ControlFlow<()> {
        match (&mut self.transcript, said) {
            (_, Said::Text(text)) => {
                let spoken = self.thinking.spoken(text);
                self.speak(&spoken);
            }
            (Some(transcript), Said::Call(piece)) => {
                let text = transcript.call(piece);
                self.receive(&text);
            }
            // The only function there can be takes the reply.
            (None, Said::Call(piece)) => self.receive(&piece.arguments),
        }
        if self.enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn speak(&mut self, text: &str) {
        match &mut self.transcript {
            Some(transcript) => transcript.words(text),
            None => self.receive(text),
        }
    }

    /// The reply is complete, unless somebody had enough of it.
    pub(super) fn finish(&mut self) -> ReplyEnd {
        let rest = self.thinking.rest();
        self.speak(&rest);
        let Some(transcript) = self.transcript.take() else { return self.finish_text() };
        let end = if self.enough { ReplyEnd::default() } else { transcript.finish() };
        self.receive(&end.rest);
        end
    }

    /// Whoever listened has received too much then, and gets the right text with the reply.
    fn finish_text(&mut self) -> ReplyEnd {
        let mut end = ReplyEnd::default();
        if let Some(spoken) = behind_thinking(&self.text).map(str::to_owned) {
            self.text = spoken;
            end.mended.push(UNMARKED.to_owned());
        }
        end
    }

    fn receive(&mut self, text: &str) {
        let mut rest = text;
        while !rest.is_empty() && !self.enough {
            let (piece, after) = rest.split_at(rest.floor_char_boundary(LARGEST_PIECE));
            rest = after;
            self.text.push_str(piece);
            self.enough = (self.on_text)(piece).is_break();
        }
    }
}
