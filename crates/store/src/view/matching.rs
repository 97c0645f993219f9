//! Quads by pattern, from the view, the overlay and what was loaded.

use super::order::{EncodedQuad, Graphs, IdPattern};
use super::overlay::{NoOverlay, Overlay};
use super::session::{DefaultGraph, Interrupted, Session};
use super::size::Size;
use super::sources::{LoadedReaders, Sources};
use super::term_id::{TermId, canonical_bytes, read_term};
use super::{Bounds, QueryError, View};
use trellis_domain::rdf::{Quad, Term};
use trellis_orchestrator::ports::QuadPattern;

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
}

impl LoadedReaders {
    /// The first quads that match of what was loaded, each once.
    pub(crate) fn matching(self, pattern: &QuadPattern, bounds: &Bounds) -> Result<Vec<Quad>, QueryError> {
        find(&Sources::new(None, self), pattern, &NoOverlay, bounds)
    }
}

fn find(
    sources: &Sources,
    pattern: &QuadPattern,
    overlay: &dyn Overlay,
    bounds: &Bounds,
) -> Result<Vec<Quad>, QueryError> {
    let cancellation = bounds.cancellation.clone();
    let session = Session::new(sources, DefaultGraph::Union, overlay, bounds.max_overlay_quads, cancellation);
    let found = session.quads(encode(pattern, &session)).and_then(|quads| {
        let (mut found, mut size) = (Vec::new(), Size::default());
        for quad in quads.take(bounds.max_rows) {
            let quad = decode(quad?, &session)?;
            if !size.admits([&quad.s, &quad.p, &quad.o], bounds.max_bytes) {
                return Err(session.fail(QueryError::AnswerTooLarge { max: bounds.max_bytes }));
            }
            found.push(quad);
        }
        Ok(found)
    });
    // Whatever interrupts a session is its failure.
    session.take_failure().map_or_else(|| Ok(found.unwrap_or_default()), Err)
}

fn encode(pattern: &QuadPattern, session: &Session<'_>) -> IdPattern {
    // As it would be stored: a pattern may write the same literal in another way.
    let stored = |term: &Term| read_term(&canonical_bytes(term)).expect("canonical bytes are a term");
    let id = |term: &Option<Term>| term.as_ref().map(|term| session.own_term(stored(term)));
    let g = match pattern.g.as_deref() {
        None => Graphs::All,
        Some(graph) => Graphs::One(TermId::of_graph(Some(graph))),
    };
    IdPattern { s: id(&pattern.s), p: id(&pattern.p), o: id(&pattern.o), g }
}

fn decode(quad: EncodedQuad, session: &Session<'_>) -> Result<Quad, Interrupted> {
    let g = if quad.g == TermId::DEFAULT_GRAPH { None } else { Some(session.term(quad.g)?.text().to_owned()) };
    Ok(Quad { s: session.term(quad.s)?, p: session.term(quad.p)?, o: session.term(quad.o)?, g })
}
