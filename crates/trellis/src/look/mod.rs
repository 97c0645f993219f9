//! A run as its graph tells it: steps, what each rests on, and the words for them. For the commands that explain.

mod basis;
mod named;
mod support;
mod words;

pub(crate) use basis::Basis;
pub(crate) use named::looks_like_a_step;
pub(crate) use support::support;
pub(crate) use words::{decided_by, enforced, kind_word, source_words};

use crate::desk::Desk;
use crate::failure::Failure;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use trellis_domain::RunId;
use trellis_domain::record::Record;
use trellis_domain::run::RunSummary;
use trellis_orchestrator::ledger::summary_of;
use trellis_orchestrator::summary::texts;
use trellis_patterns::project;
use trellis_provenance::trace::{DecisionTrace, DocumentLink, SessionTrace, Step, Trace};
use trellis_provenance::vocabulary::prov;

/// Everything that the record of a run says, ready to be asked.
#[derive(Debug)]
pub(crate) struct RunView {
    pub(crate) run: RunId,
    pub(crate) summary: RunSummary,
    pub(crate) records: Vec<Arc<Record>>,
    pub(crate) trace: Trace,
    texts: std::collections::BTreeMap<String, String>,
    /// What each node was derived from.
    parents: HashMap<String, Vec<String>>,
}

/// A step with the session that it belongs to.
pub(crate) type Placed<'a> = (&'a SessionTrace, &'a Step);

impl RunView {
    pub(crate) async fn of(desk: &Desk, wish: &str) -> Result<Self, Failure> {
        let run = desk.find_run(wish).await?;
        let records = desk.records(&run).await?;
        let summary = summary_of(&records).ok_or_else(|| Failure::unexpected("the run has vanished"))?;
        let quads = project(&records);
        let mut parents: HashMap<String, Vec<String>> = HashMap::new();
        for quad in quads.iter().filter(|quad| quad.p.as_iri() == Some(prov::WAS_DERIVED_FROM)) {
            if let (Some(node), Some(from)) = (quad.s.as_iri(), quad.o.as_iri()) {
                parents.entry(node.to_owned()).or_default().push(from.to_owned());
            }
        }
        let (trace, texts) = (trellis_provenance::trace(&quads), texts(&records));
        Ok(Self { run, summary, records, trace, texts, parents })
    }

    /// The session of the run itself; none while nothing of it is recorded.
    pub(crate) fn root(&self) -> Option<&SessionTrace> {
        self.trace.sessions.iter().find(|session| session.session == self.run.as_str())
    }

    pub(crate) fn steps(&self) -> impl Iterator<Item = Placed<'_>> {
        self.trace.sessions.iter().flat_map(|session| session.steps.iter().map(move |step| (session, step)))
    }

    /// The node that the root ended with.
    pub(crate) fn end(&self) -> Option<Placed<'_>> {
        end_of(self.root()?)
    }

    /// Everything that a node rests on, itself included.
    pub(crate) fn ancestors(&self, node: &str) -> BTreeSet<&str> {
        let mut found = BTreeSet::new();
        let mut left: Vec<&str> = self.parents.get_key_value(node).map(|(node, _)| node.as_str()).into_iter().collect();
        while let Some(next) = left.pop() {
            if found.insert(next) {
                left.extend(self.parents.get(next).into_iter().flatten().map(String::as_str));
            }
        }
        found
    }

    /// What a document says; empty if there is none, or if it was not kept.
    pub(crate) fn text(&self, link: Option<&DocumentLink>) -> &str {
        link.and_then(|link| self.texts.get(&link.id)).map_or("", String::as_str)
    }

    pub(crate) fn text_of(&self, id: &str) -> &str {
        self.texts.get(id).map_or("", String::as_str)
    }

    /// What came of a step, in full.
    pub(crate) fn output(&self, step: &Step) -> &str {
        match step {
            Step::Observation(step) => self.text(step.document.as_ref()),
            Step::StepResult(step) => self.text(step.document.as_ref()),
            Step::Finding(step) => self.text(step.document.as_ref()),
            Step::LateResult(step) => self.text(step.document.as_ref()),
            Step::PatternAct(step) => self.text(step.document.as_ref()),
            Step::Conclusion(step) => self.text(step.document.as_ref()),
            Step::Synthesis(step) => self.text(step.document.as_ref()),
            Step::Routing(_)
            | Step::Analysis(_)
            | Step::Plan(_)
            | Step::PlanReview(_)
            | Step::Decomposition(_)
            | Step::Review(_)
            | Step::UnusedReply(_)
            | Step::LateReply(_) => "",
        }
    }

    /// Every choice of the run, in the order in which it went: whose it is, at which step, and the choice.
    pub(crate) fn decisions(&self) -> Vec<(Placed<'_>, &DecisionTrace)> {
        let mut all = Vec::new();
        for (session, step) in self.steps() {
            let mut own: Vec<_> = decisions_of(step).iter().collect();
            // The task type is chosen first, then a pattern among those that it allows.
            own.sort_by_key(|decision| decision.id.ends_with("/pattern"));
            all.extend(own.into_iter().map(|decision| ((session, step), decision)));
        }
        all
    }
}

/// The node that a session ended with.
fn end_of(session: &SessionTrace) -> Option<Placed<'_>> {
    let ends = |step: &&Step| matches!(step, Step::Conclusion(_) | Step::Synthesis(_));
    session.steps.iter().find(ends).map(|step| (session, step))
}

/// The choices that belong to a step.
pub(crate) fn decisions_of(step: &Step) -> &[DecisionTrace] {
    match step {
        Step::Routing(step) => &step.decisions,
        Step::Analysis(step) => &step.decisions,
        Step::Plan(step) => &step.decisions,
        Step::PlanReview(step) => &step.decisions,
        Step::StepResult(step) => &step.decisions,
        Step::Decomposition(step) => &step.decisions,
        Step::Review(step) => &step.decisions,
        Step::UnusedReply(step) => &step.decisions,
        Step::LateReply(step) => &step.decisions,
        Step::PatternAct(step) => &step.decisions,
        Step::Conclusion(step) => &step.decisions,
        Step::Synthesis(step) => &step.decisions,
        Step::Observation(_) | Step::Finding(_) | Step::LateResult(_) => &[],
    }
}

/// Why a step brought nothing, if so.
pub(crate) fn error_of(step: &Step) -> Option<&str> {
    match step {
        Step::Observation(step) => step.error.as_deref(),
        Step::StepResult(step) => step.error.as_deref(),
        Step::Finding(step) => step.error.as_deref(),
        Step::LateResult(step) => step.error.as_deref(),
        Step::PatternAct(step) => step.error.as_deref(),
        Step::Conclusion(step) => step.error.as_deref(),
        Step::Synthesis(step) => step.error.as_deref(),
        Step::Plan(step) => step.error.as_deref(),
        Step::PlanReview(step) => step.error.as_deref(),
        Step::Review(step) => step.error.as_deref(),
        Step::UnusedReply(step) => step.error.as_deref(),
        Step::LateReply(step) => step.error.as_deref(),
        Step::Routing(_) | Step::Analysis(_) | Step::Decomposition(_) => None,
    }
}
