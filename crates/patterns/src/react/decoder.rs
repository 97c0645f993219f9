//! Reads a reply while it arrives, whichever way the model says what it wants: in the text grammar, or in calls.

use super::calls::CallReader;
use super::parser::{Fragment, ReplyParser};
use std::sync::Arc;
use trellis_domain::config::ToolItem;
use trellis_domain::parts::{CallPiece, Piece, Reply, ReplyPart};
use trellis_domain::record::ReplyFormat;
use trellis_domain::reply::ReactReply;

/// Reads one reply. However it is cut into pieces, it says the same.
#[derive(Debug)]
pub enum ReplyDecoder {
    Text(Box<ReplyParser>),
    Calls(Box<CallReader>),
}

impl ReplyDecoder {
    /// For a model that was asked in this form and may call these.
    pub fn new(format: Option<ReplyFormat>, tools: &[Arc<ToolItem>]) -> Self {
        match format {
            Some(ReplyFormat::NativeTools) => Self::Calls(Box::new(CallReader::new(tools))),
            Some(ReplyFormat::Text) | None => Self::Text(Box::default()),
        }
    }

    /// The next piece. Gives what may be shown now.
    pub fn push(&mut self, piece: Piece<'_>) -> Vec<Fragment> {
        match (self, piece) {
            (Self::Text(parser), Piece::Text(text)) => parser.push(text),
            (Self::Calls(calls), Piece::Text(text)) => {
                calls.words(text);
                Vec::new()
            }
            (Self::Calls(calls), Piece::Call(piece)) => calls.call(piece),
            // Nothing was offered that could be called.
            (Self::Text(_), Piece::Call(_)) => Vec::new(),
        }
    }

    /// The reply is complete: the rest of what may be shown, what the reply says, and what is noted about it.
    pub fn finish(self) -> (Vec<Fragment>, ReactReply, Vec<String>) {
        match self {
            Self::Text(parser) => {
                let (fragments, reply) = parser.finish();
                (fragments, reply, Vec::new())
            }
            Self::Calls(calls) => calls.finish(),
        }
    }
}

/// Reads a reply that is already complete.
pub(super) fn decode(reply: &Reply, tools: &[Arc<ToolItem>]) -> (ReactReply, Vec<String>) {
    let mut decoder = ReplyDecoder::new(reply.format, tools);
    for (part, place) in reply.parts.iter().zip(0..) {
        match part {
            ReplyPart::Text { text } | ReplyPart::Refusal { text } => {
                decoder.push(Piece::Text(text.text()));
            }
            ReplyPart::Call { id, function, arguments } => {
                let (function, arguments) = (Some(function.clone()), arguments.text().to_owned());
                decoder.push(Piece::Call(&CallPiece { place, id: id.clone(), function, arguments }));
            }
            ReplyPart::Thought { .. } => {}
        }
    }
    let (_, reply, notes) = decoder.finish();
    (reply, notes)
}
