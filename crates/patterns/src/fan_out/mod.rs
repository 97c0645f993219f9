//! Fan-outs, for every pattern that sends subagents out: the order, the sessions that it begins, what they brought, and
//! what all of it means to a reader.

mod another;
mod calls;
mod choices;
pub(crate) mod describe;

pub(crate) use another::{most_rounds, round_by_model, round_by_rule, round_without_model};
pub(crate) use calls::{AgentCall, order_for};
pub(crate) use choices::{goal_decisions, offered, offered_unless};

use crate::contract::{Ending, Order};
use crate::router;
use crate::session::Session;
use crate::spending::{self, share_of};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use trellis_domain::decision::{DecidedBy, Decision, DecisionKind, Enforcement};
use trellis_domain::document::Document;
use trellis_domain::fan_out::{FannedOut, Goal, Member, Parent, Resume};
use trellis_domain::record::{Accepted, Replied, Routed};
use trellis_domain::run::{RunState, Termination};
use trellis_domain::{GroupName, Hash, PatternName, SessionId, TaskTypeName, Timestamp};

/// One goal for a subagent as the model wrote it, put right.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoalDraft {
    pub goal: String,
    /// None means: as usual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<PatternName>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<Vec<GroupName>>,
    /// What the subagent needs to know of the whole task.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub context: String,
}

/// How much of the time that is left a fan-in may take: the rest is for the synthesis above it.
const SHARE: u64 = 80;

/// The order to send a subagent after each goal.
pub(crate) fn order(
    session: &Session,
    now: Timestamp,
    round: u32,
    drafts: &[GoalDraft],
    decisions: Vec<Decision>,
) -> Order {
    let Some((id, accepted)) = session.id().zip(session.accepted()) else {
        return Order::End(Ending::failed(Termination::Error, "the session has no root"));
    };
    let first = next_index(session);
    let patterns = decisions.iter().find(|decision| decision.kind == DecisionKind::SubagentPattern);
    let usual = choices::usual(patterns.map(|decision| decision.options.as_slice()).unwrap_or_default());
    let goal = |(draft, index)| goal(id, accepted, round, index, draft, &usual);
    let goals: Vec<_> = drafts.iter().zip(first..).map(goal).collect();
    let share = spending::share(session, goals.iter().map(|goal| &goal.pattern));
    let fan_out = FannedOut { share, decisions, ..begun(session, id, accepted, round, now) };
    Order::FanOut(Box::new(FannedOut { goals, ..fan_out }))
}

/// The number of the next subagent.
fn next_index(session: &Session) -> usize {
    session.fan_outs().map(|earlier| earlier.goals.len()).sum()
}

/// A fan-out before it is said who is sent out.
fn begun(session: &Session, id: &SessionId, accepted: &Accepted, round: u32, now: Timestamp) -> FannedOut {
    // Each round before this one is two steps: what was sent out, and what came of it.
    let history = accepted.history.len() + 2 * session.fan_outs().count();
    FannedOut {
        round,
        correlation: id.correlation(round),
        deadline: deadline(session, now),
        share: None,
        goals: Vec::new(),
        decisions: Vec::new(),
        turn: None,
        resume: Resume {
            reply_to: accepted.request_id.clone(),
            streaming: accepted.streaming,
            state: session.tool_state().to_owned(),
            group: accepted.group.clone(),
            framing: session.routed().map(|routed| Arc::clone(&routed.framing)).unwrap_or_default(),
            history: u32::try_from(history).unwrap_or(u32::MAX),
        },
    }
}

fn goal(id: &SessionId, accepted: &Accepted, round: u32, index: usize, draft: &GoalDraft, usual: &PatternName) -> Goal {
    let index = u32::try_from(index).unwrap_or(u32::MAX);
    Goal {
        index,
        session: id.child(round, index),
        goal: draft.goal.clone(),
        pattern: draft.pattern.as_ref().unwrap_or(usual).clone(),
        group: draft.group.clone().or_else(|| accepted.group.clone()),
        context: draft.context.clone(),
        task_type: None,
        call: None,
    }
}

/// Absolute, and never beyond what is left to those who wait for this session.
fn deadline(session: &Session, now: Timestamp) -> Timestamp {
    let limits = session.limits();
    let run_left = limits.run_timeout_ms.saturating_sub(session.spent_ms(now));
    let left = match session.waited_for_until(now) {
        Some(deadline) => run_left.min(deadline.ms_since(now)),
        None => run_left,
    };
    now.plus_ms(limits.fan_in_timeout_ms.min(left.saturating_mul(SHARE) / 100))
}

/// How the session of a goal begins: an ordinary session, whose pattern its supervisor chose.
pub fn child(session: &Session, fan_out: &FannedOut, goal: &Goal) -> Option<(Accepted, Routed)> {
    let (id, accepted, routed) = (session.id()?, session.accepted()?, session.routed()?);
    let mut ancestors = accepted.parent.as_ref().map(|parent| parent.ancestors.clone()).unwrap_or_default();
    ancestors.push(id.clone());
    let parent = Parent {
        session: id.clone(),
        correlation: fan_out.correlation.clone(),
        round: fan_out.round,
        index: goal.index,
        siblings: u32::try_from(fan_out.goals.len()).unwrap_or(u32::MAX),
        ancestors,
        deadline: fan_out.deadline,
    };
    let begun = Accepted {
        question: goal.goal.as_str().into(),
        request: Hash::of(format!("{}/{}", fan_out.correlation, goal.index)),
        group: goal.group.clone(),
        state: fan_out.resume.state.clone(),
        collection: accepted.collection.clone(),
        streaming: accepted.streaming,
        conversation: accepted.conversation.clone(),
        pattern: Some(goal.pattern.clone()),
        task_type: Some(task_type_of(routed, goal).clone()),
        framing: Arc::default(),
        limits: accepted.limits.clone(),
        history: Vec::new(),
        request_id: accepted.request_id.clone(),
        earlier: Vec::new(),
        parent: Some(parent),
        by: None,
        configured: None,
        operator: accepted.operator.clone(),
        revision: accepted.revision,
        mark: accepted.mark.clone(),
        routed_apart: accepted.routed_apart,
        room: accepted.room,
        not_here: accepted.not_here.clone(),
        selection: accepted.selection.clone(),
    };
    Some((begun, routing(session, routed, fan_out, goal, accepted)))
}

fn routing(session: &Session, routed: &Routed, fan_out: &FannedOut, goal: &Goal, accepted: &Accepted) -> Routed {
    let settings = session.settings();
    // A subagent with a task type of its own has that one's words, and not its parent's.
    let own = goal.task_type.as_ref().and_then(|name| settings.task_types.get(name));
    let (framing, termination) = own.map_or_else(
        || (Arc::clone(&routed.framing), routed.termination.clone()),
        |own| (own.framing.as_str().into(), own.termination.clone()),
    );
    // The schema has no field for the slice of context: it is appended to the framing.
    let framing = with(&framing, &goal.context);
    let messages = session.messages(0, u32::MAX).unwrap_or_default();
    let (framing, told) = if session.counts_messages() {
        (framing, with(&routed.told, &messages))
    } else {
        (with(&framing, &messages), Arc::default())
    };
    let (task_type, pattern) = (task_type_of(routed, goal), &goal.pattern);
    let limits = router::limits_for(settings, task_type, pattern, Some(&accepted.limits), session.operator());
    Routed {
        task_type: task_type.clone(),
        pattern: pattern.clone(),
        framing,
        told,
        termination,
        limits: fan_out.share.iter().fold(limits, |limits, share| limits.within(&share_of(session, pattern, share))),
        decisions: vec![inherited_task_type(session, task_type), chosen_pattern(session, fan_out, goal)],
    }
}

/// Two texts, one below the other. Where there is only one, nothing is copied.
fn with(text: &Arc<str>, more: &str) -> Arc<str> {
    match (&**text, more) {
        (_, "") => Arc::clone(text),
        ("", more) => more.into(),
        (text, more) => format!("{text}\n\n{more}").into(),
    }
}

/// Subagents work on a part of the same task: its type is theirs, unless the tool that called them has one.
fn task_type_of<'g>(routed: &'g Routed, goal: &'g Goal) -> &'g TaskTypeName {
    goal.task_type.as_ref().unwrap_or(&routed.task_type)
}

fn inherited_task_type(session: &Session, task_type: &TaskTypeName) -> Decision {
    let only = vec![task_type.to_string()];
    from_above(session.offered(DecisionKind::TaskType, only, session.config_source("agent-task-type")), task_type)
}

/// The choice that the supervisor made for this goal, seen from below.
fn chosen_pattern(session: &Session, fan_out: &FannedOut, goal: &Goal) -> Decision {
    let place = fan_out.goals.iter().position(|other| other.index == goal.index).unwrap_or(0);
    let mut of_patterns = fan_out.decisions.iter().filter(|decision| decision.kind == DecisionKind::SubagentPattern);
    let made = of_patterns.nth(place);
    let options = made.map_or_else(|| vec![goal.pattern.to_string()], |decision| decision.options.clone());
    let excluded = made.map(|decision| decision.excluded.clone()).unwrap_or_default();
    let offered = session.offered(DecisionKind::Pattern, options, session.config_source("agent-pattern"));
    from_above(Decision { excluded, ..offered }, &goal.pattern)
}

/// No model of the subagent was asked: its supervisor chose.
fn from_above(offered: Decision, chosen: &str) -> Decision {
    let (decided_by, enforcement) = (DecidedBy::Supervisor, Enforcement::None);
    Decision { chosen: vec![chosen.to_owned()], decided_by, enforcement, ..offered }
}

/// What the subagents of all joins brought, first round first; before that, what others had joined already.
pub(crate) fn members(session: &Session) -> impl Iterator<Item = &Member> {
    session.found_before().iter().chain(session.joins().flat_map(|joined| &joined.members))
}

/// What subagents were sent for and did not bring, in any round. A later one may have found it by another way; that is
/// the model's claim, and the gap stays a fact.
pub(crate) fn missing(session: &Session) -> Vec<u32> {
    members(session).filter(|member| member.is_missing()).map(|member| member.index).collect()
}

/// Whether everything that subagents brought is itself a partial answer: what is made of it is no better.
pub(crate) fn has_only_partial_findings(session: &Session) -> bool {
    let mut found = members(session).filter(|member| !member.is_missing());
    session.tells_empty_hands() && found.all(|member| member.reason.run_state() == RunState::AnsweredPartial)
}

/// Findings without a synthesis are still worth more than nothing.
pub(crate) fn without_synthesis(session: &Session, replied: &Replied, reason: &str) -> Ending {
    let found: Vec<_> = members(session).filter_map(|member| Some((member, member.answer.as_ref()?))).collect();
    if found.is_empty() {
        return Ending::without_reply(replied, reason);
    }
    let line = |(member, answer): &(&Member, &Document)| {
        format!("\n\n[finding {}] {}\n{}", member.index, member.goal, answer.text())
    };
    let answer = format!(
        "The findings could not be put together ({reason}). They are:{}",
        found.iter().map(line).collect::<String>()
    );
    let answered = Ending::answered(Termination::SubagentsPartial, answer);
    Ending { error: Some(reason.to_owned()), missing: missing(session), ..answered }
}
