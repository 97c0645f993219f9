//! What the records of a plan follow from. Steps go on side by side, and none follows from another that it does not
//! build on.

use super::names::step_of_result;
use super::{PlanNames, PlanState, PlanTurn, last_asked};
use crate::session::Session;
use trellis_domain::record::Name;

pub(super) fn of(session: &Session, name: &Name) -> Vec<Name> {
    let first = name.first_asking();
    if first != *name {
        return vec![first];
    }
    if let Some(number) = step_of_result(name) {
        return vec![last_asked(session, &Name::step(number))];
    }
    match PlanTurn::of(name) {
        Some(PlanTurn::Step(number)) => of_step(session, number),
        Some(PlanTurn::Plan(_) | PlanTurn::Synthesis) | None => session.tips().to_vec(),
    }
}

/// The plan that a step belongs to, and what finished each step that it builds on.
fn of_step(session: &Session, number: u32) -> Vec<Name> {
    let state = PlanState::of(session);
    let Some(step) = state.step(number) else { return session.tips().to_vec() };
    let finished = |number: &u32| {
        let result = Name::step_result(*number);
        if session.has(&result) { result } else { last_asked(session, &Name::step(*number)) }
    };
    let needed = step.depends_on.iter().map(finished);
    // A plan of others was there once it was said that the session goes on with plans.
    let begun = (step.plan == 0 && !session.plan_begun().is_empty()).then(Name::pattern_decision);
    // The plan that brought it, and the last judgement that let it stand.
    let judged = state.plans.saturating_sub(1);
    let later = (judged > step.plan).then_some(judged);
    let plans = [Some(step.plan), later].into_iter().flatten().map(|k| last_asked(session, &Name::plan(k)));
    begun.into_iter().chain(plans).chain(needed).filter(|cause| session.has(cause)).collect()
}
