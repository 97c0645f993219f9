//! What routing costs against the best pattern in hindsight.

use crate::statistics::{Interval, float, float_of, mean};
use crate::trial::{Trial, TrialKey};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The router's trials against the cheapest pattern that answers the same item right.
///
/// Needs the same items under `auto` and under patterns by name, with the same model. Cost is tokens; those of the routing
/// itself count, since nobody gets the choice without them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Regret {
    /// Trials of items that some pattern answers right more often than not.
    pub compared: u64,
    /// Those that were wrong under the router.
    pub missed: u64,
    /// By how many tokens the others exceed the cheapest right pattern, in the mean; less than zero if they are cheaper.
    /// None if there are none, or no provider reported tokens.
    pub extra_tokens: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra_interval: Option<Interval>,
}

/// None if there is nothing to compare with. Whether the choice was the labelled one does not matter in hindsight, only
/// whether the answer is right.
pub(crate) fn regret(routed: &[&Trial], all: &[Trial]) -> Option<Regret> {
    let (mut compared, mut missed, mut extra) = (0, 0, Vec::new());
    for trial in routed.iter().filter(|trial| trial.key.pattern == TrialKey::AUTO) {
        let (Some(right), costs) = (trial.right, costs_of_right_patterns(trial, all)) else { continue };
        if costs.is_empty() {
            continue;
        }
        compared += 1;
        missed += u64::from(!right);
        let best = costs.into_iter().flatten().reduce(f64::min);
        if let (true, Some(cost), Some(best)) = (right, trial.outcome.tokens(), best) {
            extra.push(float_of(cost) - best);
        }
    }
    let extra_tokens = (!extra.is_empty()).then(|| extra.iter().sum::<f64>() / float(extra.len()));
    let extra_interval = Interval::of_mean(&extra);
    (compared > 0).then_some(Regret { compared, missed, extra_tokens, extra_interval })
}

/// What each pattern that answers the item right takes in the mean; none where that is not known.
fn costs_of_right_patterns(routed: &Trial, all: &[Trial]) -> Vec<Option<f64>> {
    let mut by_pattern: BTreeMap<&str, Vec<&Trial>> = BTreeMap::new();
    let same = |trial: &&Trial| trial.item == routed.item && trial.key.model == routed.key.model;
    let named = |trial: &&Trial| trial.key.pattern != TrialKey::AUTO && trial.not_covered.is_none();
    for trial in all.iter().filter(same).filter(named) {
        by_pattern.entry(&trial.key.pattern).or_default().push(trial);
    }
    let is_right =
        |trials: &Vec<&Trial>| trials.iter().filter(|trial| trial.right == Some(true)).count() * 2 > trials.len();
    let cost = |trials: Vec<&Trial>| mean(trials.iter().filter_map(|trial| trial.outcome.tokens()));
    by_pattern.into_values().filter(is_right).map(cost).collect()
}
