//! How a session begins: the question and its routing.

use super::decision::{PlacedDecision, decision_nodes, place};
use crate::iri;
use crate::node::Node;
use crate::session::Session;
use crate::vocabulary::{prov, tg, trellis};
use trellis_domain::decision::DecisionKind;
use trellis_domain::record::{Accepted, Header, Routed};

/// The question, and the activity that everything in the session was done by: PROV-O keeps entities
/// and activities apart, so they are two nodes.
pub(super) fn question(session: &Session<'_>, header: &Header, accepted: &Accepted) -> (String, Vec<Node>) {
    let root = iri::session(session.id);
    let question = Node::new(&root)
        .types(&[prov::class::ENTITY, tg::class::QUESTION, tg::class::AGENT_QUESTION])
        .label("Agent Question")
        .text(prov::STARTED_AT_TIME, header.time)
        .text(tg::QUERY, accepted.question.text())
        .marks(header, session.conversation());
    let run = Node::new(iri::run(session.id))
        .types(&[prov::class::ACTIVITY])
        .label("Agent Run")
        .text(prov::STARTED_AT_TIME, header.time);
    (root, vec![question, run])
}

/// The routing twice, as the original and as the specification write it, and the choices behind it.
pub(super) fn routing(session: &Session<'_>, header: &Header, routed: &Routed) -> (String, Vec<Node>) {
    let decided = iri::pattern_decision(session.id);
    let decisions = place(session.id, &decided, &routed.decisions);
    let pattern = decisions.iter().find(|placed| placed.decision.kind == DecisionKind::Pattern);
    let mut nodes = vec![
        pattern_decision(session, header, routed, pattern).links(trellis::DECISION, decisions.iter().map(|d| &d.iri)),
        routing_decision(session, routed, pattern),
        Node::new(iri::run(session.id)).link(prov::WAS_ASSOCIATED_WITH, iri::pattern(&routed.pattern)),
    ];
    nodes.extend(decision_nodes(&decisions));
    (decided, nodes)
}

fn pattern_decision(
    session: &Session<'_>,
    header: &Header,
    routed: &Routed,
    pattern: Option<&PlacedDecision<'_>>,
) -> Node {
    Node::new(iri::pattern_decision(session.id))
        .types(&[prov::class::ENTITY, tg::class::PATTERN_DECISION])
        .label(format!("Pattern: {}", routed.pattern))
        .text(tg::PATTERN, &routed.pattern)
        .derived_from([iri::session(session.id)])
        .texts(tg::TASK_TYPE, task_type(routed))
        .texts(trellis::DECIDED_BY, pattern.map(|placed| placed.decision.decided_by))
        .marks(header, session.conversation())
}

fn routing_decision(session: &Session<'_>, routed: &Routed, pattern: Option<&PlacedDecision<'_>>) -> Node {
    let candidates = pattern.into_iter().flat_map(|placed| &placed.decision.options);
    Node::new(iri::routing(session.id))
        .types(&[prov::class::ENTITY, tg::class::ROUTING_DECISION])
        .label("Routing")
        .link(prov::WAS_GENERATED_BY, iri::run(session.id))
        .links(tg::TASK_TYPE, task_type(routed).map(iri::task_type))
        .link(tg::SELECTED_PATTERN, iri::pattern(&routed.pattern))
        .links(tg::CANDIDATE_PATTERNS, candidates.map(|name| iri::pattern(name)))
        .links(tg::ROUTING_RATIONALE, pattern.and_then(PlacedDecision::stored_rationale).map(|(id, _)| id))
        .link(prov::ALTERNATE_OF, iri::pattern_decision(session.id))
}

fn task_type(routed: &Routed) -> Option<&str> {
    Some(routed.task_type.as_str()).filter(|name| !name.is_empty())
}
