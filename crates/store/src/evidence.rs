//! The log as others see it: checkpoints, proofs, entries.

use crate::check;
use crate::erasures::{erasures, number_of_erasures};
use crate::journal::{EmbeddedJournal, off_the_runtime, to_prove};
use crate::keys;
use crate::log::{self, LeafKind};
use crate::tables::{Reader, Tables, read_failed};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use std::collections::HashMap;
use std::sync::Arc;
use trellis_domain::config::without_secrets;
use trellis_domain::merkle::{self, Frontier};
use trellis_domain::record::{Lines, Record};
use trellis_domain::{Hash, RunId, Workspace};
use trellis_orchestrator::checkpoint::Checkpoint;
use trellis_orchestrator::evidence::{Erasure, Evidence, ProvenErasure, ProvenRecord, RedactedConfiguration};
use trellis_orchestrator::ledger::summary_of;
use trellis_orchestrator::log_key::LogKey;
use trellis_orchestrator::ports::{BoxFuture, JournalError, Log, LogEntry, LogError, Verdict};

/// The log of a folder.
#[derive(Debug, Clone)]
pub struct EmbeddedLog {
    journal: EmbeddedJournal,
    key: Arc<LogKey>,
}

impl EmbeddedLog {
    pub(crate) fn new(journal: EmbeddedJournal, key: LogKey) -> Self {
        Self { journal, key: Arc::new(key) }
    }
}

fn checkpoint(reader: &Reader<'_>, key: &LogKey) -> Result<Checkpoint, JournalError> {
    let size = log::size(reader)?;
    Ok(Checkpoint { origin: key.origin().to_owned(), size, root: log::root(reader, size)? })
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

fn evidence(
    tables: &Tables,
    key: &LogKey,
    (workspace, run): (&Workspace, &RunId),
    most: usize,
) -> Result<Option<Evidence>, LogError> {
    let mut room = Room { most, left: most };
    let reader = tables.read();
    let summary = reader.run(workspace, run);
    if matches!(summary, Ok(None)) && reader.index_prefix(&keys::events(workspace, run)).next().is_none() {
        return Ok(None);
    }
    let checkpoint = checkpoint(&reader, key)?;
    let mut evidence = Evidence { checkpoint: key.sign(&checkpoint), ..Evidence::default() };
    let prove = |leaf| merkle::inclusion(leaf, checkpoint.size, |level, index| log::node(&reader, level, index));
    for (number, row) in reader.index_prefix(&keys::events(workspace, run)).enumerate() {
        let row = row.value().map_err(read_failed)?;
        let place = keys::read_event(&row).filter(|(leaf, _)| *leaf < checkpoint.size);
        let stored = place.map(|(leaf, key)| reader.record(key).map(|stored| (leaf, stored))).transpose()?;
        let Some((leaf, Some(stored))) = stored else {
            evidence.faults.push(format!("event {} has no record, or the log does not name it", number + 1));
            continue;
        };
        let entry = proven(&reader, workspace, &stored, leaf, prove(leaf)?);
        room.take(stored.len() + entry.large.values().map(|text| text.len()).sum::<usize>())?;
        evidence.entries.push(entry);
    }
    for (leaf, key, value) in erasures(&reader)? {
        let Ok(erasure) = serde_json::from_slice::<Erasure>(&value) else { continue };
        if erasure.workspace == workspace.as_str() && erasure.run == run.as_str() {
            let input = BASE64.encode(LeafKind::Erasure.input(&key, &value));
            evidence.erasures.push(ProvenErasure { leaf, proof: prove(leaf)?, input, erasure });
        }
    }
    derived(&reader, (workspace, run), &mut evidence, &mut room)?;
    Ok(Some(evidence))
}

/// What the store makes of the records must follow from them, and what they name must be there.
fn derived(
    reader: &Reader<'_>,
    (workspace, run): (&Workspace, &RunId),
    evidence: &mut Evidence,
    room: &mut Room,
) -> Result<(), LogError> {
    let (_, records) = check::records(reader, workspace, run);
    match reader.run(workspace, run) {
        Ok(Some(line)) if summary_of(&records).as_ref() == Some(&line) => {}
        Ok(_) => evidence.faults.push(format!("the line of run {run} does not follow from its records")),
        Err(error) => evidence.faults.push(format!("the line of run {run}: {error}")),
    }
    let mut configurations: Vec<_> = records.iter().map(|record| record.header.config).collect();
    configurations.sort_unstable();
    configurations.dedup();
    for hash in configurations.into_iter().filter(|hash| *hash != Hash::ZERO) {
        match reader.blob(workspace, hash) {
            // Held against its hash here: nobody else has what is secret in it.
            Ok(Some(bytes)) if Hash::of(&bytes) == hash => {
                room.take(bytes.len())?;
                let whole = String::from_utf8_lossy(&bytes).into_owned();
                match without_secrets(&whole) {
                    Some(text) => evidence.redacted.push(RedactedConfiguration { hash, text }),
                    None => evidence.configurations.push(whole),
                }
            }
            Ok(_) | Err(_) => {
                evidence.faults.push(format!("the configuration {hash} of run {run} is missing or changed"));
            }
        }
    }
    // A record that the list of events does not name would go unseen.
    let mut sessions: Vec<_> = records.iter().map(|record| record.header.session.clone()).collect();
    sessions.sort();
    sessions.dedup();
    let stored: usize = sessions.iter().filter_map(|session| reader.count_session(workspace, session).ok()).sum();
    if stored != records.len() {
        evidence.faults.push(format!("run {run} has {stored} records, and {} are listed", records.len()));
    }
    Ok(())
}

fn proven(reader: &Reader<'_>, workspace: &Workspace, stored: &[u8], leaf: u64, proof: Vec<Hash>) -> ProvenRecord {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (proven, texts) = Lines::of(stored).map_or((stored, None), |lines| (lines.proven, lines.texts));
    let mut large = HashMap::new();
    let mut fetch = |hash: Hash| {
        let text = reader.text(workspace, hash)?;
        large.insert(hash.to_string(), Arc::clone(&text));
        Ok(text)
    };
    // Whether it can be read is for whoever checks it to find out.
    drop(Record::fetched(stored, &mut fetch));
    ProvenRecord { leaf, proof, proven: text(proven), texts: texts.map(text), large }
}

fn entries(tables: &Tables, from: u64, limit: usize) -> Result<Vec<LogEntry>, JournalError> {
    let reader = tables.read();
    let size = log::size(&reader)?;
    let to = size.min(from.saturating_add(limit as u64));
    let entry = |number| {
        let leaf = log::leaf(&reader, number)?;
        let missing = || JournalError::Damaged(format!("what entry {number} of the log covers is missing"));
        let value = log::covered(&reader, &leaf)?.ok_or_else(missing)?;
        let lines = (leaf.kind == LeafKind::Record).then(|| Lines::of(&value).ok()).flatten();
        let texts = lines.and_then(|lines| lines.texts).map(|texts| String::from_utf8_lossy(texts).into_owned());
        let replaced = leaf.kind.hash(&leaf.key, &value) != leaf.hash();
        let input = BASE64.encode(leaf.kind.input(&leaf.key, &value));
        Ok(LogEntry { number, input, texts, leaf: replaced.then(|| leaf.hash()) })
    };
    (from..to).map(entry).collect()
}

/// Recomputes the tree from what is stored, up to the size that a checkpoint names.
fn against(tables: &Tables, note: &str) -> Result<Verdict, LogError> {
    let (checkpoint, _) = Checkpoint::parse(note)?;
    let reader = tables.read();
    let size = log::size(&reader)?;
    let mut verdict = Verdict { covered: checkpoint.size, size, ..Verdict::default() };
    if size < checkpoint.size {
        let fault = format!("{} of {} entries are missing", checkpoint.size - size, checkpoint.size);
        verdict.faults.push(fault);
        return Ok(verdict);
    }
    let mut frontier = Frontier::default();
    let mut root = None;
    for number in 0..size {
        if frontier.size() == checkpoint.size {
            root = Some(frontier.root());
        }
        match check::entry(&reader, number) {
            Ok(leaf) => {
                if frontier.append(leaf.hash()) != leaf.nodes {
                    verdict.faults.push(format!("entry {number} of the log does not fit those before it"));
                }
            }
            Err(error) => {
                verdict.faults.push(error.to_string());
                let leaf = log::leaf(&reader, number).map_or(Hash::ZERO, |leaf| leaf.hash());
                frontier.append(leaf);
            }
        }
        if verdict.faults.len() >= 50 {
            break;
        }
    }
    let now = frontier.root();
    if root.unwrap_or(now) != checkpoint.root {
        let fault = "the log was rewritten: its beginning is not the one that the checkpoint covers";
        verdict.faults.push(fault.to_owned());
    }
    verdict.root = Some(now);
    Ok(verdict)
}

impl Log for EmbeddedLog {
    fn public_key(&self) -> String {
        self.key.public()
    }

    fn checkpoint(&self) -> BoxFuture<'_, Result<String, JournalError>> {
        let (tables, key) = (self.journal.tables.clone(), Arc::clone(&self.key));
        Box::pin(off_the_runtime(move || Ok(key.sign(&checkpoint(&tables.read(), &key)?))))
    }

    fn evidence<'a>(
        &'a self,
        workspace: &'a Workspace,
        run: &'a RunId,
        most: usize,
    ) -> BoxFuture<'a, Result<Option<Evidence>, LogError>> {
        let (tables, key) = (self.journal.tables.clone(), Arc::clone(&self.key));
        let (workspace, run) = (workspace.clone(), run.clone());
        let gathered = to_prove(move || match evidence(&tables, &key, (&workspace, &run), most) {
            Err(LogError::Store(error)) => Err(error),
            gathered_or_not => Ok(gathered_or_not),
        });
        Box::pin(async move { gathered.await? })
    }

    fn erasures(&self) -> BoxFuture<'_, Result<u64, JournalError>> {
        let tables = self.journal.tables.clone();
        Box::pin(off_the_runtime(move || number_of_erasures(&tables.read())))
    }

    fn entries(&self, from: u64, limit: usize) -> BoxFuture<'_, Result<Vec<LogEntry>, JournalError>> {
        let tables = self.journal.tables.clone();
        Box::pin(to_prove(move || entries(&tables, from, limit)))
    }

    fn against<'a>(&'a self, checkpoint: &'a str) -> BoxFuture<'a, Result<Verdict, LogError>> {
        let (tables, note) = (self.journal.tables.clone(), checkpoint.to_owned());
        Box::pin(async move {
            // A malformed checkpoint is the caller's mistake, not the store's.
            Checkpoint::parse(&note)?;
            let verdict = to_prove(move || match against(&tables, &note) {
                Ok(verdict) => Ok(verdict),
                Err(LogError::Store(error)) => Err(error),
                Err(error @ (LogError::Checkpoint(_) | LogError::TooLarge(_))) => {
                    Err(JournalError::Read(error.to_string()))
                }
            });
            Ok(verdict.await?)
        })
    }
}
