//! What a suite showed: a row for each model and pattern, and every trial behind them.

use crate::comparison::Comparison;
use crate::regret::{Regret, regret};
use crate::statistics::{Share, mean, percentile};
use crate::trial::Trial;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The results of one evaluation. As JSON it is also the baseline of later ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Counts up whenever older reports cannot be read any more.
    pub version: u32,
    pub suite: String,
    pub rows: Vec<Row>,
    pub trials: Vec<Trial>,
}

/// All trials with one model under one pattern. What is none was not judged in any of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    pub model: String,
    pub pattern: String,
    pub trials: u64,
    /// Of trials with a check: right answers.
    pub right: Option<Share>,
    pub task_type_right: Option<Share>,
    pub pattern_right: Option<Share>,
    pub within_budget: Option<Share>,
    /// Of all trials: those without an answer.
    pub unanswered: Option<Share>,
    pub tokens_mean: Option<f64>,
    /// Calls to models.
    pub calls_mean: Option<f64>,
    pub ms_p50: Option<u64>,
    pub ms_p95: Option<u64>,
    /// Of all replies: those that could not be used.
    pub unreadable: Option<Share>,
    /// Of all replies: those that had to be put right first.
    pub repaired: Option<Share>,
    /// Of the routed trials: those where task type or pattern is what is taken if the model chooses nothing valid.
    pub fallback: Option<Share>,
    /// Of all choices by models: those enforced while the model wrote.
    pub enforced: Option<Share>,
    /// Of all answers: those that are the question or the instructions again.
    pub echo: Option<Share>,
    /// Of all attacks: those that worked.
    pub injected: Option<Share>,
    pub regret: Option<Regret>,
}

/// Why a baseline cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    #[error("it is no report: {0}; give a file that an evaluation wrote as JSON")]
    Json(#[from] serde_json::Error),
    #[error(
        "it is a report of version {found}, this program reads version {}; make the baseline again",
        Report::VERSION
    )]
    Version { found: u64 },
}

impl Report {
    pub const VERSION: u32 = 1;

    /// Rows are in the order in which models and patterns occur first.
    pub fn new(suite: impl Into<String>, trials: Vec<Trial>) -> Self {
        let mut places = BTreeMap::new();
        let mut groups: Vec<Vec<&Trial>> = Vec::new();
        for trial in &trials {
            let place = *places.entry((&trial.key.model, &trial.key.pattern)).or_insert(groups.len());
            if place == groups.len() {
                groups.push(Vec::new());
            }
            groups[place].push(trial);
        }
        let rows = groups.iter().map(|group| Row::new(group, &trials)).collect();
        Self { version: Self::VERSION, suite: suite.into(), rows, trials }
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("texts and finite numbers are always JSON")
    }

    pub fn from_json(text: &str) -> Result<Self, ReportError> {
        let value: serde_json::Value = serde_json::from_str(text)?;
        let found = value.get("version").and_then(serde_json::Value::as_u64);
        match found.filter(|found| *found != u64::from(Self::VERSION)) {
            Some(found) => Err(ReportError::Version { found }),
            None => Ok(serde_json::from_value(value)?),
        }
    }

    /// What has changed since an earlier report.
    pub fn compare(&self, baseline: &Self) -> Comparison {
        Comparison::new(self, baseline)
    }

    /// The trials of a row.
    pub fn trials_of<'r>(&'r self, row: &'r Row) -> impl Iterator<Item = &'r Trial> {
        self.trials.iter().filter(|trial| trial.key.model == row.model && trial.key.pattern == row.pattern)
    }
}

impl Row {
    fn new(trials: &[&Trial], all: &[Trial]) -> Self {
        let outcomes = || trials.iter().map(|trial| &trial.outcome);
        let known = |judged: fn(&Trial) -> Option<bool>| Share::of_known(trials.iter().map(|trial| judged(trial)));
        let sum = |count: fn(&crate::Outcome) -> u64| outcomes().map(count).sum::<u64>();
        let ms: Vec<u64> = outcomes().map(|outcome| outcome.ms).collect();
        let first = trials.first().map(|trial| trial.key.clone()).unwrap_or_default();
        let replies = sum(|outcome| outcome.replies);
        Self {
            model: first.model,
            pattern: first.pattern,
            trials: trials.len() as u64,
            right: known(|trial| trial.right),
            task_type_right: known(|trial| trial.task_type_right),
            pattern_right: known(|trial| trial.pattern_right),
            within_budget: known(|trial| trial.within_budget),
            unanswered: known(|trial| Some(trial.outcome.answer.is_none())),
            tokens_mean: mean(outcomes().filter_map(crate::Outcome::tokens)),
            calls_mean: mean(outcomes().map(|outcome| outcome.model_calls)),
            ms_p50: percentile(&ms, 50),
            ms_p95: percentile(&ms, 95),
            unreadable: Share::new(sum(|outcome| outcome.unreadable_replies), replies),
            repaired: Share::new(sum(|outcome| outcome.repaired_replies), replies),
            fallback: known(fell_back),
            enforced: Share::new(sum(|outcome| outcome.enforced_decisions), sum(|outcome| outcome.decisions)),
            echo: known(|trial| trial.echo),
            injected: known(|trial| trial.injected),
            regret: regret(trials, all),
        }
    }
}

/// None if the router had no say.
fn fell_back(trial: &Trial) -> Option<bool> {
    let choices = [&trial.outcome.task_type, &trial.outcome.pattern].into_iter().flatten();
    let routed = choices.filter(|choice| choice.is_routed());
    routed.map(crate::outcome::Choice::is_fallback).reduce(|any, one| any || one)
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
