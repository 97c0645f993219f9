//! Names of records and turns, computed in advance.

use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The name of a record or turn inside its session, such as `i3/observation`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Name(Arc<str>);

/// What a turn is for, read from its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnKind {
    Route,
    /// Iteration `n`, counted from 1.
    Iteration(u32),
    /// The first plan is 0, revision `k` is `k`.
    Plan(u32),
    /// Plan step, counted from 0.
    Step(u32),
    Synthesis,
    Decompose,
    /// After round `r`, counted from 1.
    Review(u32),
    /// A subagent of this round has ended: are all there?
    Check {
        round: u32,
        index: u32,
    },
    Deadline(u32),
}

impl TurnKind {
    /// Turns of fan-ins are the aggregator's, all others an agent's.
    pub const fn is_fan_in(self) -> bool {
        match self {
            Self::Check { .. } | Self::Deadline(_) => true,
            Self::Route
            | Self::Iteration(_)
            | Self::Plan(_)
            | Self::Step(_)
            | Self::Synthesis
            | Self::Decompose
            | Self::Review(_) => false,
        }
    }
}

const RETRY: &str = "/retry";

impl Name {
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// The accepted question.
    pub fn session() -> Self {
        Self::new("session")
    }

    /// The turn in which a model is asked for task type and pattern.
    pub fn route() -> Self {
        Self::new("route")
    }

    pub fn route_task_type() -> Self {
        Self::new("route/task-type")
    }

    pub fn route_pattern() -> Self {
        Self::new("route/pattern")
    }

    pub fn pattern_decision() -> Self {
        Self::new("pattern-decision")
    }

    /// Iteration `n`, counted from 1: a turn, and the record of the model's reply in it.
    pub fn iteration(n: u32) -> Self {
        Self::new(format!("i{n}"))
    }

    pub fn observation(n: u32) -> Self {
        Self::new(format!("i{n}/observation"))
    }

    /// The first plan (0) or revision `k` of it: a turn, and the record of the planner's reply.
    pub fn plan(k: u32) -> Self {
        if k == 0 { Self::new("plan") } else { Self::new(format!("plan/{k}")) }
    }

    /// Plan step `i`, counted from 0: a turn, and the record of the choice made in it.
    pub fn step(i: u32) -> Self {
        Self::new(format!("step/{i}"))
    }

    /// What the tool of plan step `i` brought.
    pub fn step_result(i: u32) -> Self {
        Self::new(format!("step/{i}/result"))
    }

    pub fn synthesis() -> Self {
        Self::new("synthesis")
    }

    pub fn decompose() -> Self {
        Self::new("decompose")
    }

    /// The judgement after round `r`, counted from 1.
    pub fn review(r: u32) -> Self {
        Self::new(format!("review/{r}"))
    }

    /// The fan-out of round `r`, counted from 1.
    pub fn fan_out(r: u32) -> Self {
        Self::new(format!("fanout/{r}"))
    }

    /// The one join of a fan-out.
    pub fn join(r: u32) -> Self {
        Self::new(format!("fanout/{r}/join"))
    }

    /// The turn that the end of subagent `index` opens on its parent.
    pub fn check(r: u32, index: u32) -> Self {
        Self::new(format!("fanout/{r}/check/{index}"))
    }

    /// The delayed turn that a fan-out opens on its own session.
    pub fn deadline(r: u32) -> Self {
        Self::new(format!("fanout/{r}/deadline"))
    }

    /// The one end of a session.
    pub fn end() -> Self {
        Self::new("end")
    }

    /// The same question asked once more, because the first reply could not be used.
    #[must_use]
    pub fn retry(&self) -> Self {
        Self::new(format!("{}{RETRY}", self.0))
    }

    /// The name without the mark of a second asking.
    #[must_use]
    pub fn first_asking(&self) -> Self {
        self.0.strip_suffix(RETRY).map_or_else(|| self.clone(), Self::new)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The iteration that a turn's name stands for.
    pub fn as_iteration(&self) -> Option<u32> {
        match self.turn_kind()? {
            TurnKind::Iteration(n) => Some(n),
            TurnKind::Route
            | TurnKind::Plan(_)
            | TurnKind::Step(_)
            | TurnKind::Synthesis
            | TurnKind::Decompose
            | TurnKind::Review(_)
            | TurnKind::Check { .. }
            | TurnKind::Deadline(_) => None,
        }
    }

    /// The turn that this name stands for; none if it only names a record.
    ///
    /// ```
    /// use trellis_domain::record::{Name, TurnKind};
    ///
    /// assert_eq!(Name::check(2, 7).turn_kind(), Some(TurnKind::Check { round: 2, index: 7 }));
    /// assert_eq!(Name::step_result(7).turn_kind(), None);
    /// ```
    pub fn turn_kind(&self) -> Option<TurnKind> {
        let parts: Vec<&str> = self.0.split('/').collect();
        match *parts.as_slice() {
            ["route"] => Some(TurnKind::Route),
            ["plan"] => Some(TurnKind::Plan(0)),
            ["plan", k] => number(k).map(TurnKind::Plan),
            ["step", i] => number(i).map(TurnKind::Step),
            ["synthesis"] => Some(TurnKind::Synthesis),
            ["decompose"] => Some(TurnKind::Decompose),
            ["review", r] => number(r).map(TurnKind::Review),
            ["fanout", r, "check", index] => Some(TurnKind::Check { round: number(r)?, index: number(index)? }),
            ["fanout", r, "deadline"] => number(r).map(TurnKind::Deadline),
            [iteration] => number(iteration.strip_prefix('i')?).map(TurnKind::Iteration),
            _ => None,
        }
    }
}

fn number(text: &str) -> Option<u32> {
    text.parse().ok()
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
