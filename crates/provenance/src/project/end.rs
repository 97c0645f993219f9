//! How a session ends.

use super::asked::told;
use super::beginning::person;
use super::completion::completion;
use super::decision::place;
use super::leftovers::{Leftovers, leftovers};
use crate::asking::{Asking, Question};
use crate::iri;
use crate::node::{Node, first_chars};
use crate::session::Session;
use crate::vocabulary::{prov, tg, trellis};
use std::collections::BTreeSet;
use trellis_domain::document::Document;
use trellis_domain::record::{Ended, Header};
use trellis_domain::usage::Usage;

/// The end of a session, whatever its reason: a synthesis or a conclusion. The reply that gave the answer has no node
/// of its own, so its thought, cost and choices are told here; and so is everything that would otherwise be lost.
pub(super) fn end(session: &mut Session, header: &Header, ended: &Ended) -> (String, Vec<Node>) {
    let iri = iri::terminal(&session.id, ended.reason);
    let closing = session.closing.take().or_else(|| session.pending.remove(&Question::Synthesis));
    let left = leftovers(session, ended);
    let canceller = ended.by.as_ref().and_then(|by| person(iri::canceller(&session.id), by));
    let main = with_results(main_node(session, header, ended), session, ended, &left)
        .links(prov::WAS_ATTRIBUTED_TO, canceller.as_ref().map(Node::iri))
        .texts(trellis::SURFACE, ended.by.as_ref().map(|by| by.surface))
        .links(trellis::CITES, cited(session, closing.as_ref()).map(|(target, _)| target));
    let decisions = place(&iri, closing.iter().flat_map(Asking::decisions).collect::<Vec<_>>());
    let mut nodes = told(session, main, closing.as_ref(), decisions, "answer");
    nodes.extend(left.into_nodes());
    nodes.extend(canceller);
    nodes.extend(answer_document(session, ended));
    nodes.extend(completion(session, ended));
    nodes.extend(
        cited(session, closing.as_ref())
            .filter_map(|(target, confidence)| Some(Node::new(target).text(trellis::CONFIDENCE, confidence?))),
    );
    nodes.push(finished_run(session, header, ended));
    (iri, nodes)
}

fn main_node(session: &Session, header: &Header, ended: &Ended) -> Node {
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
        .derived_from(parents(session, ended))
        .text(tg::TERMINATION_REASON, ended.reason)
        .texts(trellis::TERMINATION_CRITERIA, criteria)
        .texts(trellis::OUTAGE_MS, Some(ended.outage_ms).filter(|ms| *ms > 0))
        .texts(trellis::LEFT_OUT, &ended.left_out)
        .error(ended.error.as_deref())
        .marks(header.attempt, header.late)
}

/// A plan's end derives from the last step alone, so that the stock listing has it once. A supervisor's derives from
/// every finding and, if it is a synthesis, from what each subagent ended with. What was not waited for is no parent.
fn parents(session: &Session, ended: &Ended) -> Vec<String> {
    let (plan, rounds) = (&session.plan, &session.rounds);
    if let Some(last) = plan.done().next_back() {
        return vec![iri::step(&session.id, last)];
    }
    let findings = rounds.findings().iter().map(|finding| finding.iri.clone());
    let terminals = rounds.findings().iter().filter(|_| ended.reason.is_synthesis());
    let open = rounds.open_round().map(|round| iri::decomposition(&session.id, round));
    let mut parents: Vec<_> = findings.chain(terminals.map(|finding| finding.terminal.clone())).chain(open).collect();
    parents.extend(plan.in_force.clone());
    if parents.is_empty() { session.parents_of_next() } else { parents }
}

/// What the end rests on, and what it has to do without.
fn with_results(node: Node, session: &Session, ended: &Ended, left: &Leftovers) -> Node {
    let (plan, rounds) = (&session.plan, &session.rounds);
    let missing = ended.missing.iter().map(|index| result_iri(session, *index));
    let property = if plan.in_force.is_some() { trellis::MISSING_STEP } else { trellis::MISSING_FINDING };
    node.links(prov::WAS_INFLUENCED_BY, plan.done().map(|i| iri::step(&session.id, i)))
        .links(prov::WAS_INFLUENCED_BY, plan.without_steps())
        .texts(tg::CORRELATION_ID, rounds.correlations())
        .links(property, missing)
        .links(trellis::REVIEW, &left.reviews.iris)
        .links(trellis::UNFINISHED_STEP, &left.unfinished.iris)
        .links(trellis::UNUSED_REPLY, &left.unused.iris)
        .links(trellis::COMPLETION, session.parent().map(|_| iri::completion(&session.id)))
}

fn result_iri(session: &Session, index: u32) -> String {
    if session.plan.in_force.is_some() { iri::step(&session.id, index) } else { iri::finding(&session.id, index) }
}

/// The steps or findings that the answer says it rests on, each with the model's word for how sure it is.
fn cited<'a>(
    session: &'a Session,
    closing: Option<&'a Asking>,
) -> impl Iterator<Item = (String, Option<&'a String>)> + 'a {
    let known: BTreeSet<u32> =
        session.plan.done().chain(session.rounds.findings().iter().map(|finding| finding.index)).collect();
    let citations = closing.and_then(Asking::counting).into_iter().flat_map(|replied| &replied.citations);
    let citations = citations.filter(move |citation| known.contains(&citation.index));
    citations.map(|citation| (result_iri(session, citation.index), citation.confidence.as_ref()))
}

fn is_stored(ended: &Ended) -> bool {
    ended.answer.as_ref().is_some_and(|answer: &Document| answer.stored)
}

/// The specification calls the conclusion by the name of its document: both names mean the same.
fn answer_document(session: &Session, ended: &Ended) -> Option<Node> {
    let is_alternate = is_stored(ended) && !ended.reason.is_synthesis();
    is_alternate.then(|| {
        Node::new(iri::answer(&session.id))
            .types(&[prov::class::ENTITY])
            .link(prov::ALTERNATE_OF, iri::conclusion(&session.id))
    })
}

/// What the session took and, where it had subagents, what it took with all of them.
fn finished_run(session: &Session, header: &Header, ended: &Ended) -> Node {
    let Usage { in_token, out_token, model: _, model_ms, tool_ms, model_calls, tool_calls } = ended.usage;
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
            .text(trellis::RUN_MODEL_MS, total.model_ms)
            .text(trellis::RUN_TOOL_MS, total.tool_ms)
    })
}
