//! Task type and pattern in one call, where both are open.
//!
//! The reply is recorded as the one that was asked for the task type, with a decision for each. If no task type can be read
//! out of it, the task type is asked for by itself; if no valid pattern can, the pattern is. So a model that cannot reply in
//! this form is asked twice, as it was before there was one.

use super::choose::{Choice, chosen_by_model};
pub(crate) use super::prompt::ROUTE as PROMPT;
use super::prompt::{CHOICE, PatternSet, route};
use crate::choice;
use crate::contract::{Effect, Order, PromptOrder};
use crate::reader::{ReadReply, Reader};
use crate::session::Session;
use serde_json::Value;
use std::collections::BTreeMap;
use trellis_domain::TaskTypeName;
use trellis_domain::decision::{Decision, DecisionKind};
use trellis_domain::document::Document;
use trellis_domain::record::{Name, Replied};
use trellis_domain::reply::json_in;

/// The revision of the rules since which there is this form.
const SINCE: u32 = 2;

/// What may be chosen under each task type; none if there is nothing to choose besides the task type, or if this session
/// asks in two calls.
pub(super) fn sets(
    session: &Session,
    task_types: &Decision,
    patterns: &dyn Fn(&TaskTypeName) -> Choice,
) -> Option<Vec<PatternSet>> {
    let is_apart = session.accepted().is_some_and(|accepted| accepted.routed_apart);
    if is_apart || session.revision() < SINCE || !session.settings().prompts.contains_key(PROMPT) {
        return None;
    }
    let set = |name: &String| {
        let task_type = TaskTypeName::from(name.as_str());
        match patterns(&task_type) {
            Choice::Made(offered) => PatternSet { task_type, offered, is_open: false },
            Choice::Open { offered, .. } => PatternSet { task_type, offered, is_open: true },
        }
    };
    let sets: Vec<_> = task_types.options.iter().map(set).collect();
    sets.iter().any(|set| set.is_open).then_some(sets)
}

/// The reply that counts for the task type, or the order that gets one: for both first, then for the task type alone.
pub(super) fn settled<'s>(
    session: &'s Session,
    name: &Name,
    offered: &Decision,
    sets: &[PatternSet],
    alone: impl FnOnce(Option<&str>) -> PromptOrder,
) -> Result<&'s Replied, Order> {
    let ask = |name: Name, order: PromptOrder| Order::Perform(name, Effect::AskModel(Box::new(order)));
    let Some(first) = session.replied(name) else {
        return Err(ask(name.clone(), route(session, offered.clone(), sets, reader(sets))));
    };
    if first.reading.decision::<&str>().is_some() {
        return Ok(first);
    }
    let retry = name.retry();
    session.replied(&retry).ok_or_else(|| ask(retry, alone(None)))
}

/// What the reply to both questions says of the pattern; none if it says nothing, or was no such reply.
pub(super) fn pattern_in(session: &Session) -> Option<&Decision> {
    let replied = session.replied(&Name::route_task_type())?;
    replied.decision.iter().find(|decision| decision.kind == DecisionKind::Pattern)
}

/// The pattern that was chosen with the task type, if it is one of these.
pub(super) fn pattern(session: &Session, offered: &Decision) -> Option<Decision> {
    let read = pattern_in(session).filter(|read| read.kind == offered.kind)?;
    let name = read.chosen.first().filter(|name| offered.options.contains(name))?;
    Some(chosen_by_model(offered.clone(), name, read))
}

fn reader(sets: &[PatternSet]) -> Reader {
    let open = sets.iter().filter(|set| set.is_open);
    Reader::under(PROMPT, open.map(|set| (set.task_type.to_string(), &set.offered)).collect::<BTreeMap<_, _>>())
}

/// A reply that chooses both. It counts if it names a task type.
pub(crate) fn read(reader: &Reader, raw: &str, offered: Vec<Decision>) -> ReadReply {
    let said = flat(raw);
    let said = said.as_deref().unwrap_or(raw);
    let mut read = choice::read(said, offered);
    // They are about the pattern.
    read.decisions.iter_mut().for_each(|decision| decision.signals.clear());
    let sets: BTreeMap<String, Decision> = reader.rules();
    let set = read.reading.decision::<&str>().and_then(|task_type| sets.get(task_type));
    let pattern = set.map(|set| choice::read(said, vec![set.clone()]));
    read.decisions.extend(pattern.into_iter().flat_map(|pattern| pattern.decisions));
    for decision in read.decisions.iter_mut().filter(|decision| decision.rejected.is_some()) {
        decision.rejected = Document::stored(raw.trim());
    }
    read
}

/// The same reply with both names beside the rationale; none if they are there already, or if it is no object.
fn flat(raw: &str) -> Option<String> {
    let Ok(Value::Object(mut members)) = json_in(raw) else { return None };
    let Some(Value::Object(names)) = members.remove(CHOICE) else { return None };
    members.extend(names);
    Some(Value::Object(members).to_string())
}
