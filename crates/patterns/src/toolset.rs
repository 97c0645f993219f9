//! Which tools a session may see: group and state decide, what its caller asked for, and what can be called here.

use crate::delegate::delegate;
use crate::session::Session;
use std::sync::Arc;
use trellis_domain::config::{Settings, ToolItem, ToolKind};
use trellis_domain::decision::Excluded;
use trellis_domain::{GroupName, ToolName};

/// The tools that are offered, and those that are not, with the reason.
#[derive(Debug, Default)]
pub struct ToolSet<'a> {
    pub offered: Vec<&'a Arc<ToolItem>>,
    pub excluded: Vec<Excluded>,
}

impl ToolSet<'_> {
    /// Leaves nothing but what was asked for by name.
    fn narrow(&mut self, names: &[ToolName]) {
        let others = self.offered.extract_if(.., |tool| !names.contains(&tool.name));
        let reason = || "not asked for".to_owned();
        self.excluded.extend(others.map(|tool| Excluded { name: tool.name.to_string(), reason: reason() }));
    }
}

/// The tools visible to a session now.
pub fn visible(session: &Session) -> ToolSet<'_> {
    visible_in(session, session.tool_state())
}

/// The tools visible to a session in a state.
pub fn visible_in<'a>(session: &'a Session, state: &str) -> ToolSet<'a> {
    let group = session.accepted().and_then(|accepted| accepted.group.as_deref());
    let mut set = select(session.settings(), group, state);
    let asked_for = session.accepted().and_then(|accepted| accepted.selection.tools.as_deref());
    if let Some(names) = asked_for {
        set.narrow(names);
    }
    let not_here = session.accepted().map(|accepted| accepted.not_here.as_slice()).unwrap_or_default();
    for Excluded { name, reason } in not_here {
        if let Some(place) = set.offered.iter().position(|tool| tool.name == name.as_str()) {
            set.offered.remove(place);
            set.excluded.push(Excluded { name: name.clone(), reason: format!("not here: {reason}") });
        }
    }
    set.offered.retain(|tool| {
        let against = (tool.kind == ToolKind::Agent).then(|| delegate(session, tool).err()).flatten();
        let is_offered = against.is_none();
        set.excluded.extend(against.map(|reason| Excluded { name: tool.name.to_string(), reason }));
        is_offered
    });
    if session.revision() > 1 {
        // Models favour what they read first, so the order is the caller's.
        set.offered.sort_by_key(|tool| {
            let by_name = asked_for.and_then(|names| names.iter().position(|name| *name == tool.name));
            by_name.or_else(|| group.and_then(|names| names.iter().position(|name| is_in(tool, name))))
        });
    }
    set
}

fn is_in(tool: &ToolItem, group: &GroupName) -> bool {
    *group == "*" || tool.groups.contains(group)
}

/// Filters by group and state. No group means `default`; an empty list means no tools; `*` means all groups.
pub fn select<'a>(settings: &'a Settings, group: Option<&[GroupName]>, state: &str) -> ToolSet<'a> {
    let mut set = ToolSet::default();
    for tool in settings.tools.values() {
        match reason_against(tool, group, state) {
            None => set.offered.push(tool),
            Some(reason) => set.excluded.push(Excluded { name: tool.name.to_string(), reason }),
        }
    }
    set
}

/// Whether a tool is in one of the groups that are asked for.
pub fn is_asked_for(tool: &ToolItem, group: Option<&[GroupName]>) -> bool {
    let usual = ["default".into()];
    group.unwrap_or(&usual).iter().any(|name| is_in(tool, name))
}

fn reason_against(tool: &ToolItem, group: Option<&[GroupName]>, state: &str) -> Option<String> {
    if !is_asked_for(tool, group) {
        let usual = ["default".into()];
        let wanted = group.unwrap_or(&usual);
        return Some(format!("group: tool is in [{}], asked for [{}]", tool.groups.join(", "), wanted.join(", ")));
    }
    match &tool.applicable_states {
        Some(states) if !states.iter().any(|applicable| applicable == state) => {
            Some(format!("state: applies in [{}], now {state}", states.join(", ")))
        }
        Some(_) | None => None,
    }
}

/// The groups that a request may name: all that tools are in.
pub fn known_groups(settings: &Settings) -> Vec<GroupName> {
    let mut groups: Vec<_> = settings.tools.values().flat_map(|tool| tool.groups.iter().cloned()).collect();
    groups.push("default".into());
    groups.sort();
    groups.dedup();
    groups
}

#[cfg(test)]
#[path = "toolset_tests.rs"]
mod tests;
