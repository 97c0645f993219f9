//! One session's way into its run's stream.

use super::peers::Peers;
use super::texts::OpenMessage;
use super::{Place, RunStream};
use crate::ports::{StreamNotice, TextChunk, TextKind};
use parking_lot::Mutex;
use std::sync::Arc;
use trellis_domain::SessionId;

#[derive(Debug)]
pub struct TextWriter {
    pub(super) stream: Arc<RunStream>,
    pub(super) session: SessionId,
    pub(super) after: u64,
    /// Tells it from the run's other writers.
    pub(super) number: u64,
    /// The messages of which it has written something.
    pub(super) begun: Mutex<Vec<Arc<str>>>,
    /// Whom else to tell.
    pub(super) others: Option<(Arc<Peers>, Place)>,
}

impl TextWriter {
    /// What is written follows from the record of that number: listeners in other processes get that one first.
    #[must_use]
    pub fn after(self, seq: u64) -> Self {
        Self { after: seq, ..self }
    }

    /// More text of an open message. Never waits.
    pub fn text(&self, message_id: &Arc<str>, kind: TextKind, text: &str) {
        // Held until the text is in its place: the end of the session must not come between.
        let silenced = self.stream.silenced.lock();
        if silenced.contains(&self.session) {
            return;
        }
        let offset = {
            let mut texts = self.stream.texts.lock();
            let (tick, writer) = (self.stream.news().ticks, self.number);
            let message = OpenMessage { tick, writer, ..OpenMessage::new(&self.session, kind, None, self.after) };
            texts.write(message_id, message, self.begins(message_id), text)
        };
        let Some(offset) = offset else { return };
        // The records first that it was written after: another process may have committed them.
        self.stream.tell(|news| {
            news.seq = news.seq.max(self.after);
            news.ticks += 1;
        });
        if let Some((peers, place)) = self.wanted_by_others() {
            let (session, message_id, text) = (self.session.clone(), Arc::clone(message_id), text.to_owned());
            let chunk = TextChunk { run: place.1.clone(), session, message_id, kind, after: self.after, offset, text };
            peers.publish_text(&place.0, chunk);
        }
    }

    /// Whether this is the first text of a message.
    fn begins(&self, message_id: &Arc<str>) -> bool {
        let mut begun = self.begun.lock();
        let begins = !begun.contains(message_id);
        if begins {
            begun.push(Arc::clone(message_id));
        }
        begins
    }

    /// These messages are abandoned.
    pub fn abandon(&self, ids: &[&Arc<str>]) {
        {
            let mut texts = self.stream.texts.lock();
            for id in ids {
                texts.close(id);
            }
        }
        if let Some((peers, (workspace, run))) = self.wanted_by_others() {
            let message_ids = ids.iter().map(|id| Arc::clone(id)).collect();
            peers.publish(workspace, StreamNotice::Abandoned { run: run.clone(), message_ids });
        }
    }

    fn wanted_by_others(&self) -> Option<&(Arc<Peers>, Place)> {
        self.others.as_ref().filter(|(peers, place)| peers.is_followed(place))
    }
}
