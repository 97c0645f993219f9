//! Every pattern there is. A new one is added here, and nowhere else outside its folder.

use crate::contract::Pattern;
use crate::debate::Debate;
use crate::dispatch::Dispatch;
use crate::plan::Plan;
use crate::react::React;
use crate::reflexion::Reflexion;
use crate::supervisor::Supervisor;
use trellis_domain::config::{Problem, Settings};

const PATTERNS: &[&dyn Pattern] = &[&React, &Plan, &Supervisor, &Reflexion, &Dispatch, &Debate];

/// The names of the implemented patterns.
pub fn implemented() -> impl Iterator<Item = &'static str> {
    PATTERNS.iter().map(|pattern| pattern.name())
}

/// Whether there is a pattern of that name.
pub(crate) fn is_implemented(name: &str) -> bool {
    implemented().any(|known| known == name)
}

/// The pattern of that name; an unknown name falls back to `react`, as in the original.
pub fn pattern(name: &str) -> &'static dyn Pattern {
    PATTERNS.iter().copied().find(|pattern| pattern.name() == name).unwrap_or(&React)
}

/// The pattern that asks a prompt; none for the router's.
pub(crate) fn owner_of(prompt: &str) -> Option<&'static dyn Pattern> {
    PATTERNS.iter().copied().find(|pattern| pattern.prompts().contains(&prompt))
}

/// The sample runs of all patterns.
#[cfg(test)]
pub(crate) fn samples() -> Vec<Vec<trellis_domain::record::Record>> {
    PATTERNS.iter().flat_map(|pattern| pattern.samples()).collect()
}

/// The prompts that runs under this configuration can come to and that it lacks. `react` is what everything falls back
/// to; a router without a choice asks nobody.
pub fn missing_prompts(settings: &Settings) -> Vec<Problem> {
    let router =
        [("task-type-classify", settings.task_types.len() > 1), ("pattern-select", settings.patterns.len() > 1)];
    let of_router = router.into_iter().filter(|(_, is_asked)| *is_asked);
    let of_router = of_router.map(|(prompt, _)| (prompt, "the router".to_owned()));
    let is_open = |name: &str| name == React::NAME || settings.patterns.contains_key(name);
    let of_patterns = PATTERNS.iter().filter(|pattern| is_open(pattern.name())).flat_map(|pattern| {
        let user = format!("pattern `{}`", pattern.name());
        pattern.prompts().iter().map(move |prompt| (*prompt, user.clone()))
    });
    let needed = of_router.chain(of_patterns).filter(|(prompt, _)| !settings.prompts.contains_key(*prompt));
    let problem = |(prompt, user): (&str, String)| Problem {
        kind: "prompt".to_owned(),
        key: format!("template.{prompt}"),
        field: "value".to_owned(),
        what: format!("is missing, and {user} needs it"),
        mend: "restore it from its history or an export".to_owned(),
    };
    needed.map(problem).collect()
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;
