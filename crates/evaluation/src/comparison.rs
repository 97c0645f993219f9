//! A report beside an earlier one: what is better, what is worse, and which items turned.

use crate::report::{Report, Row};
use crate::trial::Trial;
use std::collections::BTreeMap;

/// What has changed since a baseline.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// Rows that are in both reports: before and now.
    pub rows: Vec<(Row, Row)>,
    /// Items that are right now and were not, or the other way round, in rows that are in both.
    pub changed: Vec<ChangedItem>,
    /// Rows of only one of the reports, in words.
    pub unmatched: Vec<String>,
}

/// An item whose verdict turned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedItem {
    pub model: String,
    pub pattern: String,
    pub item: String,
    pub change: Change,
}

/// With repetitions, an item is right if more than half of them are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    NowWrong,
    NowRight,
}

impl Comparison {
    pub(crate) fn new(now: &Report, before: &Report) -> Self {
        let same = |one: &Row, other: &Row| one.model == other.model && one.pattern == other.pattern;
        let mut comparison = Self { rows: Vec::new(), changed: Vec::new(), unmatched: Vec::new() };
        for row in &now.rows {
            let Some(old) = before.rows.iter().find(|old| same(old, row)) else {
                comparison.unmatched.push(format!("{} / {}: not in the baseline", row.model, row.pattern));
                continue;
            };
            comparison.rows.push((old.clone(), row.clone()));
            let (then, today) = (verdicts(before.trials_of(old)), verdicts(now.trials_of(row)));
            let turned = |(item, right): (&str, bool)| {
                let change = if right { Change::NowRight } else { Change::NowWrong };
                let (model, pattern, item) = (row.model.clone(), row.pattern.clone(), item.to_owned());
                (*then.get(item.as_str())? != right).then_some(ChangedItem { model, pattern, item, change })
            };
            comparison.changed.extend(today.into_iter().filter_map(turned));
        }
        for old in before.rows.iter().filter(|old| !now.rows.iter().any(|row| same(old, row))) {
            comparison.unmatched.push(format!("{} / {}: only in the baseline", old.model, old.pattern));
        }
        comparison
    }

    /// Whether any item that was right is wrong now.
    pub fn has_regressions(&self) -> bool {
        self.changed.iter().any(|item| item.change == Change::NowWrong)
    }
}

/// Whether each item is right; items that nothing of was judged are left out.
fn verdicts<'r>(trials: impl Iterator<Item = &'r Trial>) -> BTreeMap<&'r str, bool> {
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for (trial, right) in trials.filter_map(|trial| Some((trial, trial.is_right()?))) {
        let (count, of) = counts.entry(&trial.item).or_default();
        *count += usize::from(right);
        *of += 1;
    }
    counts.into_iter().map(|(item, (count, of))| (item, count * 2 > of)).collect()
}
