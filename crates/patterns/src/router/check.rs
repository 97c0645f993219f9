//! Names that nothing defines, on surfaces that refuse them instead of falling back.

use super::{Wishes, options};
use crate::toolset;
use trellis_domain::config::Settings;
use trellis_domain::{GroupName, PatternName, Selection, TaskTypeName, ToolName};

/// Why a request is refused on surfaces that refuse instead of falling back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("there is no pattern `{name}`; choose one of {known}")]
    UnknownPattern { name: PatternName, known: String },
    #[error("the pattern `{name}` is defined but not implemented in this version; choose one of {known}")]
    NotImplemented { name: PatternName, known: String },
    #[error("there is no task type `{name}`; choose one of {known}")]
    UnknownTaskType { name: TaskTypeName, known: String },
    #[error("no tool is in group `{name}`; choose from {known}, or * for all")]
    UnknownGroup { name: GroupName, known: String },
    #[error("there is no tool `{name}`; choose from {known}")]
    UnknownTool { name: ToolName, known: String },
    #[error(
        "the tool `{name}` is in the groups {groups}, and none of them is asked for; name one of them in `group`, too"
    )]
    ToolOutsideGroup { name: ToolName, groups: String },
    #[error("no model `{name}` is configured; choose one of {known}")]
    UnknownModel { name: String, known: String },
}

/// Refuses names that nothing defines, before a run is started with them.
pub fn check(settings: &Settings, wishes: Wishes<'_>, group: Option<&[GroupName]>) -> Result<(), Refusal> {
    let patterns = options::callable(settings);
    if let Some(name) = wishes.pattern.filter(|name| !patterns.contains(name)) {
        let (name, known) = (name.clone(), patterns.join(", "));
        let defined = settings.patterns.contains_key(&name);
        return Err(if defined {
            Refusal::NotImplemented { name, known }
        } else {
            Refusal::UnknownPattern { name, known }
        });
    }
    let task_types = options::task_type_names(settings);
    if let Some(name) = wishes.task_type.filter(|name| !task_types.contains(name)) {
        return Err(Refusal::UnknownTaskType { name: name.clone(), known: task_types.join(", ") });
    }
    let groups = toolset::known_groups(settings);
    match group.unwrap_or_default().iter().find(|name| **name != "*" && !groups.contains(name)) {
        Some(name) => Err(Refusal::UnknownGroup { name: name.clone(), known: groups.join(", ") }),
        None => Ok(()),
    }
}

/// So many names are listed in a refusal.
const LISTED: usize = 50;

/// Refuses what a caller cannot choose: it may narrow what is configured, and add nothing to it.
pub fn check_selection(
    settings: &Settings,
    group: Option<&[GroupName]>,
    selection: &Selection,
    models: impl FnOnce() -> Vec<String>,
) -> Result<(), Refusal> {
    for name in selection.tools.iter().flatten() {
        let Some(tool) = settings.tools.get(name) else {
            return Err(Refusal::UnknownTool { name: name.clone(), known: listed(settings.tools.keys()) });
        };
        if !toolset::is_asked_for(tool, group) {
            return Err(Refusal::ToolOutsideGroup { name: name.clone(), groups: listed(&tool.groups) });
        }
    }
    let Some(name) = &selection.model else { return Ok(()) };
    let known = models();
    if known.contains(name) {
        return Ok(());
    }
    Err(Refusal::UnknownModel { name: name.clone(), known: listed(&known) })
}

fn listed(names: impl IntoIterator<Item = impl ToString>) -> String {
    let mut names: Vec<_> = names.into_iter().map(|name| name.to_string()).collect();
    if names.is_empty() {
        return "none: there are none".to_owned();
    }
    let more = names.len().saturating_sub(LISTED);
    names.truncate(LISTED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", names.join(", "))
}
