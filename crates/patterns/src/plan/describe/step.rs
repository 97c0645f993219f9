//! The steps of a plan: what each brought, or why it brought nothing.

use super::{PlanActs, PlanTurn, StepAside};
use crate::describe::asked::{described, described_with_cost};
use crate::describe::asking::Asking;
use crate::describe::decision::place;
use crate::describe::described_session::DescribedSession;
use crate::plan::state::error_of_others;
use crate::react::{as_json, with_tool_facts};
use trellis_domain::document::Document;
use trellis_domain::message::PlanStep;
use trellis_domain::record::{Header, Observed};
use trellis_provenance::node::{Node, as_document, first_chars};
use trellis_provenance::vocabulary::{prov, tg, trellis};
use trellis_provenance::{Act, iri};

const ENDED_BEFORE: &str = "the session ended before the step did";
const NEVER_BEGUN: &str = "the step was never begun";

impl PlanActs {
    /// The result of a step that needs no tool: it is there with the reply.
    pub(super) fn answered(&mut self, session: &DescribedSession, header: &Header, i: u32) -> Option<Act> {
        let asking = self.pending.get(&PlanTurn::Step(i))?;
        let answer = as_document(asking.reading()?.text()?);
        let asking = self.pending.remove(&PlanTurn::Step(i))?;
        Some(self.result(session, header, i, &asking, answer.as_ref(), None))
    }

    /// The result of a step as its tool, or the runtime in its place, gave it.
    pub(super) fn observed(
        &mut self,
        session: &DescribedSession,
        header: &Header,
        i: u32,
        observed: &Observed,
    ) -> Option<Act> {
        if self.steps.is_done(i) {
            return None;
        }
        let asking = self.pending.remove(&PlanTurn::Step(i)).unwrap_or_default();
        Some(self.result(session, header, i, &asking, observed.result.as_ref(), Some(observed)))
    }

    fn result(
        &mut self,
        session: &DescribedSession,
        header: &Header,
        i: u32,
        asking: &Asking,
        document: Option<&Document>,
        observed: Option<&Observed>,
    ) -> Act {
        let id = iri::step(&session.id, i);
        let reviews = self.carried(session);
        let main = self
            .with_step_facts(Node::new(&id), session, i, asking)
            .types(&[prov::class::ENTITY, tg::class::STEP_RESULT, tg::class::ANSWER])
            .label(self.title(i))
            .document(&iri::step_document(&session.id, i), self.title(i), document)
            .error(observed.and_then(|observed| observed.error.as_deref()))
            .links(trellis::REVIEW, &reviews.iris)
            .links(prov::WAS_INFLUENCED_BY, session.finding_of(&header.name))
            .marks(asking.attempt().max(header.attempt), header.late);
        let main = observed.into_iter().fold(main, with_tool_facts);
        let mut cost = observed.map(|observed| observed.usage.clone()).unwrap_or_default();
        cost.add(&asking.cost());
        let decisions = place(&id, asking.decisions());
        let mut nodes = described_with_cost(session, main, Some(asking), decisions, &about(i), &cost);
        nodes.extend(reviews.nodes);
        self.steps.finish(i);
        Act { id, nodes }
    }

    /// What others say that came of a step, before the session began. Nothing was chosen or paid for here.
    pub(super) fn taken_by_others(
        &mut self,
        session: &DescribedSession,
        header: &Header,
        i: u32,
        step: &PlanStep,
    ) -> Act {
        let id = iri::step(&session.id, i);
        let document = Document::stored(step.result.as_str());
        let node = self
            .with_step_facts(Node::new(&id), session, i, &Asking::default())
            .types(&[prov::class::ENTITY, tg::class::STEP_RESULT, tg::class::ANSWER])
            .label(self.title(i))
            .document(&iri::step_document(&session.id, i), self.title(i), document.as_ref())
            .error(error_of_others(step))
            .link(prov::WAS_INFLUENCED_BY, iri::brought_history(&session.id))
            .marks(header.attempt, header.late);
        self.steps.finish(i);
        Act { id, nodes: vec![node] }
    }

    /// What the tool of a step brought too late. The step itself was told of as unfinished, so this is a node of its own.
    pub(super) fn late_result(&self, session: &DescribedSession, header: &Header, i: u32, observed: &Observed) -> Act {
        let id = iri::late_step_result(&session.id, i);
        let node = Node::new(&id)
            .types(&[prov::class::ENTITY, trellis::class::LATE_RESULT])
            .label("Late Result")
            .derived_from([iri::step(&session.id, i)])
            .document(&iri::step_document(&session.id, i), self.title(i), observed.result.as_ref())
            .error(observed.error.as_deref())
            .marks(header.attempt, header.late);
        Act { id, nodes: vec![with_tool_facts(node, observed).cost(&observed.usage)] }
    }

    fn title(&self, i: u32) -> String {
        format!("Step result: {}", first_chars(self.steps.goal(i), 60))
    }

    /// What was planned and what was chosen. The tool is told in our own words: for the stock reader, only iterations
    /// have actions. Dependencies are no derivations, or the stock walk would list what lies behind them again and again.
    pub(super) fn with_step_facts(&self, node: Node, session: &DescribedSession, i: u32, asking: &Asking) -> Node {
        let planned = self.steps.step(i);
        let plan = planned.map(|planned| &planned.plan).or(self.steps.in_force.as_ref());
        let needs = planned.into_iter().flat_map(|planned| &planned.step.depends_on);
        let node = node
            .derived_from(plan.cloned().map_or_else(|| session.first_parents(), |plan| vec![plan]))
            .texts(tg::PLAN_STEP, planned.map(|planned| &planned.step.goal))
            .text(tg::STEP_NUMBER, i)
            .links(trellis::PLANNED, self.steps.planned_iri(i))
            .links(trellis::DEPENDS_ON_STEP, needs.map(|needed| iri::step(&session.id, *needed)));
        let Some(reading) = asking.reading() else { return node };
        node.texts(trellis::TOOL, reading.call().map(|(tool, _)| tool))
            .texts(trellis::ARGUMENTS, reading.call().map(|(_, arguments)| as_json(arguments)))
            .flag(trellis::SURPRISING, StepAside::of(reading).surprising)
    }

    /// A step whose choice was made, but whose session ended before there was a result.
    pub(super) fn unfinished(&self, session: &DescribedSession, i: u32, asking: &Asking) -> Vec<Node> {
        let main = self
            .unfinished_node(session, i, asking)
            .types(&[tg::class::STEP_RESULT])
            .error(Some(ENDED_BEFORE))
            .marks(asking.attempt(), false);
        let iri = main.iri().to_owned();
        described(session, main, Some(asking), place(&iri, asking.decisions()), &about(i))
    }

    /// A step that the answer has to do without and that nobody began.
    pub(super) fn never_begun(&self, session: &DescribedSession, i: u32) -> Node {
        self.unfinished_node(session, i, &Asking::default()).error(Some(NEVER_BEGUN))
    }

    fn unfinished_node(&self, session: &DescribedSession, i: u32, asking: &Asking) -> Node {
        self.with_step_facts(Node::new(iri::step(&session.id, i)), session, i, asking)
            .types(&[prov::class::ENTITY, trellis::class::UNFINISHED_STEP])
            .label(self.title(i))
            .flag(trellis::UNFINISHED, true)
    }
}

fn about(i: u32) -> String {
    format!("step {i}")
}
