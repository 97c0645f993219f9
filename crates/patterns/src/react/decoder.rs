//! Reads a reply while it arrives, whichever way the model says what it wants: in the text grammar, or in calls.

use super::calls::{CallReader, call_written};
use super::functions::Functions;
use super::parser::{Channel, Fragment, ReplyParser};
use super::written;
use std::cell::LazyCell;
use std::sync::Arc;
use trellis_domain::config::ToolItem;
use trellis_domain::parts::{CallPiece, Piece, Reply, ReplyPart};
use trellis_domain::record::ReplyFormat;
use trellis_domain::reply::ReactReply;

/// Reads one reply. However it is cut into pieces, it says the same.
#[derive(Debug)]
pub enum ReplyDecoder {
    Text(Box<TextDecoder>),
    Calls(Box<CallReader>),
}

impl ReplyDecoder {
    /// For a model that was asked in this form and may call these. Calls in texts are read by the rules of a later
    /// revision only.
    pub fn new(format: Option<ReplyFormat>, tools: &[Arc<ToolItem>], revision: u32) -> Self {
        match format {
            Some(ReplyFormat::NativeTools) => Self::Calls(Box::new(CallReader::new(tools, revision > 0))),
            Some(ReplyFormat::Text) | None => Self::Text(Box::new(TextDecoder::new(tools, revision > 0))),
        }
    }

    /// The next piece. Gives what may be shown now.
    pub fn push(&mut self, piece: Piece<'_>) -> Vec<Fragment> {
        match (self, piece) {
            (Self::Text(decoder), Piece::Text(text)) => decoder.push(text),
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
            Self::Text(text) => text.finish(),
            Self::Calls(calls) => calls.finish(),
        }
    }
}

/// An answer that may still turn out to be a call is held back up to this length.
const LONGEST_HELD: usize = 4 << 10;

/// Reads a reply in the text grammar. Some models write a call in another form all the same.
#[derive(Debug)]
pub struct TextDecoder {
    /// What may be called.
    tools: Vec<Arc<ToolItem>>,
    parser: ReplyParser,
    /// All that was written.
    raw: String,
    /// The answer, as long as it may still turn out to be a call.
    held: String,
    /// The answer is one, and is shown as it comes.
    answers: bool,
    finds_calls: bool,
}

impl TextDecoder {
    fn new(tools: &[Arc<ToolItem>], finds_calls: bool) -> Self {
        let (parser, raw, held) = (ReplyParser::new(), String::new(), String::new());
        Self { tools: tools.to_vec(), parser, raw, held, answers: !finds_calls, finds_calls }
    }

    fn push(&mut self, text: &str) -> Vec<Fragment> {
        self.raw.push_str(text);
        let fragments = self.parser.push(text);
        self.shown(fragments)
    }

    /// Holds an answer back that begins like a call.
    fn shown(&mut self, fragments: Vec<Fragment>) -> Vec<Fragment> {
        let mut shown = Vec::new();
        for mut fragment in fragments {
            if fragment.channel == Channel::Answer && !self.answers {
                self.held.push_str(&fragment.text);
                if written::may_be_call(&self.held) && self.held.len() <= LONGEST_HELD {
                    continue;
                }
                self.answers = true;
                fragment.text = std::mem::take(&mut self.held);
            }
            shown.push(fragment);
        }
        shown
    }

    fn finish(mut self) -> (Vec<Fragment>, ReactReply, Vec<String>) {
        let parser = std::mem::take(&mut self.parser);
        let (fragments, reply) = parser.finish();
        let mut fragments = self.shown(fragments);
        let functions = LazyCell::new(|| Functions::of(&self.tools));
        let found = match &reply {
            ReactReply::Unreadable { .. } if self.finds_calls => {
                written::find(&self.raw, &functions).filter(|found| found.is_meant)
            }
            ReactReply::Answer { answer, .. } if !self.answers => {
                written::find(answer, &functions).filter(|found| found.is_all)
            }
            ReactReply::Answer { .. } | ReactReply::Action { .. } | ReactReply::Unreadable { .. } => None,
        };
        let thought = reply.thought().to_owned();
        let called = found.and_then(|found| call_written(found, &functions, &thought));
        let Some((reply, thought, notes)) = called else {
            if !self.held.is_empty() {
                fragments.push(Fragment { channel: Channel::Answer, text: self.held });
            }
            return (fragments, reply, Vec::new());
        };
        fragments.extend(thought.map(|text| Fragment { channel: Channel::Thought, text }));
        if let ReactReply::Answer { answer, .. } = &reply {
            fragments.push(Fragment { channel: Channel::Answer, text: answer.clone() });
        }
        (fragments, reply, notes)
    }
}

/// Reads a reply that is already complete.
pub(super) fn decode(reply: &Reply, tools: &[Arc<ToolItem>]) -> (ReactReply, Vec<String>) {
    let mut decoder = ReplyDecoder::new(reply.format, tools, reply.revision);
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
