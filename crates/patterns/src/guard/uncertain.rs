//! Calls of which nobody knows whether they were made: that they would be is on record, and what came of it is not. They
//! are not made again before somebody, or the tool's own setting, has said what is to be done.

use super::{Asker, Call, Question, because, is_chosen};
use crate::contract::{Effect, Order, Turn};
use crate::session::Session;
use trellis_domain::config::{OnUncertain, ToolEffect, ToolItem};
use trellis_domain::decision::DecisionKind;
use trellis_domain::park::{Settled, answer};
use trellis_domain::record::Name;

/// Since these rules it is recorded that an unsafe call is about to be made.
const INTENTS: u32 = 4;
/// So often a tool's own setting has an uncertain call made again. A call that ends the process each time is not worth
/// more: then somebody is asked.
const RETRIES: u32 = 3;

pub(super) fn matters(session: &Session, item: &ToolItem) -> bool {
    item.effect == ToolEffect::Unsafe && session.revision() >= INTENTS
}

/// The call, if it was never begun or is to be made again, or what is done in its place; otherwise what is done in the
/// place of everything else.
pub(super) fn settled(session: &Session, turn: &Turn, call: Call, asker: Asker) -> Result<Effect, Order> {
    if !matters(session, &call.item) {
        return Ok(call.into_effect());
    }
    let outcome = call.name.clone();
    let intent = |n: u32| Name::intent(&outcome, n);
    let mut begun = session.intents(&call.name);
    if asker == Asker::SameHand && session.park_about(&intent(begun)).is_none() {
        begun = begun.saturating_sub(1);
    }
    // A call whose tool asked for input has done nothing yet: nothing is uncertain about it.
    let known = session.last_input(&call.name).map_or(0, |input| input.intent);
    let call = if known > 0 { as_retried(session, call, known) } else { call };
    if begun <= known {
        return Ok(call.into_effect());
    }
    let intent = intent(begun);
    let Some(park) = session.park_about(&intent) else { return Err(question(session, turn, intent, begun, call)) };
    let Some(settled) = session.settled(park.number) else { return Err(Order::Close) };
    Ok(decided(settled, call))
}

/// The call with the arguments that somebody gave the last time it was made again.
fn as_retried(session: &Session, call: Call, until: u32) -> Call {
    let parks = (1..until).rev().find_map(|n| session.park_about(&Name::intent(&call.name, n)));
    let retried = parks.and_then(|park| session.settled(park.number)?.arguments.clone());
    match retried {
        Some(arguments) => Call { arguments, ..call },
        None => call,
    }
}

fn decided(settled: &Settled, call: Call) -> Effect {
    let Call { tool, arguments, .. } = call;
    if is_chosen(settled, answer::RETRY) {
        return Effect::CallTool { tool, arguments: settled.arguments.clone().unwrap_or(arguments) };
    }
    if is_chosen(settled, answer::RESULT) {
        let result = settled.result.as_ref().map(|result| result.text().to_owned()).unwrap_or_default();
        return Effect::Take { tool, result };
    }
    let who = settled.by.as_ref().map_or_else(|| "nobody could tell".to_owned(), |by| format!("{by} chose to go on"));
    Effect::Report {
        error: format!(
            "the tool `{tool}` was about to be called when the process ended, and whether it was is not known. It was \
             not called again; {who}{}",
            because(settled)
        ),
    }
}

fn question(session: &Session, turn: &Turn, intent: Name, begun: u32, call: Call) -> Order {
    let asked = turn.now.plus_ms(call.item.asking.timeout_ms);
    // What the tool's own setting says is decided at once, and on record like any other answer.
    let (expires, otherwise) = match call.item.on_uncertain {
        OnUncertain::Continue => (turn.now, answer::CONTINUE),
        OnUncertain::Retry if begun <= RETRIES => (turn.now, answer::RETRY),
        OnUncertain::Ask | OnUncertain::Retry => (asked, answer::CONTINUE),
    };
    let text = format!(
        "`{}` was about to be called with {} when the process ended, and what came of it is not recorded. `continue` goes \
         on without it, `retry` calls it, perhaps for a second time, `result` tells what it brought.",
        call.tool,
        call.told()
    );
    let question = Question {
        about: intent,
        text,
        kind: DecisionKind::UncertainCall,
        options: [answer::CONTINUE, answer::RETRY, answer::RESULT].map(str::to_owned).to_vec(),
        expires,
        otherwise,
        forms: Vec::new(),
    };
    question.into_order(session, turn, call)
}
