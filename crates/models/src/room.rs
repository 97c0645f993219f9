//! What the models of a provider share.

use crate::remote::Pace;
use std::sync::Arc;
use trellis_orchestrator::permits::CallCapacity;

/// What the models of a provider share.
#[derive(Debug, Clone)]
pub(crate) struct Room {
    pub(crate) capacity: Arc<CallCapacity>,
    pub(crate) pace: Arc<Pace>,
}
