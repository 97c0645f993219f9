//! Runs as quads, the recent ones remembered: a reader walks a run node by node, and asks for each twice.

use crate::cache::Cache;
use crate::tables::Reader;
use parking_lot::Mutex;
use std::sync::Arc;
use trellis_domain::rdf::Quad;
use trellis_domain::{RunId, Workspace};
use trellis_orchestrator::ports::JournalError;
use trellis_patterns::project;

/// At most about twice this many quads are remembered, at about 300 bytes each.
const REMEMBERED: usize = 20_000;

/// A projection and the newest record that it has.
type Known = (u64, Arc<[Quad]>);

#[derive(Debug)]
pub(super) struct Projections(Mutex<Cache<(Workspace, RunId), Known>>);

impl Default for Projections {
    fn default() -> Self {
        Self(Mutex::new(Cache::new(REMEMBERED)))
    }
}

impl Projections {
    pub(super) fn forget(&self, workspace: &Workspace, run: &RunId) {
        self.0.lock().remove_with_weight(&(workspace.clone(), run.clone()));
    }

    /// The quads of a run as of this look at its records.
    pub(super) fn of(
        &self,
        reader: &Reader<'_>,
        workspace: &Workspace,
        run: &RunId,
    ) -> Result<Arc<[Quad]>, JournalError> {
        let Some(summary) = reader.run(workspace, run)? else { return Ok(Arc::default()) };
        let place = (workspace.clone(), run.clone());
        if let Some((seq, quads)) = self.0.lock().get(&place)
            && *seq == summary.seq
        {
            return Ok(Arc::clone(quads));
        }
        let quads: Arc<[Quad]> = project(&reader.events(workspace, run, 0, usize::MAX)?).into();
        // A large run would only push out all others.
        if quads.len() < REMEMBERED {
            self.0.lock().put(place, (summary.seq, Arc::clone(&quads)), quads.len());
        }
        Ok(quads)
    }
}
