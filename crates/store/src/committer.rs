//! The committer: one thread that checks commits against the contract and groups their flushes.
//!
//! Whatever waits is written as one batch and synced once, then the log's head; each caller is answered when both are on
//! disk. Being alone, the thread needs no locks and gives a total order.

use crate::cache::Cache;
use crate::head::{Head, HeadFile};
use crate::keys::{self, prefix};
use crate::log::{GROUP as GROUP_KEY, Leaf, LeafKind};
use crate::recovery::Aside;
use crate::request::{ConfigWrite, Erasing, LibraryTable, LibraryWrite, Reply, Request, TurnChanges};
use crate::state::{Shared, Turn};
use crate::tables::{TALLY, Tables, blob_key, said, unwritable};
use crate::tally::Tally;
use fjall::PersistMode;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use trellis_domain::merkle::Frontier;
use trellis_domain::run::RunSummary;
use trellis_domain::{RunId, SessionId, Timestamp, Workspace};
use trellis_orchestrator::ledger::{Prepared, Salts, SessionHead, Stored, prepare};
use trellis_orchestrator::ports::{Commit, Committed, JournalError, Outcome, SetAside, TurnKey};

/// At most this many requests share a flush.
const GROUP: usize = 256;
const CACHED_HEADS: usize = 1024;
const CACHED_RUNS: usize = 1024;

pub(crate) struct Committer {
    /// The folder, for those who are told that it cannot be written.
    folder: PathBuf,
    tables: Tables,
    shared: Arc<Shared>,
    head: HeadFile,
    group: u64,
    log: Frontier,
    heads: Cache<(Workspace, SessionId), SessionHead>,
    runs: Cache<(Workspace, RunId), RunSummary>,
    unflushed: Unflushed,
    /// Open turns as of the requests handled so far; the shared set follows after the flush.
    turns: BTreeMap<TurnKey, Turn>,
    seeds: Salts,
    failed: Option<JournalError>,
    /// Why nothing that anybody relies on is written, if the folder is only read.
    only_read: Option<JournalError>,
    /// The newest record's time, which is a sign of life.
    newest: Timestamp,
}

/// What the group under way has touched. On disk it is still as it was before, so none of this may be forgotten until the
/// group is flushed, however much it is.
#[derive(Default)]
struct Unflushed {
    heads: HashMap<(Workspace, SessionId), SessionHead>,
    runs: HashMap<(Workspace, RunId), RunSummary>,
    documents: HashMap<DocumentPlace, Option<Vec<u8>>>,
    tally: Option<Tally>,
}

/// Where a row of the library lies.
type DocumentPlace = (LibraryTable, Vec<u8>);

/// An answer that waits for the flush.
enum FlushedAnswer {
    Commit(Reply<Outcome>, Box<AfterFlush>),
    Conflict(Reply<Outcome>),
    Done(Reply<()>),
    Erased(Reply<u64>, u64),
    /// Turns that are set aside; true if the run counts as ended by that.
    Aside(Reply<()>, Vec<TurnKey>, bool),
}

/// What becomes visible once it is durable.
struct AfterFlush {
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
    pub(crate) fn new(
        folder: &Path,
        tables: Tables,
        shared: Arc<Shared>,
        head: HeadFile,
        log: Frontier,
        group: u64,
        seeds: Salts,
    ) -> Self {
        let turns = shared.turns().clone();
        let (heads, runs) = (Cache::new(CACHED_HEADS), Cache::new(CACHED_RUNS));
        let (unflushed, newest) = (Unflushed::default(), Timestamp::default());
        let (failed, only_read) = (None, None);
        Self {
            folder: folder.to_owned(),
            tables,
            shared,
            head,
            group,
            log,
            heads,
            runs,
            unflushed,
            turns,
            seeds,
            failed,
            only_read,
            newest,
        }
    }

    /// From now on whoever wants something kept is told this. What the program notes for itself, such as the configuration
    /// as it was read or brought up to date, is still written: it goes with the process.
    pub(crate) fn only_keep_for_itself(&mut self, reason: JournalError) {
        self.only_read = Some(reason);
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
            && let Err(error) = self.tables.persist()
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
            let admitted = if let Some(reason) = &self.only_read { request.unless_kept(reason) } else { Some(request) };
            let Some(request) = admitted else { continue };
            match request {
                Request::Commit(commit, reply) => match self.commit(*commit, &mut batch) {
                    Ok(Some(effects)) => answers.push(FlushedAnswer::Commit(reply, Box::new(effects))),
                    Ok(None) => answers.push(FlushedAnswer::Conflict(reply)),
                    Err(error) => drop(reply.send(Err(error))),
                },
                Request::Turns(changes, reply) => {
                    self.change_turns(changes, &mut batch);
                    answers.push(FlushedAnswer::Done(reply));
                }
                Request::SetAside(aside, reply) => answers.push(self.set_aside(*aside, reply, &mut batch)),
                Request::Config(writes, reply) => {
                    self.configure(writes, &mut batch);
                    answers.push(FlushedAnswer::Done(reply));
                }
                Request::Snapshot(workspace, hash, bytes, reply) => {
                    batch.insert(&self.tables.blobs, blob_key(&workspace, hash), bytes);
                    answers.push(FlushedAnswer::Done(reply));
                }
                Request::Library(writes, reply) => match self.file(writes, &mut batch) {
                    Ok(()) => answers.push(FlushedAnswer::Done(reply)),
                    Err(error) => drop(reply.send(Err(error))),
                },
                Request::Erase(erasing, reply) => match self.erase(erasing, &mut batch) {
                    Ok(number) => answers.push(FlushedAnswer::Erased(reply, number)),
                    Err(error) => drop(reply.send(Err(error))),
                },
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

    fn flush(&mut self, mut batch: fjall::OwnedWriteBatch) -> Result<(), JournalError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        if batch.is_empty() {
            return Ok(());
        }
        self.group += 1;
        batch.insert(&self.tables.index, GROUP_KEY, self.group.to_be_bytes());
        let head = Head { group: self.group, size: self.log.size(), root: self.log.root() };
        let written = batch.commit().map_err(said);
        let written = written.and_then(|()| self.head.write(head).map_err(|error| error.to_string()));
        if let Err(reason) = written {
            // What is in memory may be ahead of the disk now, and nobody knows what is on it: nothing more is accepted.
            let error = unwritable(&self.folder, &reason);
            self.failed = Some(error.clone());
            self.shared.fail(error.clone());
            return Err(error);
        }
        self.tables.wait_for_room();
        let Unflushed { heads, runs, documents: _, tally: _ } = std::mem::take(&mut self.unflushed);
        for (place, head) in heads {
            self.heads.put(place, head, 1);
        }
        for (place, run) in runs {
            self.runs.put(place, run, 1);
        }
        Ok(())
    }

    fn answer(&self, answer: FlushedAnswer, result: &Result<(), JournalError>) {
        // A caller that has gone away does not need its answer.
        match (answer, result) {
            (FlushedAnswer::Commit(reply, _) | FlushedAnswer::Conflict(reply), Err(error)) => {
                drop(reply.send(Err(error.clone())));
            }
            (FlushedAnswer::Done(reply) | FlushedAnswer::Aside(reply, ..), Err(error)) => {
                drop(reply.send(Err(error.clone())));
            }
            (FlushedAnswer::Erased(reply, _), Err(error)) => drop(reply.send(Err(error.clone()))),
            (FlushedAnswer::Erased(reply, number), Ok(())) => drop(reply.send(Ok(number))),
            (FlushedAnswer::Aside(reply, turns, ended), Ok(())) => {
                self.shared.set_aside(&turns, ended);
                drop(reply.send(Ok(())));
            }
            (FlushedAnswer::Conflict(reply), Ok(())) => drop(reply.send(Ok(Outcome::Conflict))),
            (FlushedAnswer::Done(reply), Ok(())) => drop(reply.send(Ok(()))),
            (FlushedAnswer::Commit(reply, effects), Ok(())) => {
                let AfterFlush { workspace, committed, sizes, closed, began, ended, finished } = *effects;
                self.shared.publish(&workspace, &committed, &sizes, &closed, began, ended);
                if finished {
                    self.shared.finished.notify_one();
                }
                drop(reply.send(Ok(Outcome::Committed(committed))));
            }
        }
    }

    /// Applies the contract and adds what it writes to the batch. None means conflict.
    fn commit(
        &mut self,
        commit: Commit,
        batch: &mut fjall::OwnedWriteBatch,
    ) -> Result<Option<AfterFlush>, JournalError> {
        let (workspace, run) = (commit.scope.workspace.clone(), commit.run.clone());
        let mut look = CommitterStored { committer: self, workspace: &workspace, run: &run };
        let Some(prepared) = prepare(commit, &mut look)? else { return Ok(None) };
        Ok(Some(self.write(&workspace, prepared, batch)))
    }

    fn write(&mut self, workspace: &Workspace, prepared: Prepared, batch: &mut fjall::OwnedWriteBatch) -> AfterFlush {
        let Prepared { version, records, summary, heads, began, closed, opened } = prepared;
        let mut places: HashMap<SessionId, u16> = HashMap::new();
        let mut sizes = Vec::with_capacity(records.len());
        let mut written = Vec::with_capacity(records.len());
        for prepared in records {
            let header = &prepared.record.header;
            let place = places.entry(header.session.clone()).or_default();
            let key = keys::record(workspace, &header.session, header.version, *place);
            *place += 1;
            let value = keys::event_value(self.log.size(), &key);
            batch.insert(&self.tables.index, keys::event(workspace, &header.run, header.seq), value);
            self.append(LeafKind::Record, key.clone(), &prepared.bytes, batch);
            sizes.push(prepared.bytes.len() + prepared.blobs.iter().map(|(_, text)| text.len()).sum::<usize>());
            batch.insert(&self.tables.records, key, prepared.bytes);
            for (hash, text) in prepared.blobs {
                batch.insert(&self.tables.blobs, blob_key(workspace, hash), text.as_bytes());
            }
            written.push(prepared.record);
        }
        for record in &written {
            self.newest = self.newest.max(record.header.time);
        }
        for (session, head) in heads {
            self.unflushed.heads.insert((workspace.clone(), session), head);
        }
        let index = &self.tables.index;
        let row = serde_json::to_vec(&summary).expect("a summary is always JSON");
        batch.insert(index, keys::run(workspace, &summary.run), row);
        let root_end = |record: &Arc<trellis_domain::record::Record>| {
            record.header.session == summary.run && record.header.name == trellis_domain::record::Name::end()
        };
        let ended = written.iter().any(root_end);
        for (key, value) in crate::listing::rows(&summary, began, ended) {
            batch.insert(index, key, value);
        }
        let finished = summary.state.is_end() && !written.is_empty();
        if finished {
            let run = keys::finished(workspace, &summary.run);
            batch.insert(index, keys::numbered(prefix::FINISHED, self.log.size()), run);
        }
        for turn in &closed {
            batch.remove(index, keys::turn(turn));
            self.turns.remove(turn);
        }
        for turn in &opened {
            batch.insert(index, keys::turn(&turn.key), Turn::fresh(turn).to_bytes());
            self.turns.insert(turn.key.clone(), Turn::fresh(turn));
        }
        self.unflushed.runs.insert((workspace.clone(), summary.run.clone()), summary);
        let committed = Committed { version, records: written, opened };
        AfterFlush { workspace: workspace.clone(), committed, sizes, closed, began, ended, finished }
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
    fn set_aside(&mut self, aside: SetAside, reply: Reply<()>, batch: &mut fjall::OwnedWriteBatch) -> FlushedAnswer {
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
        let known = CommitterStored { committer: self, workspace: &workspace, run: &run }.run().ok().flatten();
        let open = known.filter(|summary| whole && !summary.state.is_end());
        let ended = open.is_some();
        if let Some(mut summary) = open {
            (summary.state, summary.ended) = (state, Some(time));
            let row = serde_json::to_vec(&summary).expect("a summary is always JSON");
            batch.insert(&self.tables.index, keys::run(&workspace, &run), row);
            self.unflushed.runs.insert((workspace, run), summary);
        }
        FlushedAnswer::Aside(reply, turns, ended)
    }

    fn configure(&mut self, writes: Vec<ConfigWrite>, batch: &mut fjall::OwnedWriteBatch) {
        for ConfigWrite { key, value, logged } in writes {
            match value {
                Some(value) => {
                    if logged {
                        self.append(LeafKind::Config, key.clone(), &value, batch);
                    }
                    batch.insert(&self.tables.config, key, value);
                }
                None => batch.remove(&self.tables.config, key),
            }
        }
    }

    /// Documents come and go, so the log does not name them; their tally tells if one is missing or changed.
    fn file(&mut self, writes: Vec<LibraryWrite>, batch: &mut fjall::OwnedWriteBatch) -> Result<(), JournalError> {
        let mut tally = self.unflushed.tally.map_or_else(|| self.tables.read().tally(), Ok)?;
        let mut rows = Vec::with_capacity(writes.len());
        for LibraryWrite { table, key, value } in writes {
            let place = (table, key);
            if let Some(before) = self.document_row(&place, &rows)? {
                tally.remove(place.0, &place.1, &before);
            }
            if let Some(value) = &value {
                tally.add(place.0, &place.1, value);
            }
            rows.push((place, value));
        }
        for ((table, key), value) in rows {
            match &value {
                Some(value) => batch.insert(self.tables.table(table), key.clone(), value.as_slice()),
                None => batch.remove(self.tables.table(table), key.clone()),
            }
            self.unflushed.documents.insert((table, key), value);
        }
        batch.insert(&self.tables.index, TALLY, tally.to_bytes());
        self.unflushed.tally = Some(tally);
        Ok(())
    }

    /// A row of the library as of the requests handled so far.
    fn document_row(
        &self,
        place: &DocumentPlace,
        newer: &[(DocumentPlace, Option<Vec<u8>>)],
    ) -> Result<Option<Vec<u8>>, JournalError> {
        let newer = newer.iter().rev().find(|(newer, _)| newer == place).map(|(_, value)| value);
        if let Some(value) = newer.or_else(|| self.unflushed.documents.get(place)) {
            return Ok(value.clone());
        }
        let stored = self.tables.read().get(self.tables.table(place.0), &place.1)?;
        Ok(stored.map(|value| value.to_vec()))
    }

    /// Replaces rows by what is left of them. The number of the entry that tells of it.
    fn erase(&mut self, erasing: Erasing, batch: &mut fjall::OwnedWriteBatch) -> Result<u64, JournalError> {
        let number = self.log.size();
        let erased = erasing(number)?;
        for (key, value) in erased.records {
            batch.insert(&self.tables.records, key, value);
        }
        for key in erased.blobs {
            batch.remove(&self.tables.blobs, key);
        }
        let summary = erased.run;
        let (workspace, run) = (summary.workspace.clone(), summary.run.clone());
        let row = serde_json::to_vec(&summary).expect("a summary is always JSON");
        batch.insert(&self.tables.index, keys::run(&workspace, &run), row);
        for (key, value) in crate::listing::rows(&summary, true, summary.state.is_end()) {
            batch.insert(&self.tables.index, key, value);
        }
        // The graph reads the run anew.
        let finished = keys::finished(&workspace, &run);
        batch.insert(&self.tables.index, keys::numbered(prefix::FINISHED, number + 1), finished);
        self.unflushed.runs.insert((workspace, run), summary);
        let key = keys::numbered(prefix::ERASURE, number);
        self.append(LeafKind::Erasure, key.clone(), &erased.entry, batch);
        batch.insert(&self.tables.index, key, erased.entry);
        Ok(number)
    }

    /// Adds an entry to the log that covers a row.
    fn append(&mut self, kind: LeafKind, key: Vec<u8>, value: &[u8], batch: &mut fjall::OwnedWriteBatch) {
        let number = self.log.size();
        let nodes = self.log.append(kind.hash(&key, value));
        let leaf = Leaf { kind, key, nodes };
        batch.insert(&self.tables.index, keys::numbered(prefix::LEAF, number), leaf.to_bytes());
    }
}

/// The contract's look at what is stored, through the committer's caches.
struct CommitterStored<'a> {
    committer: &'a mut Committer,
    workspace: &'a Workspace,
    run: &'a RunId,
}

impl Stored for CommitterStored<'_> {
    type Error = JournalError;

    fn session(&mut self, session: &SessionId) -> Result<SessionHead, JournalError> {
        let place = (self.workspace.clone(), session.clone());
        if let Some(head) = self.committer.unflushed.heads.get(&place) {
            return Ok(head.clone());
        }
        if let Some(head) = self.committer.heads.get(&place) {
            return Ok(head.clone());
        }
        let head = self.committer.tables.read().session_head(self.workspace, session)?;
        self.committer.heads.put(place, head.clone(), 1);
        Ok(head)
    }

    fn run(&mut self) -> Result<Option<RunSummary>, JournalError> {
        let place = (self.workspace.clone(), self.run.clone());
        if let Some(summary) = self.committer.unflushed.runs.get(&place) {
            return Ok(Some(summary.clone()));
        }
        if let Some(summary) = self.committer.runs.get(&place) {
            return Ok(Some(summary.clone()));
        }
        self.committer.tables.read().run(self.workspace, self.run)
    }

    fn is_open(&mut self, turn: &TurnKey) -> Result<bool, JournalError> {
        Ok(self.committer.turns.contains_key(turn))
    }

    fn seed(&mut self) -> [u8; 32] {
        self.committer.seeds.next_seed()
    }
}
