//! Agents that are called like tools: a fan-out whose answers are what the calls brought.

use super::{begun, next_index};
use crate::contract::{Ending, Order, Turn};
use crate::delegate::Delegate;
use crate::session::Session;
use crate::spending;
use trellis_domain::config::ToolItem;
use trellis_domain::decision::{DecidedBy, Decision, DecisionKind, Enforcement};
use trellis_domain::fan_out::{FannedOut, Goal};
use trellis_domain::ids::config_iri;
use trellis_domain::record::Name;
use trellis_domain::run::Termination;

/// A call that an agent is to answer.
#[derive(Debug)]
pub(crate) struct AgentCall<'t> {
    /// What its outcome is recorded under.
    pub(crate) name: Name,
    pub(crate) tool: &'t ToolItem,
    pub(crate) question: String,
    pub(crate) agent: Delegate,
}

/// The order to send out an agent for each call. The turn goes on when all of them are back.
pub(crate) fn order_for(session: &Session, turn: &Turn, calls: Vec<AgentCall<'_>>) -> Order {
    let Some((id, accepted)) = session.id().zip(session.accepted()) else {
        return Order::End(Ending::failed(Termination::Error, "the session has no root"));
    };
    let round = u32::try_from(session.fan_outs().count()).unwrap_or(u32::MAX).saturating_add(1);
    let least = calls.iter().map(|call| call.agent.agents()).max().unwrap_or(1);
    let share = spending::share_of_calls(session, u32::try_from(calls.len()).unwrap_or(u32::MAX), least);
    let decisions = calls.iter().map(|call| chosen(session, call)).collect();
    let goal = |(call, index): (AgentCall<'_>, usize)| {
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        Goal {
            index,
            session: id.child(round, index),
            goal: call.question,
            pattern: call.agent.pattern,
            group: accepted.group.clone(),
            context: String::new(),
            task_type: call.agent.task_type,
            call: Some(call.name),
        }
    };
    let goals = calls.into_iter().zip(next_index(session)..).map(goal).collect();
    let fan_out = FannedOut { goals, share, decisions, ..begun(session, id, accepted, round, turn.now) };
    Order::FanOut(Box::new(FannedOut { turn: Some(turn.name.clone()), ..fan_out }))
}

/// The model chose the tool; which pattern that is follows from the configuration.
fn chosen(session: &Session, call: &AgentCall<'_>) -> Decision {
    let source = config_iri(&session.workspace(), "tool", Some(&call.tool.name));
    let offered = session.offered(DecisionKind::SubagentPattern, call.agent.options.clone(), source);
    Decision {
        chosen: vec![call.agent.pattern.to_string()],
        excluded: call.agent.excluded.clone(),
        decided_by: DecidedBy::Rule,
        enforcement: Enforcement::None,
        ..offered
    }
}
