//! Budgets: what a run may spend on models and agents.

use serde::{Deserialize, Serialize};

/// So much may be spent, or is left, or was spent.
///
/// ```
/// use trellis_domain::budget::Budget;
///
/// let all = Budget { model_calls: 10, tokens: 1_000, cost_micros: 50, agents: 4 };
/// let spent = Budget { model_calls: 4, tokens: 1_200, ..Budget::default() };
/// assert_eq!(all.without(&spent), Budget { model_calls: 6, tokens: 0, ..all });
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Budget {
    pub model_calls: u32,
    /// Read and written, as far as providers report them.
    pub tokens: u64,
    /// By the operator's prices, in millionths of their currency.
    pub cost_micros: u64,
    /// Sessions of the run, the first one among them.
    pub agents: u32,
}

impl Budget {
    /// What is left without some of it; nothing where that is more.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        Self {
            model_calls: self.model_calls.saturating_sub(other.model_calls),
            tokens: self.tokens.saturating_sub(other.tokens),
            cost_micros: self.cost_micros.saturating_sub(other.cost_micros),
            agents: self.agents.saturating_sub(other.agents),
        }
    }

    /// Both together.
    #[must_use]
    pub fn with(&self, other: &Self) -> Self {
        Self {
            model_calls: self.model_calls.saturating_add(other.model_calls),
            tokens: self.tokens.saturating_add(other.tokens),
            cost_micros: self.cost_micros.saturating_add(other.cost_micros),
            agents: self.agents.saturating_add(other.agents),
        }
    }

    /// As much for each of so many.
    #[must_use]
    pub fn times(&self, count: u32) -> Self {
        Self {
            model_calls: self.model_calls.saturating_mul(count),
            tokens: self.tokens.saturating_mul(count.into()),
            cost_micros: self.cost_micros.saturating_mul(count.into()),
            agents: self.agents.saturating_mul(count),
        }
    }

    /// An equal part for each of so many.
    #[must_use]
    pub fn shared_by(&self, count: u32) -> Self {
        let count = count.max(1);
        Self {
            model_calls: self.model_calls / count,
            tokens: self.tokens / u64::from(count),
            cost_micros: self.cost_micros / u64::from(count),
            agents: self.agents / count,
        }
    }
}
