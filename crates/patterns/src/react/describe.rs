//! What the iterations of ReAct mean to a reader: what the model did and what came back.

use super::IterationNames;
use crate::describe::asked::described;
use crate::describe::asking::Asking;
use crate::describe::decision::{PlacedDecision, decision_nodes, place};
use crate::describe::described_session::DescribedSession;
use crate::describe::{Describer, Rest};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use trellis_domain::decision::DecisionKind;
use trellis_domain::record::{Body, Ended, Header, Name, Observed, Reading, Record, Replied};
use trellis_domain::{SessionId, ToolName};
use trellis_provenance::node::Node;
use trellis_provenance::vocabulary::{PARSE_ERROR, prov, tg, trellis};
use trellis_provenance::{Act, iri};

/// So many nodes derive from one another. The stock walk goes no deeper than 50: a longer session is told in stretches,
/// each of which derives from the question, as all of them do.
const STRETCH: u32 = 40;

#[derive(Debug)]
pub(crate) struct Iterations {
    /// How many nodes an iteration has, one behind the other.
    nodes: u32,
    /// How many there are in this stretch.
    depth: u32,
    /// What the next iteration derives from, if it is not the first.
    last: Option<String>,
    /// What came back beside it.
    beside: BTreeMap<u32, String>,
    /// What came back in each iteration, for answers that cite it.
    observed: BTreeMap<u32, Vec<String>>,
    /// The reply after which no iteration follows: its words belong to the conclusion.
    closing: Option<Asking>,
}

impl Default for Iterations {
    fn default() -> Self {
        Self::of_nodes(2)
    }
}

impl Describer for Iterations {
    fn describe(&mut self, session: &DescribedSession, Record { header, body }: &Record) -> Vec<Act> {
        let Some(n) = header.name.iteration_of() else { return Vec::new() };
        match body {
            Body::Replied(replied) => self.reply(session, header, n, replied).into_iter().collect(),
            Body::Observed(observed) => vec![self.observation(session, header, n, observed)],
            Body::Accepted(_)
            | Body::Routed(_)
            | Body::FannedOut(_)
            | Body::Joined(_)
            | Body::Intended(_)
            | Body::InputRequired(_)
            | Body::Parked(_)
            | Body::Settled(_)
            | Body::Told(_)
            | Body::Ended(_) => Vec::new(),
        }
    }

    fn end(&mut self, _: &DescribedSession, _: &Ended) -> Rest {
        let parents = self.last.iter().cloned().collect();
        let (closing, influenced) = (self.closing.take(), self.beside());
        let citations = closing.as_ref().and_then(Asking::counting).into_iter().flat_map(|replied| &replied.citations);
        let observed = citations
            .flat_map(|cited| self.observed.get(&cited.index).into_iter().flatten().map(move |node| (node, cited)));
        let cites = observed.map(|(node, cited)| (node.clone(), cited.confidence.clone())).collect();
        Rest { closing, parents, influenced, cites, missing_property: trellis::MISSING_FINDING, ..Rest::default() }
    }
}

/// Whether a reply with this reading is a step of its own. Otherwise it is part of the conclusion.
fn is_step(reading: &Reading) -> bool {
    matches!(reading, Reading::Acted { .. } | Reading::Unusable { .. })
}

impl Iterations {
    /// Iterations of so many nodes: the call, what came back, and what the pattern adds.
    pub(crate) fn of_nodes(nodes: u32) -> Self {
        Self { nodes, depth: 0, last: None, beside: BTreeMap::new(), observed: BTreeMap::new(), closing: None }
    }

    /// The next iteration follows from this node.
    pub(crate) fn follow(&mut self, node: String) {
        (self.last, self.beside) = (Some(node), BTreeMap::new());
    }

    /// The node that the next one follows from.
    pub(crate) fn last(&self) -> Option<String> {
        self.last.clone()
    }

    /// What came back beside the last.
    pub(crate) fn beside(&self) -> Vec<String> {
        self.beside.values().filter(|id| self.last.as_ref() != Some(id)).cloned().collect()
    }

    /// A reply that acts is a step. One that ends the session is told by the conclusion, unless it came too
    /// late for that: then it gets a node of its own, because it was paid for.
    fn reply(&mut self, session: &DescribedSession, header: &Header, n: u32, replied: &Replied) -> Option<Act> {
        let id = iri::iteration(&session.id, n);
        let asking = Asking::one(header, replied);
        if !is_step(&replied.reading) && !header.late {
            self.closing = Some(asking);
            return None;
        }
        let several = replied.reading.calls().count() > 1;
        let own = if several { 1 } else { replied.decision.len() };
        let decisions = place(&id, replied.decision.iter().take(own));
        let main = if is_step(&replied.reading) {
            with_action(Node::new(&id), &replied.reading, &decisions)
        } else {
            Node::new(&id).types(&[prov::class::ENTITY, trellis::class::LATE_REPLY]).label("Late Reply")
        };
        let before = self.last.clone().filter(|_| self.depth + self.nodes > STRETCH);
        let (follows, begins_stretch) = (self.last.clone().filter(|_| before.is_none()), before.is_some());
        let beside = self.beside();
        let parents = follows.map_or_else(|| session.first_parents(), |node| vec![node]);
        let main = main
            .text(tg::STEP_NUMBER, n)
            .derived_from(parents)
            .links(prov::WAS_INFLUENCED_BY, before.into_iter().chain(beside))
            .marks(header.attempt, header.late);
        let mut nodes = described(session, main, Some(&asking), decisions, action(&replied.reading));
        nodes.extend(other_calls(&id, n, header, replied));
        if !header.late {
            let depth = if begins_stretch { 0 } else { self.depth };
            self.depth = depth + self.nodes;
            self.follow(id.clone());
        }
        Some(Act { id, nodes })
    }

    /// A tool's result. It must not be called a reflection, or the stock walk would stop here.
    fn observation(&mut self, session: &DescribedSession, header: &Header, n: u32, observed: &Observed) -> Act {
        let call = header.name.as_observation().unwrap_or(1);
        let called = node_of_call(&session.id, &header.name);
        let id = format!("{called}/observation");
        let told = observed.trace.last().map(|told| &told.id);
        let before = told.or_else(|| session.finding_of(&header.name)).cloned();
        let node = Node::new(&id)
            .types(&[prov::class::ENTITY, tg::class::OBSERVATION])
            .label("Observation")
            .derived_from([before.unwrap_or(called)])
            .document(&id, "Agent Observation", observed.result.as_ref())
            .error(observed.error.as_deref())
            .marks(header.attempt, header.late);
        if !header.late {
            // Stock readers walk along one line only: that of the first call, whichever came back first. They list a
            // node's children by name, and so the other calls before whatever follows.
            self.beside.insert(call, id.clone());
            self.observed.entry(n).or_default().push(id.clone());
            self.last = self.beside.first_entry().map(|first| first.get().clone());
        }
        Act { id, nodes: vec![with_tool_facts(node, observed).cost(&observed.usage)] }
    }
}

/// The node that the call behind an outcome is.
pub(crate) fn node_of_call(session: &SessionId, outcome: &Name) -> String {
    let n = outcome.iteration_of().unwrap_or(1);
    call_iri(&iri::iteration(session, n), outcome.as_observation().unwrap_or(1))
}

/// The node of one of the calls of a reply, counted from 1. The first is the reply's own.
fn call_iri(reply: &str, call: u32) -> String {
    if call == 1 { reply.to_owned() } else { format!("{reply}/call/{call}") }
}

/// What a reply calls besides its first, each with the choice that it is.
fn other_calls(reply: &str, n: u32, header: &Header, replied: &Replied) -> Vec<Node> {
    let calls = replied.reading.calls().zip(1..).skip(1);
    let node = |((tool, arguments), call): ((&ToolName, &Map<String, Value>), u32)| {
        let id = call_iri(reply, call);
        let decision = usize::try_from(call - 1).ok().and_then(|place| replied.decision.get(place));
        let decisions = place(&id, decision);
        let node = with_action(Node::new(&id), &Reading::acted(tool.clone(), arguments.clone()), &decisions)
            .text(tg::STEP_NUMBER, n)
            .derived_from([reply])
            .links(trellis::DECISION, decisions.iter().map(|placed| &placed.iri))
            .marks(header.attempt, header.late);
        std::iter::once(node).chain(decision_nodes(decisions)).collect::<Vec<_>>()
    };
    calls.flat_map(node).collect()
}

pub(crate) fn with_action(node: Node, reading: &Reading, decisions: &[PlacedDecision<'_>]) -> Node {
    let tools = decisions.iter().filter(|placed| placed.is(DecisionKind::Tool));
    node.types(&[prov::class::ENTITY, tg::class::ANALYSIS, tg::class::TOOL_USE])
        .label(format!("Analysis: {}", action(reading)))
        .text(tg::ACTION, action(reading))
        .text(tg::ARGUMENTS, arguments(reading))
        .texts(tg::TOOL_CANDIDATE, tools.flat_map(|placed| &placed.decision.options))
}

/// The tool that a step names; the word `answer` where the original would have no step.
fn action(reading: &Reading) -> &str {
    let otherwise = if matches!(reading, Reading::Unusable { .. }) { PARSE_ERROR } else { "answer" };
    reading.call().map_or(otherwise, |(tool, _)| tool)
}

fn arguments(reading: &Reading) -> String {
    reading.call().map_or_else(|| "{}".to_owned(), |(_, arguments)| as_json(arguments))
}

pub(crate) fn as_json(arguments: &Map<String, Value>) -> String {
    serde_json::to_string(arguments).expect("a map with text keys is always JSON")
}

/// What is known of a tool call once it is over.
pub(crate) fn with_tool_facts(node: Node, observed: &Observed) -> Node {
    node.text(tg::TOOL_DURATION_MS, observed.ms)
        .texts(trellis::STATE, observed.state.as_ref())
        .texts(trellis::IDEMPOTENCY_KEY, observed.idempotency_key.as_ref())
}
