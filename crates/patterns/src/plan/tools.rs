//! Which tools a plan sees, and the set that a step chooses from.

use super::{PlanState, StepState};
use crate::session::{NO_STATE, Session};
use crate::toolset::{self, ToolSet};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use trellis_domain::config::ToolItem;
use trellis_domain::decision::option::{KEEP, NO_TOOL, REVISE};
use trellis_domain::decision::{DecidedBy, Decision, DecisionKind, Excluded};

/// The tools of the session's group that apply in a state. A tool with the name that stands for none cannot be
/// told from it, so it is left out, and said so.
fn tools_in<'s>(session: &'s Session, state: &str) -> ToolSet<'s> {
    let mut set = toolset::visible_in(session, state);
    let before = set.offered.len();
    set.offered.retain(|tool| tool.name != NO_TOOL);
    if set.offered.len() < before {
        let reason = format!("name: in a plan, `{NO_TOOL}` stands for no tool");
        set.excluded.push(Excluded { name: NO_TOOL.to_owned(), reason });
    }
    set
}

/// The state that the request named.
fn initial_state(session: &Session) -> &str {
    let named = session.accepted().map_or("", |accepted| accepted.state.as_str());
    if named.is_empty() { NO_STATE } else { named }
}

/// The tools for a first plan.
pub(super) fn at_first(session: &Session) -> Vec<&Arc<ToolItem>> {
    tools_in(session, initial_state(session)).offered
}

/// The tools for a revision: all that a new step can come to see, depending on the finished steps it builds on.
pub(super) fn by_now<'s>(session: &'s Session, state: &PlanState<'_>) -> Vec<&'s Arc<ToolItem>> {
    let reached = state.steps.iter().filter_map(|step| step.state);
    let states: BTreeSet<&str> = reached.chain([initial_state(session)]).collect();
    let sets: Vec<_> = states.into_iter().map(|state| tools_in(session, state).offered).collect();
    let is_seen = |tool: &&Arc<ToolItem>| sets.iter().flatten().any(|seen| seen.name == tool.name);
    session.settings().tools.values().filter(is_seen).collect()
}

/// The tools that a step sees.
pub(super) fn of_step<'s>(session: &'s Session, state: &PlanState<'s>, step: &StepState<'_>) -> ToolSet<'s> {
    tools_in(session, state.tool_state(step, initial_state(session)))
}

/// Tools as prompts show them.
pub(super) fn described(tools: &[&Arc<ToolItem>]) -> Value {
    let described = |tool: &&Arc<ToolItem>| json!({ "name": tool.name, "description": tool.description, "arguments": tool.arguments });
    tools.iter().map(described).collect()
}

/// The choice of a step before the model has replied: one of the tools, or none.
pub(super) fn offered(session: &Session, tools: ToolSet<'_>) -> Decision {
    let names = tools.offered.iter().map(|tool| tool.name.to_string());
    let options = names.chain([NO_TOOL.to_owned()]).collect();
    Decision { excluded: tools.excluded, ..session.offered(DecisionKind::Tool, options, session.config_source("tool")) }
}

/// The choice of a planner before it has replied. The second asking is the last one: it says what holds if the reply
/// cannot be used either.
pub(super) fn review(session: &Session, last: bool) -> Decision {
    let options = vec![KEEP.to_owned(), REVISE.to_owned()];
    let id = session.id().map(ToString::to_string).unwrap_or_default();
    let decision = session.offered(DecisionKind::Replan, options, format!("urn:trustgraph:agent:{id}/plan"));
    if last {
        Decision { chosen: vec![KEEP.to_owned()], decided_by: DecidedBy::Fallback, ..decision }
    } else {
        decision
    }
}
