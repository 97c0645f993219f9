//! What a suite showed: a row for each model and pattern, and every trial behind them.

use crate::comparison::Comparison;
use crate::regret::{Regret, regret};
use crate::statistics::{Interval, Share, float_of, mean, percentile};
use crate::trial::Trial;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The results of one evaluation. As JSON it is also the baseline of later ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Counts up whenever older reports cannot be read any more.
    pub version: u32,
    pub suite: String,
    /// The answers are those of recorded replies; no model was asked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replayed: bool,
    pub rows: Vec<Row>,
    pub trials: Vec<Trial>,
}

/// All trials with one model under one pattern. What is none was not judged in any of them. All figures are about the trials
/// that are covered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    pub model: String,
    pub pattern: String,
    pub trials: u64,
    /// Trials that the recording could not answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_covered: Vec<String>,
    /// Of trials with a check: right answers.
    pub right: Option<Share>,
    pub task_type_right: Option<Share>,
    pub pattern_right: Option<Share>,
    pub within_budget: Option<Share>,
    /// Of the trials that were to be answered: those without an answer.
    pub unanswered: Option<Share>,
    pub tokens_mean: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_interval: Option<Interval>,
    /// What the models cost, in millionths of the currency that prices are set in. None unless it is known of all trials.
    pub cost_micros_mean: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micros_interval: Option<Interval>,
    /// Calls to models.
    pub calls_mean: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls_interval: Option<Interval>,
    pub ms_p50: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ms_p50_interval: Option<Interval>,
    pub ms_p95: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ms_p95_interval: Option<Interval>,
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
        Self { version: Self::VERSION, suite: suite.into(), replayed: false, rows, trials }
    }

    /// The same report, of answers that recorded replies gave.
    #[must_use]
    pub fn from_recording(self) -> Self {
        Self { replayed: true, ..self }
    }

    /// Whether there was anything to ask, and the recording had no reply to any of it.
    pub fn covers_nothing(&self) -> bool {
        !self.trials.is_empty() && self.trials.iter().all(|trial| trial.not_covered.is_some())
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
    fn new(asked: &[&Trial], all: &[Trial]) -> Self {
        let (missed, trials): (Vec<&Trial>, Vec<&Trial>) = asked.iter().partition(|trial| trial.not_covered.is_some());
        let outcomes = || trials.iter().map(|trial| &trial.outcome);
        let known = |judged: fn(&Trial) -> Option<bool>| Share::of_known(trials.iter().map(|trial| judged(trial)));
        let sum = |count: fn(&crate::Outcome) -> u64| outcomes().map(count).sum::<u64>();
        let ms: Vec<u64> = outcomes().filter_map(|outcome| outcome.ms).collect();
        let tokens: Vec<u64> = outcomes().filter_map(crate::Outcome::tokens).collect();
        let asking = outcomes().filter(|outcome| outcome.model_calls > 0);
        // A mean of some of them would look like one of all.
        let costs: Option<Vec<u64>> = asking.map(|outcome| outcome.cost_micros).collect();
        let costs = costs.unwrap_or_default();
        let calls: Vec<u64> = outcomes().map(|outcome| outcome.model_calls).collect();
        // Nothing takes less than nothing.
        let of_mean = |values: &[u64]| {
            let values: Vec<_> = values.iter().copied().map(float_of).collect();
            Interval::of_mean(&values).map(|interval| Interval { low: interval.low.max(0.0), ..interval })
        };
        let first = asked.first().map(|trial| trial.key.clone()).unwrap_or_default();
        let replies = sum(|outcome| outcome.replies);
        Self {
            model: first.model,
            pattern: first.pattern,
            trials: asked.len() as u64,
            not_covered: missed.iter().map(|trial| trial.label()).collect(),
            right: known(|trial| trial.right),
            task_type_right: known(|trial| trial.task_type_right),
            pattern_right: known(|trial| trial.pattern_right),
            within_budget: known(|trial| trial.within_budget),
            unanswered: known(unanswered),
            tokens_mean: mean(tokens.iter().copied()),
            tokens_interval: of_mean(&tokens),
            cost_micros_mean: mean(costs.iter().copied()),
            cost_micros_interval: of_mean(&costs),
            calls_mean: mean(calls.iter().copied()),
            calls_interval: of_mean(&calls),
            ms_p50: percentile(&ms, 50),
            ms_p50_interval: Interval::of_percentile(&ms, 50),
            ms_p95: percentile(&ms, 95),
            ms_p95_interval: Interval::of_percentile(&ms, 95),
            unreadable: Share::new(sum(|outcome| outcome.unreadable_replies), replies),
            repaired: Share::new(sum(|outcome| outcome.repaired_replies), replies),
            fallback: known(fell_back),
            enforced: Share::new(sum(|outcome| outcome.enforced_decisions), sum(|outcome| outcome.decisions)),
            echo: known(|trial| trial.echo),
            injected: known(|trial| trial.injected),
            regret: regret(&trials, all),
        }
    }
}

/// None if nobody waited for an answer: only the router's choice was wanted.
fn unanswered(trial: &Trial) -> Option<bool> {
    let outcome = &trial.outcome;
    (outcome.ended.is_some() || outcome.answer.is_some() || outcome.error.is_some()).then_some(outcome.answer.is_none())
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
