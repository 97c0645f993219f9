//! One iteration: what the model did and what came back.

use super::decision::{PlacedDecision, decision_nodes, place};
use super::thought;
use crate::iri;
use crate::node::Node;
use crate::session::{Session, is_step, iteration};
use crate::vocabulary::{PARSE_ERROR, prov, tg, trellis};
use trellis_domain::decision::DecisionKind;
use trellis_domain::record::{Header, Observed, Reading, Replied};
use trellis_domain::usage::Usage;

/// A reply that acts is a step. One that ends the session is told by the conclusion, unless it came too
/// late for that: then it gets a node of its own, because it was paid for.
pub(super) fn reply(session: &Session<'_>, header: &Header, replied: &Replied) -> Option<(String, Vec<Node>)> {
    let n = iteration(header)?;
    let iri = iri::iteration(session.id, n);
    let decisions = place(session.id, &iri, &replied.decision);
    let main = match (is_step(&replied.reading), header.late) {
        (true, _) => with_action(Node::new(&iri), &replied.reading, &decisions),
        (false, true) => Node::new(&iri).types(&[prov::class::ENTITY, trellis::class::LATE_REPLY]).label("Late Reply"),
        (false, false) => return None,
    };
    let thought_node = thought_node(session, header, n, replied);
    let main = main
        .text(tg::STEP_NUMBER, n)
        .derived_from(session.parents_of_iteration(n))
        .links(tg::THOUGHT, thought_node.is_some().then(|| iri::thought(session.id, n)))
        .links(trellis::DECISION, decisions.iter().map(|placed| &placed.iri))
        .marks(header, session.conversation());
    let mut nodes = vec![with_cost(main, replied)];
    nodes.extend(thought_node);
    nodes.extend(decision_nodes(&decisions));
    Some((iri, nodes))
}

fn with_action(node: Node, reading: &Reading, decisions: &[PlacedDecision<'_>]) -> Node {
    let tools = decisions.iter().filter(|placed| placed.decision.kind == DecisionKind::Tool);
    node.types(&[prov::class::ENTITY, tg::class::ANALYSIS, tg::class::TOOL_USE])
        .label(format!("Analysis: {}", action(reading)))
        .text(tg::ACTION, action(reading))
        .text(tg::ARGUMENTS, arguments(reading))
        .texts(tg::TOOL_CANDIDATE, tools.flat_map(|placed| &placed.decision.options))
}

/// The tool that a step names; the word `answer` where the original would have no step.
pub(crate) fn action(reading: &Reading) -> &str {
    match reading {
        Reading::Action { tool, .. } => tool,
        Reading::Unreadable { .. } => PARSE_ERROR,
        Reading::Answer { .. } | Reading::Failed { .. } => "answer",
    }
}

fn arguments(reading: &Reading) -> String {
    match reading {
        Reading::Action { arguments, .. } => {
            serde_json::to_string(arguments).expect("a map with text keys is always JSON")
        }
        Reading::Unreadable { .. } | Reading::Answer { .. } | Reading::Failed { .. } => "{}".to_owned(),
    }
}

/// What a model call took. Counts that the provider did not report stay absent: missing is not zero.
pub(super) fn with_cost(node: Node, replied: &Replied) -> Node {
    node.text(tg::LLM_DURATION_MS, replied.ms)
        .texts(tg::IN_TOKEN, replied.in_token)
        .texts(tg::OUT_TOKEN, replied.out_token)
        .texts(tg::LLM_MODEL, replied.model.as_ref())
}

fn thought_node(session: &Session<'_>, header: &Header, n: u32, replied: &Replied) -> Option<Node> {
    let document = replied.thought.as_ref().filter(|document| document.stored)?;
    let streamed = iri::message_id(session.id, &format!("i{n}/thought"), header.attempt);
    Some(thought(&iri::thought(session.id, n), &iri::iteration(session.id, n), &streamed, document))
}

/// A tool's result. It must not be called a reflection, or the stock walk would stop here.
pub(super) fn observation(session: &Session<'_>, header: &Header, observed: &Observed) -> Option<(String, Vec<Node>)> {
    let n = iteration(header)?;
    let iri = iri::observation(session.id, n);
    let node = Node::new(&iri)
        .types(&[prov::class::ENTITY, tg::class::OBSERVATION])
        .label("Observation")
        .derived_from([iri::iteration(session.id, n)])
        .document(&iri, observed.result.as_ref())
        .text(tg::TOOL_DURATION_MS, observed.ms)
        .error(observed.error.as_deref())
        .texts(trellis::STATE, observed.state.as_ref())
        .texts(trellis::IDEMPOTENCY_KEY, observed.idempotency_key.as_ref())
        .marks(header, session.conversation());
    Some((iri, vec![with_usage(node, &observed.usage)]))
}

/// What a tool spent on models of its own, if it asked any.
fn with_usage(node: Node, usage: &Usage) -> Node {
    node.texts(tg::LLM_DURATION_MS, (usage.model_ms > 0).then_some(usage.model_ms))
        .texts(tg::IN_TOKEN, usage.in_token)
        .texts(tg::OUT_TOKEN, usage.out_token)
        .texts(tg::LLM_MODEL, usage.model.as_ref())
}
