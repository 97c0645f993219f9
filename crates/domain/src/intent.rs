//! Calls that must not be made twice: that one is about to be made is recorded before it is.

use crate::ToolName;
use serde::{Deserialize, Serialize};

/// A call is about to be made that may change something, and that may not be made again without being asked for. If its
/// outcome is not recorded as well, nobody knows whether it was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intended {
    pub tool: ToolName,
    /// The key that it is called with.
    pub idempotency_key: String,
}
