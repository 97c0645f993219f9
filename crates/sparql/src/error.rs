//! What can go wrong with an endpoint.

use trellis_orchestrator::ports::GraphError;
use trellis_queries::{IndexFault, QueryError};

/// Why an endpoint did not do what it was asked for. Addresses are shown without anybody's password.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RemoteError {
    #[error("the graph at {endpoint} cannot be reached: {why}; ask again in a moment, and see whether it runs")]
    Unreachable { endpoint: String, why: String },
    #[error("the graph at {endpoint} did not answer within {seconds} s")]
    TooSlow { endpoint: String, seconds: u64 },
    #[error(
        "the graph at {endpoint} lets nobody in with these credentials (HTTP {status}): name the user in the address \
         and the password in TRELLIS_GRAPH_PASSWORD, or a token in TRELLIS_GRAPH_TOKEN"
    )]
    Denied { endpoint: String, status: u16 },
    #[error("the graph at {endpoint} refused what it was asked (HTTP {status}): {why}")]
    Refused { endpoint: String, status: u16, why: String },
    #[error(
        "the graph at {endpoint} gave an answer that makes no sense: {why}; is this the address of a SPARQL 1.1 endpoint?"
    )]
    Nonsense { endpoint: String, why: String },
    #[error("the graph at {endpoint} gave more than {} MiB for one pattern; narrow the query", max >> 20)]
    TooLarge { endpoint: String, max: usize },
    #[error("more than {max} statements match one pattern of the query; narrow it, or ask the endpoint itself")]
    TooMany { max: usize },
    #[error("the query looks at more than {} MiB of texts; narrow it, or ask the endpoint itself", max >> 20)]
    TooMuchText { max: usize },
    /// Another process has begun the view anew while it was read.
    #[error("the graph at {endpoint} is being derived anew; ask again in a moment")]
    BegunAnew { endpoint: String },
}

impl RemoteError {
    /// Whether the same may succeed later, without anybody doing something about it here.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::TooSlow { .. } | Self::BegunAnew { .. } => true,
            Self::Refused { status, .. } => matches!(status, 429 | 500 | 502 | 503 | 504),
            Self::Denied { .. }
            | Self::Nonsense { .. }
            | Self::TooLarge { .. }
            | Self::TooMany { .. }
            | Self::TooMuchText { .. } => false,
        }
    }
}

impl From<RemoteError> for GraphError {
    fn from(error: RemoteError) -> Self {
        match error {
            RemoteError::TooLarge { .. } | RemoteError::TooMany { .. } | RemoteError::TooMuchText { .. } => {
                Self::TooLarge(error.to_string())
            }
            RemoteError::BegunAnew { .. } => Self::Busy(error.to_string()),
            RemoteError::Unreachable { .. }
            | RemoteError::TooSlow { .. }
            | RemoteError::Denied { .. }
            | RemoteError::Refused { .. }
            | RemoteError::Nonsense { .. } => Self::Index(error.to_string()),
        }
    }
}

/// For whoever evaluates queries, who tells it on. [`crate::reading::Reading`] keeps what it was.
impl From<RemoteError> for QueryError {
    fn from(error: RemoteError) -> Self {
        IndexFault { reason: error.to_string(), is_damage: false }.into()
    }
}
