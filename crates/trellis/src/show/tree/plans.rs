//! Plans with their steps.

use super::node::TreeNode;
use super::steps::call;
use super::{Tree, behind, labelled, marked, number_of};
use crate::show::{clean, seconds, tokens};
use owo_colors::OwoColorize;
use serde_json::Value;
use trellis_provenance::trace::{LateResult, Plan, PlanReview, PlannedStep, SessionTrace, Step, StepResult};

impl Tree<'_> {
    pub(super) fn plan(&self, session: &SessionTrace, plan: &Plan) -> TreeNode {
        let of_plan = |step: &&StepResult| step.plan.as_ref() == Some(&plan.id);
        let steps: Vec<_> = session.steps.iter().filter_map(as_result).filter(of_plan).collect();
        let name = if plan.number == 0 { "Plan".to_owned() } else { format!("Plan, revision {}", plan.number) };
        let count = plan.steps.len();
        let count = format!("{count} step{}", if count == 1 { "" } else { "s" });
        let title =
            format!("{} {}  {count}{}{}", self.marks.many.cyan(), name.bold(), behind(&plan.cost), marked(&plan.mark));
        let mut node = TreeNode::new(title).with(self.failures(&plan.cost));
        node.details.extend(self.choices(&plan.decisions));
        node.details.extend(plan.error.as_ref().map(|error| labelled("unusable", &self.cut(error))));
        if plan.decisions.is_empty() {
            node.details.extend(plan.replan_reason.as_ref().map(|why| format!("stated reason: {}", self.cut(why))));
        }
        node.details.extend(plan.superseded.iter().map(|goal| labelled("replaces", &self.cut(goal))));
        node.details.extend(plan.repairs.iter().map(|what| labelled("put right", &self.cut(what))));
        let without = |planned: &&PlannedStep| !steps.iter().any(|step| is_of(step, planned));
        let open = plan.steps.iter().filter(without);
        node.details.extend(open.map(|planned| self.planned_step(planned, session.ended.is_some())));
        node.children = steps.into_iter().map(|step| self.step_result(step)).collect();
        node
    }

    /// A step that nothing came of, or nothing yet.
    fn planned_step(&self, step: &PlannedStep, is_over: bool) -> String {
        let number = step.number.map_or("step".to_owned(), |number| format!("step {number}"));
        let after: Vec<_> = step.depends_on.iter().map(ToString::to_string).collect();
        let status = match (&step.superseded_by, is_over) {
            (Some(_), _) => "replaced",
            (None, true) => "not begun",
            (None, false) => "no result yet",
        };
        let after = after_steps(&after);
        labelled("planned", &format!("{number} {}  {status}{}", self.cut(&step.goal), after.dimmed()))
    }

    pub(super) fn plan_review(&self, review: &PlanReview) -> TreeNode {
        let title = format!(
            "{} {}{}{}",
            self.marks.choice.cyan(),
            "Plan kept".bold(),
            behind(&review.cost),
            marked(&review.mark)
        );
        let error = review.error.as_ref().map(|error| labelled("unusable", &self.cut(error)));
        TreeNode::new(title).with(self.failures(&review.cost)).with(self.choices(&review.decisions)).with(error)
    }

    pub(super) fn step_result(&self, step: &StepResult) -> TreeNode {
        let mark = match (step.unfinished, &step.error) {
            (true, _) => self.marks.partly.yellow().to_string(),
            (false, Some(_)) => self.marks.bad.red().to_string(),
            (false, None) => self.marks.good.green().to_string(),
        };
        let after: Vec<_> = step.depends_on.iter().map(|iri| number_of(iri).to_owned()).collect();
        let status = match (step.unfinished, &step.error) {
            (true, _) => "  not finished",
            (false, Some(_)) => "  failed",
            (false, None) => "",
        };
        let title = format!(
            "{mark} {} {}{}{}{}{}",
            format!("step {}", step.number).bold(),
            self.cut(&step.goal),
            status,
            after_steps(&after).dimmed(),
            behind(&step.cost),
            marked(&step.mark)
        );
        let mut node = TreeNode::new(title).with(self.failures(&step.cost));
        if let Some(tool) = &step.tool {
            let called = call(tool, step.arguments.as_ref().unwrap_or(&Value::Null));
            node.details.push(labelled("call", &self.cut(&called)));
        }
        node.details.extend(self.choices(&step.decisions));
        if step.surprising {
            node.details.push(labelled("surprise", "the model says that the plan did not expect this"));
        }
        if !step.unfinished {
            let ms = step.tool_ms.map(seconds).unwrap_or_default();
            let text = self.document(step.document.as_ref());
            node.details.push(self.result(step.error.as_deref(), text, &ms));
        }
        node.details
            .extend(step.confidence.as_ref().map(|word| labelled("confidence", &format!("{} (claimed)", clean(word)))));
        node
    }

    pub(super) fn late_result(&self, late: &LateResult) -> TreeNode {
        let of = late.of.as_deref().map_or("?", number_of);
        let ms = late.tool_ms.map(seconds).unwrap_or_default();
        let title = format!("{} late result of step {of}{}", self.marks.thought, marked(&late.mark));
        let text = self.document(late.document.as_ref());
        let cost = format!("{ms}  {}", tokens(late.cost.in_token, late.cost.out_token));
        TreeNode::new(title.dimmed().to_string()).with([self.result(late.error.as_deref(), text, &cost)])
    }
}

/// Whether a result is that of a planned step. In foreign graphs, plans have goals without numbers.
fn is_of(result: &StepResult, planned: &PlannedStep) -> bool {
    planned.number.map_or(result.goal == planned.goal, |number| result.number == number)
}

fn after_steps(numbers: &[String]) -> String {
    if numbers.is_empty() { String::new() } else { format!("  after {}", numbers.join(", ")) }
}

/// The plan a step ran under is drawn above it, if it is there.
pub(super) fn has_plan(session: &SessionTrace, result: &StepResult) -> bool {
    session.steps.iter().any(|step| matches!(step, Step::Plan(plan) if result.plan.as_ref() == Some(&plan.id)))
}

#[expect(clippy::wildcard_enum_match_arm, reason = "asks for one kind only")]
fn as_result(step: &Step) -> Option<&StepResult> {
    match step {
        Step::StepResult(result) => Some(result),
        _ => None,
    }
}
