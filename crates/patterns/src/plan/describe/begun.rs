//! A plan that others have begun, as the history that was brought along tells it: with its steps, and what came of those
//! that were taken.

use super::{PlanActs, PlannedStep};
use crate::describe::asking::Asking;
use crate::describe::described_session::DescribedSession;
use crate::taken_up::needs;
use trellis_domain::message::{PlanStep, StepStatus};
use trellis_domain::record::Header;
use trellis_provenance::node::Node;
use trellis_provenance::vocabulary::prov;
use trellis_provenance::{Act, iri};

impl PlanActs {
    pub(super) fn begun(&mut self, session: &DescribedSession, header: &Header) -> Vec<Act> {
        let steps = session.plan_begun();
        if steps.is_empty() {
            return Vec::new();
        }
        let planned: Vec<_> = steps.iter().map(as_planned).collect();
        let mut plan = self.plan(session, header, 0, &Asking::default(), &planned);
        let brought = iri::brought_history(&session.id);
        plan.nodes.push(Node::new(&plan.id).link(prov::WAS_INFLUENCED_BY, brought));
        let mut acts = vec![plan];
        for (number, step) in (0..).zip(steps) {
            match step.status {
                StepStatus::Completed | StepStatus::Failed => {
                    acts.push(self.taken_by_others(session, header, number, step));
                }
                StepStatus::Revised => self.steps.set_aside(number),
                StepStatus::Pending | StepStatus::Running => {}
            }
        }
        acts
    }
}

fn as_planned(step: &PlanStep) -> PlannedStep {
    PlannedStep { goal: step.goal.clone(), tool_hint: step.tool_hint.clone(), depends_on: needs(step) }
}
