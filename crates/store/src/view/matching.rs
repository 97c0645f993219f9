//! Quads by pattern, from the view and the overlay.

use super::order::{EncodedQuad, Graphs, IdPattern};
use super::overlay::Overlay;
use super::session::{DefaultGraph, Interrupted, Session};
use super::size::Size;
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
        let cancellation = bounds.cancellation.clone();
        let reader = self.reader(workspace, cancellation.clone());
        let session = Session::new(&reader, DefaultGraph::Union, overlay, bounds.max_overlay_quads, cancellation);
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
