//! Sessions, and what ties them together.

use super::order::place;
use super::parts::{DocumentLink, Mark, mark, pinned};
use super::read::step;
use super::{Step, Trace};
use crate::graph::{QuadIndex, Subject};
use crate::iri;
use crate::vocabulary::{prov, tg, trellis};
use serde::Serialize;
use trellis_domain::rdf::Quad;

/// One session: its question and how it went.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SessionTrace {
    /// IRI of the question.
    pub id: String,
    pub session: String,
    pub question: String,
    pub started: Option<String>,
    pub ended: Option<String>,
    pub conversation: Option<String>,
    pub pattern: Option<String>,
    pub task_type: Option<String>,
    /// Steps that the caller brought along.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<DocumentLink>,
    /// Where a subagent's session hangs; none for the root of a run.
    pub parent: Option<ParentLink>,
    pub steps: Vec<Step>,
    /// How a subagent reported back.
    pub completion: Option<Completion>,
    pub totals: Totals,
    /// The same with all subagents, if there were any.
    pub totals_with_subagents: Option<Totals>,
    pub mark: Mark,
}

/// The fan-out that began a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ParentLink {
    /// IRI of the decomposition that the session is a part of.
    pub decomposition: Option<String>,
    /// IRI of the parent's question.
    pub session: Option<String>,
    pub correlation: Option<String>,
    /// Siblings are told apart by it.
    pub index: Option<u64>,
}

/// A subagent's end, as its parent's fan-in knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Completion {
    pub id: String,
    pub correlation: Option<String>,
    pub parent_session: Option<String>,
    pub goal: Option<String>,
    /// Id of the document with the answer.
    pub result: Option<String>,
    pub status: Option<String>,
    pub error: Option<String>,
}

/// What a whole session took, as far as it was recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    pub in_token: Option<u64>,
    pub out_token: Option<u64>,
    pub model_calls: Option<u64>,
    pub tool_calls: Option<u64>,
    pub model_ms: Option<u64>,
    pub tool_ms: Option<u64>,
    /// How many sessions there were below.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agents: Option<u64>,
}

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
    let graph = QuadIndex::new(quads);
    let roots = graph.of_class(tg::class::AGENT_QUESTION);
    let mut sessions: Vec<_> = roots.filter_map(|root| session_trace(&graph, root)).collect();
    // Siblings begin at the same time: their numbers decide.
    let index = |session: &SessionTrace| session.parent.as_ref().and_then(|parent| parent.index);
    sessions.sort_by(|a, b| (started(a), index(a), &a.id).cmp(&(started(b), index(b), &b.id)));
    Trace { sessions }
}

/// Whole seconds are written without a fraction: without the zone's letter, texts are in the order of their times.
fn started(session: &SessionTrace) -> Option<&str> {
    session.started.as_deref().map(|time| time.trim_end_matches('Z'))
}

fn session_trace(graph: &QuadIndex<'_>, root: Subject<'_>) -> Option<SessionTrace> {
    let session = iri::session_of(root.iri)?;
    let run = graph.subject(&format!("{}/run", root.iri));
    let routing = graph.within(session).find(|node| node.is(tg::class::PATTERN_DECISION));
    let mut steps: Vec<_> =
        graph.within(session).filter_map(|node| Some((place(graph, node), step(graph, node)?))).collect();
    steps.sort_by_key(|(place, _)| *place);
    Some(SessionTrace {
        id: root.iri.to_owned(),
        session: session.to_owned(),
        question: root.text(tg::QUERY).unwrap_or_default(),
        started: root.text(prov::STARTED_AT_TIME),
        ended: run.and_then(|run| run.text(prov::ENDED_AT_TIME)),
        conversation: root.text(trellis::CONVERSATION_ID),
        pattern: routing.and_then(|routing| routing.text(tg::PATTERN)),
        task_type: routing.and_then(|routing| routing.text(tg::TASK_TYPE)),
        history: root.link(trellis::BROUGHT_HISTORY).and_then(|iri| pinned(graph.subject(&iri)?)),
        parent: parent(root),
        steps: steps.into_iter().map(|(_, step)| step).collect(),
        completion: graph.within(session).find(|node| node.is(tg::class::SUBAGENT_COMPLETION)).map(completion),
        totals: run.map(totals).unwrap_or_default(),
        totals_with_subagents: run.map(run_totals).filter(|totals| *totals != Totals::default()),
        mark: mark(root),
    })
}

fn parent(root: Subject<'_>) -> Option<ParentLink> {
    let link = ParentLink {
        decomposition: root.link(prov::WAS_DERIVED_FROM),
        session: root.link(tg::PARENT_SESSION_ID),
        correlation: root.text(tg::PARENT_CORRELATION_ID),
        index: root.number(trellis::SIBLING_INDEX),
    };
    (link.decomposition.is_some() || link.session.is_some()).then_some(link)
}

fn completion(node: Subject<'_>) -> Completion {
    Completion {
        id: node.iri.to_owned(),
        correlation: node.text(tg::CORRELATION_ID),
        parent_session: node.text(tg::PARENT_SESSION_ID),
        goal: node.text(tg::SUBAGENT_GOAL),
        result: node.link(tg::RESULT),
        status: node.text(tg::STATUS),
        error: node.text(tg::TOOL_ERROR),
    }
}

fn totals(run: Subject<'_>) -> Totals {
    Totals {
        in_token: run.number(trellis::TOTAL_IN_TOKEN),
        out_token: run.number(trellis::TOTAL_OUT_TOKEN),
        model_calls: run.number(trellis::MODEL_CALLS),
        tool_calls: run.number(trellis::TOOL_CALLS),
        model_ms: run.number(trellis::MODEL_MS),
        tool_ms: run.number(trellis::TOOL_MS),
        agents: None,
    }
}

fn run_totals(run: Subject<'_>) -> Totals {
    Totals {
        in_token: run.number(trellis::RUN_IN_TOKEN),
        out_token: run.number(trellis::RUN_OUT_TOKEN),
        model_calls: run.number(trellis::RUN_MODEL_CALLS),
        tool_calls: run.number(trellis::RUN_TOOL_CALLS),
        model_ms: run.number(trellis::RUN_MODEL_MS),
        tool_ms: run.number(trellis::RUN_TOOL_MS),
        agents: run.number(trellis::RUN_AGENTS),
    }
}
