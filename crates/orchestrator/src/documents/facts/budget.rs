//! What facts may cost. A passage is a call of the operator's model, and a document may have tens of thousands of them:
//! whoever may load a document could else spend as much as they like.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use trellis_domain::{Timestamp, Workspace};

const MICROS_OF_A_DAY: i64 = 24 * 60 * 60 * 1_000_000;

/// Calls of a model, and tokens that these may take. Tokens are known when a reply is there, so those of calls in flight
/// come on top.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FactsBudget {
    pub calls: u64,
    pub tokens: u64,
}

/// The operator's budgets for facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FactsBudgets {
    /// Of one load of one document.
    pub of_load: FactsBudget,
    /// Of a workspace in a day of UTC.
    pub of_day: FactsBudget,
}

impl Default for FactsBudgets {
    fn default() -> Self {
        Self {
            of_load: FactsBudget { calls: 5_000, tokens: 10_000_000 },
            of_day: FactsBudget { calls: 20_000, tokens: 40_000_000 },
        }
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Spent {
    calls: u64,
    tokens: u64,
}

impl Spent {
    fn exceeds(self, budget: FactsBudget) -> bool {
        self.calls >= budget.calls || self.tokens >= budget.tokens
    }

    fn add(&mut self, calls: u64, tokens: u64) {
        self.calls = self.calls.saturating_add(calls);
        self.tokens = self.tokens.saturating_add(tokens);
    }
}

/// What workspaces have spent today. It is counted while the process lives, and shared by clones.
#[derive(Debug, Clone, Default)]
pub struct FactsSpending(Arc<Mutex<Today>>);

#[derive(Debug, Default)]
struct Today {
    day: i64,
    workspaces: HashMap<Workspace, Spent>,
}

/// What one load may spend.
#[derive(Debug)]
pub(super) struct LoadSpending {
    budgets: FactsBudgets,
    workspace: Workspace,
    own: Mutex<Spent>,
    today: FactsSpending,
}

/// Which budget is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UsedUp {
    OfLoad,
    OfDay,
}

impl LoadSpending {
    pub(super) fn new(budgets: FactsBudgets, workspace: &Workspace, today: &FactsSpending) -> Self {
        Self { budgets, workspace: workspace.clone(), own: Mutex::default(), today: today.clone() }
    }

    /// Counts a call that is about to be made, if there is room for it.
    pub(super) fn begin_call(&self, now: Timestamp) -> Result<(), UsedUp> {
        let (mut own, mut today) = (self.own.lock(), self.today.0.lock());
        if own.exceeds(self.budgets.of_load) {
            return Err(UsedUp::OfLoad);
        }
        let of_workspace = today.of(&self.workspace, now);
        if of_workspace.exceeds(self.budgets.of_day) {
            return Err(UsedUp::OfDay);
        }
        own.add(1, 0);
        of_workspace.add(1, 0);
        Ok(())
    }

    /// Counts what a call took: how often it was made again, and its tokens.
    pub(super) fn settle(&self, again: u64, tokens: u64, now: Timestamp) {
        let (mut own, mut today) = (self.own.lock(), self.today.0.lock());
        own.add(again, tokens);
        today.of(&self.workspace, now).add(again, tokens);
    }
}

impl Today {
    fn of(&mut self, workspace: &Workspace, now: Timestamp) -> &mut Spent {
        let day = now.as_micros().div_euclid(MICROS_OF_A_DAY);
        if day != self.day {
            *self = Self { day, workspaces: HashMap::new() };
        }
        self.workspaces.entry(workspace.clone()).or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(day: i64) -> Timestamp {
        Timestamp::from_micros(day * MICROS_OF_A_DAY + 1)
    }

    #[test]
    fn a_load_and_a_workspace_end_where_their_budgets_do() {
        let budget = |calls, tokens| FactsBudget { calls, tokens };
        let budgets = FactsBudgets { of_load: budget(2, 100), of_day: budget(3, 1_000) };
        let (mine, other) = (Workspace::default(), Workspace::new("other").unwrap());
        let today = FactsSpending::default();
        let load = |workspace: &Workspace| LoadSpending::new(budgets, workspace, &today);
        let first = load(&mine);
        assert_eq!([first.begin_call(at(1)), first.begin_call(at(1))], [Ok(()), Ok(())]);
        assert_eq!(first.begin_call(at(1)), Err(UsedUp::OfLoad));
        let second = load(&mine);
        assert_eq!(second.begin_call(at(1)), Ok(()));
        assert_eq!(second.begin_call(at(1)), Err(UsedUp::OfDay), "three calls of a day");
        assert_eq!(load(&other).begin_call(at(1)), Ok(()), "another workspace has its own");
        assert_eq!(second.begin_call(at(2)), Ok(()), "and another day");
        second.settle(0, 100, at(2));
        assert_eq!(load(&mine).begin_call(at(2)), Ok(()));
        assert_eq!(second.begin_call(at(2)), Err(UsedUp::OfLoad), "tokens count as well");
        let third = load(&other);
        third.settle(2, 0, at(3));
        assert_eq!(third.begin_call(at(3)), Err(UsedUp::OfLoad), "and attempts that brought nothing");
    }
}
