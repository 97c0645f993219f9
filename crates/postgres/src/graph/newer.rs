//! The runs that the view lacks.

use crate::graph::reading::Reading;
use std::collections::BTreeSet;
use std::rc::Rc;
use trellis_domain::rdf::Quad;
use trellis_domain::{RunId, SessionId, Workspace};
use trellis_patterns::project;
use trellis_provenance::{PROJECTION, iri};
use trellis_queries::{Overlay, QueryError};

/// How far the view is, as this program understands it: the first leaf that was not looked at. None if it was derived
/// with another projection, or not at all.
pub(crate) const CURSOR: &str = "SELECT number FROM view_cursor WHERE projection = $1";

/// The runs of a workspace that the view lacks: finished since its cursor, not in the log yet, or still open. They belong
/// to the same moment as the view that is read with them.
pub(crate) struct Newer {
    reading: Rc<Reading>,
    workspace: Workspace,
    runs: BTreeSet<RunId>,
    /// Whether there is a view at all.
    pub(crate) has_view: bool,
}

impl Newer {
    pub(crate) fn of(reading: &Rc<Reading>, workspace: &Workspace) -> Result<Self, QueryError> {
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
        Ok(Self { reading: Rc::clone(reading), workspace: workspace.clone(), runs, has_view: cursor.is_some() })
    }

    pub(crate) fn count(&self) -> usize {
        self.runs.len()
    }

    /// Runs of the same conversation: a question that follows on another one names it.
    fn of_conversation(&self, run: &RunId) -> Result<Vec<RunId>, QueryError> {
        let query = "SELECT o.run FROM runs r JOIN runs o ON o.workspace = r.workspace AND o.conversation = r.conversation \
            WHERE r.workspace = $1 AND r.run = $2";
        let rows = self.reading.rows(query, &[&self.workspace.as_str(), &run.as_str()])?;
        let runs = rows.iter().filter_map(|row| RunId::new(row.get::<_, &str>(0)).ok());
        Ok(runs.filter(|run| self.runs.contains(run)).collect())
    }
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

impl Overlay for Newer {
    fn runs(&self) -> Vec<String> {
        self.runs.iter().map(|run| run.as_str().to_owned()).collect()
    }

    fn run_of(&self, iri: &str) -> Option<String> {
        let run = run_of(&self.reading, &self.workspace, iri).unwrap_or_else(|error| {
            tracing::error!(%error, iri, "a session could not be read");
            None
        })?;
        self.runs.contains(&run).then(|| run.as_str().to_owned())
    }

    fn runs_naming(&self, iri: &str) -> Vec<String> {
        let mut runs: BTreeSet<String> = Overlay::run_of(self, iri).into_iter().collect();
        let session = iri::session_of(iri).and_then(|session| SessionId::new(session).ok());
        if let Some(question) = session.filter(|_| iri::path_of(iri).is_none()) {
            let following = self.of_conversation(&question).unwrap_or_else(|error| {
                tracing::error!(%error, run = %question, "a conversation could not be read");
                Vec::new()
            });
            runs.extend(following.into_iter().map(|run| run.as_str().to_owned()));
        }
        runs.into_iter().collect()
    }

    fn project(&self, run: &str) -> Vec<Quad> {
        let Ok(run) = RunId::new(run) else { return Vec::new() };
        quads_of(&self.reading, &self.workspace, &run).unwrap_or_else(|error| {
            tracing::error!(%error, %run, "a run could not be projected");
            Vec::new()
        })
    }
}
