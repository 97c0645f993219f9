//! The patterns by name. What they do is in the registry; a test keeps both the same.

/// What others may have to know of a pattern before it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) name: &'static str,
    /// Whether it is nothing without subagents.
    pub(crate) needs_subagents: bool,
}

const fn alone(name: &'static str) -> Known {
    Known { name, needs_subagents: false }
}

const fn with_subagents(name: &'static str) -> Known {
    Known { name, needs_subagents: true }
}

/// The pattern that everything falls back to.
pub(crate) const REACT: &str = "react";

pub(crate) const KNOWN: &[Known] = &[
    alone(REACT),
    alone("plan-then-execute"),
    with_subagents("supervisor"),
    alone("reflexion"),
    alone("dispatch"),
    with_subagents("debate"),
];

/// The names of the implemented patterns.
pub fn implemented() -> impl Iterator<Item = &'static str> {
    KNOWN.iter().map(|pattern| pattern.name)
}

/// Whether there is a pattern of that name.
pub fn is_implemented(name: &str) -> bool {
    implemented().any(|known| known == name)
}

pub(crate) fn needs_subagents(name: &str) -> bool {
    KNOWN.iter().any(|pattern| pattern.name == name && pattern.needs_subagents)
}
