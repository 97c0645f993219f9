//! The replay: records in the order of their commits make the state of the plan, and each record that finishes
//! something says which turns it opens.

use super::names::step_of_result;
use super::state::{PlanState, StepState, StepStatus};
use super::{PlanDecision, PlanNames, PlanTurn, PlannedStep, StepAside};
use crate::session::Session;
use crate::synthesis::SynthesisName;
use trellis_domain::record::{Body, Name, Observed, Reading, Record};

impl<'s> PlanState<'s> {
    /// The plan as all records of the session that count tell it.
    pub fn of(session: &'s Session) -> Self {
        let mut state = Self::before(session);
        for record in session.in_order() {
            state.apply(record);
        }
        state
    }

    /// The turns that follow from a record, seen from that record: later ones change nothing about it.
    pub(super) fn opened_by(session: &'s Session, finishing: &Name) -> Vec<Name> {
        let mut state = Self::before(session);
        for record in session.in_order() {
            let opened = state.apply(record);
            if record.header.name == *finishing {
                return opened;
            }
        }
        Vec::new()
    }

    /// The plan before any record of it: none, or the one that others have begun.
    fn before(session: &'s Session) -> Self {
        Self::taken_up(session).0
    }

    /// The plan as others have left it, and the turns that follow from that; no turns if the session makes its own.
    pub(super) fn taken_up(session: &'s Session) -> (Self, Vec<Name>) {
        let mut state = Self { steps: Vec::new(), plans: 0, limits: session.limits(), most: u32::MAX };
        let begun = session.plan_begun();
        if begun.is_empty() {
            return (state, Vec::new());
        }
        state.steps = (0..).zip(begun).map(|(number, step)| StepState::taken_up(number, step)).collect();
        state.plans = 1;
        state.most = state.limits.max_plan_steps.max(1);
        let opened = state.advance();
        (state, opened)
    }

    /// Takes one record in and gives the turns that follow from it.
    fn apply(&mut self, record: &'s Record) -> Vec<Name> {
        let name = &record.header.name;
        let asked = name.first_asking();
        let finishes = match (&record.body, PlanTurn::of(&asked)) {
            (Body::Replied(replied), Some(PlanTurn::Plan(k))) => self.planned(k, &replied.reading, asked != *name),
            (Body::Replied(replied), Some(PlanTurn::Step(number))) => self.chose(number, &replied.reading),
            (Body::Observed(observed), None) => self.observed(name, observed),
            (Body::Replied(_) | Body::Observed(_), _) => false,
            (
                Body::Accepted(_)
                | Body::Routed(_)
                | Body::FannedOut(_)
                | Body::Joined(_)
                | Body::Intended(_)
                | Body::InputRequired(_)
                | Body::Parked(_)
                | Body::Settled(_)
                | Body::Told(_)
                | Body::Ended(_),
                _,
            ) => false,
        };
        if finishes { self.advance() } else { Vec::new() }
    }

    fn planned(&mut self, k: u32, reading: &Reading, asked_again: bool) -> bool {
        match reading {
            Reading::Unusable { .. } if !asked_again => return false,
            // Without a first plan the session ends.
            Reading::Failed { .. } if k == 0 => return false,
            Reading::Decided { .. }
            | Reading::Acted { .. }
            | Reading::Answered { .. }
            | Reading::Unusable { .. }
            | Reading::Failed { .. } => {}
        }
        if let Some(steps) = PlanDecision::of(reading).and_then(|planning| planning.steps) {
            let pending = self.steps.iter_mut().filter(|step| step.status == StepStatus::Pending);
            pending.for_each(|step| step.status = StepStatus::Revised);
            for step in steps {
                self.push(step);
            }
        }
        if self.steps.is_empty() {
            self.push(PlannedStep::direct());
        }
        self.plans += 1;
        self.steps.iter_mut().filter(|step| step.status.is_finished()).for_each(|step| step.reviewed = true);
        true
    }

    fn push(&mut self, PlannedStep { goal, tool_hint, depends_on }: PlannedStep) {
        self.steps.push(StepState {
            number: self.next_number(),
            goal,
            tool_hint,
            depends_on,
            plan: self.plans,
            status: StepStatus::Pending,
            result: "",
            error: None,
            state: None,
            surprising: false,
            reviewed: false,
        });
    }

    fn step_mut(&mut self, number: u32) -> Option<&mut StepState<'s>> {
        self.steps.get_mut(usize::try_from(number).ok()?)
    }

    /// A step without a tool is finished by its reply.
    fn chose(&mut self, number: u32, reading: &'s Reading) -> bool {
        if !matches!(reading, Reading::Acted { .. } | Reading::Answered { .. }) {
            return false;
        }
        let Some(step) = self.step_mut(number) else { return false };
        step.surprising = StepAside::of(reading).surprising;
        let Some(answer) = reading.text() else { return false };
        step.status = StepStatus::Completed;
        step.result = answer.text();
        true
    }

    fn observed(&mut self, name: &Name, observed: &'s Observed) -> bool {
        let Some(step) = step_of_result(name).and_then(|number| self.step_mut(number)) else { return false };
        step.error = observed.error.as_deref();
        step.status = if step.error.is_some() { StepStatus::Failed } else { StepStatus::Completed };
        step.state = observed.state.as_deref().filter(|_| step.error.is_none());
        step.result = observed.result.as_ref().map_or(step.error.unwrap_or(""), |result| result.text());
        true
    }

    /// The rule: after something has finished, start what can start. If nothing runs and nothing can start, let the
    /// planner look at what went wrong, or let the answer be written.
    ///
    /// What went wrong holds back only what builds on it. If it held back everything, the order in which steps finish
    /// would decide which of them run before the planner is asked.
    fn advance(&mut self) -> Vec<Name> {
        let mut opened = self.start_steps();
        if self.running() == 0 {
            opened.push(if self.review_is_due() { Name::plan(self.plans) } else { Name::synthesis() });
        }
        opened
    }

    /// A revision is allowed as long as there may be another one, and as long as it could add a step.
    fn review_is_due(&self) -> bool {
        let allowed = self.plans <= self.limits.max_replans && self.room() > 0;
        allowed && self.steps.iter().any(StepState::needs_review)
    }

    fn running(&self) -> usize {
        self.steps.iter().filter(|step| step.status == StepStatus::Running).count()
    }

    fn start_steps(&mut self) -> Vec<Name> {
        let at_once = usize::try_from(self.limits.steps_at_once).unwrap_or(usize::MAX).max(1);
        let free = at_once.saturating_sub(self.running());
        let (review, most) = (self.review_is_due(), self.most);
        let can_start = |step: &&StepState<'_>| {
            let stands = |step: &StepState<'_>| step.can_be_built_on() && !(review && step.needs_review());
            let is_met = |number: &u32| self.step(*number).is_none_or(stands);
            step.status == StepStatus::Pending && step.number < most && step.depends_on.iter().all(is_met)
        };
        let numbers: Vec<_> = self.steps.iter().filter(can_start).take(free).map(|step| step.number).collect();
        for number in &numbers {
            if let Some(step) = self.step_mut(*number) {
                step.status = StepStatus::Running;
            }
        }
        numbers.into_iter().map(Name::step).collect()
    }
}
