//! The view held against its files' checksums, and against the records.

use super::EmbeddedGraph;
use super::absorbing::RunPlaces;
use crate::tables::{OpenRefused, catching_panics};
use crate::view::{Comparison, View};
use trellis_domain::counted;
use trellis_orchestrator::ports::GraphError;

/// What was found in the view, and what is wrong with it. It can always be derived anew.
#[derive(Debug, Default)]
pub struct CheckedView {
    /// Finished runs that it has, and their quads.
    pub runs: usize,
    pub quads: u64,
    /// Finished runs that wait to be taken in.
    pub waiting: usize,
    pub faults: Vec<String>,
}

/// More runs than this are not named one by one.
const NAMED: usize = 20;

impl EmbeddedGraph {
    /// Reads every file and every row of the view and compares them with what the records give. A view that is not
    /// there yet is whole; one that is damaged is left as it is.
    pub fn check(&self) -> CheckedView {
        let _alone = self.absorbing.lock();
        let mut checked = CheckedView::default();
        match catching_panics(|| self.look_at_view(&mut checked)) {
            Some(Ok(())) => {}
            Some(Err(error)) => checked.faults.push(error.to_string()),
            None => checked.faults.push(OpenRefused::Panicked.to_string()),
        }
        checked
    }

    fn look_at_view(&self, checked: &mut CheckedView) -> Result<(), GraphError> {
        let damages = View::damages(self.view.path()).map_err(|error| super::unusable(error.into()))?;
        let Some(damages) = damages else {
            checked.waiting = self.finished_after(0, usize::MAX)?.0.len();
            return Ok(());
        };
        checked.faults = damages;
        if checked.faults.is_empty() { self.compare(checked) } else { Ok(()) }
    }

    fn compare(&self, checked: &mut CheckedView) -> Result<(), GraphError> {
        let view = self.view()?;
        let mut comparison = view.compare();
        let cursor = view.cursor().map_err(super::unusable)?.number;
        let (waiting, _) = self.finished_after(cursor, usize::MAX)?;
        let mut covered = self.finished_until(cursor)?;
        covered.retain(|run| !waiting.contains(run));
        (checked.runs, checked.waiting) = (covered.len(), waiting.len());
        for (workspace, run) in &waiting {
            if comparison.knows(workspace.as_str(), run.as_str()).map_err(super::unusable)? {
                comparison.allow(&self.said(workspace, run)?).map_err(super::unusable)?;
            }
        }
        for (workspace, run) in &covered {
            comparison.expect(&self.said(workspace, run)?).map_err(super::unusable)?;
        }
        let whole = comparison.read().map_err(super::unusable)?;
        checked.quads = comparison.quads();
        if !whole {
            checked.faults = comparison.differences();
            self.name_runs(&covered, &comparison, checked)?;
        }
        Ok(())
    }

    /// Which runs the view does not have whole.
    fn name_runs(
        &self,
        covered: &RunPlaces,
        comparison: &Comparison,
        checked: &mut CheckedView,
    ) -> Result<(), GraphError> {
        let mut concerned = 0;
        for (workspace, run) in covered {
            let lacking = comparison.lacking(&self.said(workspace, run)?).map_err(super::unusable)?;
            concerned += usize::from(lacking > 0);
            if lacking > 0 && concerned <= NAMED {
                checked.faults.push(format!("run {run}: {} missing", counted(lacking, "row")));
            }
        }
        if concerned > NAMED {
            checked.faults.push(format!("{} more", counted(concerned - NAMED, "run")));
        }
        Ok(())
    }
}
