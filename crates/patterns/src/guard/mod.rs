//! Calls that are not simply made: somebody has to agree, nobody knows whether they were made already, or their tool asks for
//! something first. Every pattern orders calls as it likes; here they are held back.

mod agents;
mod approval;
mod budgets;
mod input;
mod uncertain;

pub use input::{given_input, may_ask};

use crate::contract::{Effect, Order, Turn};
use crate::session::Session;
use crate::text::cut;
use serde_json::{Map, Value};
use std::sync::Arc;
use trellis_domain::config::{ToolItem, ToolKind};
use trellis_domain::decision::DecisionKind;
use trellis_domain::input::Form;
use trellis_domain::park::{Parked, Settled};
use trellis_domain::record::Name;
use trellis_domain::{Timestamp, ToolName};

/// How many bytes of the arguments a question shows.
const SHOWN: usize = 2_000;

/// A call that a pattern has ordered.
struct Call {
    /// What its outcome is recorded under.
    name: Name,
    item: Arc<ToolItem>,
    tool: ToolName,
    arguments: Map<String, Value>,
}

/// Who asks for orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asker {
    /// Somebody who takes a turn up: whoever began calls before is gone.
    NewHand,
    /// Whoever has begun calls and waits for what comes of them: nothing is uncertain about these.
    SameHand,
}

/// The orders of a turn, with a question in the place of the first call that needs an answer, and with agents sent out in
/// the place of the calls that only they can answer.
pub fn guarded(session: &Session, turn: &Turn, orders: Vec<Order>, asker: Asker) -> Vec<Order> {
    let mut guarded = Vec::with_capacity(orders.len());
    let mut of_agents = Vec::new();
    for order in orders {
        match order {
            Order::Perform(name, Effect::AskModel(order)) if !session.has(&name) => {
                guarded.push(Order::Perform(name, budgets::affordable(session, order, asker)));
            }
            Order::Perform(name, Effect::CallTool { tool, arguments }) if !session.has(&name) => {
                let held = match session.settings().tools.get(&tool).cloned() {
                    Some(item) => {
                        let call = Call { name: name.clone(), item, tool, arguments };
                        held_back(session, turn, call, asker)
                    }
                    None => Ok(Held::Effect(Effect::CallTool { tool, arguments })),
                };
                match held {
                    Ok(Held::Effect(effect)) => guarded.push(Order::Perform(name, effect)),
                    Ok(Held::OfAgent(call)) => of_agents.push(call),
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
    if guarded.is_empty() {
        // Whatever else was called beside them has come back.
        guarded.extend(agents::sent_out(session, turn, &of_agents));
    }
    guarded
}

/// What comes of a call.
enum Held {
    Effect(Effect),
    /// An agent is to be sent out for it.
    OfAgent(Call),
}

/// The call, or what is done in its place; otherwise what is done in the place of everything else.
fn held_back(session: &Session, turn: &Turn, call: Call, asker: Asker) -> Result<Held, Order> {
    let item = Arc::clone(&call.item);
    let effect = match approval::agreed(session, turn, call)? {
        Ok(call) if item.kind == ToolKind::Agent => {
            return Ok(agents::answered(session, &call)?.map_or(Held::OfAgent(call), Held::Effect));
        }
        Ok(call) => uncertain::settled(session, turn, input::answered(session, turn, call)?, asker)?,
        Err(effect) => effect,
    };
    // Last: what somebody has said about a call counts whether there is a budget for it or not.
    Ok(Held::Effect(budgets::affordable_call(session, &item, effect, asker)))
}

/// Whether that a call is about to be made is recorded before it is. Runs that began by older rules do not.
pub fn is_recorded_before(session: &Session, tool: &ToolName) -> bool {
    session.settings().tools.get(tool).is_some_and(|item| uncertain::matters(session, item))
}

impl Call {
    fn into_effect(self) -> Effect {
        Effect::CallTool { tool: self.tool, arguments: self.arguments }
    }

    /// What it would be called with, as people are shown it. The whole is on record beside it.
    fn told(&self) -> String {
        cut(&Value::Object(self.arguments.clone()).to_string(), SHOWN)
    }
}

/// What is asked about a call.
struct Question {
    about: Name,
    text: String,
    kind: DecisionKind,
    options: Vec<String>,
    /// A subagent does not wait longer than it is waited for.
    expires: Timestamp,
    otherwise: &'static str,
    forms: Vec<Form>,
}

impl Question {
    fn into_order(self, session: &Session, turn: &Turn, call: Call) -> Order {
        let expires = session.waited_for_until(turn.now).map_or(self.expires, |deadline| deadline.min(self.expires));
        Order::Park(Box::new(Parked {
            number: u32::try_from(session.parks().count()).unwrap_or(u32::MAX).saturating_add(1),
            question: self.text.as_str().into(),
            offered: session.offered(self.kind, self.options, session.config_source("tool")),
            about: self.about,
            turn: turn.name.clone(),
            tool: Some(call.tool),
            arguments: call.arguments,
            forms: self.forms,
            who: call.item.asking.approvers.clone(),
            expires,
            otherwise: self.otherwise.to_owned(),
        }))
    }
}

/// The reason that was given, as the end of a sentence.
fn because(settled: &Settled) -> String {
    settled.decision.rationale.as_ref().map(|why| format!(": {}", why.text())).unwrap_or_default()
}

fn is_chosen(settled: &Settled, answer: &str) -> bool {
    settled.decision.chosen.iter().any(|chosen| chosen == answer)
}
