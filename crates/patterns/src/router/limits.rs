//! The limits of a session, put together from everybody who may set some.

use trellis_domain::config::Settings;
use trellis_domain::limits::{Limits, OperatorLimits, SomeLimits};
use trellis_domain::{PatternName, TaskTypeName};

/// The operator's usual limits, refined by workspace, task type, pattern and request in that order, never above the maximum.
pub fn limits_for(
    settings: &Settings,
    task_type: &TaskTypeName,
    pattern: &PatternName,
    request: Option<&SomeLimits>,
    operator: &OperatorLimits,
) -> Limits {
    let task_type = settings.task_types.get(task_type).map(|item| &item.limits);
    let pattern = settings.patterns.get(pattern).map(|item| &item.limits);
    let start = operator.refined(&SomeLimits::default());
    let sources = [Some(&settings.limits), task_type, pattern, request];
    sources.into_iter().flatten().fold(start, |limits, by| limits.refined(by, &operator.maximum))
}
