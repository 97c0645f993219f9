//! Names of what a debate asks.

use crate::synthesis::SynthesisName;
use trellis_domain::record::Name;

/// What a model is asked in a turn. The order is the one in which a session gets to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DebateTurn {
    Stances,
    /// After round `r`, counted from 1.
    Moderate(u32),
    Judge,
}

impl DebateTurn {
    /// The turn of this name; none if it names something else.
    pub(super) fn of(name: &Name) -> Option<Self> {
        let parts: Vec<&str> = name.parts().collect();
        match *parts.as_slice() {
            ["stances"] => Some(Self::Stances),
            ["moderate", round] => round.parse().ok().map(Self::Moderate),
            _ => (*name == Name::synthesis()).then_some(Self::Judge),
        }
    }

    /// The turn that a reply of this name belongs to, whether it was asked for once or twice.
    pub(super) fn asked(reply: &Name) -> Option<Self> {
        Self::of(&reply.first_asking())
    }

    pub(super) fn name(self) -> Name {
        match self {
            Self::Stances => Name::new("stances"),
            Self::Moderate(round) => Name::new(format!("moderate/{round}")),
            Self::Judge => Name::synthesis(),
        }
    }
}
