//! Tools that stand for agents: the call sends one out, and what it brings is what came of the call.

use super::Call;
use crate::contract::{Effect, Order, Turn};
use crate::delegate::delegate;
use crate::fan_out::{AgentCall, order_for};
use crate::session::Session;
use crate::spending::{most_called, no_subagents};
use serde_json::Value;
use trellis_domain::document::Document;
use trellis_domain::fan_out::{FannedOut, Goal};

/// What comes of a call of an agent: something by now, or nothing yet because it is to be sent out; otherwise what is done in
/// the place of everything else.
pub(super) fn answered(session: &Session, call: &Call) -> Result<Option<Effect>, Order> {
    if let Some((fan_out, goal)) = session.agent_called(&call.name) {
        return brought(session, call, fan_out, goal).map(Some).ok_or(Order::Close);
    }
    let against = match delegate(session, &call.item) {
        Err(reason) => Some(reason),
        Ok(_) if question(call).is_none() => {
            Some("the argument `question` is missing; write what the agent is to find out".to_owned())
        }
        Ok(agent) if most_called(session, agent.agents()) == 0 => Some(no_subagents(session)),
        Ok(_) => None,
    };
    Ok(against.map(|error| Effect::Report { error }))
}

fn question(call: &Call) -> Option<&str> {
    call.arguments.get("question").and_then(Value::as_str).filter(|question| !question.trim().is_empty())
}

/// The answer of the agent that was sent out; none while it is at work.
fn brought(session: &Session, call: &Call, fan_out: &FannedOut, goal: &Goal) -> Option<Effect> {
    let joined = session.joined(fan_out.round)?;
    let member = joined.members.iter().find(|member| member.index == goal.index)?;
    let (tool, session) = (call.tool.clone(), goal.session.clone());
    if let Some(answer) = member.answer.as_ref().map(Document::text).filter(|_| !member.is_missing()) {
        return Some(Effect::Bring { tool, session, result: Ok(answer.to_owned()) });
    }
    let why = member.error.clone().unwrap_or_else(|| member.reason.to_string());
    let found = member.answer.as_ref().map(|answer| format!("\nIt had found: {}", answer.text())).unwrap_or_default();
    let error = format!("the agent `{tool}` did not answer: {why}{found}");
    Some(Effect::Bring { tool, session, result: Err(error) })
}

/// Sends out an agent for each of these calls, as many as there may be at once. The others follow when these are back.
pub(super) fn sent_out<'c>(session: &'c Session, turn: &Turn, calls: &'c [Call]) -> Option<Order> {
    let agent = |call: &'c Call| {
        let (question, agent) = (question(call)?.to_owned(), delegate(session, &call.item).ok()?);
        Some(AgentCall { name: call.name.clone(), tool: &call.item, question, agent })
    };
    let mut calls: Vec<_> = calls.iter().filter_map(agent).collect();
    let agents = calls.iter().map(|call| call.agent.agents()).max().unwrap_or(1);
    // Where not all that they need is there for all of them, one at a time may have it.
    let most = usize::try_from(most_called(session, agents)).unwrap_or(usize::MAX);
    calls.truncate(most.max(1));
    (!calls.is_empty()).then(|| order_for(session, turn, calls))
}
