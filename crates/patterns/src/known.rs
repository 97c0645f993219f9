//! The patterns by name. What they do is in the registry; a test keeps both the same.

use trellis_domain::config::Settings;
use trellis_domain::{PatternName, counted};

/// What others may have to know of a pattern before it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) name: &'static str,
    /// How many subagents it needs at once; without so many it is nothing.
    pub(crate) subagents: u32,
    /// Whether its answer is written by a prompt of its own, after everything else.
    pub(crate) writes_answers: bool,
    pub(crate) prompts: &'static [&'static str],
}

const fn alone(name: &'static str, prompts: &'static [&'static str]) -> Known {
    Known { name, subagents: 0, writes_answers: false, prompts }
}

const fn with_subagents(name: &'static str, subagents: u32, prompts: &'static [&'static str]) -> Known {
    Known { name, subagents, writes_answers: true, prompts }
}

/// The pattern that everything falls back to.
pub(crate) const REACT: &str = "react";

pub(crate) const PLAN: &str = "plan-then-execute";

pub(crate) const SUPERVISOR: &str = "supervisor";

const DISPATCH: &str = "dispatch";

pub(crate) const KNOWN: &[Known] = &[
    alone(REACT, &["agent-react"]),
    Known {
        writes_answers: true,
        ..alone(PLAN, &["plan-create", "plan-step-execute", "plan-revise", "plan-synthesise"])
    },
    with_subagents(SUPERVISOR, 1, &["supervisor-decompose", "supervisor-review", "supervisor-synthesise"]),
    alone("reflexion", &["reflexion-act", "reflexion-critique"]),
    alone(DISPATCH, &["dispatch-choose"]),
    with_subagents("debate", 2, &["debate-stances", "debate-moderate", "debate-judge"]),
];

/// The names of the implemented patterns.
pub fn implemented() -> impl Iterator<Item = &'static str> {
    KNOWN.iter().map(|pattern| pattern.name)
}

fn known(name: &str) -> Option<&'static Known> {
    KNOWN.iter().find(|pattern| pattern.name == name)
}

/// Whether there is a pattern of that name.
pub fn is_implemented(name: &PatternName) -> bool {
    known(name).is_some()
}

/// Whether it has subagents, or may have one.
pub(crate) fn may_have_subagents(name: &str) -> bool {
    name == DISPATCH || needs_subagents(name)
}

pub(crate) fn writes_answers(name: &str) -> bool {
    known(name).is_some_and(|pattern| pattern.writes_answers)
}

/// How many subagents it needs at once.
pub(crate) fn subagents_of(name: &str) -> u32 {
    known(name).map_or(0, |pattern| pattern.subagents)
}

/// How many agents it is, with those that it cannot do without.
pub fn agents_of(name: &PatternName) -> u32 {
    1 + subagents_of(name)
}

pub(crate) fn needs_subagents(name: &str) -> bool {
    subagents_of(name) > 0
}

/// Why a pattern cannot run under this configuration with so many subagents at once, if it cannot. Where there are no
/// prompts at all, none is better off than another.
pub(crate) fn obstacle(name: &PatternName, settings: &Settings, most_subagents: u32) -> Option<String> {
    let Some(pattern) = known(name) else { return Some("not implemented".to_owned()) };
    if most_subagents < pattern.subagents {
        return Some(format!("limited to {}, and needs {}", counted(most_subagents, "subagent"), pattern.subagents));
    }
    let is_missing = |prompt: &&&str| !settings.prompts.is_empty() && !settings.prompts.contains_key(**prompt);
    let missing = pattern.prompts.iter().find(is_missing)?;
    Some(format!("without its prompt `{missing}`"))
}
