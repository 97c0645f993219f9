//! How much a reading of an index may take, and why it may give nothing.

use spareval::QueryEvaluationError;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{fmt, io};
use trellis_orchestrator::ports::{GraphError, JournalError};

/// How much one reading of the view may take.
#[derive(Debug, Clone)]
pub struct Bounds {
    /// Rows beyond this are cut off and the answer says so; a graph beyond it is an error.
    pub max_rows: usize,
    /// Quads beyond this are an error: they are in memory.
    pub max_bytes: usize,
    /// How many quads of runs outside the view a query may hold in memory, at about 300 bytes each.
    pub max_overlay_quads: usize,
    /// Ends the query from another thread: after a deadline, or when nobody waits for it any more.
    pub cancellation: Cancellation,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            max_rows: 10_000,
            max_bytes: 32 << 20,
            max_overlay_quads: 500_000,
            cancellation: Cancellation::default(),
        }
    }
}

/// Stops the readings that hold a clone of it at their next key.
#[derive(Clone, Default)]
pub struct Cancellation(Arc<AtomicBool>);

impl Cancellation {
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Cancels when it is dropped: nobody waits for the answer any more.
#[derive(Debug)]
pub struct CancelOnDrop(pub Cancellation);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl fmt::Debug for Cancellation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cancellation").field(&self.is_cancelled()).finish()
    }
}

/// What is wrong with an index that can be derived anew.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{reason}")]
pub struct IndexFault {
    pub reason: String,
    /// Whether the index itself is wrong; else the machine is.
    pub is_damage: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// The message begins with `error at <line>:<column>`.
    #[error("this is not a SPARQL query: {0}")]
    Syntax(String),
    #[error("SPARQL Update is refused: the graph follows from recorded runs and is not edited")]
    UpdateRefused,
    #[error("SERVICE {service} is refused: queries do not leave this graph")]
    ServiceRefused { service: String },
    #[error("the query has {bytes} bytes, more than the {max} allowed")]
    TooLong { bytes: usize, max: usize },
    #[error("the query has more than {max} {what}")]
    TooComplex { what: &'static str, max: usize },
    #[error("the query was cancelled")]
    Cancelled,
    #[error("runs that are not indexed yet have more than {max} quads; ask again later or name a run")]
    OverlayTooLarge { max: usize },
    #[error("the resulting graph has more than {max} triples; add a LIMIT")]
    GraphTooLarge { max: usize },
    #[error("the answer takes more than {} MiB; ask for less of it, or for shorter texts", max >> 20)]
    AnswerTooLarge { max: usize },
    #[error(transparent)]
    Index(#[from] IndexFault),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("the query cannot be evaluated: {0}")]
    Evaluation(String),
    #[error("no thread for the query")]
    NoThread(#[source] io::Error),
}

/// What the session did not cause itself.
impl From<QueryEvaluationError> for QueryError {
    fn from(error: QueryEvaluationError) -> Self {
        if matches!(error, QueryEvaluationError::Cancelled) {
            Self::Cancelled
        } else {
            Self::Evaluation(error.to_string())
        }
    }
}

/// What the view says, in the words of the port. A reading that was cancelled is one that nobody waits for.
impl From<QueryError> for GraphError {
    fn from(error: QueryError) -> Self {
        match error {
            QueryError::Syntax(_)
            | QueryError::UpdateRefused
            | QueryError::ServiceRefused { .. }
            | QueryError::TooLong { .. }
            | QueryError::TooComplex { .. }
            | QueryError::Evaluation(_)
            | QueryError::Cancelled => Self::Query(error.to_string()),
            QueryError::OverlayTooLarge { .. }
            | QueryError::GraphTooLarge { .. }
            | QueryError::AnswerTooLarge { .. }
            | QueryError::NoThread(_) => Self::TooLarge(error.to_string()),
            QueryError::Index(fault) => Self::Index(fault.reason),
            QueryError::Journal(error) => error.into(),
        }
    }
}
