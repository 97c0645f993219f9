//! What a session may still spend of its run's budgets. What was spent is on record; what is left follows from that.

use crate::delegate::can_be_called;
use crate::known::{may_have_subagents, writes_answers};
use crate::reader::ReplyForm;
use crate::session::Session;
use trellis_domain::budget::Budget;
use trellis_domain::{PatternName, counted};

/// So many calls are kept for the answer: it may be asked for twice.
const KEPT_CALLS: u32 = 2;
/// The part of tokens and cost that is kept for the answer.
const KEPT_PART: u64 = 10;
/// What is asked before subagents are sent out takes as many calls at most.
const ASKING: Budget = Budget { model_calls: 2, tokens: 0, cost_micros: 0, agents: 0 };
/// The session itself is one of the agents.
const ITSELF: Budget = Budget { model_calls: 0, tokens: 0, cost_micros: 0, agents: 1 };

/// The budgets that leave no room for another call of a model, in words.
///
/// What writes the answer may use what nothing else may, so that a run whose budget is used up still puts together what
/// it has.
pub fn reached(session: &Session, form: ReplyForm) -> Vec<String> {
    if !session.has_budgets() {
        return Vec::new();
    }
    let all = session.limits().budget();
    let kept = if form == ReplyForm::Answer { Budget::default() } else { kept_for_answer(session, &all) };
    reached_in(&all, &all.without(&session.spent()).without(&session.reserved()).without(&kept))
}

/// The same as it may have been at an earlier moment, when agents that were called had not come back yet.
pub fn reached_before(session: &Session, form: ReplyForm) -> Vec<String> {
    if !session.has_budgets() {
        return Vec::new();
    }
    let all = session.limits().budget();
    let kept = if form == ReplyForm::Answer { Budget::default() } else { kept_for_answer(session, &all) };
    reached_in(&all, &all.without(&session.spent()).without(&session.reserved_at_most()).without(&kept))
}

fn reached_in(all: &Budget, left: &Budget) -> Vec<String> {
    let budgets = [
        (left.model_calls == 0, format!("{} (max-model-calls)", counted(all.model_calls, "model call"))),
        (left.tokens == 0, format!("{} tokens (max-tokens)", all.tokens)),
        (left.cost_micros == 0, format!("{} millionths of cost (max-cost-micros)", all.cost_micros)),
    ];
    let reached = budgets.into_iter().filter(|(is_reached, _)| *is_reached);
    reached.map(|(_, budget)| format!("the budget of {budget} is used up")).collect()
}

/// What subagents may have, all together, that are sent out now.
fn for_subagents(session: &Session) -> Budget {
    let all = session.limits().budget();
    all.without(&session.spent()).without(&session.reserved()).without(&kept_for_answer(session, &all)).without(&ITSELF)
}

/// The part of what is left that calls of agents may have, all together: whoever calls goes on after them, and others may
/// be called beside them.
const PART_OF_CALLS: u32 = 4;

/// What each of so many agents may spend that are called like tools and are at least so many agents each.
pub(crate) fn share_of_calls(session: &Session, count: u32, least: u32) -> Option<Budget> {
    let share = for_subagents(session).shared_by(PART_OF_CALLS.saturating_mul(count));
    session.has_budgets().then(|| Budget { agents: share.agents.max(least), ..share })
}

/// How many agents can be called like tools now, if each is at least so many agents.
pub(crate) fn most_called(session: &Session, least: u32) -> u32 {
    most_called_of(session, &for_subagents(session), least)
}

/// The same as it may have been at an earlier moment, when agents that were called had not come back yet.
pub fn most_called_before(session: &Session, least: u32) -> u32 {
    let all = session.limits().budget();
    let taken = session.spent().with(&session.reserved_at_most()).with(&kept_for_answer(session, &all)).with(&ITSELF);
    most_called_of(session, &all.without(&taken), least)
}

fn most_called_of(session: &Session, left: &Budget, least: u32) -> u32 {
    most_of(session, &Budget { agents: left.agents / least.max(1), ..left.shared_by(PART_OF_CALLS) })
}

/// What each of the subagents with these patterns may spend. Agents below itself has only who can have some.
pub(crate) fn share<'p>(session: &Session, patterns: impl Iterator<Item = &'p PatternName>) -> Option<Budget> {
    let (teams, alone): (Vec<_>, Vec<_>) = patterns.partition(|pattern| is_team(session, pattern));
    let count = |patterns: &[&PatternName]| u32::try_from(patterns.len()).unwrap_or(u32::MAX);
    let (teams, alone) = (count(&teams), count(&alone));
    let left = for_subagents(session);
    let agents = left.agents.saturating_sub(alone).checked_div(teams).unwrap_or(1);
    session.has_budgets().then(|| Budget { agents, ..left.shared_by(teams.saturating_add(alone)) })
}

/// Whether a session with this pattern may have subagents: of its own, or called like tools.
fn is_team(session: &Session, pattern: &PatternName) -> bool {
    may_have_subagents(pattern) || can_be_called(session)
}

/// The part of a share that a subagent with this pattern can use.
pub(crate) fn share_of(session: &Session, pattern: &PatternName, share: &Budget) -> Budget {
    if is_team(session, pattern) { *share } else { Budget { agents: 1, ..*share } }
}

/// How many subagents can be sent out now.
pub(crate) fn most_subagents(session: &Session) -> u32 {
    most_of(session, &for_subagents(session))
}

/// How many subagents can be sent out once a model has said for what.
pub(crate) fn most_to_ask_for(session: &Session) -> u32 {
    most_of(session, &for_subagents(session).without(&ASKING))
}

fn most_of(session: &Session, left: &Budget) -> u32 {
    let most = session.limits().max_siblings;
    if !session.has_budgets() {
        return most;
    }
    let is_spent = left.tokens == 0 || left.cost_micros == 0;
    if is_spent { 0 } else { most.min(left.agents).min(left.model_calls) }
}

/// Whether a subagent that is sent out next can have so many below itself.
pub(crate) fn leaves_agents_below(session: &Session, count: u32) -> bool {
    !session.has_budgets() || for_subagents(session).agents > count
}

/// Why no subagents can be sent out.
pub fn no_subagents(session: &Session) -> String {
    let limits = session.limits();
    format!(
        "what is left of the budget is not enough for subagents; raise max-model-calls ({}), max-tokens ({}), max-agents \
         ({}) or max-cost-micros ({})",
        limits.max_model_calls, limits.max_tokens, limits.max_agents, limits.max_cost_micros
    )
}

/// What only the prompt that writes the answer may use, where there is one.
fn kept_for_answer(session: &Session, all: &Budget) -> Budget {
    if !session.routed().is_some_and(|routed| writes_answers(&routed.pattern)) {
        return Budget::default();
    }
    Budget {
        model_calls: KEPT_CALLS.min(all.model_calls / 2),
        tokens: all.tokens / KEPT_PART,
        cost_micros: all.cost_micros / KEPT_PART,
        agents: 0,
    }
}

#[cfg(test)]
#[path = "spending_tests.rs"]
mod tests;
