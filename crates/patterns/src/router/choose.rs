//! Who chooses out of a set, and what is chosen.

use super::options::{self, ValidPatterns};
use super::{GENERAL, OperatorLimits, Wishes, limits_for};
use crate::known::REACT;
use trellis_domain::config::Settings;
use trellis_domain::decision::{DecidedBy, Decision, Enforcement};
use trellis_domain::document::Document;
use trellis_domain::record::Replied;
use trellis_domain::{PatternName, TaskTypeName, Workspace};

/// Where a choice stands before any model is asked.
pub(super) enum Choice {
    Made(Decision),
    /// Several options and nobody who chose: a model is asked.
    Open {
        offered: Decision,
        fallback: String,
    },
}

/// The caller's task type, or the only one; the usual one for callers who bypass routing.
pub(super) fn task_type(offered: Decision, wishes: Wishes<'_>) -> Choice {
    let usual = usual(&offered, Some(GENERAL));
    if let Some(wish) = wishes.task_type {
        return Choice::Made(by_caller(offered, wish, &usual));
    }
    settle(offered, usual, wishes.bypass_routing())
}

/// The caller's pattern, or the only one that the task type allows; `react` for callers who are in the middle of
/// something.
pub(super) fn pattern(
    settings: &Settings,
    workspace: &Workspace,
    wishes: Wishes<'_>,
    task_type: &TaskTypeName,
    operator: &OperatorLimits,
) -> Choice {
    let most_subagents = |name: &PatternName| {
        let limits = limits_for(settings, task_type, name, wishes.limits, operator);
        limits.max_siblings.max(1).min(limits.max_agents.saturating_sub(1))
    };
    let valid = options::valid_patterns(settings, workspace, task_type, &most_subagents);
    if let Some(wish) = wishes.pattern {
        let offered = options::callers_patterns(settings, workspace);
        let usual = usual(&offered, Some(REACT));
        let made = by_caller(offered, wish, &usual);
        let signals = insistence(&valid.offered, task_type, &chosen(&made).into()).into_iter().collect();
        return Choice::Made(Decision { signals, ..made });
    }
    let ValidPatterns { offered, stand_in } = valid;
    if stand_in {
        return Choice::Made(made(offered, REACT, DecidedBy::Fallback));
    }
    let usual = usual(&offered, wishes.brings_history.then_some(REACT));
    settle(offered, usual, wishes.brings_history)
}

/// A caller may choose what the task type would not. That stays on record.
fn insistence(valid: &Decision, task_type: &TaskTypeName, pattern: &PatternName) -> Option<String> {
    let ruled_out = valid.excluded.iter().find(|option| *pattern == option.name.as_str())?;
    Some(format!("the caller insisted: for `{task_type}` it is {}", ruled_out.reason))
}

fn settle(offered: Decision, usual: String, by_rule: bool) -> Choice {
    if offered.options.len() == 1 {
        return Choice::Made(made(offered, &usual, DecidedBy::OnlyOption));
    }
    if by_rule {
        return Choice::Made(made(offered, &usual, DecidedBy::Rule));
    }
    Choice::Open { offered, fallback: usual }
}

/// What the model's reply chooses, else the fallback. What an earlier reply named in vain stays on record.
pub(super) fn by_model(offered: Decision, fallback: &str, first: &Replied, replied: &Replied) -> Decision {
    let read = |replied: &Replied| replied.decision.first().cloned();
    let rejected = [replied, first].into_iter().find_map(|replied| read(replied)?.rejected);
    let enforcement = read(replied).map_or(Enforcement::Validated, |read| read.enforcement);
    let offered = Decision { rejected, ..offered };
    match named(replied).filter(|name| offered.options.iter().any(|option| option == name)) {
        Some(name) => {
            let (signals, rationale) = read(replied).map(|read| (read.signals, read.rationale)).unwrap_or_default();
            Decision { signals, rationale, enforcement, ..made(offered, name, DecidedBy::Model) }
        }
        None => Decision { enforcement, ..made(offered, fallback, DecidedBy::Fallback) },
    }
}

/// What the model chose out of this set, as it was read.
pub(super) fn chosen_by_model(offered: Decision, name: &str, read: &Decision) -> Decision {
    let (signals, rationale, enforcement) = (read.signals.clone(), read.rationale.clone(), read.enforcement);
    Decision { signals, rationale, enforcement, ..made(offered, name, DecidedBy::Model) }
}

fn named(replied: &Replied) -> Option<&str> {
    replied.reading.decision()
}

/// What the caller named, or the usual option if there is nothing of that name.
fn by_caller(offered: Decision, wish: &str, usual: &str) -> Decision {
    if offered.options.iter().any(|option| option == wish) {
        return made(offered, wish, DecidedBy::Caller);
    }
    Decision { rejected: Document::stored(wish), ..made(offered, usual, DecidedBy::Fallback) }
}

/// The name that everything falls back to if there is one and it is an option, else the first.
fn usual(offered: &Decision, name: Option<&str>) -> String {
    let found = offered.options.iter().find(|option| Some(option.as_str()) == name).or(offered.options.first());
    found.cloned().expect("a set that is offered has at least one option")
}

fn made(offered: Decision, name: &str, decided_by: DecidedBy) -> Decision {
    Decision { chosen: vec![name.to_owned()], decided_by, enforcement: Enforcement::None, ..offered }
}

/// The one name that was chosen.
pub(super) fn chosen(decision: &Decision) -> String {
    decision.chosen.first().cloned().expect("every choice that is made names an option")
}
