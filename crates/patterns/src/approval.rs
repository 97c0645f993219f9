//! Tools that nobody calls without a person's approval. Every pattern orders calls as it likes; here they are held back.

use crate::contract::{Effect, Order, Turn};
use crate::session::Session;
use crate::text::cut;
use serde_json::{Map, Value};
use trellis_domain::ToolName;
use trellis_domain::config::ApprovalItem;
use trellis_domain::decision::DecisionKind;
use trellis_domain::park::{Parked, Settled, answer};
use trellis_domain::record::Name;

/// How many bytes of the arguments a question shows.
const SHOWN: usize = 2_000;

/// The orders of a turn, with a question in the place of the first call that needs an answer.
pub fn guarded(session: &Session, turn: &Turn, orders: Vec<Order>) -> Vec<Order> {
    let mut guarded = Vec::with_capacity(orders.len());
    for order in orders {
        match order {
            Order::Perform(name, Effect::CallTool { tool, arguments }) if !session.has(&name) => {
                match guard(session, turn, name, tool, arguments) {
                    Ok(order) => guarded.push(order),
                    // It is not this turn that goes on.
                    Err(instead) => return vec![instead],
                }
            }
            Order::Perform(..)
            | Order::Open(_)
            | Order::Close
            | Order::Become(_)
            | Order::FanOut(_)
            | Order::Park(_)
            | Order::End(_) => guarded.push(order),
        }
    }
    guarded
}

/// The call, if it may be made or was forbidden; otherwise what is done in the place of everything else.
fn guard(
    session: &Session,
    turn: &Turn,
    name: Name,
    tool: ToolName,
    arguments: Map<String, Value>,
) -> Result<Order, Order> {
    let approval = session.settings().tools.get(&tool).and_then(|item| item.approval.as_ref());
    let Some(approval) = approval else { return Ok(Order::Perform(name, Effect::CallTool { tool, arguments })) };
    let Some(park) = session.park_about(&name) else {
        return Err(Order::Park(Box::new(question(session, turn, approval, name, tool, arguments))));
    };
    let Some(settled) = session.settled(park.number) else { return Err(Order::Close) };
    Ok(Order::Perform(name, decided(tool, settled, arguments)))
}

fn decided(tool: ToolName, settled: &Settled, arguments: Map<String, Value>) -> Effect {
    if settled.decision.chosen.iter().any(|chosen| chosen == answer::APPROVE) {
        let arguments = settled.arguments.clone().unwrap_or(arguments);
        return Effect::CallTool { tool, arguments };
    }
    let who =
        settled.by.as_ref().map_or_else(|| "nobody approved it in time".to_owned(), |by| format!("{by} denied it"));
    let why = settled.decision.rationale.as_ref().map(|why| format!(": {}", why.text())).unwrap_or_default();
    Effect::Report { error: format!("the tool `{tool}` was not called; {who}{why}") }
}

fn question(
    session: &Session,
    turn: &Turn,
    approval: &ApprovalItem,
    about: Name,
    tool: ToolName,
    arguments: Map<String, Value>,
) -> Parked {
    let wanted = turn.now.plus_ms(approval.timeout_ms);
    // The whole arguments are on record beside it.
    let told = cut(&Value::Object(arguments.clone()).to_string(), SHOWN);
    let text = format!("May `{tool}` be called with {told}?");
    let options = [answer::APPROVE, answer::DENY].map(str::to_owned).to_vec();
    Parked {
        number: u32::try_from(session.parks().count()).unwrap_or(u32::MAX).saturating_add(1),
        question: text.as_str().into(),
        offered: session.offered(DecisionKind::Approval, options, session.config_source("tool")),
        about,
        turn: turn.name.clone(),
        tool: Some(tool),
        arguments,
        who: approval.approvers.clone(),
        // A subagent does not wait longer than it is waited for.
        expires: session.waited_for_until(turn.now).map_or(wanted, |deadline| deadline.min(wanted)),
        otherwise: answer::DENY.to_owned(),
    }
}
