//! The choices behind a fan-out: the goals, and each one's pattern and group.

use super::GoalDraft;
use crate::known::{REACT, implemented, needs_subagents, obstacle, subagents_of};
use crate::router::limits_for;
use crate::session::Session;
use crate::spending::leaves_agents_below;
use crate::toolset;
use trellis_domain::counted;
use trellis_domain::decision::{DecidedBy, Decision, DecisionKind, Enforcement, Excluded};
use trellis_domain::record::Routed;
use trellis_domain::{GroupName, PatternName};

/// The sets that goals choose from: none for the goals themselves, the patterns that may run below, the own groups.
pub(crate) fn offered(session: &Session) -> Vec<Decision> {
    offered_unless(session, |_| None)
}

/// The same without the patterns that there is a reason against.
pub(crate) fn offered_unless(
    session: &Session,
    against: impl Fn(&PatternName) -> Option<&'static str>,
) -> Vec<Decision> {
    let (patterns, excluded) = patterns(session, against);
    let [chosen, groups] = groups(session).map(|names| names.into_iter().map(Into::into).collect());
    let of_patterns = |kind, options| session.offered(kind, options, session.config_source("agent-pattern"));
    let group = session.offered(DecisionKind::SubagentGroup, groups, session.config_source("tool"));
    vec![
        Decision { enforcement: Enforcement::None, ..of_patterns(DecisionKind::Goals, Vec::new()) },
        Decision { excluded, ..of_patterns(DecisionKind::SubagentPattern, patterns) },
        // A goal that names no group inherits: that is a rule, and known beforehand.
        Decision { chosen, decided_by: DecidedBy::Rule, ..group },
    ]
}

/// The configured patterns that can run below this session. One that needs subagents of its own may stand there only as
/// long as these stay within the depth.
fn patterns(session: &Session, against: impl Fn(&PatternName) -> Option<&'static str>) -> (Vec<String>, Vec<Excluded>) {
    let (mut options, mut excluded) = (Vec::new(), Vec::new());
    let configured: Vec<_> = session.settings().patterns.keys().cloned().collect();
    let all = || implemented().map(Into::into).collect();
    for name in if configured.is_empty() { all() } else { configured } {
        match obstacle_below(session, &name).or_else(|| against(&name).map(str::to_owned)) {
            None => options.push(name.into()),
            Some(reason) => excluded.push(Excluded { name: name.into(), reason }),
        }
    }
    // Where configuration leaves nothing that can run, `react` stands in for it, as it does in the router.
    if options.is_empty() {
        options.push(REACT.to_owned());
        excluded.retain(|option| option.name != REACT);
    }
    (options, excluded)
}

/// Why a pattern cannot run below this session, if it cannot.
fn obstacle_below(session: &Session, name: &PatternName) -> Option<String> {
    let limit = session.limits().max_depth;
    let too_deep = session.depth() + 1 >= limit && needs_subagents(name);
    let request = session.accepted().map(|accepted| &accepted.limits);
    let below = |routed: &Routed| limits_for(session.settings(), &routed.task_type, name, request, session.operator());
    let limits = session.routed().map_or_else(|| session.limits(), below);
    let depth = || too_deep.then(|| format!("subagents are limited to depth {limit}"));
    let alone = || {
        let is_alone = needs_subagents(name) && !leaves_agents_below(session, subagents_of(name));
        is_alone
            .then(|| format!("the budget of {} leaves it no subagents", counted(session.limits().max_agents, "agent")))
    };
    obstacle(name, session.settings(), limits.max_siblings.max(1)).or_else(depth).or_else(alone)
}

/// The parent's own groups, and all that a subagent may have: they hold no tool that its parent may not use.
fn groups(session: &Session) -> [Vec<GroupName>; 2] {
    let settings = session.settings();
    let usual = ["default".into()];
    let own = session.accepted().and_then(|accepted| accepted.group.as_deref()).unwrap_or(&usual);
    let known = toolset::known_groups(settings);
    if own.iter().any(|name| *name == "*") {
        return [known.clone(), known];
    }
    let within = |group: &GroupName| {
        let mut tools = settings.tools.values().filter(|tool| tool.groups.contains(group)).peekable();
        tools.peek().is_some() && tools.all(|tool| tool.groups.iter().any(|name| own.contains(name)))
    };
    let narrower = known.into_iter().filter(|group| !own.contains(group) && within(group));
    [own.to_vec(), own.iter().cloned().chain(narrower).collect()]
}

/// The decisions behind some goals: the goals themselves, then each one's pattern and group, in order.
pub(crate) fn goal_decisions(goals: &[GoalDraft], offered: &[Decision], by: DecidedBy) -> Vec<Decision> {
    let set = |kind: DecisionKind| offered.iter().find(|decision| decision.kind == kind).cloned();
    let chosen = goals.iter().map(|draft| draft.goal.clone()).collect();
    let whole = set(DecisionKind::Goals).map(|decision| Decision { chosen, decided_by: by, ..decision });
    let mut decisions: Vec<_> = whole.into_iter().collect();
    for draft in goals {
        // The usual is a rule, not the model's choice.
        let by = |named: bool| if named { by } else { DecidedBy::Rule };
        decisions.extend(set(DecisionKind::SubagentPattern).map(|decision| {
            let chosen = draft.pattern.clone().unwrap_or_else(|| usual(&decision.options));
            Decision { chosen: vec![chosen.into()], decided_by: by(draft.pattern.is_some()), ..decision }
        }));
        decisions.extend(set(DecisionKind::SubagentGroup).map(|decision| {
            // Not named means inherited, as the offered set says.
            let own = draft.group.as_ref().map(|names| names.iter().map(ToString::to_string).collect());
            let chosen = own.unwrap_or_else(|| decision.chosen.clone());
            Decision { chosen, decided_by: by(draft.group.is_some()), ..decision }
        }));
    }
    decisions
}

/// The pattern of a goal that names none: `react`, or the first that needs no subagents, or the first that is offered.
pub(super) fn usual(options: &[String]) -> PatternName {
    let react = options.iter().find(|option| *option == REACT);
    let alone = || options.iter().find(|option| !needs_subagents(option));
    react.or_else(alone).or(options.first()).map_or(REACT, String::as_str).into()
}
