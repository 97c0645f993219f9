//! Names of what a supervisor is asked.

use crate::synthesis::SynthesisName;
use trellis_domain::record::Name;

/// The names of a supervisor's own records and turns.
pub trait TeamNames: Sized {
    fn decompose() -> Self;

    /// The judgement after round `r`, counted from 1.
    fn review(r: u32) -> Self;
}

impl TeamNames for Name {
    fn decompose() -> Self {
        Self::new("decompose")
    }

    fn review(r: u32) -> Self {
        Self::new(format!("review/{r}"))
    }
}

/// What a model is asked in a turn. The order is the one in which a session gets to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TeamTurn {
    Decompose,
    /// After round `r`, counted from 1.
    Review(u32),
    Synthesis,
}

impl TeamTurn {
    /// The turn of this name; none if it names something else.
    pub(crate) fn of(name: &Name) -> Option<Self> {
        let parts: Vec<&str> = name.parts().collect();
        match *parts.as_slice() {
            ["decompose"] => Some(Self::Decompose),
            ["review", r] => r.parse().ok().map(Self::Review),
            _ => (*name == Name::synthesis()).then_some(Self::Synthesis),
        }
    }

    /// The turn that a reply of this name belongs to, whether it was asked for once or twice.
    pub(super) fn asked(reply: &Name) -> Option<Self> {
        Self::of(&reply.first_asking())
    }

    pub(crate) fn name(self) -> Name {
        match self {
            Self::Decompose => Name::decompose(),
            Self::Review(round) => Name::review(round),
            Self::Synthesis => Name::synthesis(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_turns_are_read_and_others_are_not() {
        for turn in [TeamTurn::Decompose, TeamTurn::Review(3), TeamTurn::Synthesis] {
            assert_eq!(TeamTurn::of(&turn.name()), Some(turn));
            assert_eq!(TeamTurn::of(&turn.name().retry()), None);
            assert_eq!(TeamTurn::asked(&turn.name().retry()), Some(turn));
        }
        assert_eq!(TeamTurn::of(&Name::fan_out(1)), None);
    }
}
