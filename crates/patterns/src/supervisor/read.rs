//! Replies that name goals: of a decomposition, or of a review that wants another round.

use super::Goals;
use crate::choice::{option_named, text};
use crate::fan_out::{GoalDraft, goal_decisions};
use crate::reader::ReadReply;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use trellis_domain::decision::option::{AGAIN, ANSWER};
use trellis_domain::decision::{DecidedBy, Decision, DecisionKind};
use trellis_domain::document::Document;
use trellis_domain::reading::left_out_note;
use trellis_domain::record::Reading;
use trellis_domain::reply::json_in;
use trellis_domain::{GroupName, PatternName, counted};

/// What goals may be.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoalRules {
    /// How many there may be.
    pub most: u32,
}

const GOAL_CHARS: usize = 2_000;
const CONTEXT_CHARS: usize = 8_000;

/// A goal as the model wrote it, before its names are held against the sets.
#[derive(Debug, Default)]
struct Written {
    draft: GoalDraft,
    pattern: Option<PatternName>,
    group: Option<Vec<GroupName>>,
}

pub(super) fn read_goals(raw: &str, rules: &GoalRules, offered: Vec<Decision>) -> ReadReply {
    let value = match json_in(raw) {
        Ok(value) => value,
        Err(reason) => return ReadReply::unusable(format!("{reason}; write {{\"goals\": [...]}}"), offered),
    };
    let (written, mut repairs) = goals_in(&value, rules);
    if written.is_empty() {
        return ReadReply::unusable("the reply names no goal; write {\"goals\": [{\"goal\": ...}]}", offered);
    }
    let (goals, decisions) = settle(written, &offered, &mut repairs);
    let named: Vec<_> = goals.iter().map(|draft| draft.goal.as_str()).collect();
    let thought = format!("Decomposed into {} sub-goals: {}", goals.len(), serde_json::json!(named));
    ReadReply::new(&thought, Reading::decided(Goals { goals: Some(goals) }), decisions).with_repairs(repairs)
}

pub(super) fn read_review(raw: &str, rules: &GoalRules, mut offered: Vec<Decision>) -> ReadReply {
    let value = match json_in(raw) {
        Ok(value) => value,
        Err(reason) => {
            return ReadReply::unusable(format!("{reason}; write {{\"decision\": \"answer\"}}"), offered);
        }
    };
    let (written, mut repairs) = goals_in(&value, rules);
    let named = text(&value, &["decision", "choice"]).unwrap_or_default();
    let reason = text(&value, &["reason", "rationale"]).unwrap_or_default();
    let (round, rest): (Vec<_>, Vec<_>) = offered.drain(..).partition(is_round);
    let mut round = round.into_iter().next();
    let options = [ANSWER.to_owned(), AGAIN.to_owned()];
    let chosen = option_named(&options, &named);
    if let Some(decision) = &mut round {
        decision.rationale = Document::stored(reason.as_str());
        match &chosen {
            Some(chosen) => decision.chosen = vec![chosen.clone()],
            None => decision.rejected = Document::stored(raw.trim()),
        }
    }
    let wants_more = chosen.as_deref() == Some(AGAIN);
    if chosen.is_none() || (wants_more && written.is_empty()) {
        let reason = match chosen {
            None => {
                "the reply decides nothing; write {\"decision\": \"answer\"} or {\"decision\": \"again\", \"goals\": [...]}"
            }
            Some(_) => "another round needs goals; write them, or decide to answer",
        };
        if let Some(decision) = &mut round {
            decision.chosen.clear();
        }
        return ReadReply::unusable(reason, round.into_iter().chain(rest).collect());
    }
    if !wants_more {
        let thought = if reason.is_empty() { "The findings are enough.".to_owned() } else { reason };
        let enough = Reading::decided(Goals { goals: None });
        return ReadReply::new(&thought, enough, round.into_iter().collect()).with_repairs(repairs);
    }
    let (goals, decisions) = settle(written, &rest, &mut repairs);
    let thought = format!("Another round with {}: {reason}", counted(goals.len(), "goal"));
    let decisions = round.into_iter().chain(decisions).collect();
    ReadReply::new(&thought, Reading::decided(Goals { goals: Some(goals) }), decisions).with_repairs(repairs)
}

pub(super) fn is_round(decision: &Decision) -> bool {
    decision.kind == DecisionKind::Round
}

/// The goals of `{"goals": […]}` or of a bare list, and what had to be put right.
fn goals_in(value: &Value, rules: &GoalRules) -> (Vec<Written>, Vec<String>) {
    let members = match value {
        Value::Array(members) => members.as_slice(),
        Value::Object(map) => map.get("goals").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => &[],
    };
    let mut repairs = Vec::new();
    let mut goals = Vec::new();
    for (place, member) in members.iter().enumerate() {
        match goal_in(member) {
            Some(goal) => goals.push(goal),
            None => repairs.push(format!("entry {place} has no goal and was left out")),
        }
    }
    let most = rules.most.max(1) as usize;
    if goals.len() > most {
        repairs.push(left_out_note(&counted(goals.len(), "goal"), most));
        goals.truncate(most);
    }
    (goals, repairs)
}

fn goal_in(member: &Value) -> Option<Written> {
    let cut = |text: &str, most: usize| text.trim().chars().take(most).collect::<String>();
    let goal = match member {
        Value::String(goal) => cut(goal, GOAL_CHARS),
        Value::Object(_) => cut(&text(member, &["goal", "question", "task"])?, GOAL_CHARS),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => return None,
    };
    let group = match member.get("group") {
        Some(Value::String(name)) if !name.trim().is_empty() => Some(vec![name.trim().into()]),
        Some(Value::Array(names)) => Some(names.iter().filter_map(Value::as_str).map(Into::into).collect()),
        _ => None,
    };
    let context = cut(&text(member, &["context"]).unwrap_or_default(), CONTEXT_CHARS);
    let pattern = text(member, &["pattern"]).and_then(|name| PatternName::given(&name));
    (!goal.is_empty()).then(|| Written { draft: GoalDraft { goal, context, ..GoalDraft::default() }, pattern, group })
}

/// Holds the names against the sets. What is outside is left out and said so; the usual takes its place.
fn settle(written: Vec<Written>, offered: &[Decision], repairs: &mut Vec<String>) -> (Vec<GoalDraft>, Vec<Decision>) {
    let set = |kind: DecisionKind| offered.iter().find(|decision| decision.kind == kind);
    let options = |kind| set(kind).map(|decision| decision.options.as_slice()).unwrap_or_default();
    let (patterns, groups) = (options(DecisionKind::SubagentPattern), options(DecisionKind::SubagentGroup));
    let mut goals = Vec::new();
    let mut rejected = Vec::new();
    for (place, Written { mut draft, pattern, group }) in written.into_iter().enumerate() {
        let mut refused = (None, None);
        if let Some(pattern) = pattern {
            draft.pattern = option_named(patterns, &pattern).map(Into::into);
            if draft.pattern.is_none() {
                repairs.push(format!("goal {place}: there is no pattern `{pattern}` to choose"));
                refused.0 = Document::stored(pattern.as_str());
            }
        }
        if let Some(names) = group {
            let (inside, outside): (Vec<_>, Vec<_>) =
                names.into_iter().partition(|name| groups.iter().any(|group| *name == group.as_str()));
            if !outside.is_empty() {
                repairs.push(format!("goal {place}: the groups {} are not the supervisor's", outside.join(", ")));
                refused.1 = Document::stored(outside.join(", "));
            }
            draft.group = (!inside.is_empty()).then_some(inside);
        }
        goals.push(draft);
        rejected.push(refused);
    }
    let mut decisions = goal_decisions(&goals, offered, DecidedBy::Model);
    let of_kind = |decisions: &mut Vec<Decision>, kind, place: usize, document| {
        if let Some(decision) = decisions.iter_mut().filter(|decision| decision.kind == kind).nth(place) {
            decision.rejected = document;
        }
    };
    for (place, (pattern, group)) in rejected.into_iter().enumerate() {
        of_kind(&mut decisions, DecisionKind::SubagentPattern, place, pattern);
        of_kind(&mut decisions, DecisionKind::SubagentGroup, place, group);
    }
    (goals, decisions)
}
