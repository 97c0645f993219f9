//! Where a session reads from: an index, or a pipe to the process that has one.

use crate::order::{EncodedQuad, IdPattern};
use crate::query::QueryError;
use crate::term_id::TermId;
use trellis_domain::rdf::Term;

/// Quads sorted by the order of a pattern's access path.
pub type QuadSource = Box<dyn Iterator<Item = Result<EncodedQuad, QueryError>>>;

/// One workspace as it was at one moment.
pub trait Source {
    /// The quads that match.
    fn scan(&self, pattern: IdPattern) -> Result<QuadSource, QueryError>;

    fn term(&self, id: TermId) -> Result<Term, QueryError>;

    /// Is told which terms are asked for next, so that they can be fetched together.
    fn expect(&self, _: &[TermId]) -> Result<(), QueryError> {
        Ok(())
    }

    fn named_graphs(&self) -> Result<Vec<TermId>, QueryError>;
}
