//! What a supervisor has done so far, as steps of a history.

use super::TeamNames;
use crate::history::{step_type, thought_of};
use crate::session::Session;
use serde_json::json;
use std::collections::BTreeMap;
use trellis_domain::document::Document;
use trellis_domain::fan_out::{FannedOut, Joined, Member};
use trellis_domain::message::AgentStep;
use trellis_domain::record::Name;

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
        thought: session.last_replied(&asked).map(thought_of).unwrap_or_default(),
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
