//! The sets that are chosen from, and what is left out of them with the reason.

use super::GENERAL;
use crate::known::{REACT, implemented, is_implemented, obstacle};
use trellis_domain::config::{Settings, TaskTypeItem};
use trellis_domain::decision::{Decision, DecisionKind, Excluded};
use trellis_domain::ids::config_iri;
use trellis_domain::{PatternName, TaskTypeName, Workspace};

/// The patterns of a task type, before one is chosen.
pub(super) struct ValidPatterns {
    pub(super) offered: Decision,
    /// Configuration allows nothing that can run, so `react` stands in for it.
    pub(super) stand_in: bool,
}

/// All task types, before one is chosen.
pub(super) fn task_types(settings: &Settings, workspace: &Workspace) -> Decision {
    let source = config_iri(workspace, "agent-task-type", None);
    offered(settings, DecisionKind::TaskType, task_type_names(settings), Vec::new(), source)
}

/// The keys of all task types; `general` alone if configuration defines none.
pub(super) fn task_type_names(settings: &Settings) -> Vec<TaskTypeName> {
    if settings.task_types.is_empty() {
        return vec![GENERAL.into()];
    }
    settings.task_types.keys().cloned().collect()
}

/// All patterns that a caller may name, whatever the task type says.
pub(super) fn callers_patterns(settings: &Settings, workspace: &Workspace) -> Decision {
    let excluded = settings.patterns.keys().filter(|name| !is_implemented(name));
    let excluded =
        excluded.map(|name| Excluded { name: name.to_string(), reason: "not implemented".to_owned() }).collect();
    let source = config_iri(workspace, "agent-pattern", None);
    offered(settings, DecisionKind::Pattern, callable(settings), excluded, source)
}

/// The patterns that a caller may name: those that are defined and implemented. A workspace that says nothing about
/// patterns leaves the caller all of them, as the original does.
pub fn callable(settings: &Settings) -> Vec<PatternName> {
    if settings.patterns.is_empty() {
        return implemented().map(Into::into).collect();
    }
    let defined: Vec<_> = settings.patterns.keys().filter(|name| is_implemented(name)).cloned().collect();
    if defined.is_empty() { vec![REACT.into()] } else { defined }
}

/// The patterns that the task type allows and that can run, in the task type's order: the first is the fallback.
pub(super) fn valid_patterns(
    settings: &Settings,
    workspace: &Workspace,
    task_type: &TaskTypeName,
    most_subagents: &dyn Fn(&PatternName) -> u32,
) -> ValidPatterns {
    let item = settings.task_types.get(task_type);
    let (mut options, mut excluded) = split(settings, item, most_subagents);
    let stand_in = options.is_empty();
    if stand_in {
        options.push(REACT.into());
        excluded.retain(|option| option.name != REACT);
    }
    let says_which = item.is_some_and(|item| item.valid_patterns.is_some());
    let source = if says_which && !stand_in {
        config_iri(workspace, "agent-task-type", Some(task_type))
    } else {
        config_iri(workspace, "agent-pattern", None)
    };
    // Without any word on patterns `react` is simply what there is.
    let stand_in = stand_in && (says_which || !settings.patterns.is_empty());
    ValidPatterns { offered: offered(settings, DecisionKind::Pattern, options, excluded, source), stand_in }
}

/// The task type's valid patterns that can run, and every other pattern with the reason why not.
fn split(
    settings: &Settings,
    item: Option<&TaskTypeItem>,
    most_subagents: &dyn Fn(&PatternName) -> u32,
) -> (Vec<PatternName>, Vec<Excluded>) {
    let defined: Vec<_> = settings.patterns.keys().cloned().collect();
    let valid = item.and_then(|item| item.valid_patterns.clone()).unwrap_or_else(|| defined.clone());
    let mut all = valid.clone();
    all.extend(defined.iter().filter(|name| !valid.contains(name)).cloned());
    let (mut options, mut excluded) = (Vec::new(), Vec::new());
    let mut met = Vec::new();
    for name in all {
        if met.contains(&name) {
            continue;
        }
        met.push(name.clone());
        let reason = if !valid.contains(&name) {
            Some("not a valid pattern of this task type".to_owned())
        } else if !(defined.contains(&name) || defined.is_empty() && name == REACT) {
            Some("not defined in the configuration".to_owned())
        } else {
            obstacle(&name, settings, most_subagents(&name))
        };
        match reason {
            None => options.push(name),
            Some(reason) => excluded.push(Excluded { name: name.into(), reason }),
        }
    }
    (options, excluded)
}

fn offered(
    settings: &Settings,
    kind: DecisionKind,
    options: Vec<impl Into<String>>,
    excluded: Vec<Excluded>,
    source: String,
) -> Decision {
    let options = options.into_iter().map(Into::into).collect();
    Decision { excluded, ..Decision::offered(kind, options, source, settings.version) }
}
