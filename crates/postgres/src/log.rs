//! The log as others see it: checkpoints, proofs, entries.

use crate::database::Database;
use crate::error::{OpenError, damaged};
use crate::journal::PostgresJournal;
use crate::reading::{Texts, hash, record, text, texts};
use crate::sequencer::{NODES, Needed, Nodes, Sequencer, number_of, root};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use tokio_postgres::Row;
use trellis_domain::config::without_secrets;
use trellis_domain::merkle::{self, Frontier};
use trellis_domain::record::{Lines, Record};
use trellis_domain::run::RunSummary;
use trellis_domain::{Hash, RunId, Workspace};
use trellis_orchestrator::checkpoint::Checkpoint;
use trellis_orchestrator::evidence::{Evidence, ProvenRecord, RedactedConfiguration};
use trellis_orchestrator::leaf::LeafKind;
use trellis_orchestrator::ledger::summary_of;
use trellis_orchestrator::log_key::LogKey;
use trellis_orchestrator::ports::{BoxFuture, JournalError, Log, LogEntry, LogError, Verdict};

/// The log of a database.
#[derive(Debug)]
pub struct PostgresLog {
    database: Database,
    sequencer: Arc<Sequencer>,
    key: LogKey,
}

/// Entries that are read at once.
const PAGE: u64 = 500;
/// More faults than this nobody reads.
const MOST_FAULTS: usize = 50;

/// What an entry covers, as it is stored now.
const COVERED: &str = "SELECT l.number, l.kind, l.key, l.nodes, r.stored, c.value \
    FROM leaves l LEFT JOIN records r ON r.workspace = l.workspace AND r.run = l.run AND r.seq = l.seq \
    LEFT JOIN config_changes c ON c.key = l.key WHERE l.number >= $1 AND l.number < $2 ORDER BY l.number";

impl PostgresLog {
    /// The log of a database, with its key: the first process makes one.
    pub async fn open(journal: &PostgresJournal) -> Result<Self, OpenError> {
        let database = journal.database().clone();
        let make = || LogKey::make().ok_or_else(|| OpenError::Key("there is no randomness to make one".to_owned()));
        let read = "SELECT pkcs8 FROM log_key";
        let mut row = database.find(read, &[]).await?;
        if row.is_none() {
            let insert = "INSERT INTO log_key VALUES (true, $1) ON CONFLICT DO NOTHING";
            database.execute(insert, &[&make()?]).await?;
            row = database.find(read, &[]).await?;
        }
        let stored = row.ok_or_else(|| OpenError::Key("it is missing".to_owned()))?;
        let key = LogKey::of_stored(stored.get(0)).ok_or_else(|| {
            OpenError::Key(
                "it cannot be read; put the table log_key back from a backup, or empty it to have another key made"
                    .to_owned(),
            )
        })?;
        Ok(Self { database, sequencer: Arc::clone(journal.sequencer()), key })
    }

    /// How much is committed and not in the log yet.
    pub async fn behind(&self) -> Result<u64, JournalError> {
        self.sequencer.behind().await
    }

    async fn size(&self) -> Result<u64, JournalError> {
        let row = self.database.find("SELECT coalesce(max(number) + 1, 0) FROM leaves", &[]).await?;
        Ok(row.map_or(0, |row| row.get::<_, i64>(0).cast_unsigned()))
    }

    async fn nodes(&self, needed: &Needed) -> Result<Nodes, JournalError> {
        Ok(Nodes::of(&self.database.query(NODES, &[&needed.leaves()]).await?))
    }

    /// Everything that was committed before is in it.
    async fn now(&self) -> Result<Checkpoint, JournalError> {
        self.sequencer.catch_up().await?;
        let size = self.size().await?;
        let nodes = self.nodes(&Needed::of(|look| merkle::root(size, look))).await?;
        Ok(Checkpoint { origin: self.key.origin().to_owned(), size, root: root(size, &nodes)? })
    }

    async fn entries_of(&self, from: u64, limit: usize) -> Result<Vec<LogEntry>, JournalError> {
        let to = from.saturating_add(limit as u64).min(i64::MAX.cast_unsigned());
        let rows = self.database.query(COVERED, &[&from.cast_signed(), &to.cast_signed()]).await?;
        rows.iter().map(|row| Entry::of(row).and_then(|entry| entry.shown())).collect()
    }

    /// Recomputes the tree from what is stored.
    async fn compared(&self, checkpoint: &Checkpoint) -> Result<Verdict, JournalError> {
        self.sequencer.catch_up().await?;
        let size = self.size().await?;
        let mut verdict = Verdict { covered: checkpoint.size, size, ..Verdict::default() };
        if size < checkpoint.size {
            let fault = format!("{} of {} entries are missing", checkpoint.size - size, checkpoint.size);
            verdict.faults.push(fault);
            return Ok(verdict);
        }
        let (mut edge, mut at_checkpoint) = (Frontier::default(), None);
        'pages: while edge.size() < size {
            let (from, to) = (edge.size(), (edge.size() + PAGE).min(size));
            let rows = self.database.query(COVERED, &[&from.cast_signed(), &to.cast_signed()]).await?;
            let mut rows = rows.iter().peekable();
            for number in from..to {
                if edge.size() == checkpoint.size {
                    at_checkpoint = Some(edge.root());
                }
                let row = rows.next_if(|row| row.get::<_, i64>(0).cast_unsigned() == number);
                let fault = if let Ok(Some(entry)) = row.map(Entry::of).transpose() {
                    entry.join(&mut edge)
                } else {
                    edge.append(Hash::ZERO);
                    Some(format!("entry {number} of the log is missing or cannot be read"))
                };
                verdict.faults.extend(fault);
                if verdict.faults.len() >= MOST_FAULTS {
                    break 'pages;
                }
            }
        }
        let now = edge.root();
        if at_checkpoint.unwrap_or(now) != checkpoint.root {
            let fault = "the log was rewritten: its beginning is not the one that the checkpoint covers";
            verdict.faults.push(fault.to_owned());
        }
        verdict.root = Some(now);
        Ok(verdict)
    }

    async fn gathered(&self, place: (&Workspace, &RunId), most: usize) -> Result<Option<Evidence>, LogError> {
        let (workspace, run) = (place.0.as_str(), place.1.as_str());
        let bytes = "SELECT coalesce(sum(octet_length(stored)), 0)::int8, count(*) FROM records WHERE workspace = $1 AND run = $2";
        let sizes = self.database.find(bytes, &[&workspace, &run]).await?;
        let (bytes, count) = sizes.map_or((0, 0), |row| (row.get::<_, i64>(0), row.get::<_, i64>(1)));
        let line = self.line(place).await;
        if count == 0 && matches!(line, Ok(None)) {
            return Ok(None);
        }
        let mut room = Room { most, left: most };
        room.take(usize::try_from(bytes).unwrap_or(usize::MAX))?;
        let checkpoint = self.now().await?;
        let query = "SELECT r.seq, r.stored, r.texts, l.number, r.session FROM records r \
            LEFT JOIN leaves l ON l.workspace = r.workspace AND l.run = r.run AND l.seq = r.seq \
            WHERE r.workspace = $1 AND r.run = $2 ORDER BY r.seq";
        let rows = self.database.query(query, &[&workspace, &run]).await?;
        let leaf =
            |row: &Row| row.get::<_, Option<i64>>(3).map(i64::cast_unsigned).filter(|leaf| *leaf < checkpoint.size);
        let mut needed = Needed::default();
        for leaf in rows.iter().filter_map(leaf) {
            needed.and(Needed::of(|look| merkle::inclusion(leaf, checkpoint.size, look)));
        }
        let nodes = self.nodes(&needed).await?;
        let texts = self.texts_of(place, &rows, &mut room).await?;
        let mut evidence = Evidence { checkpoint: self.key.sign(&checkpoint), ..Evidence::default() };
        for (row, expected) in rows.iter().zip(1_i64..) {
            let Some(leaf) = leaf(row).filter(|_| row.get::<_, i64>(0) == expected) else {
                evidence.faults.push(format!("event {expected} has no record, or the log does not name it"));
                continue;
            };
            let proof = merkle::inclusion(leaf, checkpoint.size, |level, index| nodes.get(level, index))?;
            evidence.entries.push(proven(row.get(1), leaf, proof, &texts));
        }
        let records: Vec<_> = rows.iter().filter_map(|row| record(row.get(1), &texts).ok()).collect();
        self.derived(place, line, (&rows, &records), &mut evidence, &mut room).await?;
        Ok(Some(evidence))
    }

    /// The large texts of a run, if there is room for them.
    async fn texts_of(
        &self,
        (workspace, _): (&Workspace, &RunId),
        rows: &[Row],
        room: &mut Room,
    ) -> Result<Texts, LogError> {
        let hashes: Vec<&[u8]> = rows.iter().flat_map(|row| row.get::<_, &[u8]>(2).chunks(32)).collect();
        let query = "SELECT coalesce(sum(octet_length(text)), 0)::int8 FROM texts WHERE workspace = $1 AND hash = ANY ($2::bytea[])";
        let row = self.database.find(query, &[&workspace.as_str(), &hashes]).await?;
        let bytes = row.map_or(0, |row| row.get::<_, i64>(0));
        room.take(usize::try_from(bytes).unwrap_or(usize::MAX))?;
        Ok(texts(&self.database, workspace, rows.iter().map(|row| row.get(2))).await?)
    }

    async fn line(&self, (workspace, run): (&Workspace, &RunId)) -> Result<Option<RunSummary>, JournalError> {
        let query = "SELECT summary FROM runs WHERE workspace = $1 AND run = $2";
        let row = self.database.find(query, &[&workspace.as_str(), &run.as_str()]).await?;
        row.map(|row| serde_json::from_slice(row.get(0)).map_err(damaged)).transpose()
    }

    /// What the store makes of the records must follow from them, and what they name must be there.
    async fn derived(
        &self,
        (workspace, run): (&Workspace, &RunId),
        line: Result<Option<RunSummary>, JournalError>,
        (rows, records): (&[Row], &[Arc<Record>]),
        evidence: &mut Evidence,
        room: &mut Room,
    ) -> Result<(), LogError> {
        match line {
            Ok(Some(line)) if summary_of(records).as_ref() == Some(&line) => {}
            Ok(_) => evidence.faults.push(format!("the line of run {run} does not follow from its records")),
            Err(error) => evidence.faults.push(format!("the line of run {run}: {error}")),
        }
        let configurations: BTreeSet<Hash> = records.iter().map(|record| record.header.config).collect();
        for pinned in configurations.into_iter().filter(|hash| *hash != Hash::ZERO) {
            let query = "SELECT settings FROM snapshots WHERE workspace = $1 AND hash = $2";
            let row = self.database.find(query, &[&workspace.as_str(), &&pinned.as_bytes()[..]]).await?;
            // Held against its hash here: nobody else has what is secret in it.
            let Some(row) = row.filter(|row| Hash::of(row.get::<_, &[u8]>(0)) == pinned) else {
                evidence.faults.push(format!("the configuration {pinned} of run {run} is missing or changed"));
                continue;
            };
            let bytes: &[u8] = row.get(0);
            room.take(bytes.len())?;
            let whole = String::from_utf8_lossy(bytes).into_owned();
            match without_secrets(&whole) {
                Some(text) => evidence.redacted.push(RedactedConfiguration { hash: pinned, text }),
                None => evidence.configurations.push(whole),
            }
        }
        // A record of one of its sessions that the run does not have would go unseen.
        let sessions: Vec<&str> = rows.iter().map(|row| row.get(4)).collect::<BTreeSet<_>>().into_iter().collect();
        let query = "SELECT count(*) FROM records WHERE workspace = $1 AND session = ANY ($2::text[])";
        let stored = self.database.find(query, &[&workspace.as_str(), &sessions]).await?;
        let stored = stored.and_then(|row| usize::try_from(row.get::<_, i64>(0)).ok()).unwrap_or(0);
        if stored != records.len() {
            evidence.faults.push(format!("run {run} has {stored} records, and {} are listed", records.len()));
        }
        Ok(())
    }
}

/// Counts what is gathered, and ends it when that is too much.
struct Room {
    most: usize,
    left: usize,
}

impl Room {
    fn take(&mut self, bytes: usize) -> Result<(), LogError> {
        self.left = self.left.checked_sub(bytes).ok_or(LogError::TooLarge(self.most))?;
        Ok(())
    }
}

fn proven(stored: &[u8], leaf: u64, proof: Vec<Hash>, known: &Texts) -> ProvenRecord {
    let readable = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (proven, texts) = Lines::of(stored).map_or((stored, None), |lines| (lines.proven, lines.texts));
    let mut large = HashMap::new();
    let mut fetch = |hash: Hash| {
        let text = text(known, hash)?;
        large.insert(hash.to_string(), Arc::clone(&text));
        Ok(text)
    };
    // Whether it can be read is for whoever checks it to find out.
    drop(Record::fetched(stored, &mut fetch));
    ProvenRecord { leaf, proof, proven: readable(proven), texts: texts.map(readable), large }
}

/// An entry of the log, with what it covers.
struct Entry<'a> {
    number: u64,
    kind: LeafKind,
    key: &'a [u8],
    nodes: Vec<Hash>,
    value: Option<&'a [u8]>,
}

impl<'a> Entry<'a> {
    fn of(row: &'a Row) -> Result<Self, JournalError> {
        let number = row.get::<_, i64>(0).cast_unsigned();
        let unreadable = || damaged(format!("entry {number} of the log cannot be read"));
        let tag: i16 = row.get(1);
        let kind = LeafKind::ALL.into_iter().find(|kind| number_of(*kind) == tag).ok_or_else(unreadable)?;
        let nodes = row.get::<_, &[u8]>(3).chunks(32).map(hash).collect::<Result<Vec<_>, _>>()?;
        if nodes.is_empty() {
            return Err(unreadable());
        }
        let value = match kind {
            LeafKind::Record => row.get(4),
            LeafKind::Config => row.get(5),
            LeafKind::Erasure => None,
        };
        Ok(Self { number, kind, key: row.get::<_, Option<&[u8]>>(2).unwrap_or_default(), nodes, value })
    }

    fn shown(&self) -> Result<LogEntry, JournalError> {
        let Self { number, kind, key, .. } = *self;
        let value = self.value.ok_or_else(|| damaged(format!("what entry {number} of the log covers is missing")))?;
        let lines = (kind == LeafKind::Record).then(|| Lines::of(value).ok()).flatten();
        let texts = lines.and_then(|lines| lines.texts).map(|texts| String::from_utf8_lossy(texts).into_owned());
        let replaced = kind.hash(key, value) != self.nodes[0];
        let input = BASE64.encode(kind.input(key, value));
        Ok(LogEntry { number, input, texts, leaf: replaced.then_some(self.nodes[0]) })
    }

    /// Appends it to the tree, as what it covers says. What is wrong with it, if anything is.
    fn join(&self, edge: &mut Frontier) -> Option<String> {
        let number = self.number;
        let found = self.value.map(|value| self.kind.hash(self.key, value));
        if edge.append(self.nodes[0]) != self.nodes {
            return Some(format!("entry {number} of the log does not fit those before it"));
        }
        match found {
            Some(found) if found == self.nodes[0] => None,
            Some(_) => Some(format!("entry {number} of the log: what it covers is not what was written")),
            None => Some(format!("entry {number} of the log: what it covers is missing")),
        }
    }
}

impl Log for PostgresLog {
    fn public_key(&self) -> String {
        self.key.public()
    }

    fn checkpoint(&self) -> BoxFuture<'_, Result<String, JournalError>> {
        Box::pin(async { Ok(self.key.sign(&self.now().await?)) })
    }

    fn evidence<'a>(
        &'a self,
        workspace: &'a Workspace,
        run: &'a RunId,
        most: usize,
    ) -> BoxFuture<'a, Result<Option<Evidence>, LogError>> {
        Box::pin(self.gathered((workspace, run), most))
    }

    fn entries(&self, from: u64, limit: usize) -> BoxFuture<'_, Result<Vec<LogEntry>, JournalError>> {
        Box::pin(self.entries_of(from, limit))
    }

    fn against<'a>(&'a self, checkpoint: &'a str) -> BoxFuture<'a, Result<Verdict, LogError>> {
        Box::pin(async move { Ok(self.compared(&Checkpoint::parse(checkpoint)?.0).await?) })
    }
}
