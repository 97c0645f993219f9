//! Quads by pattern, from a source and what is laid over it.

use crate::order::{EncodedQuad, Graphs, IdPattern};
use crate::overlay::Overlay;
use crate::query::{Bounds, QueryError};
use crate::session::{DefaultGraph, Interrupted, Session};
use crate::size::Size;
use crate::source::Source;
use crate::term_id::{TermId, canonical_bytes, read_term};
use trellis_domain::rdf::{Quad, Term};
use trellis_orchestrator::ports::QuadPattern;

/// Quads whose terms are fetched together.
const TOGETHER: usize = 128;

/// The first quads that match, each once, in the order of the index.
pub fn find(
    source: &dyn Source,
    pattern: &QuadPattern,
    overlay: &dyn Overlay,
    bounds: &Bounds,
) -> Result<Vec<Quad>, QueryError> {
    let cancellation = bounds.cancellation.clone();
    let session = Session::new(source, DefaultGraph::Union, overlay, bounds.max_overlay_quads, cancellation);
    let found = session.quads(encode(pattern, &session)).and_then(|quads| {
        let (mut found, mut size) = (Vec::new(), Size::default());
        let mut quads = quads.take(bounds.max_rows);
        loop {
            let together = quads.by_ref().take(TOGETHER).collect::<Result<Vec<_>, _>>()?;
            if together.is_empty() {
                return Ok(found);
            }
            let terms: Vec<_> = together.iter().flat_map(|quad| [quad.s, quad.p, quad.o, quad.g]).collect();
            session.expect(&terms)?;
            for quad in together {
                let quad = decode(quad, &session)?;
                if !size.admits([&quad.s, &quad.p, &quad.o], bounds.max_bytes) {
                    return Err(session.fail(QueryError::AnswerTooLarge { max: bounds.max_bytes }));
                }
                found.push(quad);
            }
        }
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
