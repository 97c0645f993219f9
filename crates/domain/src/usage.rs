//! What model and tool calls cost.

use crate::budget::Budget;
use serde::{Deserialize, Serialize};

/// Sums over calls. Token counts stay absent until a provider reports some: missing is not zero.
///
/// ```
/// use trellis_domain::usage::Usage;
///
/// let mut total = Usage::default();
/// total.add(&Usage { in_token: Some(3), model_calls: 1, ..Usage::default() });
/// total.add(&Usage { model_calls: 1, ..Usage::default() });
/// assert_eq!((total.in_token, total.out_token, total.model_calls), (Some(3), None, 2));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_token: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_token: Option<u64>,
    /// The model seen last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default)]
    pub model_ms: u64,
    #[serde(default)]
    pub tool_ms: u64,
    #[serde(default)]
    pub model_calls: u32,
    #[serde(default)]
    pub tool_calls: u32,
    #[serde(default, skip_serializing_if = "TokenDetails::is_nothing")]
    pub details: TokenDetails,
    /// Sessions below; not counted before there were budgets.
    #[serde(default, skip_serializing_if = "is_none")]
    pub agents: u32,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_none(count: &u32) -> bool {
    *count == 0
}

/// Tokens that are counted or paid apart from the others, and what all of them cost. They are parts of the counts of
/// input and output, and each stays absent until somebody reports it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenDetails {
    /// Input that the provider had read before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<u64>,
    /// Input that the provider keeps for the next time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_written: Option<u64>,
    /// Output that was thought and not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audio: Option<u64>,
    /// What it cost by the operator's prices, in millionths of their currency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<u64>,
}

impl TokenDetails {
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    pub fn add(&mut self, other: &Self) {
        self.cached = sum(self.cached, other.cached);
        self.cache_written = sum(self.cache_written, other.cache_written);
        self.reasoning = sum(self.reasoning, other.reasoning);
        self.audio = sum(self.audio, other.audio);
        self.cost_micros = sum(self.cost_micros, other.cost_micros);
    }
}

/// Missing is not zero.
fn sum(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (None, None) => None,
        (a, b) => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
    }
}

impl Usage {
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// What it takes of a budget.
    pub fn spent(&self) -> Budget {
        Budget {
            model_calls: self.model_calls,
            tokens: self.in_token.unwrap_or(0).saturating_add(self.out_token.unwrap_or(0)),
            cost_micros: self.details.cost_micros.unwrap_or(0),
            agents: self.agents,
        }
    }

    pub fn add(&mut self, other: &Self) {
        self.in_token = sum(self.in_token, other.in_token);
        self.out_token = sum(self.out_token, other.out_token);
        if other.model.is_some() {
            self.model.clone_from(&other.model);
        }
        self.model_ms += other.model_ms;
        self.tool_ms += other.tool_ms;
        self.model_calls += other.model_calls;
        self.tool_calls += other.tool_calls;
        self.details.add(&other.details);
        self.agents = self.agents.saturating_add(other.agents);
    }
}
