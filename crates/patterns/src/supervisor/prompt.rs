//! The prompts of a supervisor and the sets that they offer.

use super::read::GoalRules;
use super::{Goals, TeamNames};
use crate::contract::PromptOrder;
use crate::fan_out::{members, most_rounds, offered, round_by_model, round_by_rule, round_without_model};
use crate::reader::Reader;
use crate::session::Session;
use crate::spending::most_to_ask_for;
use crate::synthesis::SynthesisName;
use crate::toolset;
use serde_json::{Map, Value, json};
use trellis_domain::decision::option::{AGAIN, ANSWER};
use trellis_domain::decision::{Decision, DecisionKind};
use trellis_domain::fan_out::Member;
use trellis_domain::record::Name;

pub(super) const DECOMPOSE: &str = "supervisor-decompose";
pub(super) const REVIEW: &str = "supervisor-review";
pub(super) const SYNTHESISE: &str = "supervisor-synthesise";

pub(super) fn decompose(session: &Session, problem: Option<&str>) -> PromptOrder {
    let offered = offered(session);
    let mut variables = goal_variables(session, &offered);
    put(&mut variables, "problem", json!(problem));
    PromptOrder {
        id: DECOMPOSE,
        variables,
        schema: Some(json!({
            "type": "object", "required": ["goals"], "properties": { "goals": goals_schema(session, &offered) },
        })),
        reader: Reader::under(DECOMPOSE, rules(session)),
        offered,
        turns: Vec::new(),
    }
}

pub(super) fn review(session: &Session, round: u32, problem: Option<&str>) -> PromptOrder {
    let mut offered = offered(session);
    let mut variables = goal_variables(session, &offered);
    put(&mut variables, "round", json!(round));
    put(&mut variables, "max_rounds", json!(most_rounds(session)));
    put(&mut variables, "results", results(session, &Name::review(round)));
    put(&mut variables, "missing", missing(session));
    put(&mut variables, "problem", json!(problem));
    let schema = json!({
        "type": "object", "required": ["decision", "reason"],
        "properties": {
            "decision": { "enum": [ANSWER, AGAIN] }, "reason": { "type": "string" },
            "goals": goals_schema(session, &offered),
        },
    });
    offered.insert(0, round_by_model(session));
    let reader = Reader::under(REVIEW, rules(session));
    PromptOrder { id: REVIEW, variables, schema: Some(schema), reader, offered, turns: Vec::new() }
}

pub(super) fn synthesise(session: &Session, problem: Option<&str>) -> PromptOrder {
    let mut variables = common(session);
    put(&mut variables, "problem", json!(problem));
    put(&mut variables, "results", results(session, &Name::synthesis()));
    put(&mut variables, "missing", missing(session));
    let known: Vec<u32> =
        members(session).filter(|member| member.answer.is_some()).map(|member| member.index).collect();
    PromptOrder {
        id: SYNTHESISE,
        variables,
        schema: None,
        reader: Reader::under(SYNTHESISE, known),
        offered: round_before_answer(session).into_iter().collect(),
        turns: Vec::new(),
    }
}

/// What others have joined is put together as it is.
fn round_before_answer(session: &Session) -> Option<Decision> {
    if session.found_before().is_empty() {
        return round_without_model(session, 1, |round| is_judged(session, round));
    }
    Some(round_by_rule(session, ANSWER, "the findings were joined before this session began"))
}

/// Whether a model has judged what that round brought.
fn is_judged(session: &Session, round: u32) -> bool {
    let judged = session.last_replied(&Name::review(round));
    judged.is_some_and(|replied| Goals::of(&replied.reading).is_some())
}

fn rules(session: &Session) -> GoalRules {
    GoalRules { most: most_to_ask_for(session).max(1) }
}

fn goals_schema(session: &Session, offered: &[Decision]) -> Value {
    let options = |kind: DecisionKind| {
        let set = offered.iter().find(|decision| decision.kind == kind);
        json!(set.map(|decision| decision.options.as_slice()).unwrap_or_default())
    };
    let goal = json!({
        "type": "object", "required": ["goal"],
        "properties": {
            "goal": { "type": "string" },
            "pattern": { "enum": options(DecisionKind::SubagentPattern) },
            "group": { "type": ["array", "null"], "items": { "enum": options(DecisionKind::SubagentGroup) } },
            "context": { "type": "string" },
        },
    });
    json!({ "type": "array", "maxItems": rules(session).most, "items": goal })
}

fn put(variables: &mut Map<String, Value>, name: &str, value: Value) {
    variables.insert(name.to_owned(), value);
}

fn common(session: &Session) -> Map<String, Value> {
    let framing = session.routed().map_or("", |routed| &*routed.framing);
    let mut variables = Map::new();
    put(&mut variables, "question", json!(session.question()));
    put(&mut variables, "context", session.context());
    put(&mut variables, "framing", json!(framing));
    variables
}

fn goal_variables(session: &Session, offered: &[Decision]) -> Map<String, Value> {
    let settings = session.settings();
    let options = |kind: DecisionKind| {
        let set = offered.iter().find(move |decision| decision.kind == kind);
        set.map(|decision| decision.options.as_slice()).unwrap_or_default()
    };
    let described = |name: &String| {
        let item = settings.patterns.get(name.as_str());
        let text = |of: fn(&trellis_domain::config::PatternItem) -> &str| item.map(of).unwrap_or_default();
        json!({ "name": name, "description": text(|item| &item.description), "when_to_use": text(|item| &item.when_to_use) })
    };
    let tools = toolset::visible(session).offered;
    let mut variables = common(session);
    put(&mut variables, "max_subagents", json!(rules(session).most));
    put(
        &mut variables,
        "tools",
        tools
            .iter()
            .map(|tool| json!({ "name": tool.name, "description": tool.description, "groups": tool.groups }))
            .collect(),
    );
    put(&mut variables, "patterns", options(DecisionKind::SubagentPattern).iter().map(described).collect());
    put(&mut variables, "groups", json!(options(DecisionKind::SubagentGroup)));
    variables
}

/// What every subagent that ended with a text brought.
fn results(session: &Session, asked: &Name) -> Value {
    let brought: Vec<_> =
        members(session).filter_map(|member| Some((member, member.answer.as_ref()?.text()))).collect();
    let budget = session.room_for(asked).shared_by(brought.iter().map(|(_, answer)| *answer));
    let result = |(member, answer): (&Member, &str)| {
        let status = if member.is_missing() { member.reason.as_str() } else { "completed" };
        json!({ "index": member.index, "goal": member.goal, "status": status, "result": budget.shown(answer) })
    };
    brought.into_iter().map(result).collect()
}

fn missing(session: &Session) -> Value {
    let missing = members(session).filter(|member| member.is_missing());
    let reason = |member: &Member| member.error.clone().unwrap_or_else(|| member.reason.to_string());
    missing.map(|member| json!({ "index": member.index, "goal": member.goal, "reason": reason(member) })).collect()
}
