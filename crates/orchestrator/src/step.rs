//! What a decision asks of the shell.

use crate::ports::NewTurn;
use trellis_domain::record::{Body, Cause, Name};
use trellis_domain::{SessionId, Timestamp};
use trellis_patterns::{Effect, Ending, Session};

/// What a decision asks of the shell.
#[derive(Debug)]
pub(crate) enum ShellStep {
    /// Side by side.
    Perform(Vec<(Name, Effect)>),
    /// Close the turn, with what goes into the same commit.
    Close(Closing),
    End(Ending),
    /// The turn is not due yet; it stays open.
    Wait,
}

/// What is due: known from the session alone, or only once its subagents have been looked at.
#[derive(Debug)]
pub(crate) enum Next {
    Step(ShellStep),
    /// The fan-in of this round.
    FanIn(u32),
}

/// What is decided together with the closing of a turn.
#[derive(Debug, Default)]
pub(crate) struct Closing {
    pub(crate) records: Vec<Decided>,
    /// Versions of other sessions that this was decided from.
    pub(crate) seen_of_others: Vec<(SessionId, u64)>,
    /// Other turns of the session that have lost their purpose.
    pub(crate) close: Vec<Name>,
    pub(crate) open: Vec<NewTurn>,
    /// When it was decided, if that counts: deadlines run from there, whatever the clock does before the commit.
    pub(crate) at: Option<Timestamp>,
}

/// A record that was decided, not performed. It may belong to another session of the run.
#[derive(Debug, Clone)]
pub(crate) struct Decided {
    pub(crate) session: SessionId,
    pub(crate) name: Name,
    pub(crate) causes: Vec<Cause>,
    pub(crate) body: Body,
}

/// What is decided from the whole session follows from all of it.
pub(crate) fn everything(session: &Session) -> Vec<Cause> {
    session.tips().iter().cloned().map(Cause::from).collect()
}
