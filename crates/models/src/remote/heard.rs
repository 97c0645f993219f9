//! What was heard of a reply so far, and who listens to it.

use super::thinking::{Thinking, UNMARKED, behind_thinking};
use super::{Hold, Said};
use crate::functions::{Told, Transcript};
use crate::provider::OnText;
use std::ops::ControlFlow;

/// The largest piece that a listener gets at once, so that what it stops is not much longer than it wanted.
const LARGEST_PIECE: usize = 4 << 10;

pub(super) struct Heard<'a, 's, 'f> {
    pub(super) text: String,
    on_text: &'a mut OnText<'s>,
    /// The listener wants no more.
    pub(super) enough: bool,
    /// There if functions were offered: calls become text.
    transcript: Option<Transcript<'f>>,
    thinking: Thinking,
}

impl<'a, 's, 'f> Heard<'a, 's, 'f> {
    pub(super) fn new(on_text: &'a mut OnText<'s>, hold: &Hold<'f>) -> Self {
        let transcript = match hold {
            Hold::Functions { functions, .. } => Some(Transcript::new(functions)),
            Hold::Free | Hold::Guided(_) | Hold::Strict(_) => None,
        };
        Self { text: String::new(), on_text, enough: false, transcript, thinking: Thinking::default() }
    }

    pub(super) fn has_heard_nothing(&self) -> bool {
        self.text.is_empty()
    }

    /// More is held back than any reply may have.
    pub(super) fn goes_on_and_on(&self) -> bool {
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
                self.hear(&text);
            }
            // The only function there can be takes the reply.
            (None, Said::Call(piece)) => self.hear(&piece.arguments),
        }
        if self.enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn speak(&mut self, text: &str) {
        match &mut self.transcript {
            Some(transcript) => transcript.words(text),
            None => self.hear(text),
        }
    }

    /// The reply is complete, unless somebody had enough of it.
    pub(super) fn finish(&mut self) -> Told {
        let rest = self.thinking.rest();
        self.speak(&rest);
        let Some(transcript) = self.transcript.take() else { return self.finish_text() };
        let told = if self.enough { Told::default() } else { transcript.finish() };
        self.hear(&told.rest);
        told
    }

    /// Whoever listened has heard too much then, and is told the reply.
    fn finish_text(&mut self) -> Told {
        let mut told = Told::default();
        if let Some(spoken) = behind_thinking(&self.text).map(str::to_owned) {
            self.text = spoken;
            told.mended.push(UNMARKED.to_owned());
        }
        told
    }

    fn hear(&mut self, text: &str) {
        let mut rest = text;
        while !rest.is_empty() && !self.enough {
            let (piece, after) = rest.split_at(rest.floor_char_boundary(LARGEST_PIECE));
            rest = after;
            self.text.push_str(piece);
            self.enough = (self.on_text)(piece).is_break();
        }
    }
}
