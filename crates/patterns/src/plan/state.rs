//! A plan as its records tell it: which steps there are and how each stands.

use crate::taken_up::needs;
use std::collections::BTreeSet;
use trellis_domain::limits::Limits;
use trellis_domain::message::{self, PlanStep};

/// How a step stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepStatus {
    Pending,
    /// Started; its turn is open or about to be opened.
    Running,
    Completed,
    Failed,
    /// A later plan took its place before it started.
    Revised,
}

impl StepStatus {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Revised => "revised",
        }
    }

    pub const fn is_finished(self) -> bool {
        match self {
            Self::Completed | Self::Failed => true,
            Self::Pending | Self::Running | Self::Revised => false,
        }
    }
}

/// One step of the session. Its number is its place among all steps of all plans, and is never used again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepState<'s> {
    pub number: u32,
    pub goal: String,
    pub tool_hint: String,
    pub depends_on: Vec<u32>,
    /// The plan that brought it: 0, or the number of the revision.
    pub plan: u32,
    pub status: StepStatus,
    /// What came of it; of a failed step the error, as the model is told.
    pub result: &'s str,
    pub error: Option<&'s str>,
    /// The tool state that its success led to, if it changed it.
    pub state: Option<&'s str>,
    pub surprising: bool,
    /// The planner was asked after the step had ended: its failure is accepted, or a new plan deals with it.
    pub reviewed: bool,
}

impl<'s> StepState<'s> {
    /// A step as others have left it. One that they were at is taken again: nobody says what came of it.
    pub(super) fn taken_up(number: u32, step: &'s PlanStep) -> Self {
        let status = match step.status {
            message::StepStatus::Pending | message::StepStatus::Running => StepStatus::Pending,
            message::StepStatus::Completed => StepStatus::Completed,
            message::StepStatus::Failed => StepStatus::Failed,
            message::StepStatus::Revised => StepStatus::Revised,
        };
        let error = error_of_others(step);
        Self {
            number,
            goal: step.goal.clone(),
            tool_hint: step.tool_hint.clone(),
            depends_on: needs(step),
            plan: 0,
            status,
            result: error.unwrap_or(if status.is_finished() { step.result.as_str() } else { "" }),
            error,
            state: None,
            surprising: false,
            reviewed: false,
        }
    }
}

/// Why a step failed, by the account of those who took it.
pub(super) fn error_of_others(step: &PlanStep) -> Option<&str> {
    const UNSAID: &str = "it failed, and nobody says why";
    let said = if step.result.is_empty() { UNSAID } else { step.result.as_str() };
    (step.status == message::StepStatus::Failed).then_some(said)
}

impl StepState<'_> {
    pub(super) fn needs_review(&self) -> bool {
        let unexpected = self.status == StepStatus::Failed || self.surprising && self.status.is_finished();
        unexpected && !self.reviewed
    }

    /// Whether steps that build on this one may start.
    pub(super) fn can_be_built_on(&self) -> bool {
        self.status == StepStatus::Completed || self.status == StepStatus::Failed && self.reviewed
    }
}

/// A step that the answer has to do without.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    pub number: u32,
    pub goal: String,
    pub reason: String,
}

/// All steps of a session, replayed from its records in the order in which they were committed.
#[derive(Debug, Clone)]
pub struct PlanState<'s> {
    /// By number.
    pub steps: Vec<StepState<'s>>,
    /// How many plans there are, revisions included.
    pub plans: u32,
    pub(super) limits: Limits,
    /// Steps from this number on are not begun: a plan of others may be longer than one that is made here can be.
    pub(super) most: u32,
}

impl<'s> PlanState<'s> {
    pub fn step(&self, number: u32) -> Option<&StepState<'s>> {
        self.steps.get(usize::try_from(number).ok()?)
    }

    /// How many steps a revision may still add.
    pub fn room(&self) -> u32 {
        self.limits.max_plan_steps.saturating_sub(self.next_number())
    }

    pub fn next_number(&self) -> u32 {
        u32::try_from(self.steps.len()).unwrap_or(u32::MAX)
    }

    /// The tool state that a step finds: what the steps it rests on led to, in the order of their numbers. Steps that
    /// merely happened to be done earlier have no say, so the order of completion does not matter.
    pub fn tool_state(&self, step: &StepState<'_>, initial: &'s str) -> &'s str {
        let mut below = BTreeSet::new();
        let mut open = step.depends_on.clone();
        while let Some(number) = open.pop() {
            if below.insert(number) {
                open.extend(self.step(number).into_iter().flat_map(|step| &step.depends_on));
            }
        }
        let mut newest_first = below.into_iter().rev().filter_map(|number| self.step(number)?.state);
        newest_first.next().unwrap_or(initial)
    }

    /// The steps that failed and, once nothing runs any more, those that could not be run because of them.
    pub fn missing(&self) -> Vec<Missing> {
        let missing = |step: &StepState<'s>| {
            let reason = match step.status {
                StepStatus::Failed => step.error.unwrap_or(step.result).to_owned(),
                StepStatus::Pending => self.why_not_run(step),
                StepStatus::Running | StepStatus::Completed | StepStatus::Revised => return None,
            };
            Some(Missing { number: step.number, goal: step.goal.clone(), reason })
        };
        self.steps.iter().filter_map(missing).collect()
    }

    fn why_not_run(&self, step: &StepState<'_>) -> String {
        if step.number >= self.most {
            return format!("not run, because a plan may have {} steps; raise max-plan-steps", self.most);
        }
        let mut dependencies = step.depends_on.iter().filter_map(|number| self.step(*number));
        match dependencies.find(|dependency| !dependency.can_be_built_on()) {
            Some(failed) if failed.status == StepStatus::Failed => {
                format!("not run, because step {} failed", failed.number)
            }
            Some(skipped) => format!("not run, because step {} was not run", skipped.number),
            None => "not run".to_owned(),
        }
    }
}
