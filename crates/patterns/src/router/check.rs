//! Names that nothing defines, on surfaces that refuse them instead of falling back.

use super::{Wishes, options};
use crate::toolset;
use trellis_domain::config::Settings;

/// Why a request is refused on surfaces that refuse instead of falling back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("there is no pattern `{name}`; choose one of {known}")]
    UnknownPattern { name: String, known: String },
    #[error("the pattern `{name}` is defined but not implemented in this version; choose one of {known}")]
    NotImplemented { name: String, known: String },
    #[error("there is no task type `{name}`; choose one of {known}")]
    UnknownTaskType { name: String, known: String },
    #[error("no tool is in group `{name}`; choose from {known}, or * for all")]
    UnknownGroup { name: String, known: String },
}

/// Refuses names that nothing defines, before a run is started with them.
pub fn check(settings: &Settings, wishes: Wishes<'_>, group: Option<&[String]>) -> Result<(), Refusal> {
    let patterns = options::callable(settings);
    if !wishes.pattern.is_empty() && !patterns.iter().any(|name| name == wishes.pattern) {
        let (name, known) = (wishes.pattern.to_owned(), patterns.join(", "));
        let defined = settings.patterns.contains_key(wishes.pattern);
        return Err(if defined {
            Refusal::NotImplemented { name, known }
        } else {
            Refusal::UnknownPattern { name, known }
        });
    }
    let task_types = options::task_type_names(settings);
    if !wishes.task_type.is_empty() && !task_types.iter().any(|name| name == wishes.task_type) {
        return Err(Refusal::UnknownTaskType { name: wishes.task_type.to_owned(), known: task_types.join(", ") });
    }
    let groups = toolset::known_groups(settings);
    match group.unwrap_or_default().iter().find(|name| *name != "*" && !groups.contains(name)) {
        Some(name) => Err(Refusal::UnknownGroup { name: name.clone(), known: groups.join(", ") }),
        None => Ok(()),
    }
}
