//! The committer: one thread that checks commits against the contract and groups their flushes.
//!
//! Whatever waits is written as one batch and synced once; each caller is answered when its commit is on
//! disk. Being alone, the thread needs no locks and gives a total order.

use crate::cache::Cache;
use crate::chain::{Link, Table};
use crate::folder::{HighWater, Mark};
use crate::keys::{self, prefix};
use crate::recovery::Aside;
use crate::request::{ConfigWrite, LibraryWrite, Reply, Request, TurnChanges};
use crate::state::{Shared, Turn};
use crate::tables::{Tables, blob_key};
use fjall::PersistMode;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use trellis_domain::run::RunSummary;
use trellis_domain::{RunId, SessionId, Timestamp, Workspace};
use trellis_orchestrator::ledger::{Prepared, SessionHead, Stored, prepare};
use trellis_orchestrator::ports::{Commit, Committed, JournalError, Outcome, SetAside, TurnKey};

/// At most this many requests share a flush.
const GROUP: usize = 256;
const CACHED_HEADS: usize = 4096;
const CACHED_RUNS: usize = 4096;

pub(crate) struct Committer {
    tables: Tables,
    shared: Arc<Shared>,
    high_water: HighWater,
    mark: Mark,
    heads: Cache<(Workspace, SessionId), SessionHead>,
    runs: Cache<(Workspace, RunId), RunSummary>,
    /// Open turns as of the requests handled so far; the shared set follows after the flush.
    turns: HashMap<TurnKey, Turn>,
    failed: Option<JournalError>,
    /// The newest record's time, which is a sign of life.
    newest: Timestamp,
}

/// An answer that waits for the flush.
enum Answer {
    Commit(Reply<Outcome>, Box<Effects>),
    Conflict(Reply<Outcome>),
    Done(Reply<()>),
    /// Turns that are set aside; true if the run counts as ended by that.
    Aside(Reply<()>, Vec<TurnKey>, bool),
}

/// What becomes visible once it is durable.
struct Effects {
    workspace: Workspace,
    committed: Committed,
    sizes: Vec<usize>,
    closed: Vec<TurnKey>,
    began: bool,
    ended: bool,
    /// There are records for the graph to read.
    finished: bool,
}

impl Committer {
    pub(crate) fn new(tables: Tables, shared: Arc<Shared>, high_water: HighWater, mark: Mark) -> Self {
        let turns = shared.turns().clone();
        let (heads, runs) = (Cache::new(CACHED_HEADS), Cache::new(CACHED_RUNS));
        Self { tables, shared, high_water, mark, heads, runs, turns, failed: None, newest: Timestamp::default() }
    }

    /// Serves until it is told to stop or nobody can ask any more.
    pub(crate) fn run(mut self, requests: &Receiver<Request>) {
        while let Ok(first) = requests.recv() {
            let mut group = vec![first];
            while group.len() < GROUP
                && let Ok(request) = requests.try_recv()
            {
                group.push(request);
            }
            if self.serve(group) {
                break;
            }
        }
        self.finish();
    }

    fn finish(&self) {
        if self.failed.is_none()
            && let Err(error) = self
                .tables
                .persist()
                .map_err(|error| error.to_string())
                .and_then(|()| self.high_water.sync().map_err(|error| error.to_string()))
        {
            tracing::warn!(%error, "the journal could not be synced while closing");
        }
    }

    /// Handles a group of requests with one flush. True if it was told to stop.
    fn serve(&mut self, group: Vec<Request>) -> bool {
        let mut stop = false;
        let mut answers = Vec::with_capacity(group.len());
        let mut batch = self.tables.database.batch().durability(Some(PersistMode::SyncData));
        for request in group {
            match request {
                Request::Commit(commit, reply) => match self.commit(*commit, &mut batch) {
                    Ok(Some(effects)) => answers.push(Answer::Commit(reply, Box::new(effects))),
                    Ok(None) => answers.push(Answer::Conflict(reply)),
                    Err(error) => drop(reply.send(Err(error))),
                },
                Request::Turns(changes, reply) => {
                    self.change_turns(changes, &mut batch);
                    answers.push(Answer::Done(reply));
                }
                Request::SetAside(aside, reply) => answers.push(self.set_aside(*aside, reply, &mut batch)),
                Request::Config(writes, reply) => {
                    self.configure(writes, &mut batch);
                    answers.push(Answer::Done(reply));
                }
                Request::Snapshot(workspace, hash, bytes, reply) => {
                    batch.insert(&self.tables.blobs, blob_key(&workspace, hash), bytes);
                    answers.push(Answer::Done(reply));
                }
                Request::Library(writes, reply) => {
                    self.file(writes, &mut batch);
                    answers.push(Answer::Done(reply));
                }
                Request::Stop => stop = true,
            }
        }
        if let Some((key, row)) = self.shared.served().sign(self.newest) {
            batch.insert(&self.tables.index, key, row);
        }
        let result = self.flush(batch);
        for answer in answers {
            self.answer(answer, &result);
        }
        stop
    }

    fn flush(&mut self, batch: fjall::OwnedWriteBatch) -> Result<(), JournalError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let written = batch.commit().map_err(|error| error.to_string());
        let marked = written.and_then(|()| self.high_water.write(self.mark).map_err(|error| error.to_string()));
        if let Err(reason) = marked {
            // What is in memory may be ahead of the disk now: nothing more is accepted.
            self.failed = Some(JournalError::Write(reason));
        }
        self.failed.clone().map_or(Ok(()), Err)
    }

    fn answer(&self, answer: Answer, result: &Result<(), JournalError>) {
        // A caller that has gone away does not need its answer.
        match (answer, result) {
            (Answer::Commit(reply, _) | Answer::Conflict(reply), Err(error)) => drop(reply.send(Err(error.clone()))),
            (Answer::Done(reply) | Answer::Aside(reply, ..), Err(error)) => drop(reply.send(Err(error.clone()))),
            (Answer::Aside(reply, turns, ended), Ok(())) => {
                self.shared.set_aside(&turns, ended);
                drop(reply.send(Ok(())));
            }
            (Answer::Conflict(reply), Ok(())) => drop(reply.send(Ok(Outcome::Conflict))),
            (Answer::Done(reply), Ok(())) => drop(reply.send(Ok(()))),
            (Answer::Commit(reply, effects), Ok(())) => {
                let Effects { workspace, committed, sizes, closed, began, ended, finished } = *effects;
                self.shared.publish(&workspace, &committed, &sizes, &closed, began, ended);
                if finished {
                    self.shared.finished.notify_one();
                }
                drop(reply.send(Ok(Outcome::Committed(committed))));
            }
        }
    }

    /// Applies the contract and adds what it writes to the batch. None means conflict.
    fn commit(&mut self, commit: Commit, batch: &mut fjall::OwnedWriteBatch) -> Result<Option<Effects>, JournalError> {
        let (workspace, run) = (commit.scope.workspace.clone(), commit.run.clone());
        let mut look = Look { committer: self, workspace: &workspace, run: &run };
        let Some(prepared) = prepare(commit, &mut look)? else { return Ok(None) };
        Ok(Some(self.write(&workspace, prepared, batch)))
    }

    fn write(&mut self, workspace: &Workspace, prepared: Prepared, batch: &mut fjall::OwnedWriteBatch) -> Effects {
        let Prepared { version, records, summary, began, closed, opened } = prepared;
        let index = &self.tables.index;
        let mut link = Link::default();
        let mut places: HashMap<SessionId, u16> = HashMap::new();
        let mut sizes = Vec::with_capacity(records.len());
        let mut written = Vec::with_capacity(records.len());
        for prepared in records {
            let header = &prepared.record.header;
            let place = places.entry(header.session.clone()).or_default();
            let key = keys::record(workspace, &header.session, header.version, *place);
            *place += 1;
            batch.insert(index, keys::event(workspace, &header.run, header.seq), key.clone());
            link.add(Table::Records, key.clone(), &prepared.bytes);
            sizes.push(prepared.bytes.len() + prepared.blobs.iter().map(|(_, text)| text.len()).sum::<usize>());
            batch.insert(&self.tables.records, key, prepared.bytes);
            for (hash, text) in prepared.blobs {
                batch.insert(&self.tables.blobs, blob_key(workspace, hash), text.as_bytes());
            }
            written.push(prepared.record);
        }
        for record in &written {
            self.newest = self.newest.max(record.header.time);
            let place = (workspace.clone(), record.header.session.clone());
            if let Some(head) = self.heads.get(&place) {
                head.add(record);
            }
        }
        self.link(&link, batch);
        let index = &self.tables.index;
        let row = serde_json::to_vec(&summary).expect("a summary is always JSON");
        batch.insert(index, keys::run(workspace, &summary.run), row);
        if began {
            let lists = [
                Some(keys::listed_in(workspace)),
                summary.conversation.as_ref().map(|id| keys::conversation(workspace, id)),
            ];
            for list in lists.into_iter().flatten() {
                batch.insert(index, keys::listed(&list, summary.started, &summary.run), Vec::new());
            }
        }
        let root_end = |record: &Arc<trellis_domain::record::Record>| {
            record.header.session == summary.run && record.header.name == trellis_domain::record::Name::end()
        };
        let ended = written.iter().any(root_end);
        let finished = summary.state.is_end() && !written.is_empty();
        if finished {
            let run = keys::finished(workspace, &summary.run);
            batch.insert(index, keys::numbered(prefix::FINISHED, self.mark.number), run);
        }
        for turn in &closed {
            batch.remove(index, keys::turn(turn));
            self.turns.remove(turn);
        }
        for turn in &opened {
            batch.insert(index, keys::turn(&turn.key), Turn::fresh(turn).to_bytes());
            self.turns.insert(turn.key.clone(), Turn::fresh(turn));
        }
        self.runs.put((workspace.clone(), summary.run.clone()), summary, 1);
        let committed = Committed { version, records: written, opened };
        Effects { workspace: workspace.clone(), committed, sizes, closed, began, ended, finished }
    }

    fn change_turns(&mut self, changes: TurnChanges, batch: &mut fjall::OwnedWriteBatch) {
        for key in changes.turns {
            // One that was closed by a request before this one stays closed.
            let known = self.shared.turns().get(&key).cloned();
            if let Some((turn, known)) = self.turns.get_mut(&key).zip(known) {
                batch.insert(&self.tables.index, keys::turn(&key), known.to_bytes());
                *turn = known;
            }
        }
        for (key, row) in changes.rows {
            match row {
                Some(row) => batch.insert(&self.tables.index, key, row),
                None => batch.remove(&self.tables.index, key),
            }
        }
    }

    /// Closes turns without a record: what they belong to cannot be read.
    fn set_aside(&mut self, aside: SetAside, reply: Reply<()>, batch: &mut fjall::OwnedWriteBatch) -> Answer {
        let SetAside { workspace, run, session, reason, state, time } = aside;
        let whole = session == run;
        let concerned =
            |turn: &TurnKey| turn.scope.workspace == workspace && turn.run == run && (whole || turn.session == session);
        let turns: Vec<_> = self.turns.keys().filter(|turn| concerned(turn)).cloned().collect();
        let row = serde_json::to_vec(&Aside { reason, time }).expect("a reason is always JSON");
        for turn in &turns {
            batch.remove(&self.tables.index, keys::turn(turn));
            batch.insert(&self.tables.index, keys::aside(turn), row.clone());
            self.turns.remove(turn);
        }
        let known = Look { committer: self, workspace: &workspace, run: &run }.run().ok().flatten();
        let open = known.filter(|summary| whole && !summary.state.is_end());
        let ended = open.is_some();
        if let Some(mut summary) = open {
            (summary.state, summary.ended) = (state, Some(time));
            let row = serde_json::to_vec(&summary).expect("a summary is always JSON");
            batch.insert(&self.tables.index, keys::run(&workspace, &run), row);
            self.runs.put((workspace, run), summary, 1);
        }
        Answer::Aside(reply, turns, ended)
    }

    fn configure(&mut self, writes: Vec<ConfigWrite>, batch: &mut fjall::OwnedWriteBatch) {
        let mut link = Link::default();
        for ConfigWrite { key, value, chained } in writes {
            match value {
                Some(value) => {
                    if chained {
                        link.add(Table::Config, key.clone(), &value);
                    }
                    batch.insert(&self.tables.config, key, value);
                }
                None => batch.remove(&self.tables.config, key),
            }
        }
        self.link(&link, batch);
    }

    /// Documents come and go, so the chain counts what happens to them and does not name them: content that changes
    /// is found by its own hash.
    fn file(&mut self, writes: Vec<LibraryWrite>, batch: &mut fjall::OwnedWriteBatch) {
        for LibraryWrite { table, key, value } in writes {
            let table = self.tables.table(&table);
            match value {
                Some(value) => batch.insert(table, key, value),
                None => batch.remove(table, key),
            }
        }
        self.link(&Link::default(), batch);
    }

    /// Adds a link to the chain.
    fn link(&mut self, link: &Link, batch: &mut fjall::OwnedWriteBatch) {
        self.mark = link.after(self.mark);
        batch.insert(&self.tables.index, keys::numbered(prefix::CHAIN, self.mark.number), link.entry(self.mark));
    }
}

/// The contract's look at what is stored, through the committer's caches.
struct Look<'a> {
    committer: &'a mut Committer,
    workspace: &'a Workspace,
    run: &'a RunId,
}

impl Stored for Look<'_> {
    type Error = JournalError;

    fn session(&mut self, session: &SessionId) -> Result<SessionHead, JournalError> {
        let place = (self.workspace.clone(), session.clone());
        if let Some(head) = self.committer.heads.get(&place) {
            return Ok(head.clone());
        }
        let mut head = SessionHead::default();
        for record in self.committer.tables.read().session(self.workspace, session)? {
            head.add(&record);
        }
        self.committer.heads.put(place, head.clone(), 1);
        Ok(head)
    }

    fn run(&mut self) -> Result<Option<RunSummary>, JournalError> {
        if let Some(summary) = self.committer.runs.get(&(self.workspace.clone(), self.run.clone())) {
            return Ok(Some(summary.clone()));
        }
        self.committer.tables.read().run(self.workspace, self.run)
    }

    fn is_open(&mut self, turn: &TurnKey) -> Result<bool, JournalError> {
        Ok(self.committer.turns.contains_key(turn))
    }
}
