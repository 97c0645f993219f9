//! One root, one end per session, and every edge leads somewhere.

use super::Fault;
use crate::graph::{QuadIndex, Subject};
use crate::iri;
use crate::vocabulary::{prov, tg, trellis};
use std::collections::{BTreeMap, BTreeSet};

/// The properties whose targets must be nodes of the graph.
const EDGES: &[&str] = &[
    prov::WAS_DERIVED_FROM,
    prov::WAS_GENERATED_BY,
    prov::WAS_ATTRIBUTED_TO,
    prov::WAS_INFLUENCED_BY,
    prov::ALTERNATE_OF,
    tg::THOUGHT,
    tg::OBSERVATION,
    tg::PARENT_SESSION_ID,
    trellis::ANSWERED_BY,
    trellis::BROUGHT_HISTORY,
    trellis::CITES,
    trellis::COMPLETION,
    trellis::CONFIGURATION,
    trellis::DECISION,
    trellis::DEPENDS_ON_PLANNED,
    trellis::DEPENDS_ON_STEP,
    trellis::FAN_OUT,
    trellis::HEARD,
    trellis::JOIN,
    trellis::JOINED,
    trellis::LATE_NODE,
    trellis::MISSING_FINDING,
    trellis::MISSING_STEP,
    trellis::PLANNED,
    trellis::PLANNED_STEP,
    trellis::REVIEW,
    trellis::REVIEWED_FINDING,
    trellis::RUN,
    trellis::SUPERSEDED_BY,
    trellis::UNFINISHED_STEP,
    trellis::UNUSED_REPLY,
];

pub(super) fn faults(graph: &QuadIndex<'_>) -> Vec<Fault> {
    let mut faults: Vec<Fault> = root(graph).into_iter().collect();
    for session in graph.of_class(tg::class::AGENT_QUESTION) {
        faults.extend(end(graph, session));
        faults.extend(observations(graph, session));
    }
    faults.extend(graph.subjects().flat_map(|node| dangling(graph, node)));
    faults.extend(cycles(graph));
    faults
}

fn root(graph: &QuadIndex<'_>) -> Option<Fault> {
    let sessions = graph.of_class(tg::class::AGENT_QUESTION);
    let roots: Vec<_> = sessions.filter(|session| session.links(prov::WAS_DERIVED_FROM).next().is_none()).collect();
    match roots.as_slice() {
        [] => Some(Fault::NoRoot),
        [_] => None,
        _ => Some(Fault::SeveralRoots { roots: roots.iter().map(|root| root.iri.to_owned()).collect() }),
    }
}

fn end(graph: &QuadIndex<'_>, session: Subject<'_>) -> Option<Fault> {
    let within = graph.within(iri::session_of(session.iri)?);
    let ends: Vec<_> = within.filter(|node| node.is(tg::class::CONCLUSION) || node.is(tg::class::SYNTHESIS)).collect();
    let session = session.iri.to_owned();
    match ends.as_slice() {
        [] => Some(Fault::NoEnd { session }),
        [_] => None,
        _ => Some(Fault::SeveralEnds { session, ends: ends.iter().map(|end| end.iri.to_owned()).collect() }),
    }
}

/// Only the last step may lack an observation, or its calls some of theirs: the run ended, or is, between the two.
fn observations(graph: &QuadIndex<'_>, session: Subject<'_>) -> Vec<Fault> {
    let Some(id) = iri::session_of(session.iri) else { return Vec::new() };
    let in_time = graph.within(id).filter(|node| node.links(trellis::LATE).next().is_none());
    let analyses: Vec<_> = in_time.filter(|node| node.is(tg::class::ANALYSIS)).collect();
    let last = analyses.iter().map(|node| iri::iteration_of(node.iri)).max();
    let observed = |node: &Subject<'_>| graph.subject(&format!("{}/observation", node.iri)).is_some();
    let earlier = analyses.into_iter().filter(|node| Some(iri::iteration_of(node.iri)) != last);
    let missing = earlier.filter(|node| !observed(node));
    missing.map(|node| Fault::NoObservation { node: node.iri.to_owned() }).collect()
}

/// Only agent nodes are looked for: what a tool's own trace refers to may lie in another store.
fn dangling(graph: &QuadIndex<'_>, node: Subject<'_>) -> Vec<Fault> {
    let exists = |target: &str| graph.subject(target).is_some_and(Subject::has_type);
    let edges = EDGES.iter().flat_map(|property| node.links(property).map(move |target| (*property, target)));
    let lost = edges.filter(|(_, target)| target.starts_with(iri::AGENT) && !exists(target));
    lost.map(|(property, target)| Fault::Dangling {
        node: node.iri.to_owned(),
        property: property.to_owned(),
        target: target.to_owned(),
    })
    .collect()
}

/// Takes away, again and again, what derives from nothing and what nothing derives from: only cycles,
/// and what lies between two cycles, remain.
fn cycles(graph: &QuadIndex<'_>) -> Vec<Fault> {
    let parents = graph.subjects().map(|node| (node.iri, node.links(prov::WAS_DERIVED_FROM).collect()));
    let parents = without_ends(parents.collect());
    let children = without_ends(reversed(&parents));
    children.into_keys().map(|node| Fault::Cycle { node: node.to_owned() }).collect()
}

type Edges<'g> = BTreeMap<&'g str, BTreeSet<&'g str>>;

/// Drops nodes whose edges all lead to dropped nodes or out of the map.
fn without_ends(mut edges: Edges<'_>) -> Edges<'_> {
    loop {
        let leads_on = |targets: &BTreeSet<&str>| targets.iter().any(|target| edges.contains_key(target));
        let ends = edges.iter().filter(|(_, targets)| !leads_on(targets));
        let ends: BTreeSet<_> = ends.map(|(node, _)| *node).collect();
        if ends.is_empty() {
            return edges;
        }
        edges.retain(|node, _| !ends.contains(node));
    }
}

fn reversed<'g>(edges: &Edges<'g>) -> Edges<'g> {
    let mut reversed: Edges<'g> = edges.keys().map(|node| (*node, BTreeSet::new())).collect();
    for (node, targets) in edges {
        for target in targets {
            if let Some(sources) = reversed.get_mut(target) {
                sources.insert(node);
            }
        }
    }
    reversed
}
