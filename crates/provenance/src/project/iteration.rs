//! One iteration of ReAct: what the model did and what came back.

use super::asked::told;
use super::decision::{PlacedDecision, place};
use crate::asking::Asking;
use crate::iri;
use crate::node::Node;
use crate::session::{Session, is_step};
use crate::vocabulary::{PARSE_ERROR, prov, tg, trellis};
use serde_json::{Map, Value};
use trellis_domain::decision::DecisionKind;
use trellis_domain::record::{Header, Observed, Reading, Replied};

/// So many iterations derive from one another. The stock walk goes no deeper than 50 nodes, of which an iteration is two:
/// a longer session is told in stretches, each of which derives from the question, as all of them do.
const STRETCH: u32 = 20;

/// A reply that acts is a step. One that ends the session is told by the conclusion, unless it came too
/// late for that: then it gets a node of its own, because it was paid for.
pub(super) fn reply(session: &mut Session, header: &Header, n: u32, replied: &Replied) -> Option<(String, Vec<Node>)> {
    let iri = iri::iteration(&session.id, n);
    let asking = Asking::one(header, replied);
    if !is_step(&replied.reading) && !header.late {
        session.closing = Some(asking);
        return None;
    }
    let decisions = place(&iri, &replied.decision);
    let main = if is_step(&replied.reading) {
        with_action(Node::new(&iri), &replied.reading, &decisions)
    } else {
        Node::new(&iri).types(&[prov::class::ENTITY, trellis::class::LATE_REPLY]).label("Late Reply")
    };
    let before = session.last.clone().filter(|_| n > 1 && n % STRETCH == 1);
    let parents = if before.is_some() { session.first_parents() } else { session.parents_of_next() };
    let main = main
        .text(tg::STEP_NUMBER, n)
        .derived_from(parents)
        .links(prov::WAS_INFLUENCED_BY, before)
        .marks(header.attempt, header.late);
    let nodes = told(session, main, Some(&asking), decisions, action(&replied.reading));
    if !header.late {
        session.last = Some(iri.clone());
    }
    Some((iri, nodes))
}

fn with_action(node: Node, reading: &Reading, decisions: &[PlacedDecision<'_>]) -> Node {
    let tools = decisions.iter().filter(|placed| placed.is(DecisionKind::Tool));
    node.types(&[prov::class::ENTITY, tg::class::ANALYSIS, tg::class::TOOL_USE])
        .label(format!("Analysis: {}", action(reading)))
        .text(tg::ACTION, action(reading))
        .text(tg::ARGUMENTS, arguments(reading))
        .texts(tg::TOOL_CANDIDATE, tools.flat_map(|placed| &placed.decision.options))
}

/// The tool that a step names; the word `answer` where the original would have no step.
pub(super) fn action(reading: &Reading) -> &str {
    match reading {
        Reading::Action { tool, .. } => tool,
        Reading::Unreadable { .. } => PARSE_ERROR,
        Reading::Answer { .. }
        | Reading::Failed { .. }
        | Reading::Chosen { .. }
        | Reading::Plan { .. }
        | Reading::Step { .. }
        | Reading::Revision { .. }
        | Reading::Goals { .. }
        | Reading::Review { .. } => "answer",
    }
}

fn arguments(reading: &Reading) -> String {
    match reading {
        Reading::Action { arguments, .. } => as_json(arguments),
        Reading::Unreadable { .. }
        | Reading::Answer { .. }
        | Reading::Failed { .. }
        | Reading::Chosen { .. }
        | Reading::Plan { .. }
        | Reading::Step { .. }
        | Reading::Revision { .. }
        | Reading::Goals { .. }
        | Reading::Review { .. } => "{}".to_owned(),
    }
}

pub(super) fn as_json(arguments: &Map<String, Value>) -> String {
    serde_json::to_string(arguments).expect("a map with text keys is always JSON")
}

/// A tool's result. It must not be called a reflection, or the stock walk would stop here.
pub(super) fn observation(session: &mut Session, header: &Header, n: u32, observed: &Observed) -> (String, Vec<Node>) {
    let iri = iri::observation(&session.id, n);
    let node = Node::new(&iri)
        .types(&[prov::class::ENTITY, tg::class::OBSERVATION])
        .label("Observation")
        .derived_from([iri::iteration(&session.id, n)])
        .document(&iri, "Agent Observation", observed.result.as_ref())
        .error(observed.error.as_deref())
        .marks(header.attempt, header.late);
    if !header.late {
        session.last = Some(iri.clone());
    }
    (iri, vec![with_tool_facts(node, observed).cost(&observed.usage)])
}

/// What is known of a tool call once it is over.
pub(super) fn with_tool_facts(node: Node, observed: &Observed) -> Node {
    node.text(tg::TOOL_DURATION_MS, observed.ms)
        .texts(trellis::STATE, observed.state.as_ref())
        .texts(trellis::IDEMPOTENCY_KEY, observed.idempotency_key.as_ref())
}
