//! The prompts of a plan and their variables.

use super::{PlanNames, PlanRules, PlanState, StepState, StepStatus, schema, tools};
use crate::contract::PromptOrder;
use crate::reader::Reader;
use crate::room::TextShare;
use crate::session::Session;
use crate::synthesis::SynthesisName;
use serde_json::{Map, Value, json};
use trellis_domain::record::Name;

pub(super) const CREATE: &str = "plan-create";
pub(super) const STEP: &str = "plan-step-execute";
pub(super) const REVISE: &str = "plan-revise";
pub(super) const SYNTHESISE: &str = "plan-synthesise";

pub(super) fn create(session: &Session, problem: Option<&str>) -> PromptOrder {
    let most = session.limits().max_plan_steps.max(1);
    PromptOrder {
        id: CREATE,
        variables: variables(
            session,
            [
                ("framing", framing(session)),
                ("tools", tools::described(&tools::at_first(session))),
                ("max_steps", json!(most)),
                ("problem", json!(problem)),
            ],
        ),
        schema: Some(schema::plan(most)),
        reader: Reader::under(CREATE, PlanRules { first: 0, finished: Vec::new(), most }),
        offered: Vec::new(),
        turns: Vec::new(),
    }
}

pub(super) fn step<'s>(
    session: &'s Session,
    state: &PlanState<'s>,
    step: &StepState<'s>,
    problem: Option<&str>,
) -> PromptOrder {
    let tools = tools::of_step(session, state, step);
    let described = tools::described(&tools.offered);
    let arguments_of = tools.offered.clone();
    let choice = tools::offered(session, tools);
    PromptOrder {
        id: STEP,
        variables: variables(
            session,
            [
                ("goal", json!(step.goal)),
                ("tool_hint", json!(step.tool_hint)),
                ("previous_results", previous_results(session, state, step)),
                ("tools", described),
                ("problem", json!(problem)),
            ],
        ),
        schema: Some(schema::step(&choice.options, &arguments_of)),
        reader: Reader::under(STEP, format!("Step {}: {}", step.number, step.goal)),
        offered: vec![choice],
        turns: Vec::new(),
    }
}

pub(super) fn revise(session: &Session, k: u32, state: &PlanState<'_>, problem: Option<&str>) -> PromptOrder {
    let budget = budget(session, &Name::plan(k), &state.steps);
    let standing = state.steps.iter().filter(|step| step.status != StepStatus::Revised);
    let described = |step: &StepState<'_>| {
        json!({
            "index": step.number,
            "goal": step.goal,
            "status": step.status.as_str(),
            "result": budget.shown(step.result),
            "depends_on": step.depends_on,
            "surprising": step.surprising,
        })
    };
    let completed = state.steps.iter().filter(|step| step.status == StepStatus::Completed);
    let rules = PlanRules {
        first: state.next_number(),
        finished: completed.map(|step| step.number).collect(),
        most: state.room().max(1),
    };
    PromptOrder {
        id: REVISE,
        variables: variables(
            session,
            [
                ("steps", standing.map(described).collect()),
                ("next_index", json!(rules.first)),
                ("max_steps", json!(rules.most)),
                ("tools", tools::described(&tools::by_now(session, state))),
                ("problem", json!(problem)),
            ],
        ),
        schema: Some(schema::revision(rules.most)),
        reader: Reader::under(REVISE, rules),
        offered: vec![tools::review(session, problem.is_some())],
        turns: Vec::new(),
    }
}

pub(super) fn synthesise(session: &Session, state: &PlanState<'_>, problem: Option<&str>) -> PromptOrder {
    let told: Vec<_> = state.steps.iter().filter(|step| !step.result.is_empty()).collect();
    let budget = budget(session, &Name::synthesis(), told.iter().copied());
    let described = |step: &&StepState<'_>| {
        json!({
            "index": step.number,
            "goal": step.goal,
            "status": step.status.as_str(),
            "result": budget.shown(step.result),
        })
    };
    let missing = state
        .missing()
        .into_iter()
        .map(|missing| json!({ "index": missing.number, "goal": missing.goal, "reason": missing.reason }));
    PromptOrder {
        id: SYNTHESISE,
        variables: variables(
            session,
            [
                ("framing", framing(session)),
                ("steps", told.iter().map(described).collect()),
                ("missing", missing.collect()),
                ("problem", json!(problem)),
            ],
        ),
        schema: None,
        reader: Reader::under(SYNTHESISE, told.iter().map(|step| step.number).collect::<Vec<_>>()),
        offered: Vec::new(),
        turns: Vec::new(),
    }
}

/// What the steps that a step was declared to build on have brought.
fn previous_results(session: &Session, state: &PlanState<'_>, step: &StepState<'_>) -> Value {
    let told = state.steps.iter().filter(|other| step.depends_on.contains(&other.number) && !other.result.is_empty());
    let budget = budget(session, &Name::step(step.number), told.clone());
    told.map(|other| json!({ "index": other.number, "goal": other.goal, "result": budget.shown(other.result) }))
        .collect()
}

fn budget<'s>(session: &Session, asked: &Name, told: impl IntoIterator<Item = &'s StepState<'s>>) -> TextShare {
    session.room_for(asked).shared_by(told.into_iter().map(|step| step.result))
}

fn framing(session: &Session) -> Value {
    json!(session.routed().map_or("", |routed| &*routed.framing))
}

/// Question and context, which all prompts are told, and the prompt's own variables.
fn variables<const N: usize>(session: &Session, own: [(&str, Value); N]) -> Map<String, Value> {
    let all = [("question", json!(session.question())), ("context", session.context())];
    all.into_iter().chain(own).map(|(name, value)| (name.to_owned(), value)).collect()
}
