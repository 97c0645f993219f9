//! What the loop is connected to, and what the workers of a process share.

use crate::claims::Claims;
use crate::hub::Hub;
use crate::ports::{
    Config, ConfigError, Disposition, Journal, JournalError, Prompter, Queue, Signal, ToolRunner, World,
};
use crate::suspects::Suspects;
use crate::unread::Unread;
use std::sync::Arc;
use trellis_domain::RunId;
use trellis_domain::record::{REVISION, Record};
use trellis_patterns::router::OperatorLimits;

/// What the loop is connected to.
#[derive(Debug, Clone)]
pub struct Ports {
    pub journal: Arc<dyn Journal>,
    pub queue: Arc<dyn Queue>,
    pub config: Arc<dyn Config>,
    pub prompter: Arc<dyn Prompter>,
    pub tools: Arc<dyn ToolRunner>,
    pub hub: Arc<Hub>,
    pub world: Arc<dyn World>,
}

#[derive(Debug, Clone)]
pub struct Options {
    pub limits: OperatorLimits,
    /// Runs without an end; more are refused.
    pub max_open_runs: usize,
    /// A turn that was in hand at so many crashes, more than any other, is set aside: it is what stops the process. So
    /// is one whose records could not be read so often.
    pub max_deliveries: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self { limits: OperatorLimits::default(), max_open_runs: 10_000, max_deliveries: 5 }
    }
}

/// The loop. Holds no state of its own: any number of them may serve the same journal.
#[derive(Debug, Clone)]
pub struct Orchestrator {
    pub ports: Ports,
    pub options: Options,
    /// The operator's limits, as sessions hold them.
    pub(crate) limits: Arc<OperatorLimits>,
    /// Shared by all workers of the process.
    pub(crate) claims: Arc<Claims>,
    /// Sent with every cancellation: whoever waits looks whether it was its run.
    pub(crate) cancels: Signal,
    pub(crate) suspects: Arc<Suspects>,
    pub(crate) unread: Arc<Unread>,
}

/// Why a turn could not be handled now. It stays open.
#[derive(Debug, thiserror::Error)]
pub enum TurnError {
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Newer(#[from] NewerRun),
}

/// A run whose rules are not known here.
#[derive(Debug, thiserror::Error)]
#[error(
    "run {run} was begun by a newer version of this program (by rules {revision}; here {REVISION} are known); go on \
     with that version, or end the run with `trellis run cancel {run}`"
)]
pub struct NewerRun {
    run: RunId,
    revision: u32,
}

impl NewerRun {
    /// Whether the first record of a session says so.
    pub fn check(first: &Record) -> Result<(), Self> {
        let revision = first.body.as_accepted().map_or(0, |accepted| accepted.revision);
        if revision <= REVISION { Ok(()) } else { Err(Self { run: first.header.run.clone(), revision }) }
    }
}

impl TurnError {
    pub fn disposition(&self) -> Disposition {
        match self {
            Self::Journal(error) => error.disposition(),
            Self::Config(error) => error.disposition(),
            // Whatever was decided by other rules would be wrong for good. Another process may know them.
            Self::Newer(_) => Disposition::Retry,
        }
    }
}

impl Orchestrator {
    pub fn new(ports: Ports, options: Options) -> Self {
        let limits = Arc::new(options.limits.clone());
        let claims = Arc::new(Claims::of(&ports.world.fresh_id()));
        let (cancels, suspects, unread) = (Signal::default(), Arc::default(), Arc::default());
        Self { ports, options, limits, claims, cancels, suspects, unread }
    }
}
