//! Tools that nobody calls without a person's approval.

use super::{Call, Question, because, is_chosen};
use crate::contract::{Effect, Order, Turn};
use crate::session::Session;
use trellis_domain::decision::DecisionKind;
use trellis_domain::park::{Settled, answer};

/// The call as it may be made, or what is done in its place; otherwise what is done in the place of everything else.
pub(super) fn agreed(session: &Session, turn: &Turn, call: Call) -> Result<Result<Call, Effect>, Order> {
    if !call.item.requires_approval {
        return Ok(Ok(call));
    }
    let Some(park) = session.park_about(&call.name) else { return Err(question(session, turn, call)) };
    let Some(settled) = session.settled(park.number) else { return Err(Order::Close) };
    Ok(decided(settled, call))
}

fn decided(settled: &Settled, call: Call) -> Result<Call, Effect> {
    if is_chosen(settled, answer::APPROVE) {
        let arguments = settled.arguments.clone().unwrap_or(call.arguments);
        return Ok(Call { arguments, ..call });
    }
    let who =
        settled.by.as_ref().map_or_else(|| "nobody approved it in time".to_owned(), |by| format!("{by} denied it"));
    Err(Effect::Report { error: format!("the tool `{}` was not called; {who}{}", call.tool, because(settled)) })
}

fn question(session: &Session, turn: &Turn, call: Call) -> Order {
    let question = Question {
        about: call.name.clone(),
        text: format!("May `{}` be called with {}?", call.tool, call.told()),
        kind: DecisionKind::Approval,
        options: [answer::APPROVE, answer::DENY].map(str::to_owned).to_vec(),
        expires: turn.now.plus_ms(call.item.asking.timeout_ms),
        otherwise: answer::DENY,
        forms: Vec::new(),
    };
    question.into_order(session, turn, call)
}
