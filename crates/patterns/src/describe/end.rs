//! How a session ends.

use super::asked::described;
use super::asking::Asking;
use super::beginning::person;
use super::completion::completion;
use super::decision::place;
use super::described_session::DescribedSession;
use super::inside::{Inside, unused};
use trellis_domain::document::Document;
use trellis_domain::record::{Ended, Header};
use trellis_domain::usage::Usage;
use trellis_provenance::node::{Node, first_chars};
use trellis_provenance::vocabulary::{prov, tg, trellis};
use trellis_provenance::{Act, iri};

/// What a pattern knows of the end of a session.
#[derive(Debug, Default)]
pub struct Rest {
    /// The replies to the question that the answer answers.
    pub(crate) closing: Option<Asking>,
    /// What the end derives from; if nothing, from the beginning.
    pub(crate) parents: Vec<String>,
    pub(crate) influenced: Vec<String>,
    /// One per fan-out.
    pub(crate) correlations: Vec<String>,
    /// What the answer has to do without, and the property that says so.
    pub(crate) missing_property: &'static str,
    pub(crate) missing: Vec<String>,
    /// What the answer says it rests on, each with the model's word for how sure it is.
    pub(crate) cites: Vec<(String, Option<String>)>,
    pub(crate) reviews: Inside,
    pub(crate) unfinished: Inside,
    /// Replies that nothing came of.
    pub(crate) unused: Inside,
}

/// The end of a session, whatever its reason: a synthesis or a conclusion. The reply that gave the answer has no node
/// of its own, so its thought, cost and choices are told here; and so is everything that would otherwise be lost.
pub(crate) fn end(session: &mut DescribedSession, header: &Header, ended: &Ended, rest: Rest) -> Act {
    let id = iri::terminal(&session.id, ended.reason);
    let mut unrouted = Inside::default();
    for (asked, asking) in std::mem::take(&mut session.routing) {
        unrouted.add(unused(session, &asked.name(), &asking));
    }
    unrouted.iris.extend(rest.unused.iris.iter().cloned());
    let canceller = ended.by.as_ref().and_then(|by| person(iri::canceller(&session.id), by));
    let main = with_results(main_node(session, header, ended, &rest), session, &rest, &unrouted)
        .links(prov::WAS_ATTRIBUTED_TO, canceller.as_ref().map(Node::iri))
        .texts(trellis::SURFACE, ended.by.as_ref().map(|by| by.surface))
        .links(trellis::CITES, rest.cites.iter().map(|(target, _)| target));
    let decisions = place(&id, rest.closing.iter().flat_map(Asking::decisions).collect::<Vec<_>>());
    let mut nodes = described(session, main, rest.closing.as_ref(), decisions, "answer");
    nodes.extend(rest.reviews.nodes);
    nodes.extend(rest.unfinished.nodes);
    nodes.extend(unrouted.nodes);
    nodes.extend(rest.unused.nodes);
    nodes.extend(canceller);
    nodes.extend(answer_document(session, ended));
    nodes.extend(completion(session, ended));
    let sure = rest.cites.into_iter().filter_map(|(target, sure)| Some((target, sure?)));
    nodes.extend(sure.map(|(target, sure)| Node::new(target).text(trellis::CONFIDENCE, sure)));
    nodes.push(finished_run(session, header, ended));
    Act { id, nodes }
}

fn main_node(session: &DescribedSession, header: &Header, ended: &Ended, rest: &Rest) -> Node {
    let answer = ended.answer.is_some().then_some(tg::class::ANSWER);
    let criteria = Some(&ended.criteria).filter(|criteria| !criteria.is_empty());
    let node = Node::new(iri::terminal(&session.id, ended.reason));
    let node = if ended.reason.is_synthesis() {
        node.types(&[prov::class::ENTITY, tg::class::SYNTHESIS]).label("Synthesis").document(
            &iri::synthesis_document(&session.id),
            "Synthesis",
            ended.answer.as_ref(),
        )
    } else {
        let title = format!("Agent Answer: {}...", first_chars(session.question(), 50));
        let stored = is_stored(ended).then(|| iri::answer(&session.id));
        node.types(&[prov::class::ENTITY, tg::class::CONCLUSION])
            .label("Conclusion")
            .document(&iri::answer(&session.id), title, ended.answer.as_ref())
            .links(prov::ALTERNATE_OF, stored)
    };
    node.types(answer.as_slice())
        .derived_from(if rest.parents.is_empty() { session.first_parents() } else { rest.parents.clone() })
        .text(tg::TERMINATION_REASON, ended.reason)
        .texts(trellis::TERMINATION_CRITERIA, criteria)
        .texts(trellis::OUTAGE_MS, Some(ended.outage_ms).filter(|ms| *ms > 0))
        .texts(trellis::LEFT_OUT, &ended.left_out)
        .texts(trellis::UNCERTAIN_CALL, session.uncertain())
        .error(ended.error.as_deref())
        .marks(header.attempt, header.late)
}

/// What the end rests on, and what it has to do without.
fn with_results(node: Node, session: &DescribedSession, rest: &Rest, unused: &Inside) -> Node {
    node.links(prov::WAS_INFLUENCED_BY, &rest.influenced)
        .texts(tg::CORRELATION_ID, &rest.correlations)
        .links(rest.missing_property, &rest.missing)
        .links(trellis::REVIEW, &rest.reviews.iris)
        .links(trellis::UNFINISHED_STEP, &rest.unfinished.iris)
        .links(trellis::UNUSED_REPLY, &unused.iris)
        .links(trellis::COMPLETION, session.parent().map(|_| iri::completion(&session.id)))
}

fn is_stored(ended: &Ended) -> bool {
    ended.answer.as_ref().is_some_and(|answer: &Document| answer.stored)
}

/// The specification calls the conclusion by the name of its document: both names mean the same.
fn answer_document(session: &DescribedSession, ended: &Ended) -> Option<Node> {
    let is_alternate = is_stored(ended) && !ended.reason.is_synthesis();
    is_alternate.then(|| {
        Node::new(iri::answer(&session.id))
            .types(&[prov::class::ENTITY])
            .link(prov::ALTERNATE_OF, iri::conclusion(&session.id))
    })
}

/// What the session took and, where it had subagents, what it took with all of them.
fn finished_run(session: &DescribedSession, header: &Header, ended: &Ended) -> Node {
    let Usage { in_token, out_token, model: _, model_ms, tool_ms, model_calls, tool_calls, details: _, agents: _ } =
        ended.usage;
    let run = Node::new(iri::run(&session.id))
        .text(prov::ENDED_AT_TIME, header.time)
        .links(prov::WAS_ASSOCIATED_WITH, session.models().map(iri::model))
        .texts(trellis::TOTAL_IN_TOKEN, in_token)
        .texts(trellis::TOTAL_OUT_TOKEN, out_token)
        .text(trellis::MODEL_CALLS, model_calls)
        .text(trellis::TOOL_CALLS, tool_calls)
        .text(trellis::MODEL_MS, model_ms)
        .text(trellis::TOOL_MS, tool_ms);
    ended.total.iter().fold(run, |run, total| {
        run.texts(trellis::RUN_IN_TOKEN, total.in_token)
            .texts(trellis::RUN_OUT_TOKEN, total.out_token)
            .text(trellis::RUN_MODEL_CALLS, total.model_calls)
            .text(trellis::RUN_TOOL_CALLS, total.tool_calls)
            .texts(trellis::RUN_AGENTS, Some(total.agents).filter(|agents| *agents > 0))
            .text(trellis::RUN_MODEL_MS, total.model_ms)
            .text(trellis::RUN_TOOL_MS, total.tool_ms)
    })
}
