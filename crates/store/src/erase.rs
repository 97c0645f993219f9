//! Erasing texts: they are gone from records, from what was stored apart and from the list of runs, and the log says so.

use crate::journal::{EmbeddedJournal, off_the_runtime};
use crate::keys;
use crate::log::LeafKind;
use crate::request::{ErasedRows, Request};
use crate::tables::{Reader, Tables, blob_key, read_failed};
use std::sync::Arc;
use trellis_domain::record::{Lines, Record, UnreadableRecord};
use trellis_domain::sealed;
use trellis_domain::{RunId, SessionId, Timestamp, Workspace};
use trellis_orchestrator::evidence::Erasure;
use trellis_orchestrator::ledger::summary_of;
use trellis_orchestrator::ports::JournalError;

/// What is to be erased of a run.
#[derive(Debug, Clone)]
pub struct ErasureRequest {
    pub workspace: Workspace,
    pub run: RunId,
    /// Only texts in which one of these occurs; all of them if there are none.
    pub containing: Vec<String>,
    pub by: String,
    pub reason: String,
    pub time: Timestamp,
}

/// What was erased.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Erased {
    /// The number of the entry in the log that tells of it; none if there was nothing to erase.
    pub entry: Option<u64>,
    pub texts: usize,
    pub records: usize,
}

impl ErasureRequest {
    fn goes(&self, text: &str) -> bool {
        let quoted = |needle: &str| serde_json::to_string(needle).unwrap_or_default();
        self.containing.is_empty()
            || self.containing.iter().any(|needle| {
                // Inside a request that is kept as JSON, it is written as JSON.
                let inner = quoted(needle);
                text.contains(needle.as_str()) || text.contains(&inner[1..inner.len().saturating_sub(1).max(1)])
            })
    }
}

impl EmbeddedJournal {
    /// Erases texts of a run that has ended.
    pub async fn erase(&self, wish: ErasureRequest) -> Result<Erased, JournalError> {
        let (tables, of) = (self.tables.clone(), wish.clone());
        let found = off_the_runtime(move || count(&tables, &of)).await?;
        if found.texts == 0 {
            return Ok(found);
        }
        let sessions = sessions(&self.tables.read(), &wish.workspace, &wish.run)?;
        let (tables, of) = (self.tables.clone(), wish.clone());
        let rows = Box::new(move |number| rows(&tables, &of, number));
        let entry = self.ask(|reply| Request::Erase(rows, reply)).await?;
        self.shared.forget(&sessions.into_iter().map(|session| (wish.workspace.clone(), session)).collect::<Vec<_>>());
        self.shared.finished.notify_one();
        Ok(Erased { entry: Some(entry), ..found })
    }
}

fn sessions(reader: &Reader<'_>, workspace: &Workspace, run: &RunId) -> Result<Vec<SessionId>, JournalError> {
    let mut sessions = Vec::new();
    for (_, stored) in stored(reader, workspace, run)? {
        let session = Record::header_of(&stored).map_err(unreadable)?.session;
        if !sessions.contains(&session) {
            sessions.push(session);
        }
    }
    Ok(sessions)
}

/// The records of a run with their keys, in order.
fn stored(
    reader: &Reader<'_>,
    workspace: &Workspace,
    run: &RunId,
) -> Result<Vec<(Vec<u8>, fjall::UserValue)>, JournalError> {
    let mut records = Vec::new();
    for row in reader.index_prefix(&keys::events(workspace, run)) {
        let value = row.value().map_err(read_failed)?;
        let missing = || JournalError::Damaged(format!("a record of run {run} is missing"));
        let (_, key) = keys::read_event(&value).ok_or_else(missing)?;
        records.push((key.to_vec(), reader.record(key)?.ok_or_else(missing)?));
    }
    Ok(records)
}

fn unreadable(error: UnreadableRecord) -> JournalError {
    JournalError::Damaged(error.to_string())
}

/// How much would go.
fn count(tables: &Tables, wish: &ErasureRequest) -> Result<Erased, JournalError> {
    let rows = rows(tables, wish, 0)?;
    let told: Erasure =
        serde_json::from_slice(&rows.entry).map_err(|error| JournalError::Damaged(error.to_string()))?;
    let texts: usize = told.texts.iter().map(|(_, texts)| texts.len()).sum();
    Ok(Erased { entry: None, texts: texts + told.replaced.len(), records: rows.records.len() })
}

/// What is left of a run's records, and what the log keeps of it.
fn rows(tables: &Tables, wish: &ErasureRequest, number: u64) -> Result<ErasedRows, JournalError> {
    let reader = tables.read();
    let mut erasure = Erasure {
        workspace: wish.workspace.as_str().to_owned(),
        run: wish.run.as_str().to_owned(),
        by: wish.by.clone(),
        reason: wish.reason.clone(),
        time: wish.time.as_micros(),
        ..Erasure::default()
    };
    let (mut records, mut blobs, mut left) = (Vec::new(), Vec::new(), Vec::new());
    for (key, stored) in stored(&reader, &wish.workspace, &wish.run)? {
        let header = Record::header_of(&stored).map_err(unreadable)?;
        let name = format!("{}/{}", header.session, header.name);
        let lines = Lines::of(&stored).map_err(unreadable)?;
        let mut fetched = Vec::new();
        let mut fetch = |hash| {
            let text = reader.text(&wish.workspace, hash);
            fetched.push(hash);
            text
        };
        let mut goes = |text: &str| wish.goes(text);
        let (bytes, gone) = if let Some(texts) = lines.texts {
            let erased = sealed::erase(lines.body, texts, number, &mut fetch, &mut goes).map_err(unreadable)?;
            (lines.with_texts(&erased.0), erased.1)
        } else {
            let (body, gone) = sealed::erase_older(lines.body, &mut fetch, &mut goes).map_err(unreadable)?;
            ([lines.header, body.as_slice()].join(&b'\n'), gone)
        };
        let changed = bytes != *stored;
        // Whatever was stored apart goes if its text does; what nobody names now cannot be read anyway.
        blobs.extend(fetched.iter().filter(|hash| gone.contains(hash)).map(|hash| blob_key(&wish.workspace, *hash)));
        if changed && lines.texts.is_some() {
            erasure.texts.push((name, gone));
        } else if changed {
            erasure.replaced.push((name, LeafKind::Record.hash(&key, &bytes)));
        }
        left.push(read_left(&reader, &wish.workspace, &bytes)?);
        if changed {
            records.push((key, bytes));
        }
    }
    let run = summary_of(&left).ok_or_else(|| JournalError::Damaged(format!("run {} has no beginning", wish.run)))?;
    let entry = serde_json::to_vec(&erasure).expect("an erasure is always JSON");
    Ok(ErasedRows { records, blobs, run, entry })
}

fn read_left(reader: &Reader<'_>, workspace: &Workspace, bytes: &[u8]) -> Result<Arc<Record>, JournalError> {
    reader.read_record(workspace, bytes)
}
