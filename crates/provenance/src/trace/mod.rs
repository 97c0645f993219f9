//! Quads to typed steps: what a reader of the graph sees.
//!
//! The trace is read from the quads alone, so it works for what we projected, for what came over the
//! wire, and for what another program wrote; what is not there stays absent.

mod act;
mod decision;
mod end;
mod goal;
mod order;
mod parts;
mod plan;
mod planned;
mod read;
mod session;
mod supervisor;

pub use act::PatternAct;
pub use decision::{DecisionTrace, Word};
pub(crate) use decision::{decision, decisions};
pub use end::{Conclusion, Synthesis};
pub use goal::GoalTrace;
pub use parts::{Cost, DocumentLink, Mark, Thought};
pub use plan::{LateResult, Plan, PlanReview, StepResult};
pub use planned::PlannedStep;
pub use read::{Analysis, LateReply, Observation, Routing, UnusedReply};
pub use session::{Completion, ParentLink, SessionTrace, Totals, trace};
pub use supervisor::{Decomposition, FanOut, Finding, Join, Review};

use serde::Serialize;

/// Everything that some quads say about agent sessions, the earliest first.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Trace {
    pub sessions: Vec<SessionTrace>,
}

/// One step. The routing comes first, then the iterations, plans or rounds by number, each with what came of it, then
/// the end.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "step", rename_all = "kebab-case")]
pub enum Step {
    Routing(Routing),
    Analysis(Analysis),
    Observation(Observation),
    Plan(Plan),
    /// A plan that was looked at again and kept.
    PlanReview(PlanReview),
    StepResult(StepResult),
    Decomposition(Decomposition),
    Finding(Finding),
    Review(Review),
    /// A reply in time that nothing came of, because the session ended.
    UnusedReply(UnusedReply),
    /// A reply that came after the session's end.
    LateReply(LateReply),
    /// What a tool brought to a plan step after the session's end.
    LateResult(LateResult),
    /// What a pattern did that none of the others has a form for.
    PatternAct(PatternAct),
    Conclusion(Conclusion),
    Synthesis(Synthesis),
}

macro_rules! each_step {
    ($step:ident: $($variant:ident),*) => {
        match $step {
            $(Step::$variant(step) => &step.id),*
        }
    };
}

impl Step {
    /// IRI of the step's node.
    pub fn id(&self) -> &str {
        each_step!(self:
            Routing, Analysis, Observation, Plan, PlanReview, StepResult, Decomposition, Finding, Review, UnusedReply,
            LateReply, LateResult, PatternAct, Conclusion, Synthesis
        )
    }
}
