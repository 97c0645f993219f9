//! What fan-outs and joins mean to a reader.

mod calls;
mod decomposition;
mod finding;
mod rounds;

pub(crate) use calls::{called, came_back};
pub(crate) use rounds::Rounds;

use crate::describe::asking::Asking;
use crate::describe::inside::Inside;

/// What a fan-out is called, the reply that it came of, and the judgements that it tells of.
#[derive(Debug, Default)]
pub(crate) struct SentOut {
    pub(crate) label: String,
    pub(crate) asking: Option<Asking>,
    pub(crate) reviews: Inside,
    /// The calls that it answers; none if a pattern sent them out by itself.
    pub(crate) calls: Vec<String>,
}
