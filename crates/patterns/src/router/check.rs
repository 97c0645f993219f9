//! Names that nothing defines, on surfaces that refuse them instead of falling back.

use super::{Wishes, options};
use crate::toolset;
use trellis_domain::config::Settings;
use trellis_domain::{GroupName, PatternName, TaskTypeName};

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
