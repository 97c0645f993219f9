//! Limits: every one ends in a recorded answer or a clear end, never in silence.

use serde::{Deserialize, Serialize};

macro_rules! limits {
    ($($(#[$doc:meta])* $field:ident: $type:ty = $default:expr),* $(,)?) => {
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

/// None of these is a sensible wish.
const MAY_BE_ZERO: [&str; 2] = ["max_replans", "max_depth"];

limits! {
    /// Iterations of a ReAct session.
    max_iterations: u32 = 10,
    /// Steps of a plan.
    max_plan_steps: u32 = 50,
    /// Revisions of a plan.
    max_replans: u32 = 2,
    /// Plan steps running at once.
    steps_at_once: u32 = 8,
    /// Rounds of a supervisor.
    max_rounds: u32 = 3,
    /// Subagents below subagents.
    max_depth: u32 = 3,
    /// Siblings of one fan-out.
    max_siblings: u32 = 8,
    fan_in_timeout_ms: u64 = 300_000,
    model_timeout_ms: u64 = 120_000,
    tool_timeout_ms: u64 = 120_000,
    run_timeout_ms: u64 = 3_600_000,
    max_question_bytes: u64 = 1 << 20,
    max_reply_bytes: u64 = 1 << 20,
    /// How much of an observation the model is shown; all of it is recorded.
    shown_observation_bytes: u64 = 64 << 10,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_refines_a_limit_but_never_above_the_operators_maximum() {
        let request = SomeLimits { max_iterations: Some(50), max_rounds: Some(1), ..SomeLimits::default() };
        let maximum = SomeLimits { max_iterations: Some(20), ..SomeLimits::default() };
        let limits = Limits::default().refined(&request, &maximum);
        assert_eq!((limits.max_iterations, limits.max_rounds, limits.max_depth), (20, 1, 3));
    }
}
