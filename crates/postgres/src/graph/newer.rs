//! The runs that the view lacks.

use crate::graph::reading::Reading;
use std::rc::Rc;
use trellis_domain::rdf::Quad;
use trellis_domain::{RunId, SessionId, Workspace};
use trellis_patterns::project;
use trellis_provenance::{PROJECTION, iri};
use trellis_queries::{Newer, QueryError, StoredRuns};

/// How far the view is, as this program understands it: the first leaf that was not looked at. None if it was derived
/// with another projection, or not at all.
pub(crate) const CURSOR: &str = "SELECT number FROM view_cursor WHERE projection = $1";

/// The runs of a workspace, and its view, at the moment of a reading.
pub(crate) struct RunsHere {
    reading: Rc<Reading>,
    workspace: Workspace,
    /// Whether there is a view at all.
    pub(crate) has_view: bool,
}

/// The runs of a workspace that the view lacks: finished since its cursor, not in the log yet, or still open. They belong
/// to the same moment as the view that is read with them.
pub(crate) fn of(reading: &Rc<Reading>, workspace: &Workspace) -> Result<Newer<RunsHere>, QueryError> {
    let projection = PROJECTION.cast_signed();
    let cursor = reading.rows(CURSOR, &[&projection])?.first().map(|row| row.get::<_, i64>(0));
    let query = "SELECT run FROM runs WHERE workspace = $1 AND NOT has_ended \
        UNION SELECT run FROM leaves WHERE number >= $2 AND workspace = $1 \
        UNION SELECT run FROM unsequenced WHERE workspace = $1 AND run IS NOT NULL \
        UNION SELECT run FROM view_waiting WHERE workspace = $1";
    let all = "SELECT run FROM runs WHERE workspace = $1";
    let rows = match cursor {
        Some(cursor) => reading.rows(query, &[&workspace.as_str(), &cursor])?,
        None => reading.rows(all, &[&workspace.as_str()])?,
    };
    let runs = rows.iter().filter_map(|row| RunId::new(row.get::<_, &str>(0)).ok()).collect();
    let here = RunsHere { reading: Rc::clone(reading), workspace: workspace.clone(), has_view: cursor.is_some() };
    Ok(Newer::new(here, runs))
}

/// The run that a node belongs to.
pub(crate) fn run_of(reading: &Reading, workspace: &Workspace, node: &str) -> Result<Option<RunId>, QueryError> {
    let Some(session) = iri::session_of(node).and_then(|session| SessionId::new(session).ok()) else {
        return Ok(None);
    };
    let query = "SELECT run FROM records WHERE workspace = $1 AND session = $2 LIMIT 1";
    let rows = reading.rows(query, &[&workspace.as_str(), &session.as_str()])?;
    Ok(rows.first().and_then(|row| RunId::new(row.get::<_, &str>(0)).ok()))
}

/// What a run says.
pub(crate) fn quads_of(reading: &Reading, workspace: &Workspace, run: &RunId) -> Result<Vec<Quad>, QueryError> {
    let condition = "workspace = $1 AND run = $2 ORDER BY seq";
    Ok(project(&reading.records(workspace, condition, &[&workspace.as_str(), &run.as_str()])?))
}

impl StoredRuns for RunsHere {
    type Error = QueryError;

    fn run_of(&self, node: &str) -> Result<Option<RunId>, QueryError> {
        run_of(&self.reading, &self.workspace, node)
    }

    fn conversation_of(&self, run: &RunId) -> Result<Vec<RunId>, QueryError> {
        let query = "SELECT o.run FROM runs r JOIN runs o ON o.workspace = r.workspace AND o.conversation = r.conversation \
            WHERE r.workspace = $1 AND r.run = $2";
        let rows = self.reading.rows(query, &[&self.workspace.as_str(), &run.as_str()])?;
        Ok(rows.iter().filter_map(|row| RunId::new(row.get::<_, &str>(0)).ok()).collect())
    }

    fn quads_of(&self, run: &RunId) -> Result<Vec<Quad>, QueryError> {
        quads_of(&self.reading, &self.workspace, run)
    }
}
