//! All questions of a workspace, newest run first, without projecting whole runs.

use crate::keys;
use crate::tables::{Reader, read_failed};
use crate::view::{Bounds, QueryError, Size};
use std::collections::BTreeSet;
use trellis_domain::rdf::Quad;
use trellis_domain::{RunId, SessionId, Workspace};
use trellis_orchestrator::ports::{GraphError, JournalError, QuadPattern};
use trellis_patterns::project;

/// The quads of accepted questions that match: of callers first, then of subagents. It reads no more runs than it
/// needs for the first `max_rows` of them.
pub(super) fn all(
    reader: &Reader<'_>,
    workspace: &Workspace,
    pattern: &QuadPattern,
    bounds: &Bounds,
) -> Result<Vec<Quad>, GraphError> {
    let (mut found, mut size) = (Vec::new(), Size::default());
    let mut admit = |asked: Vec<Quad>, found: &mut Vec<Quad>| {
        if !size.admits(asked.iter().flat_map(|quad| [&quad.s, &quad.p, &quad.o]), bounds.max_bytes) {
            return Err(QueryError::AnswerTooLarge { max: bounds.max_bytes });
        }
        found.extend(asked);
        Ok(())
    };
    let full = |found: &Vec<Quad>| found.len() >= bounds.max_rows || bounds.cancellation.is_cancelled();
    for run in runs(reader, workspace) {
        if full(&found) {
            break;
        }
        admit(asked(reader, workspace, &run?, pattern)?, &mut found)?;
    }
    for run in runs(reader, workspace) {
        if full(&found) {
            break;
        }
        for session in subagents(reader, workspace, &run?)? {
            admit(asked(reader, workspace, &session, pattern)?, &mut found)?;
        }
    }
    found.truncate(bounds.max_rows);
    Ok(found)
}

/// The runs of a workspace, newest first.
fn runs(reader: &Reader<'_>, workspace: &Workspace) -> impl Iterator<Item = Result<RunId, JournalError>> {
    let list = keys::listed_in(workspace);
    let keys = reader.index_prefix(&list).map(|row| row.key().map_err(read_failed));
    keys.filter_map(move |key| key.map(|key| keys::listed_run(&key, &list)).transpose())
}

/// What the acceptance of a session says.
fn asked(
    reader: &Reader<'_>,
    workspace: &Workspace,
    session: &SessionId,
    pattern: &QuadPattern,
) -> Result<Vec<Quad>, JournalError> {
    let mut accepted = reader.first_records(workspace, session)?;
    accepted.retain(|record| record.body.as_accepted().is_some());
    Ok(project(&accepted).into_iter().filter(|quad| pattern.matches(quad)).collect())
}

/// The sessions of a run besides its own, sorted.
fn subagents(reader: &Reader<'_>, workspace: &Workspace, run: &RunId) -> Result<BTreeSet<SessionId>, JournalError> {
    let mut sessions = BTreeSet::new();
    for row in reader.index_prefix(&keys::events(workspace, run)) {
        let key = row.value().map_err(read_failed)?;
        let key = keys::read_event(&key).map(|(_, key)| key);
        sessions.extend(key.and_then(|key| keys::session_of_record(key, workspace)));
    }
    sessions.remove(run);
    Ok(sessions)
}
