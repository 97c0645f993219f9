//! What the hub tells other processes, and what it makes of what they tell.

use super::peers::Peers;
use super::texts::Fit;
use super::{Hub, Place, RunStream};
use crate::messages::messages_of;
use crate::ports::{Stream, StreamListener, StreamNotice, TextChunk, World};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use trellis_domain::record::{Name, Record};
use trellis_domain::{RunId, Workspace};

impl Hub {
    /// One of several processes that serve the same journal. What the others tell reaches it as long as somebody
    /// [hears](crate::Orchestrator::hear) for it.
    pub fn shared(stream: Arc<dyn Stream>, world: Arc<dyn World>) -> Self {
        Self { peers: Some(Arc::new(Peers::new(stream, world))), ..Self::default() }
    }

    /// What other processes tell from now on; none if there are no others.
    pub(crate) fn listen(&self) -> Option<Box<dyn StreamListener>> {
        self.peers.as_ref().map(|peers| peers.stream.listen())
    }

    /// Whether a message is one's own, come back.
    pub(crate) fn is_own(&self, from: &str) -> bool {
        self.peers.as_ref().is_some_and(|peers| *peers.me == *from)
    }

    /// Tells the other processes, if there are any.
    pub(crate) fn tell_others(&self, workspace: &Workspace, notice: impl FnOnce() -> StreamNotice) {
        if let Some(peers) = &self.peers {
            peers.publish(workspace, notice());
        }
    }

    pub(super) fn tell_of_commit(&self, place: &Place, seq: u64) {
        if let Some(peers) = self.peers.as_ref().filter(|peers| peers.is_followed(place)) {
            peers.publish(&place.0, StreamNotice::Committed { run: place.1.clone(), seq });
        }
    }

    pub(super) fn tell_of_follower(&self, (workspace, run): &Place, anew: bool) {
        self.tell_others(workspace, || StreamNotice::Following { run: run.clone(), anew });
    }

    /// The stream of a run that is followed here, while nobody begins or stops to.
    fn with_followed(&self, workspace: &Workspace, run: &RunId, act: impl FnOnce(&RunStream)) {
        let runs = self.runs.lock();
        if let Some(stream) = runs.get(&(workspace.clone(), run.clone())).filter(|stream| stream.is_read()) {
            act(stream);
        }
    }

    pub(crate) fn hear_commit(&self, workspace: &Workspace, run: &RunId, seq: u64) {
        self.with_followed(workspace, run, |stream| stream.tell(|news| news.seq = news.seq.max(seq)));
    }

    pub(crate) fn hear_text(&self, workspace: &Workspace, from: &Arc<str>, chunk: &TextChunk) {
        self.with_followed(workspace, &chunk.run, |stream| {
            let silenced = stream.silenced.lock();
            if silenced.contains(&chunk.session) {
                return;
            }
            let tick = stream.news().ticks;
            let fit = stream.texts.lock().hear(from, chunk, tick);
            match fit {
                Fit::Ignored => {}
                Fit::Gap => stream.gap.store(true, Ordering::SeqCst),
                // The records first that it was written after.
                Fit::Added => stream.tell(|news| {
                    news.seq = news.seq.max(chunk.after);
                    news.ticks += 1;
                }),
            }
        });
    }

    pub(crate) fn hear_abandoned(&self, workspace: &Workspace, from: &Arc<str>, run: &RunId, ids: &[Arc<str>]) {
        self.with_followed(workspace, run, |stream| {
            let mut texts = stream.texts.lock();
            for id in ids {
                texts.close_heard(id, from);
            }
        });
    }

    /// Somebody elsewhere follows a run: from now on it hears of it, and what is open is told from its start.
    pub(crate) fn hear_following(&self, workspace: &Workspace, run: &RunId, anew: bool) {
        let Some(peers) = &self.peers else { return };
        let place = (workspace.clone(), run.clone());
        let first = peers.note_following(place.clone());
        let stream = self.runs.lock().get(&place).cloned();
        let Some(stream) = stream.filter(|_| first || anew) else { return };
        // Nothing is written meanwhile: what comes next goes on where this ends.
        let _still = stream.silenced.lock();
        let texts = stream.texts.lock();
        for (id, message) in texts.iter().filter(|(_, message)| message.by.is_none()) {
            let chunk = TextChunk {
                run: run.clone(),
                session: message.session.clone(),
                message_id: Arc::clone(id),
                kind: message.kind,
                after: message.after,
                offset: 0,
                text: message.text.clone(),
            };
            peers.publish_text(workspace, chunk);
        }
    }

    /// Messages were lost: whoever follows a run looks at the journal.
    pub(crate) fn missed(&self) {
        let runs = self.runs.lock();
        let mut streams: Vec<_> = runs.iter().filter(|(_, stream)| stream.is_read()).collect();
        // In the same order always: what happens in a simulated world can happen again.
        streams.sort_by_key(|(place, _)| *place);
        for (_, stream) in streams {
            stream.tell(|news| news.missed += 1);
        }
    }

    pub(crate) fn forget_followers_elsewhere(&self) {
        if let Some(peers) = &self.peers {
            peers.forget_followers();
        }
    }
}

impl RunStream {
    /// A reader has got this record: text that it makes obsolete is not shown any more, whoever wrote it and whenever it
    /// arrives.
    pub(super) fn bring_whole(&self, record: &Record) {
        let mut silenced = self.silenced.lock();
        let mut texts = self.texts.lock();
        for id in messages_of(record) {
            texts.bring_whole(&id, record.header.seq);
        }
        if record.header.name == Name::end() && silenced.insert(record.header.session.clone()) {
            texts.retain(|message| message.session != record.header.session);
        }
    }
}
