//! How a session ends.

use super::decision::{decision_nodes, place};
use super::iteration::with_cost;
use super::thought;
use crate::iri;
use crate::node::Node;
use crate::session::{ClosingReply, Session};
use crate::vocabulary::{prov, tg, trellis};
use std::collections::BTreeSet;
use trellis_domain::document::Document;
use trellis_domain::record::{Ended, Header};

/// The end of a session, whatever its reason. The reply that gave the answer has no node of its own, so
/// its thought, cost and choices are told here.
pub(super) fn conclusion(session: &Session<'_>, header: &Header, ended: &Ended) -> (String, Vec<Node>) {
    let iri = iri::conclusion(session.id);
    let closing = session.closing();
    let decisions = place(session.id, &iri, closing.map_or(&[], |closing| &closing.reply.decision));
    let thought_node = closing.and_then(|closing| thought_node(session, closing));
    let main = main_node(session, header, ended)
        .links(tg::THOUGHT, thought_node.is_some().then(|| iri::conclusion_thought(session.id)))
        .links(trellis::DECISION, decisions.iter().map(|placed| &placed.iri));
    // The stock reader takes the last document of the event for the answer: the thought goes first.
    let mut nodes: Vec<Node> = thought_node.into_iter().collect();
    nodes.push(match closing {
        Some(closing) => with_cost(main, closing.reply),
        None => main,
    });
    nodes.extend(decision_nodes(&decisions));
    nodes.extend(answer_document(session, ended));
    nodes.push(finished_run(session, header, ended));
    (iri, nodes)
}

fn main_node(session: &Session<'_>, header: &Header, ended: &Ended) -> Node {
    let answer = ended.answer.is_some().then_some(tg::class::ANSWER);
    Node::new(iri::conclusion(session.id))
        .types(&[prov::class::ENTITY, tg::class::CONCLUSION])
        .types(answer.as_slice())
        .label("Conclusion")
        .derived_from(session.parents_of_conclusion())
        .document(&iri::answer(session.id), ended.answer.as_ref())
        .text(tg::TERMINATION_REASON, ended.reason)
        .error(ended.error.as_deref())
        .marks(header, session.conversation())
}

fn thought_node(session: &Session<'_>, closing: ClosingReply<'_>) -> Option<Node> {
    let document = closing.reply.thought.as_ref().filter(|document| document.stored)?;
    let streamed = iri::message_id(session.id, &format!("i{}/thought", closing.n), closing.header.attempt);
    Some(thought(&iri::conclusion_thought(session.id), &iri::conclusion(session.id), &streamed, document))
}

/// The specification calls the conclusion by the name of its document: both names mean the same.
fn answer_document(session: &Session<'_>, ended: &Ended) -> Option<Node> {
    let stored = ended.answer.as_ref().is_some_and(|answer: &Document| answer.stored);
    stored.then(|| Node::new(iri::answer(session.id)).link(prov::ALTERNATE_OF, iri::conclusion(session.id)))
}

fn finished_run(session: &Session<'_>, header: &Header, ended: &Ended) -> Node {
    let models: BTreeSet<&str> = session.models().collect();
    Node::new(iri::run(session.id))
        .text(prov::ENDED_AT_TIME, header.time)
        .links(prov::WAS_ASSOCIATED_WITH, models.into_iter().map(iri::model))
        .texts(trellis::TOTAL_IN_TOKEN, ended.usage.in_token)
        .texts(trellis::TOTAL_OUT_TOKEN, ended.usage.out_token)
        .text(trellis::MODEL_CALLS, ended.usage.model_calls)
        .text(trellis::TOOL_CALLS, ended.usage.tool_calls)
}
