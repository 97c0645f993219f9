//! One reader of a run: its records in order and without a gap, and the text between them.

use super::texts::OpenMessage;
use super::{Hub, Item, News, Place, RunStream, size_of_texts};
use crate::messages::messages_of;
use crate::ports::{Journal, JournalError};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use trellis_domain::record::Record;
use trellis_domain::{RunId, Timestamp, Workspace};

/// One reader's place in a run's stream.
#[derive(Debug)]
pub struct Subscription {
    hub: Arc<Hub>,
    place: Place,
    stream: Arc<RunStream>,
    /// The news at the last look.
    seen: News,
    after: u64,
    ready: VecDeque<Arc<Record>>,
    offsets: HashMap<(Arc<str>, u64), usize>,
    caught_up: bool,
    batch: usize,
    /// When the journal is looked at, whatever was heard. None if nothing happens that is not heard.
    poll_at: Option<Timestamp>,
}

impl Subscription {
    /// How many records are fetched at first, and at most.
    const FIRST: usize = 4;
    const BATCH: usize = 64;
    /// More are fetched as long as their texts have no more bytes.
    const LITTLE: usize = 64 * 1024;

    pub(super) fn new(hub: &Arc<Hub>, place: Place, stream: Arc<RunStream>, after: u64) -> Self {
        Self {
            place,
            hub: Arc::clone(hub),
            seen: stream.news(),
            stream,
            after,
            ready: VecDeque::new(),
            offsets: HashMap::new(),
            caught_up: false,
            batch: Self::FIRST,
            poll_at: hub.peers.as_ref().map(|peers| peers.next_poll()),
        }
    }

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
        let Some((peers, poll_at)) = self.hub.peers.clone().zip(self.poll_at) else { return self.heard_here().await };
        // A clock that is put back must not put it off.
        let poll_at = *self.poll_at.insert(poll_at.min(peers.next_poll()));
        let wait = Duration::from_millis(poll_at.ms_since(peers.world.now()));
        if !wait.is_zero() {
            tokio::select! {
                biased;
                () = self.heard_here() => return,
                () = peers.world.sleep(wait) => {}
            }
        }
        // What others did may have gone unheard, and so may this.
        self.caught_up = false;
        self.poll_at = Some(peers.next_poll());
        let anew = self.stream.gap.swap(false, Ordering::SeqCst);
        self.hub.tell_of_follower(&self.place, anew);
    }

    /// Waits until this process knows of more than at the last look.
    async fn heard_here(&self) {
        loop {
            // Made before the look: a change in between is not missed.
            let changed = self.stream.changed.notified();
            if self.stream.news() != self.seen {
                return;
            }
            changed.await;
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
            self.caught_up &= news.missed == self.seen.missed;
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
        if self.hub.peers.is_some() {
            // Nor for any other, if somebody else has committed it.
            return self.stream.bring_whole(record);
        }
        let texts = self.stream.texts.lock();
        for id in messages_of(record) {
            if let Some(message) = texts.get(&id) {
                self.offsets.insert((id, message.tick), usize::MAX);
            }
        }
    }

    fn next_text(&mut self) -> Option<Item> {
        let texts = self.stream.texts.lock();
        self.offsets.retain(|(id, tick), _| texts.get(id).is_some_and(|message| message.tick == *tick));
        let offset = |id: &Arc<str>, message: &OpenMessage| {
            self.offsets.get(&(Arc::clone(id), message.tick)).copied().unwrap_or(0)
        };
        // Oldest first: a thought is finished before the answer that follows it.
        let unread = texts.iter().filter(|(id, message)| offset(id, message) < message.text.len());
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
        let mut runs = self.hub.runs.lock();
        if self.stream.readers.fetch_sub(1, Ordering::SeqCst) == 1 {
            // What others write is kept for readers only.
            self.stream.texts.lock().retain(|message| message.by.is_none());
        }
        // One count is ours, one is the map's.
        let alone = Arc::strong_count(&self.stream) == 2 && self.stream.texts.lock().is_empty();
        if alone && runs.get(&self.place).is_some_and(|stream| Arc::ptr_eq(stream, &self.stream)) {
            runs.remove(&self.place);
        }
    }
}
