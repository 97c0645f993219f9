//! Limits: every one ends in a recorded answer or a clear end, never in silence.

use crate::budget::Budget;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, LazyLock};

macro_rules! limits {
    ($($(#[$doc:meta])* $field:ident: $type:ty = $default:expr, at most $most:expr;)*) => {
        /// The limits in force for one session.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default, rename_all = "kebab-case")]
        pub struct Limits { $($(#[$doc])* pub $field: $type),* }

        impl Default for Limits {
            fn default() -> Self {
                Self { $($field: $default),* }
            }
        }

        /// Some limits, set by one source (a task type, a pattern, a request).
        #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
        pub struct SomeLimits {
            $(#[serde(skip_serializing_if = "Option::is_none")] pub $field: Option<$type>),*
        }

        impl SomeLimits {
            /// How far requests, task types and patterns may go unless the operator says otherwise.
            ///
            /// ```
            /// use trellis_domain::limits::{Limits, SomeLimits};
            ///
            /// let request = SomeLimits { max_siblings: Some(600), ..SomeLimits::default() };
            /// assert_eq!(Limits::default().refined(&request, &SomeLimits::built_in_maximum()).max_siblings, 32);
            /// ```
            pub fn built_in_maximum() -> Self {
                Self { $($field: Some($most)),* }
            }

            /// These limits, and those of another source where these say nothing.
            #[must_use]
            pub fn or(self, other: Self) -> Self {
                Self { $($field: self.$field.or(other.$field)),* }
            }

            /// The larger of both, where both say something; what only one says stands alone.
            #[must_use]
            pub fn at_least(self, other: Self) -> Self {
                Self { $($field: self.$field.max(other.$field)),* }
            }

            /// The first limit that is 0 although nothing could be done then.
            ///
            /// ```
            /// use trellis_domain::limits::SomeLimits;
            ///
            /// let limits = SomeLimits { max_replans: Some(0), max_rounds: Some(0), ..SomeLimits::default() };
            /// assert_eq!(limits.wrongly_zero().as_deref(), Some("max-rounds"));
            /// ```
            pub fn wrongly_zero(&self) -> Option<String> {
                let zero = [$((stringify!($field), self.$field == Some(0))),*];
                let wrong = zero.into_iter().find(|(name, zero)| *zero && !MAY_BE_ZERO.contains(name));
                wrong.map(|(name, _)| name.replace('_', "-"))
            }
        }

        impl Limits {
            /// These limits with those of a more specific source on top, never above the maximum.
            #[must_use]
            pub fn refined(&self, by: &SomeLimits, maximum: &SomeLimits) -> Self {
                Self {
                    $($field: {
                        let value = by.$field.unwrap_or(self.$field);
                        maximum.$field.map_or(value, |most| value.min(most))
                    }),*
                }
            }
        }
    };
}

const HOUR_MS: u64 = 3_600_000;

/// None of these is a sensible wish.
const MAY_BE_ZERO: [&str; 2] = ["max_replans", "max_depth"];

const CONVERSATION_BYTES: u64 = 256 << 10;

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_usual_conversation(bytes: &u64) -> bool {
    *bytes == CONVERSATION_BYTES
}

const MODEL_CALLS: u32 = 200;
const TOKENS: u64 = 2_000_000;
const COST_MICROS: u64 = 10_000_000;
const AGENTS: u32 = 64;

fn is_usual<T: Copy + Into<u64>, const N: u64>(value: &T) -> bool {
    (*value).into() == N
}

limits! {
    /// Iterations of a ReAct session.
    max_iterations: u32 = 10, at most 100;
    /// Steps of a plan.
    max_plan_steps: u32 = 50, at most 200;
    /// Revisions of a plan.
    max_replans: u32 = 2, at most 6;
    /// Plan steps running at once.
    steps_at_once: u32 = 8, at most 32;
    /// Rounds of a supervisor.
    max_rounds: u32 = 3, at most 10;
    /// Subagents below subagents.
    max_depth: u32 = 3, at most 4;
    /// Siblings of one fan-out.
    max_siblings: u32 = 8, at most 32;
    fan_in_timeout_ms: u64 = 300_000, at most HOUR_MS;
    model_timeout_ms: u64 = 1_800_000, at most HOUR_MS;
    tool_timeout_ms: u64 = 120_000, at most HOUR_MS;
    run_timeout_ms: u64 = HOUR_MS, at most 24 * HOUR_MS;
    max_question_bytes: u64 = 1 << 20, at most 4 << 20;
    max_reply_bytes: u64 = 1 << 20, at most 4 << 20;
    /// How much of an observation the model is shown; all of it is recorded.
    shown_observation_bytes: u64 = 64 << 10, at most 1 << 20;
    /// How much of the steps before a model is shown in all; older ones are shortened. Records from before it was known
    /// say nothing of it, and neither do those of runs that leave it as it is.
    #[serde(skip_serializing_if = "is_usual_conversation")]
    conversation_bytes: u64 = CONVERSATION_BYTES, at most 4 << 20;
    /// Calls of models in the run, also those that tools make. This and the three below are the run's budgets: subagents
    /// get their share of them.
    #[serde(skip_serializing_if = "is_usual::<_, { MODEL_CALLS as u64 }>")]
    max_model_calls: u32 = MODEL_CALLS, at most 2_000;
    /// Tokens that models read and write, as far as their providers tell.
    #[serde(skip_serializing_if = "is_usual::<_, TOKENS>")]
    max_tokens: u64 = TOKENS, at most 50_000_000;
    /// What calls of models cost by the operator's prices, in millionths of their currency.
    #[serde(skip_serializing_if = "is_usual::<_, COST_MICROS>")]
    max_cost_micros: u64 = COST_MICROS, at most 1_000_000_000;
    /// Sessions of the run, the first one among them.
    #[serde(skip_serializing_if = "is_usual::<_, { AGENTS as u64 }>")]
    max_agents: u32 = AGENTS, at most 1_000;
}

impl Limits {
    /// The budgets among them.
    pub fn budget(&self) -> Budget {
        Budget {
            model_calls: self.max_model_calls,
            tokens: self.max_tokens,
            cost_micros: self.max_cost_micros,
            agents: self.max_agents,
        }
    }

    /// The same with no more than this to spend.
    #[must_use]
    pub fn within(self, budget: &Budget) -> Self {
        Self {
            max_model_calls: self.max_model_calls.min(budget.model_calls),
            max_tokens: self.max_tokens.min(budget.tokens),
            max_cost_micros: self.max_cost_micros.min(budget.cost_micros),
            max_agents: self.max_agents.min(budget.agents),
            ..self
        }
    }
}

/// The operator's limits: what holds unless refined, and what may never be exceeded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperatorLimits {
    pub usual: Limits,
    pub maximum: SomeLimits,
}

impl Default for OperatorLimits {
    fn default() -> Self {
        Self { usual: Limits::default(), maximum: SomeLimits::built_in_maximum() }
    }
}

impl OperatorLimits {
    /// What holds for a request before its task type and pattern are known.
    pub fn refined(&self, request: &SomeLimits) -> Limits {
        self.usual.refined(&SomeLimits::default(), &self.maximum).refined(request, &self.maximum)
    }
}

/// The operator's limits as a run is pinned to them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PinnedLimits {
    /// Those that this program has where the operator says nothing, by the number of their table.
    Usual {
        table: u16,
    },
    Set(Arc<OperatorLimits>),
}

/// Counts up whenever a default or a built-in maximum changes. The tables before stay known, so that runs under them can
/// be replayed. The second added `conversation-bytes`, which runs under the first do not ask for. The third gives a model
/// half an hour instead of two minutes: slow ones write for long, and silence has limits of its own. The fourth has
/// budgets, which runs under those before do not ask for.
const TABLE: u16 = 4;

static USUAL: LazyLock<OperatorLimits> = LazyLock::new(OperatorLimits::default);
static UP_TO_TABLE_2: LazyLock<OperatorLimits> = LazyLock::new(|| OperatorLimits {
    usual: Limits { model_timeout_ms: 120_000, ..Limits::default() },
    ..OperatorLimits::default()
});

impl PinnedLimits {
    /// ```
    /// use std::sync::Arc;
    /// use trellis_domain::limits::{OperatorLimits, PinnedLimits};
    ///
    /// let usual = Arc::new(OperatorLimits::default());
    /// assert_eq!(PinnedLimits::of(&usual).limits(), &*usual);
    /// assert_eq!(serde_json::to_string(&PinnedLimits::of(&usual)).unwrap(), r#"{"table":4}"#);
    /// ```
    pub fn of(limits: &Arc<OperatorLimits>) -> Self {
        if **limits == *USUAL { Self::Usual { table: TABLE } } else { Self::Set(Arc::clone(limits)) }
    }

    pub fn limits(&self) -> &OperatorLimits {
        match self {
            Self::Usual { table: ..=2 } => &UP_TO_TABLE_2,
            Self::Usual { .. } => &USUAL,
            Self::Set(limits) => limits,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If this fails, a default has changed: give it a new table and keep the old one.
    #[test]
    fn the_limits_of_the_present_table_are_known() {
        let written = serde_json::to_string(&*USUAL).unwrap();
        let known = "43043e86100f8a05979c2c058988e2cf2c43729ef91712fc278c79a6c65ba11a";
        assert_eq!((TABLE, crate::Hash::of(written).to_string().as_str()), (4, known));
        let older = serde_json::to_string(PinnedLimits::Usual { table: 2 }.limits()).unwrap();
        let known = "f974e9d1adc51e31fbb45e19e69e0237b457285dc2deb9446b871df3daa74145";
        assert_eq!(crate::Hash::of(older).to_string(), known, "runs under older tables can be replayed");
    }

    #[test]
    fn a_request_refines_a_limit_but_never_above_the_operators_maximum() {
        let request = SomeLimits { max_iterations: Some(50), max_rounds: Some(1), ..SomeLimits::default() };
        let maximum = SomeLimits { max_iterations: Some(20), ..SomeLimits::default() };
        let limits = Limits::default().refined(&request, &maximum);
        assert_eq!((limits.max_iterations, limits.max_rounds, limits.max_depth), (20, 1, 3));
    }
}
