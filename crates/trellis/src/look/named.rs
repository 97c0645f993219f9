//! What steps and agents are called, and which one somebody means.

use super::{Placed, RunView, end_of};
use crate::show::{clean, excerpt};
use trellis_provenance::trace::{SessionTrace, Step};

impl RunView {
    /// `#0.1` for the second subagent of the first; empty for the run itself.
    pub(crate) fn number_of(&self, session: &SessionTrace) -> String {
        let Some(parent) = &session.parent else { return String::new() };
        let above = self.trace.sessions.iter().find(|other| Some(&other.id) == parent.session.as_ref());
        let above = above.map(|above| self.number_of(above)).unwrap_or_default();
        let index = parent.index.map_or_else(|| "?".to_owned(), |index| index.to_string());
        if above.is_empty() { format!("#{index}") } else { format!("{above}.{index}") }
    }

    /// `#0 Analyse financial health …`, or `the run itself`.
    pub(crate) fn agent_name(&self, session: &SessionTrace) -> String {
        const WIDTH: usize = 48;
        match self.number_of(session) {
            number if number.is_empty() => "the run itself".to_owned(),
            number => format!("{number} {}", excerpt(&session.question, WIDTH)),
        }
    }

    /// What a step is called, and can be asked for by.
    pub(crate) fn step_name(&self, (session, step): Placed<'_>) -> String {
        let own = match step {
            Step::Routing(_) => "routing".to_owned(),
            Step::Analysis(call) => format!("call {}", call.n),
            Step::Observation(result) => format!("result {}", result.n),
            Step::Plan(plan) if plan.number == 0 => "plan".to_owned(),
            Step::Plan(plan) => format!("plan {}", plan.number),
            Step::PlanReview(review) => format!("plan review {}", review.number),
            Step::StepResult(result) => format!("step {}", result.number),
            Step::Decomposition(split) if split.round <= 1 => "split".to_owned(),
            Step::Decomposition(split) => format!("split {}", split.round),
            Step::Finding(finding) => format!("finding {}", finding.index),
            Step::Review(_) => format!("review {}", last_number(step.id())),
            Step::UnusedReply(_) => "unused reply".to_owned(),
            Step::LateReply(_) => "late reply".to_owned(),
            Step::LateResult(_) => "late result".to_owned(),
            Step::PatternAct(act) => {
                let label = clean(act.label.as_deref().unwrap_or(&act.act)).to_lowercase();
                act.number.map_or_else(|| label.clone(), |number| format!("{label} {number}"))
            }
            Step::Conclusion(_) | Step::Synthesis(_) => "answer".to_owned(),
        };
        match self.number_of(session) {
            number if number.is_empty() => own,
            number => format!("{number} {own}"),
        }
    }

    /// The step that somebody means: its name, the end of its name in the graph, or an agent's number for its answer.
    pub(crate) fn find_step(&self, wish: &str) -> Option<Placed<'_>> {
        let wanted = wish.trim().to_lowercase();
        if let Some(agent) = self.trace.sessions.iter().find(|session| self.number_of(session) == wanted)
            && wanted.starts_with('#')
        {
            return end_of(agent);
        }
        // As `run show` numbers the calls.
        let call = wanted.parse::<u32>().ok().map(|number| format!("call {number}"));
        let named = |placed: &Placed<'_>| {
            let name = self.step_name(*placed);
            name == wanted || call.as_ref() == Some(&name)
        };
        let in_graph = |(_, step): &Placed<'_>| {
            let id = step.id();
            id == wish.trim() || wanted.contains('/') && id.to_lowercase().ends_with(&format!("/{wanted}"))
        };
        self.steps().find(named).or_else(|| self.steps().find(in_graph))
    }
}

/// Whether it reads like the name of a step, so that it is none of the answer's sentences.
pub(crate) fn looks_like_a_step(wish: &str) -> bool {
    let words: Vec<_> = wish.split_whitespace().collect();
    match words.as_slice() {
        [one] => one.starts_with('#') || one.contains('/') || one.parse::<u32>().is_ok(),
        [kind, number] => {
            let known = ["finding", "step", "call", "result", "plan", "split", "review"];
            number.parse::<u32>().is_ok() && known.contains(&kind.to_lowercase().as_str())
        }
        _ => false,
    }
}

fn last_number(iri: &str) -> &str {
    iri.rsplit('/').find(|part| part.parse::<u32>().is_ok()).unwrap_or("1")
}
