//! How a session begins: the question and its routing.

use super::asked::thoughts;
use super::asking::Asking;
use super::decision::{NamedDocument, PlacedDecision, decision_nodes, place};
use super::described_session::{DescribedSession, Routing};
use trellis_domain::decision::DecisionKind;
use trellis_domain::document::Document;
use trellis_domain::history::in_words;
use trellis_domain::record::{Accepted, Header, Routed};
use trellis_domain::{Caller, Configured, RequestId};
use trellis_provenance::Act;
use trellis_provenance::iri;
use trellis_provenance::node::Node;
use trellis_provenance::vocabulary::{prov, tg, trellis};

/// The question, and the activity that everything in the session was done by: PROV-O keeps entities
/// and activities apart, so they are two nodes. A subagent's question derives from the decomposition that it is part of.
pub(crate) fn question(session: &DescribedSession, header: &Header, accepted: &Accepted) -> Act {
    let root = iri::session(&session.id);
    let (parent, caller) = (accepted.parent.as_ref(), accepted.by.as_ref());
    let asker = caller.and_then(|caller| person(iri::asker(&session.id), caller));
    let brought = brought(session, accepted);
    let earlier = accepted.earlier.iter().filter_map(|earlier| earlier.run.as_ref()).map(iri::session);
    let question = Node::new(&root)
        .types(&[prov::class::ENTITY, tg::class::QUESTION, tg::class::AGENT_QUESTION])
        .label("Agent Question")
        .text(prov::STARTED_AT_TIME, header.time)
        .text(tg::QUERY, accepted.question.text())
        .derived_from(parent.map(|parent| iri::decomposition(&parent.session, parent.round)))
        .texts(tg::PARENT_CORRELATION_ID, parent.map(|parent| &parent.correlation))
        .links(tg::PARENT_SESSION_ID, parent.map(|parent| iri::session(&parent.session)))
        .texts(trellis::SIBLING_INDEX, parent.map(|parent| parent.index))
        .texts(trellis::TOOL_GROUP, accepted.group.iter().flatten())
        .links(trellis::EARLIER_QUESTION, earlier)
        .links_to(trellis::BROUGHT_HISTORY, brought.as_slice())
        .link(trellis::RUN, iri::run(&session.id))
        .links(prov::WAS_ATTRIBUTED_TO, asker.as_ref().map(Node::iri))
        .links(trellis::CONFIGURATION, accepted.configured.as_ref().map(|_| iri::configuration(&session.id)))
        .texts(trellis::SURFACE, caller.map(|caller| caller.surface))
        .texts(trellis::WORKSPACE, caller.map(|_| &header.workspace))
        .texts(trellis::REQUEST_ID, caller.map(|_| accepted.request_id.as_ref().map_or("", RequestId::as_str)))
        .marks(header.attempt, header.late);
    let run = Node::new(iri::run(&session.id))
        .types(&[prov::class::ACTIVITY])
        .label("Agent Run")
        .text(prov::STARTED_AT_TIME, header.time);
    let mut nodes = vec![question, run];
    nodes.extend(brought);
    nodes.extend(asker);
    nodes.extend(accepted.configured.iter().flat_map(|made| configuration(session, made)));
    Act { id: root, nodes }
}

/// The steps that the caller brought along. The question does not derive from them: for stock readers, what derives
/// from something is no question of its own.
fn brought(session: &DescribedSession, accepted: &Accepted) -> Option<Node> {
    let text = Document::stored(in_words(&accepted.history, str::to_owned))?;
    let node = Node::pinned(iri::brought_history(&session.id), "Brought History", &text)
        .types(&[prov::class::ENTITY, trellis::class::BROUGHT_HISTORY])
        .label("Brought History")
        .text(trellis::BROUGHT_STEPS, accepted.history.len());
    Some(node)
}

/// The configuration that the run began with, and whoever made it what it is.
fn configuration(session: &DescribedSession, made: &Configured) -> impl Iterator<Item = Node> {
    let by = person(iri::configurer(&session.id), &made.by);
    let node = Node::new(iri::configuration(&session.id))
        .types(&[prov::class::ENTITY, trellis::class::CONFIGURATION])
        .label(format!("Configuration {}", made.version))
        .text(prov::GENERATED_AT_TIME, made.time)
        .text(trellis::CONFIG_VERSION, made.version)
        .text(trellis::SURFACE, made.by.surface)
        .links(prov::WAS_ATTRIBUTED_TO, by.as_ref().map(Node::iri));
    std::iter::once(node).chain(by)
}

/// Somebody, if it is known who that is.
pub(crate) fn person(iri: String, caller: &Caller) -> Option<Node> {
    let name = caller.name.as_ref()?;
    Some(Node::new(iri).types(&[prov::class::AGENT]).label(name))
}

/// The routing twice, as the original and as the specification write it, and the choices behind it. Where a model was
/// asked, each choice tells what that took.
pub(crate) fn routing(session: &mut DescribedSession, header: &Header, routed: &Routed) -> Act {
    let decided = iri::pattern_decision(&session.id);
    let mut decisions = place(&decided, &routed.decisions);
    let mut reasoning = Vec::new();
    for (kind, question) in [(DecisionKind::TaskType, Routing::TaskType), (DecisionKind::Pattern, Routing::Pattern)] {
        let asking = session.routing.remove(&question);
        let base = iri::named(&session.id, &question.name());
        reasoning.extend(thoughts(session, &base, &decided, asking.as_ref(), kind.as_str()));
        if let Some(placed) = decisions.iter_mut().find(|placed| placed.is(kind)) {
            placed.cost = asking.as_ref().map(Asking::cost);
            placed.failures = asking.iter().flat_map(Asking::failures).collect();
        }
    }
    let pattern = decisions.iter_mut().find(|placed| placed.is(DecisionKind::Pattern));
    // The specification has a name of its own for this one document.
    let pattern = pattern.map(|placed| {
        let (id, title) = (iri::routing_rationale(&session.id), "Routing rationale".to_owned());
        placed.rationale = NamedDocument { id, title };
        &*placed
    });
    let mut nodes = vec![
        pattern_decision(session, header, routed, pattern).links_to(tg::THOUGHT, &reasoning),
        routing_decision(session, routed, pattern),
        Node::new(iri::run(&session.id)).link(prov::WAS_ASSOCIATED_WITH, iri::pattern(&routed.pattern)),
    ];
    nodes.extend(reasoning);
    nodes.push(Node::new(&decided).links(trellis::DECISION, decisions.iter().map(|placed| &placed.iri)));
    nodes.extend(decision_nodes(decisions));
    session.routed = true;
    Act { id: decided, nodes }
}

/// The two names of the routing point at each other: neither can go missing unnoticed.
fn pattern_decision(
    session: &DescribedSession,
    header: &Header,
    routed: &Routed,
    pattern: Option<&PlacedDecision<'_>>,
) -> Node {
    Node::new(iri::pattern_decision(&session.id))
        .types(&[prov::class::ENTITY, tg::class::PATTERN_DECISION])
        .label(format!("Pattern: {}", routed.pattern))
        .text(tg::PATTERN, &routed.pattern)
        .derived_from([iri::session(&session.id)])
        .texts(tg::TASK_TYPE, task_type(routed))
        .texts(trellis::DECIDED_BY, pattern.map(|placed| placed.decision.decided_by))
        .link(prov::ALTERNATE_OF, iri::routing(&session.id))
        .text(trellis::LIMITS, limits(routed))
        .marks(header.attempt, header.late)
}

fn routing_decision(session: &DescribedSession, routed: &Routed, pattern: Option<&PlacedDecision<'_>>) -> Node {
    let candidates = pattern.into_iter().flat_map(|placed| &placed.decision.options);
    Node::new(iri::routing(&session.id))
        .types(&[prov::class::ENTITY, tg::class::ROUTING_DECISION])
        .label("Routing")
        .link(prov::WAS_GENERATED_BY, iri::run(&session.id))
        .links(tg::TASK_TYPE, task_type(routed).map(iri::task_type))
        .link(tg::SELECTED_PATTERN, iri::pattern(&routed.pattern))
        .links(tg::CANDIDATE_PATTERNS, candidates.map(|name| iri::pattern(name)))
        .links(tg::ROUTING_RATIONALE, pattern.and_then(PlacedDecision::rationale_id))
        .link(prov::ALTERNATE_OF, iri::pattern_decision(&session.id))
}

/// The limits in force, as JSON.
fn limits(routed: &Routed) -> String {
    serde_json::to_string(&routed.limits).expect("numbers under names are always JSON")
}

fn task_type(routed: &Routed) -> Option<&str> {
    Some(routed.task_type.as_str()).filter(|name| !name.is_empty())
}
