//! Agents that were called like tools: told like those that a supervisor sends out, behind the call.

use super::{Rounds, SentOut};
use crate::describe::described_session::DescribedSession;
use trellis_domain::counted;
use trellis_domain::fan_out::{FannedOut, Joined};
use trellis_domain::record::{Header, Name};
use trellis_provenance::Act;

/// The agents of some calls, given the node of each.
pub(crate) fn called(
    session: &DescribedSession,
    header: &Header,
    fan_out: &FannedOut,
    node: impl Fn(&Name) -> String,
) -> Act {
    let calls = fan_out.goals.iter().filter_map(|goal| goal.call.as_ref()).map(node).collect();
    let label = format!("Called {}", counted(fan_out.goals.len(), "agent"));
    Rounds::default().fan_out(session, header, fan_out, SentOut { label, calls, ..SentOut::default() })
}

/// What they brought. The call's own result follows from that.
pub(crate) fn came_back(session: &DescribedSession, header: &Header, joined: &Joined) -> Vec<Act> {
    Rounds::default().findings(session, header, joined)
}
