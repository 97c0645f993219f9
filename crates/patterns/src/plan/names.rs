//! Names of plans and steps.

use crate::synthesis::SynthesisName;
use trellis_domain::record::Name;

/// The names of records and turns in a session with a plan.
pub trait PlanNames: Sized {
    /// The first plan (0) or revision `k` of it: a turn, and the record of the planner's reply.
    fn plan(k: u32) -> Self;

    /// Plan step `i`, counted from 0: a turn, and the record of the choice made in it.
    fn step(i: u32) -> Self;

    /// What the tool of plan step `i` brought.
    fn step_result(i: u32) -> Self;
}

impl PlanNames for Name {
    fn plan(k: u32) -> Self {
        if k == 0 { Self::new("plan") } else { Self::new(format!("plan/{k}")) }
    }

    fn step(i: u32) -> Self {
        Self::new(format!("step/{i}"))
    }

    fn step_result(i: u32) -> Self {
        Self::new(format!("step/{i}/result"))
    }
}

/// What a model is asked in a turn. The order is the one in which a session gets to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PlanTurn {
    /// The first plan is 0, revision `k` is `k`.
    Plan(u32),
    Step(u32),
    Synthesis,
}

impl PlanTurn {
    /// The turn of this name; none if it names something else.
    pub fn of(name: &Name) -> Option<Self> {
        let parts: Vec<&str> = name.parts().collect();
        match *parts.as_slice() {
            ["plan"] => Some(Self::Plan(0)),
            ["plan", k] => k.parse().ok().map(Self::Plan),
            ["step", i] => i.parse().ok().map(Self::Step),
            _ => (*name == Name::synthesis()).then_some(Self::Synthesis),
        }
    }

    /// The turn that a reply of this name belongs to, whether it was asked for once or twice.
    pub(super) fn asked(reply: &Name) -> Option<Self> {
        Self::of(&reply.first_asking())
    }

    pub fn name(self) -> Name {
        match self {
            Self::Plan(k) => Name::plan(k),
            Self::Step(i) => Name::step(i),
            Self::Synthesis => Name::synthesis(),
        }
    }

    /// Whether a reply is a judgement on the plan: the first plan is none.
    pub(super) fn is_review(self) -> bool {
        matches!(self, Self::Plan(1..))
    }
}

/// The step whose result a record's name stands for.
pub(super) fn step_of_result(name: &Name) -> Option<u32> {
    let parts: Vec<&str> = name.parts().collect();
    if let ["step", i, "result"] = *parts.as_slice() { i.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_turns_are_read_and_names_of_records_are_not() {
        for turn in [PlanTurn::Plan(0), PlanTurn::Plan(2), PlanTurn::Step(7), PlanTurn::Synthesis] {
            assert_eq!(PlanTurn::of(&turn.name()), Some(turn));
            assert_eq!(PlanTurn::of(&turn.name().retry()), None);
            assert_eq!(PlanTurn::asked(&turn.name().retry()), Some(turn));
        }
        assert_eq!(PlanTurn::of(&Name::step_result(0)), None);
        assert_eq!(step_of_result(&Name::step_result(4)), Some(4));
        assert_eq!(step_of_result(&Name::step(4)), None);
    }
}
