//! Quads by pattern and queries, from the view, the overlay and what was loaded.

use super::overlay::{NoOverlay, Overlay};
use super::query::Cancellation;
use super::sources::{LoadedReaders, Sources};
use super::{Bounds, Job, QueryError, Unanswered, View};
use std::io::{Read, Write};
use trellis_domain::rdf::Quad;
use trellis_orchestrator::ports::{Answer, QuadPattern};
use trellis_queries::attend;
use trellis_queries::find::find;

impl View {
    /// The first quads of a workspace that match, each once, in the order of the index: it follows from the quads'
    /// contents, so that what is absorbed meanwhile does not change it.
    pub fn matching(
        &self,
        workspace: &str,
        pattern: &QuadPattern,
        overlay: &dyn Overlay,
        bounds: &Bounds,
    ) -> Result<Vec<Quad>, QueryError> {
        self.matching_with(workspace, pattern, overlay, LoadedReaders::default(), bounds)
    }

    /// The same, with what was loaded.
    pub(crate) fn matching_with(
        &self,
        workspace: &str,
        pattern: &QuadPattern,
        overlay: &dyn Overlay,
        loaded: LoadedReaders,
        bounds: &Bounds,
    ) -> Result<Vec<Quad>, QueryError> {
        let reader = self.reader(workspace, bounds.cancellation.clone());
        find(&Sources::new(Some(reader), loaded), pattern, overlay, bounds)
    }

    /// Gives a job to a worker and everything that it asks for, until it has an answer: what runs of a workspace say, if
    /// one is named, and what was loaded.
    pub(crate) fn attend(
        &self,
        workspace: Option<&str>,
        job: &Job,
        (overlay, loaded): (&dyn Overlay, LoadedReaders),
        cancellation: &Cancellation,
        ends: (&mut impl Read, &mut impl Write),
    ) -> Result<Answer, Unanswered> {
        let reader = workspace.map(|workspace| self.reader(workspace, cancellation.clone()));
        attend(&Sources::new(reader, loaded), overlay, job, ends)
    }
}

impl LoadedReaders {
    /// The first quads that match of what was loaded, each once.
    pub(crate) fn matching(self, pattern: &QuadPattern, bounds: &Bounds) -> Result<Vec<Quad>, QueryError> {
        find(&Sources::new(None, self), pattern, &NoOverlay, bounds)
    }
}
