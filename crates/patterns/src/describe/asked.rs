//! What a node says of the model that was asked for it.

use super::asking::Asking;
use super::decision::{PlacedDecision, decision_nodes};
use super::described_session::DescribedSession;
use trellis_domain::document::Document;
use trellis_domain::record::Name;
use trellis_domain::usage::Usage;
use trellis_provenance::iri;
use trellis_provenance::node::Node;
use trellis_provenance::vocabulary::{tg, trellis};

const RETRY: &str = "/retry";

/// The node with its thoughts, choices and cost. `about` is what the titles of its thoughts say.
pub(crate) fn described(
    session: &DescribedSession,
    node: Node,
    asking: Option<&Asking>,
    decisions: Vec<PlacedDecision<'_>>,
    about: &str,
) -> Vec<Node> {
    let cost = asking.map(Asking::cost).unwrap_or_default();
    described_with_cost(session, node, asking, decisions, about, &cost)
}

pub(crate) fn described_with_cost(
    session: &DescribedSession,
    node: Node,
    asking: Option<&Asking>,
    decisions: Vec<PlacedDecision<'_>>,
    about: &str,
    cost: &Usage,
) -> Vec<Node> {
    let thoughts = thoughts(session, node.iri(), node.iri(), asking, about);
    let counting = asking.and_then(Asking::counting);
    let main = node
        .texts(trellis::REPLY_FORMAT, counting.and_then(|replied| replied.prompt.format))
        .texts(trellis::FAILED_ATTEMPT, asking.into_iter().flat_map(Asking::failures))
        .texts(trellis::MENDED, counting.into_iter().flat_map(|replied| &replied.repairs))
        .links_to(tg::THOUGHT, &thoughts)
        .links(trellis::HEARD, heard(session, asking))
        .links(trellis::DECISION, decisions.iter().map(|placed| &placed.iri))
        .cost(cost);
    let mut nodes = vec![main];
    nodes.extend(thoughts);
    nodes.extend(decision_nodes(decisions));
    nodes
}

/// The last message that the model had been told.
fn heard(session: &DescribedSession, asking: Option<&Asking>) -> Option<String> {
    let heard = asking.and_then(Asking::counting).map(|replied| replied.heard).filter(|heard| *heard > 0)?;
    Some(iri::named(&session.id, &Name::told(heard)))
}

/// The stored thoughts of all replies, as nodes of the same names as their documents. A second asking has its mark in
/// the name.
pub(crate) fn thoughts(
    session: &DescribedSession,
    base: &str,
    parent: &str,
    asking: Option<&Asking>,
    about: &str,
) -> Vec<Node> {
    let replies = asking.into_iter().flat_map(Asking::replies);
    replies
        .filter_map(|reply| {
            let document = reply.replied.thought.as_ref().filter(|document| document.stored)?;
            let is_marked = reply.name == reply.name.first_asking() || base.ends_with(RETRY);
            let again = if is_marked { "" } else { RETRY };
            let streamed = streamed(session, &reply.name, reply.attempt);
            Some(thought(&format!("{base}{again}/thought"), parent, &streamed, about, document))
        })
        .collect()
}

/// The id under which the thought of a reply was streamed.
pub(crate) fn streamed(session: &DescribedSession, reply: &Name, attempt: u32) -> String {
    iri::message_id(&session.id, &format!("{reply}/thought"), attempt)
}

pub(crate) fn thought(iri: &str, parent: &str, streamed: &str, about: &str, document: &Document) -> Node {
    let streamed_under_another_name = (streamed != iri).then_some(streamed);
    Node::new(iri)
        .types(&[tg::class::REFLECTION, tg::class::THOUGHT])
        .label("Thought")
        .derived_from([parent])
        .document(iri, format!("Agent Thought: {about}"), Some(document))
        .texts(trellis::MESSAGE_ID, streamed_under_another_name)
}
