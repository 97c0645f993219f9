//! What others have begun and a session goes on with: the steps of a plan, and what subagents have found.
//!
//! All of it is in the history that came with the question. The session's first record holds that, so nothing else is
//! written down, and whoever derives the records again finds it there.

use crate::history::step_type;
use std::collections::BTreeSet;
use trellis_domain::SessionId;
use trellis_domain::document::Document;
use trellis_domain::fan_out::Member;
use trellis_domain::message::{AgentStep, PlanStep, StepStatus};
use trellis_domain::record::Accepted;
use trellis_domain::run::Termination;
use trellis_domain::usage::Usage;

/// Under earlier rules a plan that others had begun was planned anew, and others' findings were sought again.
const SINCE: u32 = 8;
/// So many steps of a plan, and so many findings, are taken up: each is a node of the graph.
const MOST: usize = 200;
/// Goals and hints have so many characters at most: longer ones of our own planner are cut, and every prompt shows them whole.
pub(crate) const GOAL_CHARS: usize = 2_000;

/// The plan as it stood last; empty if there is none.
pub fn newest_plan(history: &[AgentStep]) -> &[PlanStep] {
    history.iter().rev().map(|step| step.plan.as_slice()).find(|plan| !plan.is_empty()).unwrap_or_default()
}

/// Whether something has come of a step.
pub fn is_done(step: &PlanStep) -> bool {
    matches!(step.status, StepStatus::Completed | StepStatus::Failed)
}

/// Whether a plan can be gone on with where it stands; if not, why. The places of its steps are their numbers, and what is
/// done cannot rest on what is not: the graph would refer to results that may never be there.
pub fn check_plan(plan: &[PlanStep]) -> Result<(), String> {
    if plan.len() > MOST {
        return Err(format!("it has {} steps, and {MOST} are the most", plan.len()));
    }
    if plan.iter().all(|step| step.status == StepStatus::Revised) {
        return Err("no step of it is in force".to_owned());
    }
    for (number, step) in plan.iter().enumerate() {
        if step.depends_on.len() > plan.len() {
            return Err(format!("step {number} builds on more steps than there are"));
        }
        if [&step.goal, &step.tool_hint].into_iter().any(|text| text.chars().nth(GOAL_CHARS).is_some()) {
            return Err(format!("step {number} is told with more than {GOAL_CHARS} characters"));
        }
        if step.status == StepStatus::Revised {
            continue;
        }
        if step.goal.trim().is_empty() {
            return Err(format!("step {number} has no goal"));
        }
        if let Some(other) = step.depends_on.iter().find(|other| !can_rest_on(plan, step, **other)) {
            return Err(format!("step {number} cannot build on step {other}"));
        }
    }
    if waits_for_itself(plan) { Err("its steps wait for one another".to_owned()) } else { Ok(()) }
}

fn can_rest_on(plan: &[PlanStep], step: &PlanStep, other: u32) -> bool {
    let other = usize::try_from(other).ok().and_then(|other| plan.get(other));
    other.is_some_and(|other| match other.status {
        StepStatus::Completed | StepStatus::Failed => true,
        StepStatus::Pending | StepStatus::Running => !is_done(step),
        StepStatus::Revised => false,
    })
}

/// Takes away, again and again, what rests on nothing that is left: only circles remain.
fn waits_for_itself(plan: &[PlanStep]) -> bool {
    let mut free = vec![false; plan.len()];
    loop {
        let is_free = |other: &u32| usize::try_from(*other).is_ok_and(|other| free.get(other) == Some(&true));
        let rests = |step: &PlanStep| step.status == StepStatus::Revised || step.depends_on.iter().all(is_free);
        let found: Vec<_> = plan.iter().map(rests).collect();
        if found == free {
            return free.contains(&false);
        }
        free = found;
    }
}

/// The steps that one builds on, each once.
pub(crate) fn needs(step: &PlanStep) -> Vec<u32> {
    step.depends_on.iter().copied().collect::<BTreeSet<_>>().into_iter().collect()
}

/// Whether the findings of a history can be put together as they are; if not, why.
pub fn check_findings(history: &[AgentStep]) -> Result<(), String> {
    match found(history).count() {
        0 => Err("it has none".to_owned()),
        1..=MOST => Ok(()),
        more => Err(format!("it has {more}, and {MOST} are the most")),
    }
}

/// What was found for which goal, join by join.
fn found(history: &[AgentStep]) -> impl Iterator<Item = (&String, &String)> {
    history.iter().filter(|step| is_join(step)).flat_map(|step| &step.subagent_results)
}

/// Whether a step has the findings of others.
pub(crate) fn is_join(step: &AgentStep) -> bool {
    step.step_type == step_type::SYNTHESISE && !step.subagent_results.is_empty()
}

/// The plan that a session of plans goes on with; empty if it makes its own.
pub(crate) fn plan(accepted: &Accepted) -> &[PlanStep] {
    let plan = newest_plan(&accepted.history);
    if accepted.revision >= SINCE && check_plan(plan).is_ok() { plan } else { &[] }
}

/// What subagents of others have found, for a supervisor that goes on with it; none if it sends out its own. Their sessions
/// are not known here, so each is told as if it were found by this one, and nobody knows what it has cost.
pub(crate) fn findings(session: &SessionId, accepted: &Accepted) -> Vec<Member> {
    if accepted.revision < SINCE || check_findings(&accepted.history).is_err() {
        return Vec::new();
    }
    let member = |(index, (goal, result)): (u32, (&String, &String))| Member {
        index,
        session: session.clone(),
        goal: goal.clone(),
        reason: Termination::FinalAnswer,
        answer: Document::stored(result.as_str()),
        error: None,
        usage: Usage::default(),
    };
    (0..).zip(found(&accepted.history)).map(member).collect()
}

#[cfg(test)]
#[path = "taken_up_tests.rs"]
mod tests;
