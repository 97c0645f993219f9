//! Where a session reads from: the tables themselves, or a pipe to the process that has them.

use super::order::{EncodedQuad, IdPattern};
use super::query::QueryError;
use super::term_id::TermId;
use trellis_domain::rdf::Term;

/// Quads sorted by the order of a pattern's access path.
pub(super) type QuadSource = Box<dyn Iterator<Item = Result<EncodedQuad, QueryError>>>;

/// One workspace as it was at one moment.
pub(super) trait Source {
    /// The quads that match.
    fn scan(&self, pattern: IdPattern) -> Result<QuadSource, QueryError>;

    fn term(&self, id: TermId) -> Result<Term, QueryError>;

    fn named_graphs(&self) -> Result<Vec<TermId>, QueryError>;
}
