//! The stream of a run to whoever listens: text as it is written, records as they are committed.
//!
//! The hub keeps one text per open message and an offset per subscriber. Slow readers coalesce, writers
//! never wait, and nothing is lost that the record of a completed message does not bring whole.
//!
//! There is one hub per process. Where several processes serve a journal, it tells the others through the stream port what
//! they follow, and its own readers what the others tell. Alone, it does neither.

mod elsewhere;
mod peers;
mod subscription;
mod texts;
mod writer;

pub use self::subscription::Subscription;
pub use self::writer::TextWriter;
pub use crate::ports::TextKind;

use self::peers::Peers;
use self::texts::Texts;
use parking_lot::Mutex;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use tokio::sync::Notify;
use trellis_domain::parts::ReplyPart;
use trellis_domain::rdf::Quad;
use trellis_domain::record::{Explained, Name, Record};
use trellis_domain::{RunId, SessionId, Workspace};

/// A run and where it is.
type Place = (Workspace, RunId);

/// What a subscriber receives.
#[derive(Debug, Clone)]
pub enum Item {
    /// Live text; may be lost with the connection.
    Text { session: SessionId, message_id: Arc<str>, kind: TextKind, text: String },
    /// A durable event: all of a run's records arrive, in order, without gap.
    Record(Arc<Record>),
}

#[derive(Debug, Default)]
pub struct Hub {
    runs: Mutex<HashMap<Place, Arc<RunStream>>>,
    /// None if this process is the only one.
    peers: Option<Arc<Peers>>,
}

#[derive(Debug, Default)]
struct RunStream {
    texts: Mutex<Texts>,
    /// Subagents that have ended: nothing of them is shown any more.
    silenced: Mutex<HashSet<SessionId>>,
    /// The newest records, for those who listen; whoever is further behind reads the journal.
    recent: Mutex<VecDeque<Arc<Record>>>,
    /// The newest durable sequence number, and a tick for every chunk.
    news: Mutex<News>,
    /// Notified whenever there is news. There is one per open run, and most are followed by nobody: a `watch` channel would
    /// take ten times as much memory.
    changed: Notify,
    readers: AtomicUsize,
    /// How many have begun to write.
    writers: AtomicU64,
    /// Text of another process is missing: its open messages are wanted from their start.
    gap: AtomicBool,
}

impl RunStream {
    const RECENT: usize = 64;

    fn news(&self) -> News {
        *self.news.lock()
    }

    fn tell(&self, change: impl FnOnce(&mut News)) {
        change(&mut self.news.lock());
        self.changed.notify_waiters();
    }

    fn is_read(&self) -> bool {
        self.readers.load(Ordering::SeqCst) > 0
    }

    /// The records right behind a sequence number, if they are still here.
    fn recent_after(&self, after: u64) -> Vec<Arc<Record>> {
        let recent = self.recent.lock();
        let first = recent.iter().position(|record| record.header.seq == after + 1);
        let Some(first) = first else { return Vec::new() };
        // Two workers may have told of their commits in the wrong order: stop at a gap.
        let expected = after + 1..;
        let rest = recent.iter().skip(first).zip(expected).take_while(|(record, seq)| record.header.seq == *seq);
        rest.map(|(record, _)| Arc::clone(record)).collect()
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct News {
    seq: u64,
    ticks: u64,
    /// How often something may have been missed: what is new then is in the journal only.
    missed: u64,
}

impl Hub {
    fn stream(&self, workspace: &Workspace, run: &RunId) -> Arc<RunStream> {
        let mut runs = self.runs.lock();
        Arc::clone(runs.entry((workspace.clone(), run.clone())).or_default())
    }

    /// Where a session's live text goes. Held for the length of a call: once the run or the session has ended, what
    /// is written goes nowhere.
    pub fn writer(&self, workspace: &Workspace, run: &RunId, session: &SessionId) -> TextWriter {
        let others = self.peers.as_ref().map(|peers| (Arc::clone(peers), (workspace.clone(), run.clone())));
        let stream = self.stream(workspace, run);
        let number = stream.writers.fetch_add(1, Ordering::SeqCst);
        TextWriter { stream, session: session.clone(), after: 0, number, begun: Mutex::default(), others }
    }

    /// These messages are over: their records bring them whole, or they were abandoned.
    pub fn close_messages(&self, workspace: &Workspace, run: &RunId, ids: &[Arc<str>]) {
        let stream = self.runs.lock().get(&(workspace.clone(), run.clone())).cloned();
        if let Some(stream) = stream {
            let mut texts = stream.texts.lock();
            for id in ids {
                texts.close(id);
            }
        }
    }

    /// Records were committed. With the run's end the hub forgets the run; subscribers keep their stream.
    pub fn committed(&self, workspace: &Workspace, run: &RunId, records: &[Arc<Record>], ended: bool) {
        let seq = records.last().map_or(0, |record| record.header.seq);
        let key = (workspace.clone(), run.clone());
        self.tell_of_commit(&key, seq);
        let stream = {
            let mut runs = self.runs.lock();
            if ended { runs.remove(&key) } else { runs.get(&key).cloned() }
        };
        if let Some(stream) = stream {
            let over = records.iter().filter(|record| record.header.name == Name::end());
            let mut silenced = stream.silenced.lock();
            let before = silenced.len();
            silenced.extend(over.map(|record| record.header.session.clone()));
            if silenced.len() > before {
                // What was written and not read yet is not read any more.
                stream.texts.lock().retain(|message| !silenced.contains(&message.session));
            }
            drop(silenced);
            if stream.is_read() {
                let mut recent = stream.recent.lock();
                recent.extend(records.iter().cloned());
                let surplus = recent.len().saturating_sub(RunStream::RECENT);
                recent.drain(..surplus);
            }
            stream.tell(|news| news.seq = news.seq.max(seq));
            let is_read = stream.is_read();
            drop(stream);
            if !is_read {
                self.forget_unused(key);
            }
        }
    }

    /// A stream that nobody reads or writes is made anew when somebody does. A call that begins when its run has just
    /// ended would otherwise leave one behind for ever.
    fn forget_unused(&self, key: Place) {
        let mut runs = self.runs.lock();
        let Entry::Occupied(entry) = runs.entry(key) else { return };
        let stream = entry.get();
        // Whoever reads or writes holds on to it, and nobody begins to while the map is locked.
        if Arc::strong_count(stream) == 1 && stream.texts.lock().is_empty() && stream.silenced.lock().is_empty() {
            entry.remove();
        }
    }

    /// Follows a run from after that sequence number on.
    pub fn subscribe(self: &Arc<Self>, workspace: &Workspace, run: &RunId, after: u64) -> Subscription {
        let place = (workspace.clone(), run.clone());
        let stream = self.stream(workspace, run);
        stream.readers.fetch_add(1, Ordering::SeqCst);
        self.tell_of_follower(&place, true);
        Subscription::new(self, place, stream, after)
    }
}

/// About how many bytes the texts of a record have. Those that can be large count.
pub fn size_of_texts(record: &Record) -> usize {
    let body = &record.body;
    let lengths = [
        body.as_accepted().map(|accepted| accepted.question.text().len()),
        body.as_replied()
            .map(|replied| replied.raw.text().len() + replied.parts.iter().map(ReplyPart::len).sum::<usize>()),
        body.as_observed().and_then(|observed| observed.result.as_ref()).map(|result| result.text().len()),
        body.as_observed().map(|observed| explained_bytes(&observed.trace)),
        body.as_ended().and_then(|ended| ended.answer.as_ref()).map(|answer| answer.text().len()),
    ];
    lengths.into_iter().flatten().sum()
}

/// Bytes of what a tool tells of its steps.
pub(crate) fn explained_bytes(trace: &[Explained]) -> usize {
    trace.iter().flat_map(|told| &told.quads).map(Quad::text_bytes).sum()
}

#[cfg(test)]
#[path = "hub_tests.rs"]
mod tests;
