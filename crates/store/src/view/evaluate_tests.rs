//! Queries on the tables themselves, without a process around them.

use super::query::{Bounds, QueryError};
use super::sources::{LoadedReaders, Sources};
use super::{Overlay, View, evaluate};
use trellis_orchestrator::ports::Answer;

impl View {
    pub(super) fn query(
        &self,
        workspace: &str,
        sparql: &str,
        overlay: &(dyn Overlay + Sync),
        bounds: &Bounds,
    ) -> Result<Answer, QueryError> {
        evaluate::check_length(sparql)?;
        std::thread::scope(|scope| {
            let work = || {
                let reader = self.reader(workspace, bounds.cancellation.clone());
                let sources = Sources::new(Some(reader), LoadedReaders::default());
                evaluate::answer(sparql, &sources, overlay, bounds)
            };
            let builder = std::thread::Builder::new().stack_size(evaluate::stack_of(sparql));
            builder.spawn_scoped(scope, work).unwrap().join().unwrap()
        })
    }
}
