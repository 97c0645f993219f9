//! Names of records and turns, computed in advance.

use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The name of a record or turn inside its session, such as `i3/observation`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Name(Arc<str>);

/// The names that mean the same in every pattern. All others belong to the session's pattern, which reads them itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Core {
    /// The accepted question.
    Session,
    /// A turn: a model is asked for task type and pattern.
    Route,
    RouteTaskType,
    RoutePattern,
    PatternDecision,
    /// Rounds count from 1.
    FanOut(u32),
    Join(u32),
    /// A turn: a subagent of this round has ended; are all there?
    Check {
        round: u32,
        index: u32,
    },
    /// A turn: the time of this round is over.
    Deadline(u32),
    /// A question to a person. They count from 1.
    Park(u32),
    ParkDecision(u32),
    /// A turn: nobody has answered in time.
    ParkExpiry(u32),
    Told(u32),
    /// A call that is about to be made. They count from 1 for each call.
    Intent(u32),
    /// A tool that was called asks for input. They count from 1 for each call.
    Input(u32),
    End,
}

impl Core {
    /// Turns of fan-ins are the aggregator's, all others an agent's.
    pub const fn is_fan_in(self) -> bool {
        match self {
            Self::Check { .. } | Self::Deadline(_) => true,
            Self::Session
            | Self::Route
            | Self::RouteTaskType
            | Self::RoutePattern
            | Self::PatternDecision
            | Self::FanOut(_)
            | Self::Join(_)
            | Self::Park(_)
            | Self::ParkDecision(_)
            | Self::ParkExpiry(_)
            | Self::Intent(_)
            | Self::Input(_)
            | Self::Told(_)
            | Self::End => false,
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

    /// Question `n` to a person, counted from 1.
    pub fn park(n: u32) -> Self {
        Self::new(format!("park/{n}"))
    }

    /// The one answer to it.
    pub fn park_decision(n: u32) -> Self {
        Self::new(format!("park/{n}/decision"))
    }

    /// The delayed turn that the question opens.
    pub fn park_expiry(n: u32) -> Self {
        Self::new(format!("park/{n}/expiry"))
    }

    /// Message `n` to a session that is under way, counted from 1.
    pub fn told(n: u32) -> Self {
        Self::new(format!("told/{n}"))
    }

    /// That the call whose outcome is recorded under `about` is about to be made, for the `n`th time.
    pub fn intent(about: &Self, n: u32) -> Self {
        Self::new(format!("{about}/intent/{n}"))
    }

    /// The outcome that an intended call will have, and for the how manieth time it is made.
    ///
    /// ```
    /// use trellis_domain::record::Name;
    ///
    /// let observation = Name::new("i3/observation");
    /// assert_eq!(Name::intent(&observation, 2).as_intent(), Some((observation, 2)));
    /// ```
    pub fn as_intent(&self) -> Option<(Self, u32)> {
        let (about, n) = self.0.rsplit_once("/intent/")?;
        Some((Self::new(about), number(n)?))
    }

    /// That the tool whose outcome is recorded under `about` asks for input, for the `n`th time.
    pub fn input(about: &Self, n: u32) -> Self {
        Self::new(format!("{about}/input/{n}"))
    }

    /// The outcome of the call whose tool asks for input, and for the how manieth time it does.
    pub fn as_input(&self) -> Option<(Self, u32)> {
        let (about, n) = self.0.rsplit_once("/input/")?;
        Some((Self::new(about), number(n)?))
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

    /// What the name means in every pattern; none if it belongs to the session's own.
    ///
    /// ```
    /// use trellis_domain::record::{Core, Name};
    ///
    /// assert_eq!(Name::check(2, 7).core(), Some(Core::Check { round: 2, index: 7 }));
    /// assert_eq!(Name::new("i3/observation").core(), None);
    /// ```
    pub fn core(&self) -> Option<Core> {
        let parts: Vec<&str> = self.parts().collect();
        match *parts.as_slice() {
            ["session"] => Some(Core::Session),
            ["route"] => Some(Core::Route),
            ["route", "task-type"] => Some(Core::RouteTaskType),
            ["route", "pattern"] => Some(Core::RoutePattern),
            ["pattern-decision"] => Some(Core::PatternDecision),
            ["fanout", r] => number(r).map(Core::FanOut),
            ["fanout", r, "join"] => number(r).map(Core::Join),
            ["fanout", r, "check", index] => Some(Core::Check { round: number(r)?, index: number(index)? }),
            ["fanout", r, "deadline"] => number(r).map(Core::Deadline),
            ["park", n] => number(n).map(Core::Park),
            ["park", n, "decision"] => number(n).map(Core::ParkDecision),
            ["park", n, "expiry"] => number(n).map(Core::ParkExpiry),
            ["told", n] => number(n).map(Core::Told),
            ["end"] => Some(Core::End),
            [_, .., "intent", n] => number(n).map(Core::Intent),
            [_, .., "input", n] => number(n).map(Core::Input),
            _ => None,
        }
    }

    /// The parts of the path, for the pattern that it belongs to.
    pub fn parts(&self) -> impl Iterator<Item = &str> {
        self.0.split('/')
    }
}

fn number(text: &str) -> Option<u32> {
    text.parse().ok()
}

/// So that records are found by a name that is only written down for the search.
impl std::borrow::Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
