//! The stream of a run to whoever listens: text as it is written, records as they are committed.
//!
//! The hub keeps one text per open message and an offset per subscriber. Slow readers coalesce, writers
//! never wait, and nothing is lost that the record of a completed message does not bring whole.

use crate::messages::messages_of;
use crate::ports::{Journal, JournalError};
use serde::{Deserialize, Serialize};
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use trellis_domain::parts::ReplyPart;
use trellis_domain::record::{Name, Record};
use trellis_domain::{RunId, SessionId, Workspace};
use utoipa::ToSchema;

/// What a piece of live text belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum TextKind {
    Thought,
    Answer,
}

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
    runs: Mutex<HashMap<(Workspace, RunId), Arc<RunStream>>>,
}

#[derive(Debug, Default)]
struct RunStream {
    messages: Mutex<BTreeMap<Arc<str>, OpenMessage>>,
    /// Subagents that have ended: nothing of them is shown any more.
    silenced: Mutex<HashSet<SessionId>>,
    /// The newest records, for those who listen; whoever is further behind reads the journal.
    recent: Mutex<VecDeque<Arc<Record>>>,
    /// The newest durable sequence number, and a tick for every chunk.
    news: Mutex<News>,
    /// Told whenever there is news. There is one per open run, and most are followed by nobody: a `watch` channel would
    /// take ten times as much memory.
    told: Notify,
    readers: AtomicUsize,
}

impl RunStream {
    const RECENT: usize = 64;

    fn news(&self) -> News {
        *lock(&self.news)
    }

    fn tell(&self, change: impl FnOnce(&mut News)) {
        change(&mut lock(&self.news));
        self.told.notify_waiters();
    }

    fn is_read(&self) -> bool {
        self.readers.load(Ordering::SeqCst) > 0
    }

    /// The records right behind a sequence number, if they are still here.
    fn recent_after(&self, after: u64) -> Vec<Arc<Record>> {
        let recent = lock(&self.recent);
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
}

#[derive(Debug)]
struct OpenMessage {
    /// Tells this message from an earlier one of the same name.
    tick: u64,
    session: SessionId,
    kind: TextKind,
    text: String,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Hub {
    fn stream(&self, workspace: &Workspace, run: &RunId) -> Arc<RunStream> {
        let mut runs = lock(&self.runs);
        Arc::clone(runs.entry((workspace.clone(), run.clone())).or_default())
    }

    /// Where a session's live text goes. Held for the length of a call: once the run or the session has ended, what
    /// is written goes nowhere.
    pub fn writer(&self, workspace: &Workspace, run: &RunId, session: &SessionId) -> TextWriter {
        TextWriter { stream: self.stream(workspace, run), session: session.clone() }
    }

    /// These messages are over: their records bring them whole, or they were abandoned.
    pub fn close_messages(&self, workspace: &Workspace, run: &RunId, ids: &[Arc<str>]) {
        let stream = lock(&self.runs).get(&(workspace.clone(), run.clone())).cloned();
        if let Some(stream) = stream {
            let mut messages = lock(&stream.messages);
            for id in ids {
                messages.remove(id);
            }
        }
    }

    /// Records were committed. With the run's end the hub forgets the run; subscribers keep their stream.
    pub fn committed(&self, workspace: &Workspace, run: &RunId, records: &[Arc<Record>], ended: bool) {
        let seq = records.last().map_or(0, |record| record.header.seq);
        let key = (workspace.clone(), run.clone());
        let stream = {
            let mut runs = lock(&self.runs);
            if ended { runs.remove(&key) } else { runs.get(&key).cloned() }
        };
        if let Some(stream) = stream {
            let over = records.iter().filter(|record| record.header.name == Name::end());
            let mut silenced = lock(&stream.silenced);
            let before = silenced.len();
            silenced.extend(over.map(|record| record.header.session.clone()));
            if silenced.len() > before {
                // What was written and not read yet is not read any more.
                lock(&stream.messages).retain(|_, message| !silenced.contains(&message.session));
            }
            drop(silenced);
            if stream.is_read() {
                let mut recent = lock(&stream.recent);
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
    fn forget_unused(&self, key: (Workspace, RunId)) {
        let mut runs = lock(&self.runs);
        let Entry::Occupied(entry) = runs.entry(key) else { return };
        let stream = entry.get();
        // Whoever reads or writes holds on to it, and nobody begins to while the map is locked.
        if Arc::strong_count(stream) == 1 && lock(&stream.messages).is_empty() && lock(&stream.silenced).is_empty() {
            entry.remove();
        }
    }

    /// Follows a run from after that sequence number on.
    pub fn subscribe(self: &Arc<Self>, workspace: &Workspace, run: &RunId, after: u64) -> Subscription {
        let stream = self.stream(workspace, run);
        stream.readers.fetch_add(1, Ordering::SeqCst);
        Subscription {
            place: (workspace.clone(), run.clone()),
            hub: Arc::clone(self),
            seen: stream.news(),
            stream,
            after,
            ready: VecDeque::new(),
            offsets: HashMap::new(),
            caught_up: false,
            batch: Subscription::FIRST,
        }
    }
}

/// One session's way into its run's stream.
#[derive(Debug)]
pub struct TextWriter {
    stream: Arc<RunStream>,
    session: SessionId,
}

impl TextWriter {
    /// More text of an open message. Never waits.
    pub fn text(&self, message_id: &Arc<str>, kind: TextKind, text: &str) {
        // Held until the text is in its place: the end of the session must not come between.
        let silenced = lock(&self.stream.silenced);
        if silenced.contains(&self.session) {
            return;
        }
        {
            let mut messages = lock(&self.stream.messages);
            let message = messages.entry(Arc::clone(message_id)).or_insert_with(|| OpenMessage {
                tick: self.stream.news().ticks,
                session: self.session.clone(),
                kind,
                text: String::new(),
            });
            message.text.push_str(text);
        }
        self.stream.tell(|news| news.ticks += 1);
    }

    /// These messages are abandoned.
    pub fn abandon(&self, ids: &[&Arc<str>]) {
        let mut messages = lock(&self.stream.messages);
        for id in ids {
            messages.remove(*id);
        }
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
        body.as_ended().and_then(|ended| ended.answer.as_ref()).map(|answer| answer.text().len()),
    ];
    lengths.into_iter().flatten().sum()
}

/// One reader's place in a run's stream.
#[derive(Debug)]
pub struct Subscription {
    hub: Arc<Hub>,
    place: (Workspace, RunId),
    stream: Arc<RunStream>,
    /// The news at the last look.
    seen: News,
    after: u64,
    ready: VecDeque<Arc<Record>>,
    offsets: HashMap<(Arc<str>, u64), usize>,
    caught_up: bool,
    batch: usize,
}

impl Subscription {
    /// How many records are fetched at first, and at most.
    const FIRST: usize = 4;
    const BATCH: usize = 64;
    /// More are fetched as long as their texts have no more bytes.
    const LITTLE: usize = 64 * 1024;

    /// The workspace and the run that is followed.
    pub fn place(&self) -> (&Workspace, &RunId) {
        (&self.place.0, &self.place.1)
    }

    /// The next item; waits for it. Records come before text that was written after them.
    pub async fn next(&mut self, journal: &dyn Journal) -> Result<Item, JournalError> {
        loop {
            if let Some(item) = self.look(journal).await? {
                return Ok(item);
            }
            self.changed().await;
        }
    }

    /// Waits until there may be more than there was at the last look.
    pub async fn changed(&mut self) {
        loop {
            // Made before the look: what is told in between is not missed.
            let told = self.stream.told.notified();
            if self.stream.news() != self.seen {
                return;
            }
            told.await;
        }
    }

    /// The next item, if there is one by now.
    pub async fn look(&mut self, journal: &dyn Journal) -> Result<Option<Item>, JournalError> {
        loop {
            if let Some(record) = self.ready.pop_front() {
                self.after = record.header.seq;
                self.skip_messages_of(&record);
                return Ok(Some(Item::Record(record)));
            }
            let news = self.stream.news();
            self.seen = news;
            if self.caught_up && news.seq > self.after {
                self.ready.extend(self.stream.recent_after(self.after));
                if !self.ready.is_empty() {
                    continue;
                }
            }
            if !self.caught_up || news.seq > self.after {
                let records = journal.events(&self.place.0, &self.place.1, self.after, self.batch).await?;
                self.caught_up = records.len() < self.batch;
                // Records may be large, and wait here for a reader that may be slow.
                let size: usize = records.iter().map(|record| size_of_texts(record)).sum();
                self.batch = if size <= Self::LITTLE { (self.batch * 2).min(Self::BATCH) } else { 1 };
                self.ready.extend(records);
                if !self.ready.is_empty() {
                    continue;
                }
            }
            // Records that came meanwhile go before the text that was written after them.
            if self.stream.news().seq > news.seq {
                continue;
            }
            return Ok(self.next_text());
        }
    }

    /// A record brings its messages whole. One that was read from the journal may be ahead of the news of its commit,
    /// and its messages still be open: nothing more of them is for this reader.
    fn skip_messages_of(&mut self, record: &Record) {
        let messages = lock(&self.stream.messages);
        for id in messages_of(record) {
            if let Some(message) = messages.get(&id) {
                self.offsets.insert((id, message.tick), usize::MAX);
            }
        }
    }

    fn next_text(&mut self) -> Option<Item> {
        let messages = lock(&self.stream.messages);
        self.offsets.retain(|(id, tick), _| messages.get(id).is_some_and(|message| message.tick == *tick));
        let offset = |id: &Arc<str>, message: &OpenMessage| {
            self.offsets.get(&(Arc::clone(id), message.tick)).copied().unwrap_or(0)
        };
        // Oldest first: a thought is finished before the answer that follows it.
        let unread = messages.iter().filter(|(id, message)| offset(id, message) < message.text.len());
        let (id, message) = unread.min_by_key(|(_, message)| message.tick)?;
        let offset = self.offsets.insert((Arc::clone(id), message.tick), message.text.len()).unwrap_or(0);
        Some(Item::Text {
            session: message.session.clone(),
            message_id: Arc::clone(id),
            kind: message.kind,
            text: message.text[offset..].to_owned(),
        })
    }
}

impl Drop for Subscription {
    /// The last reader of a run that says nothing takes its stream along: nobody else would.
    fn drop(&mut self) {
        self.stream.readers.fetch_sub(1, Ordering::SeqCst);
        let mut runs = lock(&self.hub.runs);
        // One count is ours, one is the map's.
        let alone = Arc::strong_count(&self.stream) == 2 && lock(&self.stream.messages).is_empty();
        if alone && runs.get(&self.place).is_some_and(|stream| Arc::ptr_eq(stream, &self.stream)) {
            runs.remove(&self.place);
        }
    }
}

#[cfg(test)]
#[path = "hub_tests.rs"]
mod tests;
