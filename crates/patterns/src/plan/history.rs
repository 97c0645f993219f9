//! What a plan has come to so far, as steps of a history.

use super::{PlanNames, PlanState, PlanTurn, StepState, StepStatus};
use crate::history::{arguments_of, step_type, thought_of};
use crate::react::PARSE_ERROR;
use crate::session::Session;
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use trellis_domain::decision::option::NO_TOOL;
use trellis_domain::message::{self, AgentStep, PlanStep};
use trellis_domain::record::{Name, Reading, Replied};

/// Each plan and each finished step in the order in which they came about, with the plan as it stood then.
pub(super) fn steps(session: &Session, turn: PlanTurn) -> Vec<AgentStep> {
    let mut history = Vec::new();
    let mut so_far = Session::new(Arc::clone(session.settings()), Arc::new(session.operator().clone()));
    // What others have done is in the history that they sent along.
    let (begun, _) = PlanState::taken_up(session);
    let done = begun.steps.iter().filter(|step| step.status.is_finished());
    let (mut plans, mut finished) = (0, done.map(|step| step.number).collect::<BTreeSet<_>>());
    for record in session.in_order() {
        so_far.apply(Arc::clone(record));
        let state = PlanState::of(&so_far);
        history.extend((plans..state.plans).filter_map(|k| planned(session, &state, k)));
        plans = state.plans;
        let ended = state.steps.iter().filter(|step| step.status.is_finished());
        history.extend(ended.filter(|step| finished.insert(step.number)).map(|step| executed(session, &state, step)));
    }
    if let Some(newest) = history.last_mut() {
        newest.plan = as_found_by(turn, &PlanState::of(session));
    }
    history
}

/// A plan that brought steps; one that only said to go on leaves no trace here.
fn planned(session: &Session, state: &PlanState<'_>, k: u32) -> Option<AgentStep> {
    let new: Vec<_> = state.steps.iter().filter(|step| step.plan == k).collect();
    let written = |step: &&StepState<'_>| json!({ "goal": step.goal, "tool_hint": step.tool_hint, "depends_on": step.depends_on });
    (!new.is_empty()).then(|| AgentStep {
        thought: session.last_replied(&Name::plan(k)).map(thought_of).unwrap_or_default(),
        action: "plan".to_owned(),
        observation: json!(new.iter().map(written).collect::<Vec<_>>()).to_string(),
        step_type: step_type::PLAN.to_owned(),
        plan: as_it_stood(state),
        ..AgentStep::default()
    })
}

fn executed(session: &Session, state: &PlanState<'_>, step: &StepState<'_>) -> AgentStep {
    let replied = session.last_replied(&Name::step(step.number));
    AgentStep {
        thought: replied.map(thought_of).unwrap_or_default(),
        action: replied.map_or("", tool_of).to_owned(),
        arguments: replied.map(arguments_of).unwrap_or_default(),
        observation: step.result.to_owned(),
        step_type: step_type::EXECUTE.to_owned(),
        plan: as_it_stood(state),
        ..AgentStep::default()
    }
}

fn tool_of(replied: &Replied) -> &str {
    match &replied.reading {
        Reading::Acted { tool, .. } => tool,
        Reading::Answered { .. } => NO_TOOL,
        Reading::Decided { .. } | Reading::Unusable { .. } | Reading::Failed { .. } => PARSE_ERROR,
    }
}

/// What is under way has not been done yet, and the original knows no word for it.
fn as_it_stood(state: &PlanState<'_>) -> Vec<PlanStep> {
    let unfinished =
        |step: &StepState<'_>| if step.status == StepStatus::Running { StepStatus::Pending } else { step.status };
    state.steps.iter().map(|step| plan_step(step, unfinished(step), step.result)).collect()
}

/// A neighbour takes the first pending step, and writes the answer if there is none. So a step that others are at is
/// not pending for it, and a step that will never be run is not pending for the answer.
fn as_found_by(turn: PlanTurn, state: &PlanState<'_>) -> Vec<PlanStep> {
    let mut plan = as_it_stood(state);
    for step in state.steps.iter().filter(|step| step.status == StepStatus::Running) {
        if let Some(found) = plan.get_mut(step.number as usize).filter(|_| turn != PlanTurn::Step(step.number)) {
            found.status = message::StepStatus::Running;
        }
    }
    if turn == PlanTurn::Synthesis {
        for missing in state.missing() {
            if let Some(found) = plan.get_mut(missing.number as usize).filter(|found| found.result.is_empty()) {
                (found.status, found.result) = (message::StepStatus::Failed, missing.reason);
            }
        }
    }
    plan
}

fn plan_step(step: &StepState<'_>, status: StepStatus, result: &str) -> PlanStep {
    PlanStep {
        goal: step.goal.clone(),
        tool_hint: step.tool_hint.clone(),
        depends_on: step.depends_on.clone(),
        status: match status {
            StepStatus::Pending => message::StepStatus::Pending,
            StepStatus::Running => message::StepStatus::Running,
            StepStatus::Completed => message::StepStatus::Completed,
            StepStatus::Failed => message::StepStatus::Failed,
            StepStatus::Revised => message::StepStatus::Revised,
        },
        result: result.to_owned(),
    }
}
