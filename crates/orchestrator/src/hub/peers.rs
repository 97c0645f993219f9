//! The other processes of a deployment, as the hub knows them: what it tells them, and which runs they follow.

use super::Place;
use crate::ports::{Stream, StreamMessage, StreamNotice, TextChunk, World};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use trellis_domain::{Timestamp, Workspace};

/// Whoever follows a run looks at the journal so often, whatever it hears, and says that it follows.
const POLL_MS: u64 = 3_000;
/// So long it is believed that somebody follows: a few of those messages may be lost.
const FOLLOWED_MS: u64 = 10_000;
/// The most bytes of text in one message. Brokers have limits.
const PIECE: usize = 16 * 1024;

#[derive(Debug)]
pub(super) struct Peers {
    pub(super) stream: Arc<dyn Stream>,
    pub(super) world: Arc<dyn World>,
    /// Tells this process from all others.
    pub(super) me: Arc<str>,
    /// The runs that somebody follows elsewhere, and until when that is believed.
    followed: Mutex<HashMap<Place, Timestamp>>,
}

impl Peers {
    pub(super) fn new(stream: Arc<dyn Stream>, world: Arc<dyn World>) -> Self {
        let me = world.fresh_id().into();
        Self { stream, world, me, followed: Mutex::default() }
    }

    pub(super) fn publish(&self, workspace: &Workspace, notice: StreamNotice) {
        self.stream.publish(StreamMessage { from: Arc::clone(&self.me), workspace: workspace.clone(), notice });
    }

    /// Tells of text, if anybody wants it.
    pub(super) fn publish_text(&self, workspace: &Workspace, mut chunk: TextChunk) {
        while chunk.text.len() > PIECE {
            let rest = chunk.text.split_off(chunk.text.floor_char_boundary(PIECE));
            let next = TextChunk { offset: chunk.offset + chunk.text.len(), text: rest, ..chunk.clone() };
            self.publish(workspace, StreamNotice::Text(chunk));
            chunk = next;
        }
        self.publish(workspace, StreamNotice::Text(chunk));
    }

    /// Somebody elsewhere follows a run. True if nobody was known to.
    pub(super) fn note_following(&self, place: Place) -> bool {
        let now = self.world.now();
        let before = self.followed.lock().insert(place, now.plus_ms(FOLLOWED_MS));
        before.is_none_or(|until| until < now)
    }

    pub(super) fn is_followed(&self, place: &Place) -> bool {
        self.followed.lock().get(place).is_some_and(|until| *until >= self.world.now())
    }

    pub(super) fn forget_followers(&self) {
        let now = self.world.now();
        self.followed.lock().retain(|_, until| *until >= now);
    }

    pub(super) fn next_poll(&self) -> Timestamp {
        self.world.now().plus_ms(POLL_MS)
    }
}
