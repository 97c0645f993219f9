//! The open messages of a run, whoever writes them. Several may write the same one: a worker whose claim has expired does not
//! know it yet. A reader sees the newest attempt of them, from its start and without a gap.

use crate::messages::place_and_attempt;
use crate::ports::{TextChunk, TextKind};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use trellis_domain::SessionId;

#[derive(Debug)]
pub(super) struct OpenMessage {
    /// Tells this message from an earlier one of the same name.
    pub(super) tick: u64,
    pub(super) session: SessionId,
    pub(super) kind: TextKind,
    pub(super) text: String,
    /// The process that writes it; none if it is this one.
    pub(super) by: Option<Arc<str>>,
    /// Which of this process's writers writes it: two workers may be at the same turn without knowing it yet.
    pub(super) writer: u64,
    /// The newest record that it is written after.
    pub(super) after: u64,
}

impl OpenMessage {
    pub(super) fn new(session: &SessionId, kind: TextKind, by: Option<Arc<str>>, after: u64) -> Self {
        Self { tick: 0, session: session.clone(), kind, text: String::new(), by, writer: 0, after }
    }

    fn is_same(&self, other: &Self) -> bool {
        self.after == other.after && self.by == other.by && self.writer == other.writer
    }
}

/// Whoever has a higher one wrote later: after a newer record, or at a later attempt.
type Rank = (u64, u32);

fn rank<'a>(id: &'a str, message: &OpenMessage) -> (&'a str, Rank) {
    let (place, attempt) = place_and_attempt(id);
    (place, (message.after, attempt))
}

/// What became of text from another process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    /// There is more to read.
    Added,
    /// It is known already, or nobody wants it any more.
    Ignored,
    /// Something before it is missing.
    Gap,
}

#[derive(Debug, Default)]
pub(super) struct Texts {
    open: BTreeMap<Arc<str>, OpenMessage>,
    /// Text of lower rank comes too late, by what it is about. Where one process writes alone, nothing does.
    least: BTreeMap<Box<str>, Rank>,
}

impl Texts {
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub(super) fn get(&self, id: &str) -> Option<&OpenMessage> {
        self.open.get(id)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &OpenMessage)> {
        self.open.iter()
    }

    pub(super) fn retain(&mut self, keep: impl Fn(&OpenMessage) -> bool) {
        self.open.retain(|_, message| keep(message));
    }

    /// Nothing more comes of a message of this process.
    pub(super) fn close(&mut self, id: &str) {
        self.open.remove(id);
    }

    /// Nothing more comes of a message of another process.
    pub(super) fn close_heard(&mut self, id: &str, by: &Arc<str>) {
        if self.open.get(id).is_some_and(|message| message.by.as_ref() == Some(by)) {
            self.open.remove(id);
        }
    }

    /// The record of that number brings this message whole: whatever was written before is over, by whichever attempt.
    pub(super) fn bring_whole(&mut self, id: &str, seq: u64) {
        let (place, _) = place_and_attempt(id);
        self.make_way(place, (seq, 0));
    }

    /// More text of this process, which its writer begins with or goes on with. How many bytes came before it; none if it is
    /// not wanted any more: a message that had to make way for another does not begin again in its middle.
    pub(super) fn write(&mut self, id: &Arc<str>, message: OpenMessage, begins: bool, text: &str) -> Option<usize> {
        let goes_on = self.open.get(id).is_some_and(|open| open.is_same(&message));
        let message = if goes_on || begins { self.message(id, message) } else { None }?;
        let offset = message.text.len();
        message.text.push_str(text);
        Some(offset)
    }

    /// Text of another process, which may come twice, too late or not at all.
    pub(super) fn hear(&mut self, by: &Arc<str>, chunk: &TextChunk, tick: u64) -> Fit {
        let TextChunk { session, message_id, kind, after, offset, text, .. } = chunk;
        let begun = OpenMessage { tick, ..OpenMessage::new(session, *kind, Some(Arc::clone(by)), *after) };
        let same = self.open.get(message_id).filter(|message| message.is_same(&begun));
        let known = same.map_or(0, |message| message.text.len());
        if same.is_none() && self.is_late(message_id, &begun) {
            return Fit::Ignored;
        }
        let Some(skip) = known.checked_sub(*offset) else { return Fit::Gap };
        let Some(more) = text.get(skip..).filter(|more| !more.is_empty()) else { return Fit::Ignored };
        let Some(message) = self.message(message_id, begun) else { return Fit::Ignored };
        message.text.push_str(more);
        Fit::Added
    }

    /// The message that was begun like this, or is begun now. None if it comes too late.
    fn message(&mut self, id: &Arc<str>, begun: OpenMessage) -> Option<&mut OpenMessage> {
        if !self.open.get(id).is_some_and(|message| message.is_same(&begun)) {
            if self.is_late(id, &begun) {
                return None;
            }
            let (place, rank) = rank(id, &begun);
            self.make_way(place, rank);
        }
        Some(self.open.entry(Arc::clone(id)).or_insert(begun))
    }

    /// Whether a message that is not open yet must not begin any more.
    fn is_late(&self, id: &str, begun: &OpenMessage) -> bool {
        let (place, own) = rank(id, begun);
        self.least.get(place).is_some_and(|least| own < *least)
            || self.about(place).any(|(other, message)| rank(other, message).1 >= own)
    }

    /// Closes what is about the same and of lower rank, and keeps it from coming back.
    fn make_way(&mut self, place: &str, least: Rank) {
        let lower = self.about(place).filter(|(id, message)| rank(id, message).1 < least);
        let lower: Vec<_> = lower.map(|(id, _)| Arc::clone(id)).collect();
        let is_record = least.1 == 0;
        if is_record || !lower.is_empty() {
            let kept = self.least.entry(place.into()).or_insert(least);
            *kept = least.max(*kept);
        }
        for id in lower {
            self.open.remove(&id);
        }
    }

    /// The attempts at one message: their ids follow each other.
    fn about<'a>(&'a self, place: &'a str) -> impl Iterator<Item = (&'a Arc<str>, &'a OpenMessage)> {
        let from = (Bound::Included(place), Bound::Unbounded);
        self.open.range::<str, _>(from).take_while(move |(id, _)| place_and_attempt(id).0 == place)
    }
}

#[cfg(test)]
#[path = "texts_tests.rs"]
mod tests;
