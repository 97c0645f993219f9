//! The limits of a session, put together from everybody who may set some.

use trellis_domain::config::Settings;
use trellis_domain::limits::{Limits, SomeLimits};

/// The operator's limits: what holds unless refined, and what may never be exceeded.
#[derive(Debug, Clone)]
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

/// The operator's usual limits, refined by task type, pattern and request in that order, never above the maximum.
pub fn limits_for(
    settings: &Settings,
    task_type: &str,
    pattern: &str,
    request: Option<&SomeLimits>,
    operator: &OperatorLimits,
) -> Limits {
    let task_type = settings.task_types.get(task_type).map(|item| &item.limits);
    let pattern = settings.patterns.get(pattern).map(|item| &item.limits);
    let start = operator.refined(&SomeLimits::default());
    let sources = [task_type, pattern, request];
    sources.into_iter().flatten().fold(start, |limits, by| limits.refined(by, &operator.maximum))
}
