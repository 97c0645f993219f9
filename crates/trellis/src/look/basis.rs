//! What a step rests on, in numbers: the same count as on the page.

use super::RunView;
use serde::Serialize;
use std::collections::BTreeSet;
use trellis_domain::counted;
use trellis_provenance::trace::Step;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Basis {
    pub(crate) findings: usize,
    pub(crate) tool_results: usize,
    /// Of these, how many brought an error.
    pub(crate) failed: usize,
    /// Decisions and messages of people.
    pub(crate) from_people: usize,
}

impl Basis {
    pub(crate) fn of(view: &RunView, node: &str) -> Self {
        let below = view.ancestors(node);
        let mut basis = Self::default();
        for (_, step) in view.steps().filter(|(_, step)| step.id() != node && below.contains(step.id())) {
            let is_result = matches!(step, Step::Observation(_))
                || matches!(step, Step::StepResult(result) if result.tool.is_some() && !result.unfinished);
            basis.findings += usize::from(matches!(step, Step::Finding(_)));
            basis.tool_results += usize::from(is_result);
            basis.failed += usize::from(is_result && super::error_of(step).is_some());
        }
        let people = below.iter().filter_map(|node| by_person(node)).collect::<BTreeSet<_>>();
        basis.from_people = people.len();
        basis
    }

    /// `4 findings, 12 tool results (1 failed)`.
    pub(crate) fn sentence(&self) -> String {
        let failed = if self.failed > 0 { format!(" ({} failed)", self.failed) } else { String::new() };
        let parts = [
            (self.findings > 0).then(|| counted(self.findings, "finding")),
            (self.tool_results > 0).then(|| counted(self.tool_results, "tool result") + &failed),
            (self.from_people > 0).then(|| format!("{} from people", self.from_people)),
        ];
        let parts: Vec<_> = parts.into_iter().flatten().collect();
        if parts.is_empty() { "no other step: the model was asked and answered".to_owned() } else { parts.join(", ") }
    }
}

/// The node of what a person decided or said, without what is below it.
fn by_person(node: &str) -> Option<&str> {
    ["/park/", "/told/"].iter().find_map(|word| {
        let number = node.find(word)? + word.len();
        let end = node[number..].find('/').map_or(node.len(), |end| number + end);
        node.get(..end)
    })
}
