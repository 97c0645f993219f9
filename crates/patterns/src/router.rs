//! The choice of task type and pattern, as far as no model is needed for it.

use crate::contract::IMPLEMENTED;
use crate::toolset;
use trellis_domain::Workspace;
use trellis_domain::config::{Settings, TaskTypeItem};
use trellis_domain::decision::{DecidedBy, Decision, DecisionKind, Enforcement, Excluded};
use trellis_domain::ids::config_iri;
use trellis_domain::limits::{Limits, SomeLimits};
use trellis_domain::record::Routed;

/// The task type that everything falls back to.
pub const GENERAL: &str = "general";
const REACT: &str = "react";

/// What a caller may name, and the limits it may set.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wishes<'a> {
    pub pattern: &'a str,
    pub task_type: &'a str,
    pub framing: &'a str,
    pub limits: Option<&'a SomeLimits>,
}

/// The operator's limits: what holds unless refined, and what may never be exceeded.
#[derive(Debug, Clone, Default)]
pub struct OperatorLimits {
    pub usual: Limits,
    pub maximum: SomeLimits,
}

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
    let patterns = usable_patterns(settings);
    if !wishes.pattern.is_empty() && !patterns.iter().any(|name| name == wishes.pattern) {
        if settings.patterns.contains_key(wishes.pattern) {
            let (name, known) = (wishes.pattern.to_owned(), patterns.join(", "));
            return Err(Refusal::NotImplemented { name, known });
        }
        return Err(Refusal::UnknownPattern { name: wishes.pattern.to_owned(), known: patterns.join(", ") });
    }
    let task_types = task_type_names(settings);
    if !wishes.task_type.is_empty() && !task_types.iter().any(|name| name == wishes.task_type) {
        return Err(Refusal::UnknownTaskType { name: wishes.task_type.to_owned(), known: task_types.join(", ") });
    }
    let groups = toolset::known_groups(settings);
    match group.unwrap_or_default().iter().find(|name| *name != "*" && !groups.contains(name)) {
        Some(name) => Err(Refusal::UnknownGroup { name: name.clone(), known: groups.join(", ") }),
        None => Ok(()),
    }
}

/// Chooses task type and pattern: what the caller named, else the only option, else the fallback.
pub fn route(settings: &Settings, workspace: &Workspace, wishes: Wishes<'_>, operator: &OperatorLimits) -> Routed {
    let task_type = choose_task_type(settings, workspace, wishes.task_type);
    let name = task_type.chosen.first().cloned().unwrap_or_else(|| GENERAL.to_owned());
    let item = settings.task_types.get(&name);
    let pattern = choose_pattern(settings, workspace, &name, item, wishes.pattern);
    let chosen = pattern.chosen.first().cloned().unwrap_or_else(|| REACT.to_owned());
    let framing = match (wishes.framing, item) {
        ("", Some(item)) => item.framing.clone(),
        (framing, _) => framing.to_owned(),
    };
    let sources =
        [item.map(|item| &item.limits), settings.patterns.get(&chosen).map(|pattern| &pattern.limits), wishes.limits];
    let start = operator.usual.refined(&SomeLimits::default(), &operator.maximum);
    let limits = sources.into_iter().flatten().fold(start, |limits, by| limits.refined(by, &operator.maximum));
    Routed { task_type: name, pattern: chosen, framing, limits, decisions: vec![task_type, pattern] }
}

fn choose_task_type(settings: &Settings, workspace: &Workspace, wish: &str) -> Decision {
    let options = task_type_names(settings);
    let (chosen, decided_by) = pick(&options, wish, GENERAL);
    Decision {
        kind: DecisionKind::TaskType,
        excluded: Vec::new(),
        chosen: vec![chosen],
        options,
        source: config_iri(workspace, "agent-task-type", None),
        config_version: settings.version,
        decided_by,
        enforcement: Enforcement::None,
        signals: Vec::new(),
        rationale: None,
        rejected: None,
    }
}

fn choose_pattern(
    settings: &Settings,
    workspace: &Workspace,
    task_type: &str,
    item: Option<&TaskTypeItem>,
    wish: &str,
) -> Decision {
    if let Some(decision) = callers_pattern(settings, workspace, wish) {
        return decision;
    }
    let (mut options, mut excluded) = valid_patterns(settings, item);
    let nothing_valid = options.is_empty();
    if nothing_valid {
        options.push(REACT.to_owned());
        excluded.retain(|option| option.name != REACT);
    }
    let (chosen, mut decided_by) = pick(&options, wish, &options[0]);
    let source = match item {
        Some(TaskTypeItem { valid_patterns: Some(_), .. }) if !nothing_valid => {
            config_iri(workspace, "agent-task-type", Some(task_type))
        }
        Some(_) | None => config_iri(workspace, "agent-pattern", None),
    };
    if nothing_valid && !settings.patterns.is_empty() {
        // The task type allows nothing that can run: the fallback is not its choice.
        decided_by = DecidedBy::Fallback;
    }
    Decision {
        kind: DecisionKind::Pattern,
        chosen: vec![chosen],
        options,
        excluded,
        source,
        config_version: settings.version,
        decided_by,
        enforcement: Enforcement::None,
        signals: Vec::new(),
        rationale: None,
        rejected: None,
    }
}

/// A caller may name any pattern that can run: routing is bypassed, and the set is all of them.
fn callers_pattern(settings: &Settings, workspace: &Workspace, wish: &str) -> Option<Decision> {
    let options = usable_patterns(settings);
    options.iter().any(|option| option == wish).then(|| Decision {
        kind: DecisionKind::Pattern,
        chosen: vec![wish.to_owned()],
        options,
        excluded: Vec::new(),
        source: config_iri(workspace, "agent-pattern", None),
        config_version: settings.version,
        decided_by: DecidedBy::Caller,
        enforcement: Enforcement::None,
        signals: Vec::new(),
        rationale: None,
        rejected: None,
    })
}

/// The caller's wish if it is an option, else the only option, else the fallback.
fn pick(options: &[String], wish: &str, fallback: &str) -> (String, DecidedBy) {
    if options.iter().any(|option| option == wish) {
        return (wish.to_owned(), DecidedBy::Caller);
    }
    match options {
        [only] if wish.is_empty() => (only.clone(), DecidedBy::OnlyOption),
        _ => {
            let usual = options.iter().find(|option| *option == fallback).or(options.first());
            (usual.cloned().unwrap_or_else(|| fallback.to_owned()), DecidedBy::Fallback)
        }
    }
}

fn task_type_names(settings: &Settings) -> Vec<String> {
    if settings.task_types.is_empty() {
        return vec![GENERAL.to_owned()];
    }
    settings.task_types.keys().cloned().collect()
}

/// The patterns that are defined and implemented; `react` alone if configuration defines none.
fn usable_patterns(settings: &Settings) -> Vec<String> {
    let usable = settings.patterns.keys().filter(|name| IMPLEMENTED.contains(&name.as_str())).cloned();
    let names: Vec<_> = usable.collect();
    if names.is_empty() { vec![REACT.to_owned()] } else { names }
}

/// The task type's valid patterns that can run, and every other pattern with the reason why not.
fn valid_patterns(settings: &Settings, item: Option<&TaskTypeItem>) -> (Vec<String>, Vec<Excluded>) {
    let defined: Vec<_> = settings.patterns.keys().cloned().collect();
    let valid = item.and_then(|item| item.valid_patterns.clone()).unwrap_or_else(|| defined.clone());
    let mut all = valid.clone();
    all.extend(defined.iter().filter(|name| !valid.contains(name)).cloned());
    let (mut options, mut excluded) = (Vec::new(), Vec::new());
    for name in all {
        let reason = if !valid.contains(&name) {
            Some("not a valid pattern of this task type")
        } else if !(defined.contains(&name) || defined.is_empty() && name == REACT) {
            Some("not defined in the configuration")
        } else if !IMPLEMENTED.contains(&name.as_str()) {
            Some("not implemented")
        } else {
            None
        };
        match reason {
            None if !options.contains(&name) => options.push(name),
            None => {}
            Some(reason) => excluded.push(Excluded { name, reason: reason.to_owned() }),
        }
    }
    (options, excluded)
}

#[cfg(test)]
#[path = "router_tests.rs"]
mod tests;
