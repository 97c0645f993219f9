//! The agent that a tool stands for: a pattern, a task type, or both.

use crate::known::{REACT, agents_of, implemented, needs_subagents, obstacle, subagents_of};
use crate::session::Session;
use trellis_domain::config::{ToolItem, ToolKind};
use trellis_domain::decision::Excluded;
use trellis_domain::{PatternName, TaskTypeName, counted};

/// An agent that can be called, and the patterns that it was chosen from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Delegate {
    /// None: that of whoever calls.
    pub(crate) task_type: Option<TaskTypeName>,
    pub(crate) pattern: PatternName,
    pub(crate) options: Vec<String>,
    pub(crate) excluded: Vec<Excluded>,
}

impl Delegate {
    /// How many agents it is, with those that it cannot do without.
    pub(crate) fn agents(&self) -> u32 {
        agents_of(&self.pattern)
    }
}

/// The agent behind a tool, or why none can be called from this session. What is left of the budgets does not matter here: the
/// same tools are offered whatever goes on beside.
pub(crate) fn delegate(session: &Session, tool: &ToolItem) -> Result<Delegate, String> {
    let (limits, settings) = (session.limits(), session.settings());
    if session.depth() >= limits.max_depth {
        return Err(format!("subagents are limited to depth {}", limits.max_depth));
    }
    if session.has_budgets() && limits.max_agents < 2 {
        return Err(format!("the budget of {} leaves no other", counted(limits.max_agents, "agent")));
    }
    let task_type: Option<TaskTypeName> = tool.setting("task-type").map(Into::into);
    if let Some(unknown) = task_type.as_ref().filter(|name| !settings.task_types.contains_key(*name)) {
        return Err(format!("there is no task type `{unknown}`"));
    }
    let (mut options, mut excluded) = (Vec::new(), Vec::new());
    for name in candidates(session, tool, task_type.as_ref()) {
        match against(session, &name) {
            None => options.push(name.to_string()),
            Some(reason) => excluded.push(Excluded { name: name.to_string(), reason }),
        }
    }
    let chosen = options.iter().find(|name| *name == REACT).or_else(|| options.first()).cloned();
    let none = || {
        let reasons = excluded.iter().map(|it: &Excluded| format!("{}: {}", it.name, it.reason)).collect::<Vec<_>>();
        format!("no pattern can run ({})", reasons.join("; "))
    };
    let pattern = chosen.ok_or_else(none)?.into();
    Ok(Delegate { task_type, pattern, options, excluded })
}

/// The tool's own pattern; else those of its task type, or all there are.
fn candidates(session: &Session, tool: &ToolItem, task_type: Option<&TaskTypeName>) -> Vec<PatternName> {
    if let Some(pattern) = tool.setting("pattern") {
        return vec![pattern.into()];
    }
    let settings = session.settings();
    let valid = task_type.and_then(|name| settings.task_types.get(name)?.valid_patterns.clone());
    let defined = || settings.patterns.keys().cloned().collect::<Vec<_>>();
    let candidates = valid.unwrap_or_else(defined);
    if candidates.is_empty() { implemented().map(Into::into).collect() } else { candidates }
}

fn against(session: &Session, name: &PatternName) -> Option<String> {
    let (limits, settings) = (session.limits(), session.settings());
    if !settings.patterns.is_empty() && !settings.patterns.contains_key(name) {
        return Some("not defined in the configuration".to_owned());
    }
    if needs_subagents(name) && session.depth() + 1 >= limits.max_depth {
        return Some(format!("subagents are limited to depth {}", limits.max_depth));
    }
    if session.has_budgets() && needs_subagents(name) && limits.max_agents < 2 + subagents_of(name) {
        return Some(format!("the budget of {} leaves it no subagents", counted(limits.max_agents, "agent")));
    }
    obstacle(name, settings, limits.max_siblings.max(1))
}

/// Whether sessions under this configuration can call agents like tools.
pub(crate) fn can_be_called(session: &Session) -> bool {
    session.settings().tools.values().any(|tool| tool.kind == ToolKind::Agent)
}
