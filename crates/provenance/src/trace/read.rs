//! Reading the steps of each session.

use super::decision::{decisions, word};
use super::{
    Analysis, Conclusion, Cost, DocumentLink, LateReply, Mark, Observation, Routing, SessionTrace, Step, Thought,
    Totals, Trace,
};
use crate::graph::{Graph, Subject};
use crate::iri;
use crate::vocabulary::{prov, tg, trellis};
use serde_json::Value;
use trellis_domain::rdf::Quad;
use trellis_domain::run::Termination;

/// Reads the sessions that some quads tell of.
///
/// ```
/// use trellis_domain::rdf::{Quad, Term};
/// use trellis_provenance::trace;
/// use trellis_provenance::vocabulary::{rdf, tg};
///
/// let say = |p, o| Quad { s: Term::iri("urn:trustgraph:agent:8f2c1a"), p: Term::iri(p), o, g: None };
/// let quads = [say(rdf::TYPE, Term::iri(tg::class::AGENT_QUESTION)), say(tg::QUERY, Term::literal("why?"))];
/// let sessions = trace(&quads).sessions;
/// assert_eq!((sessions[0].session.as_str(), sessions[0].question.as_str()), ("8f2c1a", "why?"));
/// ```
pub fn trace(quads: &[Quad]) -> Trace {
    let graph = Graph::new(quads);
    let roots = graph.of_class(tg::class::AGENT_QUESTION);
    let mut sessions: Vec<_> = roots.filter_map(|root| session_trace(&graph, root)).collect();
    sessions.sort_by(|a, b| (&a.started, &a.id).cmp(&(&b.started, &b.id)));
    Trace { sessions }
}

fn session_trace(graph: &Graph<'_>, root: Subject<'_>) -> Option<SessionTrace> {
    let session = iri::session_of(root.iri)?;
    let run = graph.subject(&format!("{}/run", root.iri));
    let routing = graph.within(session).find(|node| node.is(tg::class::PATTERN_DECISION));
    let mut steps: Vec<_> = graph.within(session).filter_map(|node| step(graph, node)).collect();
    steps.sort_by_key(place);
    Some(SessionTrace {
        id: root.iri.to_owned(),
        session: session.to_owned(),
        question: root.text(tg::QUERY).unwrap_or_default(),
        started: root.text(prov::STARTED_AT_TIME),
        ended: run.and_then(|run| run.text(prov::ENDED_AT_TIME)),
        conversation: root.text(trellis::CONVERSATION_ID),
        pattern: routing.and_then(|routing| routing.text(tg::PATTERN)),
        task_type: routing.and_then(|routing| routing.text(tg::TASK_TYPE)),
        steps,
        totals: run.map(totals).unwrap_or_default(),
    })
}

fn totals(run: Subject<'_>) -> Totals {
    Totals {
        in_token: run.number(trellis::TOTAL_IN_TOKEN),
        out_token: run.number(trellis::TOTAL_OUT_TOKEN),
        model_calls: run.number(trellis::MODEL_CALLS),
        tool_calls: run.number(trellis::TOOL_CALLS),
    }
}

/// Where a step stands. Numbers decide, not names: `i10` comes after `i9`.
fn place(step: &Step) -> (u32, u8) {
    match step {
        Step::Routing(_) => (0, 0),
        Step::Analysis(analysis) => (analysis.n, 1),
        Step::LateReply(reply) => (reply.n, 1),
        Step::Observation(observation) => (observation.n, 2),
        Step::Conclusion(_) => (u32::MAX, 3),
    }
}

fn step(graph: &Graph<'_>, node: Subject<'_>) -> Option<Step> {
    if node.is(tg::class::PATTERN_DECISION) {
        Some(Step::Routing(routing(graph, node)))
    } else if node.is(tg::class::ANALYSIS) {
        Some(Step::Analysis(analysis(graph, node)))
    } else if node.is(tg::class::OBSERVATION) {
        Some(Step::Observation(observation(node)))
    } else if node.is(trellis::class::LATE_REPLY) {
        Some(Step::LateReply(late_reply(graph, node)))
    } else if node.is(tg::class::CONCLUSION) {
        Some(Step::Conclusion(conclusion(graph, node)))
    } else {
        None
    }
}

fn routing(graph: &Graph<'_>, node: Subject<'_>) -> Routing {
    Routing {
        id: node.iri.to_owned(),
        pattern: node.text(tg::PATTERN),
        task_type: node.text(tg::TASK_TYPE),
        decisions: decisions(graph, node),
        mark: mark(node),
    }
}

fn analysis(graph: &Graph<'_>, node: Subject<'_>) -> Analysis {
    Analysis {
        id: node.iri.to_owned(),
        n: number(node),
        tool: node.text(tg::ACTION).unwrap_or_default(),
        arguments: node.text(tg::ARGUMENTS).map_or(Value::Null, arguments),
        candidates: node.all_texts(tg::TOOL_CANDIDATE),
        decisions: decisions(graph, node),
        thought: thought(graph, node),
        cost: cost(node),
        mark: mark(node),
    }
}

fn arguments(text: String) -> Value {
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}

fn observation(node: Subject<'_>) -> Observation {
    Observation {
        id: node.iri.to_owned(),
        n: number(node),
        document: document(node),
        error: node.text(tg::TOOL_ERROR),
        tool_ms: node.number(tg::TOOL_DURATION_MS),
        cost: cost(node),
        state: node.text(trellis::STATE),
        idempotency_key: node.text(trellis::IDEMPOTENCY_KEY),
        mark: mark(node),
    }
}

fn late_reply(graph: &Graph<'_>, node: Subject<'_>) -> LateReply {
    LateReply {
        id: node.iri.to_owned(),
        n: number(node),
        thought: thought(graph, node),
        cost: cost(node),
        mark: mark(node),
    }
}

fn conclusion(graph: &Graph<'_>, node: Subject<'_>) -> Conclusion {
    Conclusion {
        id: node.iri.to_owned(),
        reason: word(node, tg::TERMINATION_REASON, Termination::from_word),
        document: document(node),
        error: node.text(tg::TOOL_ERROR),
        decisions: decisions(graph, node),
        thought: thought(graph, node),
        cost: cost(node),
        mark: mark(node),
    }
}

/// The step's number; some foreign graphs have it in the IRI only.
fn number(node: Subject<'_>) -> u32 {
    let stated = node.number(tg::STEP_NUMBER).and_then(|n| u32::try_from(n).ok());
    stated.or_else(|| iri::iteration_of(node.iri)).unwrap_or(0)
}

fn thought(graph: &Graph<'_>, node: Subject<'_>) -> Option<Thought> {
    let thought = graph.subject(node.links(tg::THOUGHT).next()?)?;
    Some(Thought {
        id: thought.iri.to_owned(),
        document: document(thought),
        message_id: thought.text(trellis::MESSAGE_ID),
    })
}

fn document(node: Subject<'_>) -> Option<DocumentLink> {
    Some(DocumentLink { id: node.link(tg::DOCUMENT)?, sha256: node.text(trellis::DOCUMENT_HASH) })
}

fn cost(node: Subject<'_>) -> Cost {
    Cost {
        model: node.text(tg::LLM_MODEL),
        model_ms: node.number(tg::LLM_DURATION_MS),
        in_token: node.number(tg::IN_TOKEN),
        out_token: node.number(tg::OUT_TOKEN),
    }
}

fn mark(node: Subject<'_>) -> Mark {
    Mark {
        attempt: node.number(trellis::ATTEMPT).unwrap_or(1),
        late: node.texts(trellis::LATE).any(|word| word == "true"),
    }
}
