//! What a record belongs to, read from its name.

use crate::react::IterationNames;
use trellis_domain::record::{Header, Name};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Question {
    TaskType,
    Pattern,
    Plan(u32),
    Step(u32),
    Decompose,
    Review(u32),
    Synthesis,
}

impl Question {
    /// What a reply of this name is a reply to; none for an iteration.
    pub(super) fn of(name: &Name) -> Option<Self> {
        let asked = name.first_asking();
        if asked == Name::route_task_type() {
            return Some(Self::TaskType);
        }
        if asked == Name::route_pattern() {
            return Some(Self::Pattern);
        }
        let parts: Vec<&str> = asked.parts().collect();
        match *parts.as_slice() {
            ["plan"] => Some(Self::Plan(0)),
            ["plan", k] => k.parse().ok().map(Self::Plan),
            ["step", i] => i.parse().ok().map(Self::Step),
            ["decompose"] => Some(Self::Decompose),
            ["review", r] => r.parse().ok().map(Self::Review),
            ["synthesis"] => Some(Self::Synthesis),
            _ => None,
        }
    }
}

/// The iteration that a record with a name such as `i3` or `i3/observation` belongs to.
pub(super) fn iteration(header: &Header) -> Option<u32> {
    let name = header.name.as_str();
    Name::new(name.strip_suffix("/observation").unwrap_or(name)).as_iteration()
}

/// The plan step that a record with the name `step/3/result` belongs to.
pub(super) fn step_result(header: &Header) -> Option<u32> {
    header.name.as_str().strip_prefix("step/")?.strip_suffix("/result")?.parse().ok()
}
