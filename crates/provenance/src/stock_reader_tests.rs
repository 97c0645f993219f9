//! The stock explain client's way of reading, as the reference describes it: what it lists must be the
//! whole run, each step once and in order.

use crate::fixture::react_run;
use crate::random_run::finished_run;
use crate::vocabulary::{prov, rdf, tg};
use crate::{events, iri, project};
use proptest::prelude::*;
use trellis_domain::rdf::{Quad, Term};
use trellis_domain::record::Record;

/// The classes it knows, in the order in which it tests for them.
const PRECEDENCE: [&str; 13] = [
    tg::class::AGENT_QUESTION,
    tg::class::GROUNDING,
    tg::class::EXPLORATION,
    tg::class::FOCUS,
    tg::class::DECOMPOSITION,
    tg::class::FINDING,
    tg::class::PLAN,
    tg::class::STEP_RESULT,
    tg::class::SYNTHESIS,
    tg::class::OBSERVATION,
    tg::class::REFLECTION,
    tg::class::ANALYSIS,
    tg::class::CONCLUSION,
];

const CHILDREN: usize = 20;
const DEPTH: usize = 50;
const QUADS_PER_NODE: usize = 100;

/// What it takes a set of quads for. It looks at all of them, whatever they are about.
fn class<'q>(quads: impl IntoIterator<Item = &'q Quad>) -> Option<&'static str> {
    let types: Vec<_> = quads.into_iter().filter(|quad| quad.p.text() == rdf::TYPE).map(|quad| quad.o.text()).collect();
    let reflects = types.contains(&tg::class::REFLECTION);
    let fits = |class: &str| types.contains(&class) && !(class == tg::class::OBSERVATION && reflects);
    PRECEDENCE.into_iter().find(|class| fits(class))
}

fn node_class(graph: &[Quad], node: &str) -> Option<&'static str> {
    class(graph.iter().filter(|quad| quad.s.text() == node).take(QUADS_PER_NODE))
}

/// Walks from a node to what derives from it. There is no set of visited nodes.
fn walk(graph: &[Quad], from: &str, depth: usize, listed: &mut Vec<(&'static str, String)>) {
    if depth == 0 {
        return;
    }
    let derived = graph.iter().filter(|quad| quad.p.text() == prov::WAS_DERIVED_FROM && quad.o.text() == from);
    for child in derived.take(CHILDREN).map(|quad| quad.s.text()) {
        match node_class(graph, child) {
            Some(class @ (tg::class::ANALYSIS | tg::class::OBSERVATION)) => {
                listed.push((class, child.to_owned()));
                walk(graph, child, depth - 1, listed);
            }
            Some(class @ tg::class::CONCLUSION) => listed.push((class, child.to_owned())),
            Some(_) | None => {}
        }
    }
}

fn stock_trace(records: &[Record]) -> Vec<(&'static str, String)> {
    let graph = project(records);
    let session = iri::session(&records[0].header.session);
    assert_eq!(node_class(&graph, &session), Some(tg::class::AGENT_QUESTION));
    let mut listed = Vec::new();
    walk(&graph, &session, DEPTH, &mut listed);
    listed
}

#[test]
fn a_whole_run_is_listed_in_order() {
    let listed = stock_trace(&react_run());
    let classes: Vec<_> = listed.iter().map(|(class, _)| class.trim_start_matches(tg::NS)).collect();
    let (analysis, observation) = ("Analysis", "Observation");
    assert_eq!(classes, [analysis, observation, analysis, observation, analysis, observation, "Conclusion"]);
}

#[test]
fn the_question_is_the_only_node_in_the_list_of_sessions() {
    let graph = project(&react_run());
    let queried: Vec<_> = graph.iter().filter(|quad| quad.p.text() == tg::QUERY).map(|quad| quad.s.text()).collect();
    assert_eq!(queried, ["urn:trustgraph:agent:8f2c1a"]);
    assert!(!graph.iter().any(|quad| quad.s.text() == queried[0] && quad.p.text() == prov::WAS_DERIVED_FROM));
}

#[test]
fn inline_events_are_taken_for_what_they_are() {
    let classes: Vec<_> = events(&react_run()).iter().map(|event| class(&event.inline)).collect();
    let (analysis, observation) = (Some(tg::class::ANALYSIS), Some(tg::class::OBSERVATION));
    assert_eq!(classes[..2], [Some(tg::class::AGENT_QUESTION), None]);
    assert_eq!(classes[2..8], [analysis, observation, analysis, observation, analysis, observation]);
    assert_eq!(classes[8..], [Some(tg::class::CONCLUSION)]);
}

#[test]
fn the_last_document_of_the_last_event_is_the_answer() {
    let events = events(&react_run());
    let mut documents = events.last().unwrap().inline.iter().filter(|quad| quad.p.text() == tg::DOCUMENT);
    assert_eq!(documents.next_back().map(|quad| &quad.o), Some(&Term::iri("urn:trustgraph:agent:8f2c1a/answer")));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_step_is_listed_exactly_once(records in finished_run()) {
        let mut listed = stock_trace(&records);
        let mut expected: Vec<_> = events(&records)
            .iter()
            .filter_map(|event| Some((class(&event.inline)?, event.explain_id.clone())))
            .filter(|(class, _)| *class != tg::class::AGENT_QUESTION)
            .collect();
        listed.sort();
        expected.sort();
        prop_assert_eq!(listed, expected);
    }

    /// The same rules as the original's own checker of recorded streams.
    #[test]
    fn events_form_one_chain(records in finished_run()) {
        let on_time: Vec<Record> = records.into_iter().filter(|record| !record.header.late).collect();
        let events = events(&on_time);
        let ids: Vec<_> = events.iter().map(|event| event.explain_id.as_str()).collect();
        let edges: Vec<_> = events
            .iter()
            .flat_map(|event| event.quads.iter().filter(|quad| quad.s.text() == event.explain_id))
            .filter(|quad| quad.p.text() == prov::WAS_DERIVED_FROM)
            .map(|quad| (quad.s.text(), quad.o.text()))
            .collect();
        prop_assert!(edges.iter().all(|(_, parent)| ids.contains(parent)));
        let roots: Vec<_> = ids.iter().filter(|id| !edges.iter().any(|(child, _)| child == *id)).collect();
        prop_assert_eq!(roots, [&ids[0]]);
        let ends: Vec<_> = ids.iter().filter(|id| !edges.iter().any(|(_, parent)| parent == *id)).collect();
        prop_assert_eq!(ends, [ids.last().unwrap()]);
    }
}
