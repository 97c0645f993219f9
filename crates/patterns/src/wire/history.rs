//! What a ReAct session or a supervisor has done so far, as steps of a history.

use super::step_type;
use crate::react::action_of;
use crate::session::Session;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use trellis_domain::document::Document;
use trellis_domain::fan_out::{FannedOut, Joined, Member};
use trellis_domain::message::AgentStep;
use trellis_domain::record::{Name, Reading, Replied};

/// The iterations before this one.
pub(super) fn iterations(session: &Session, n: u32) -> Vec<AgentStep> {
    let iteration = |i: u32| {
        let (replied, observed) = (session.reply(i)?, session.observation(i)?);
        Some(AgentStep {
            thought: thought_of(replied),
            action: action_of(replied).to_owned(),
            arguments: arguments_of(replied),
            observation: observed.result.as_ref().map_or("", Document::text).to_owned(),
            step_type: step_type::REACT.to_owned(),
            ..AgentStep::default()
        })
    };
    (1..n).filter_map(iteration).collect()
}

/// Each round of a supervisor: what was sent out, and what came of it once it was joined.
pub(super) fn rounds(session: &Session) -> Vec<AgentStep> {
    let round = |fan_out: &FannedOut| {
        let joined = session.joined(fan_out.round).map(joined);
        [Some(sent_out(session, fan_out)), joined]
    };
    session.fan_outs().flat_map(round).flatten().collect()
}

fn sent_out(session: &Session, fan_out: &FannedOut) -> AgentStep {
    let asked = if fan_out.round == 1 { Name::decompose() } else { Name::review(fan_out.round - 1) };
    let goals: Vec<_> = fan_out.goals.iter().map(|goal| goal.goal.as_str()).collect();
    AgentStep {
        thought: last_reply(session, &asked).map(thought_of).unwrap_or_default(),
        action: "decompose".to_owned(),
        observation: json!(goals).to_string(),
        step_type: step_type::DECOMPOSE.to_owned(),
        ..AgentStep::default()
    }
}

/// Names the correlation, by which the results are found; they are carried along for those who cannot look there.
fn joined(joined: &Joined) -> AgentStep {
    let complete = !joined.members.iter().any(Member::is_missing);
    let thought = if complete { "All subagents completed" } else { "Some subagents did not complete" };
    AgentStep {
        thought: thought.to_owned(),
        action: "aggregate".to_owned(),
        observation: json!({ "correlation_id": joined.correlation }).to_string(),
        step_type: step_type::SYNTHESISE.to_owned(),
        subagent_results: results(&joined.members),
        ..AgentStep::default()
    }
}

/// By goal, as neighbours expect it. Equal goals are told apart by their number, so that no result is lost.
fn results(members: &[Member]) -> BTreeMap<String, String> {
    let mut results = BTreeMap::new();
    for member in members {
        let mut goal = member.goal.clone();
        while results.contains_key(&goal) {
            goal = format!("{goal} [{}]", member.index);
        }
        results.insert(goal, result(member));
    }
    results
}

fn result(member: &Member) -> String {
    let answer = member.answer.as_ref().map(Document::text);
    match (answer, member.is_missing()) {
        (Some(answer), false) => answer.to_owned(),
        (answer, _) => {
            let found = answer.map(|answer| format!("\n{answer}")).unwrap_or_default();
            let reason = member.error.as_deref().unwrap_or(member.reason.as_str());
            format!("(incomplete: {reason}){found}")
        }
    }
}

/// The reply that counts: to the question asked once more, if it was.
pub(super) fn last_reply<'s>(session: &'s Session, name: &Name) -> Option<&'s Replied> {
    session.replied(&name.retry()).or_else(|| session.replied(name))
}

pub(super) fn thought_of(replied: &Replied) -> String {
    replied.thought.as_ref().map_or("", Document::text).to_owned()
}

/// The arguments of the tool that a reply named, each as text.
pub(super) fn arguments_of(replied: &Replied) -> BTreeMap<String, String> {
    match &replied.reading {
        Reading::Action { arguments, .. } | Reading::Step { arguments, .. } => texts(arguments),
        Reading::Answer { .. }
        | Reading::Chosen { .. }
        | Reading::Plan { .. }
        | Reading::Revision { .. }
        | Reading::Goals { .. }
        | Reading::Review { .. }
        | Reading::Unreadable { .. }
        | Reading::Failed { .. } => BTreeMap::new(),
    }
}

/// The schema knows only texts here: everything else travels as JSON text.
fn texts(arguments: &Map<String, Value>) -> BTreeMap<String, String> {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    };
    arguments.iter().map(|(name, value)| (name.clone(), text(value))).collect()
}
