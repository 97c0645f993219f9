//! The session as a dataset of the SPARQL evaluator.

use crate::convert::{from_ox, to_ox};
use crate::order::{EncodedQuad, Graphs, IdPattern};
use crate::session::{Interrupted, Session};
use crate::term_id::TermId;
use oxrdf::Term as OxTerm;
use spareval::{InternalQuad, QueryableDataset};

impl<'s> QueryableDataset<'s> for &'s Session<'s> {
    type InternalTerm = TermId;
    type Error = Interrupted;

    /// `graph_name` is `Some(None)` for the default graph, `None` for all named graphs.
    fn internal_quads_for_pattern(
        &self,
        subject: Option<&TermId>,
        predicate: Option<&TermId>,
        object: Option<&TermId>,
        graph_name: Option<Option<&TermId>>,
    ) -> impl Iterator<Item = Result<InternalQuad<TermId>, Interrupted>> + use<'s> {
        let triple = |g| IdPattern { s: subject.copied(), p: predicate.copied(), o: object.copied(), g };
        let session: &'s Session<'s> = self;
        let quads = match graph_name {
            Some(None) => session.default_graph_quads(triple(Graphs::All)),
            Some(Some(graph)) => session.quads(triple(Graphs::One(*graph))),
            None => session.quads(triple(Graphs::Named)),
        };
        let is_default_graph = graph_name == Some(None);
        interruptible(quads).map(move |quad| quad.map(|quad| internal_quad(quad, is_default_graph)))
    }

    fn internal_named_graphs(&self) -> impl Iterator<Item = Result<TermId, Interrupted>> + use<'s> {
        interruptible(self.named_graphs().map(|graphs| graphs.into_iter().map(Ok)))
    }

    fn internalize_term(&self, term: OxTerm) -> Result<TermId, Interrupted> {
        Ok(self.own_term(from_ox(term)))
    }

    fn externalize_term(&self, term: TermId) -> Result<OxTerm, Interrupted> {
        Ok(to_ox(&self.term(term)?))
    }
}

fn internal_quad(quad: EncodedQuad, is_default_graph: bool) -> InternalQuad<TermId> {
    InternalQuad {
        subject: quad.s,
        predicate: quad.p,
        object: quad.o,
        graph_name: (!is_default_graph).then_some(quad.g),
    }
}

/// An iterator, or the one error that came instead of it.
fn interruptible<T>(
    items: Result<impl Iterator<Item = Result<T, Interrupted>>, Interrupted>,
) -> impl Iterator<Item = Result<T, Interrupted>> {
    let (items, error) = match items {
        Ok(items) => (Some(items), None),
        Err(error) => (None, Some(error)),
    };
    error.map(Err).into_iter().chain(items.into_iter().flatten())
}
