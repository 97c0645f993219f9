//! How a query ends that reads nothing for a long time.
//!
//! The evaluator looks at its cancellation when it reads from the dataset. A product of patterns is made in memory and
//! can go on for years without a single read. But all its work copies terms, and the terms are ours: a copy that is
//! made after the query was cancelled unwinds the query's thread.

use super::query::{Cancellation, QueryError};
use super::term_id::TermId;
use std::any::Any;
use std::cell::RefCell;
use std::panic;

thread_local! {
    /// The cancellation of the query that runs on this thread.
    static RUNNING: RefCell<Option<Cancellation>> = const { RefCell::new(None) };
}

/// A term's id as the evaluator holds it.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Held(pub(super) TermId);

impl Clone for Held {
    fn clone(&self) -> Self {
        if RUNNING.with_borrow(|running| running.as_ref().is_some_and(Cancellation::is_cancelled)) {
            // Not `panic!`: nothing is wrong, and nobody wants to read about it.
            panic::resume_unwind(Box::new(Stopped));
        }
        Self(self.0)
    }
}

/// What a stopped query unwinds with.
struct Stopped;

/// From now on this thread works for a query that can be cancelled.
pub(super) fn run_under(cancellation: &Cancellation) {
    RUNNING.set(Some(cancellation.clone()));
}

/// What it means that a query's thread has unwound.
pub(super) fn unwound<T>(payload: Box<dyn Any + Send>) -> Result<T, QueryError> {
    if payload.is::<Stopped>() { Err(QueryError::Cancelled) } else { panic::resume_unwind(payload) }
}
