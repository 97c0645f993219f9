//! Messages to a run that is under way.

use crate::Caller;
use crate::document::Payload;
use serde::{Deserialize, Serialize};

/// Somebody has told a session something. Whatever a model is asked next, it is told this as well.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Told {
    pub text: Payload,
    pub by: Caller,
}

impl Told {
    /// So many bytes a message may have.
    pub const MOST_BYTES: usize = 16 * 1024;
    /// So many messages a session may be told: all of them are shown from then on.
    pub const MOST: u32 = 32;
}
