//! Nothing in a graph can go missing or be changed unnoticed.

use crate::projector::tests::fixture::{
    asked_run, cancelled_by_somebody, cancelled_plan, cancelled_supervisor, check_with, input_run, parked_run,
    plan_run, react_run, supervisor_run, texts, uncertain_run,
};
use crate::projector::tests::random_run::{any_run, finished_run, has_ended};
use crate::projector::{events, project};
use crate::react::IterationNames;
use expect_test::expect;
use proptest::prelude::*;
use proptest::sample::Index;
use std::collections::BTreeSet;
use trellis_domain::rdf::{Quad, Term};
use trellis_domain::record::{Body, Explained, Name, Record};
use trellis_provenance::vocabulary::{ALL, prov, rdf, trellis};
use trellis_provenance::{Fault, iri};

fn places(quads: &[Quad], property: &str) -> Vec<usize> {
    quads.iter().enumerate().filter(|(_, quad)| quad.p.text() == property).map(|(at, _)| at).collect()
}

/// The nodes of a graph.
fn nodes(quads: &[Quad]) -> BTreeSet<String> {
    quads.iter().map(|quad| quad.s.text().to_owned()).collect()
}

fn without_node(quads: &[Quad], node: &str) -> Vec<Quad> {
    quads.iter().filter(|quad| quad.s.text() != node).cloned().collect()
}

const RUNS: [fn() -> Vec<Record>; 9] = [
    react_run,
    parked_run,
    uncertain_run,
    asked_run,
    plan_run,
    cancelled_plan,
    cancelled_by_somebody,
    supervisor_run,
    cancelled_supervisor,
];

/// These, and what the patterns themselves give as samples.
fn runs() -> impl Iterator<Item = Vec<Record>> {
    RUNS.into_iter().map(|run| run()).chain(crate::registry::samples())
}

#[test]
fn whole_runs_of_all_patterns_have_no_faults() {
    for records in runs() {
        assert_eq!(check_with(&project(&records), &texts(&records)), []);
    }
}

#[test]
fn a_call_whose_tool_asked_for_input_is_not_uncertain() {
    let says_so = |records: &[Record]| project(records).iter().any(|quad| quad.p.text() == trellis::UNCERTAIN_CALL);
    assert!(says_so(&uncertain_run()) && !says_so(&input_run()));
    // Not one of `RUNS`: nothing follows from a question that nobody has answered, so only a replay misses it.
    assert_eq!(check_with(&project(&input_run()), &texts(&input_run())), []);
}

#[test]
fn no_node_can_go_missing() {
    for records in runs() {
        let (quads, texts) = (project(&records), texts(&records));
        for node in nodes(&quads) {
            assert!(!check_with(&without_node(&quads, &node), &texts).is_empty(), "{node} is not missed");
        }
    }
}

#[test]
fn every_class_has_a_node_that_could_go_missing() {
    let quads: Vec<_> = runs().flat_map(|records| project(&records)).collect();
    let used: BTreeSet<_> = quads.iter().filter(|quad| quad.p.text() == rdf::TYPE).map(|quad| quad.o.text()).collect();
    let unused = ALL.iter().copied().flatten().filter(|name| is_class(name) && !used.contains(*name));
    expect![[r#"
        https://trustgraph.ai/ns/ChunkSelection
        https://trustgraph.ai/ns/DocRagQuestion
        https://trustgraph.ai/ns/EdgeSelection
        https://trustgraph.ai/ns/Exploration
        https://trustgraph.ai/ns/Focus
        https://trustgraph.ai/ns/GraphRagQuestion
        https://trustgraph.ai/ns/Grounding"#]]
    .assert_eq(&unused.copied().collect::<Vec<_>>().join("\n"));
}

fn is_class(name: &str) -> bool {
    let local = name.rsplit(['/', '#', ':']).next().unwrap_or_default();
    local.starts_with(|first: char| first.is_ascii_uppercase())
}

#[test]
fn no_parent_can_be_exchanged_for_one_that_is_not_there() {
    for records in runs() {
        let (quads, texts) = (project(&records), texts(&records));
        for at in places(&quads, prov::WAS_DERIVED_FROM) {
            let mut changed = quads.clone();
            changed[at].o = Term::iri("urn:trustgraph:agent:nowhere");
            assert!(!check_with(&changed, &texts).is_empty(), "{} lost its parent", quads[at].s);
        }
    }
}

#[test]
fn no_choice_can_be_exchanged() {
    // Nothing came of the goals of the last run, so there is nothing that they could disagree with.
    for records in RUNS[..5].iter().map(|run| run()) {
        let (quads, texts) = (project(&records), texts(&records));
        for at in places(&quads, trellis::CHOSEN) {
            let decision = &quads[at].s;
            let options = quads.iter().filter(|quad| quad.s == *decision && quad.p.text() == trellis::OPTION);
            let others = options.filter(|quad| quad.o != quads[at].o).map(|quad| quad.o.clone());
            for other in others.chain([Term::literal("something else")]) {
                let mut changed = quads.clone();
                changed[at].o = other.clone();
                assert!(!check_with(&changed, &texts).is_empty(), "{decision} may choose {other}");
            }
        }
    }
}

#[test]
fn no_text_can_be_changed_or_lost() {
    for records in runs() {
        let (quads, texts) = (project(&records), texts(&records));
        for id in texts.keys() {
            let (mut lost, mut changed) = (texts.clone(), texts.clone());
            lost.remove(id);
            changed.get_mut(id).unwrap().push('.');
            assert!(!check_with(&quads, &lost).is_empty(), "{id} is not missed");
            assert!(!check_with(&quads, &changed).is_empty(), "{id} may be changed");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_run_in_order_passes(records in any_run()) {
        let faults = check_with(&project(&records), &texts(&records));
        let unfinished = faults.iter().all(|fault| matches!(fault, Fault::NoEnd { .. }));
        let ended = has_ended(&records);
        prop_assert!(unfinished && faults.is_empty() == ended, "{faults:?}");
    }

    #[test]
    fn a_missing_node_is_noticed(records in finished_run(), which in any::<Index>()) {
        let quads = project(&records);
        let nodes: Vec<_> = nodes(&quads).into_iter().collect();
        let gone = &nodes[which.index(nodes.len())];
        let quads = without_node(&quads, gone);
        prop_assert!(!check_with(&quads, &texts(&records)).is_empty(), "{gone} is not missed");
    }

    #[test]
    fn another_choice_is_noticed(records in finished_run(), which in any::<Index>()) {
        let mut quads = project(&records);
        let options: BTreeSet<_> = quads.iter().filter(|quad| quad.p.text() == trellis::OPTION).map(|quad| &quad.s).collect();
        let places = places(&quads, trellis::CHOSEN).into_iter();
        let places: Vec<_> = places.filter(|at| options.contains(&quads[*at].s)).collect();
        quads[places[which.index(places.len())]].o = Term::literal("something else");
        prop_assert!(!check_with(&quads, &texts(&records)).is_empty());
    }

    #[test]
    fn another_text_is_noticed(records in finished_run(), which in any::<Index>(), lost in any::<bool>()) {
        let mut texts = texts(&records);
        prop_assume!(!texts.is_empty());
        let id = texts.keys().nth(which.index(texts.len())).unwrap().clone();
        if lost { texts.remove(&id); } else { texts.get_mut(&id).unwrap().push('.'); }
        prop_assert!(!check_with(&project(&records), &texts).is_empty(), "{id} is not missed");
    }

    #[test]
    fn a_missing_end_is_noticed(records in finished_run()) {
        let without: Vec<Record> =
            records.iter().filter(|record| record.body.as_ended().is_none()).cloned().collect();
        let faults = check_with(&project(&without), &texts(&records));
        let unfinished = faults.iter().any(|fault| matches!(fault, Fault::NoEnd { .. }));
        prop_assert!(unfinished);
    }
}

#[test]
fn what_a_tool_tells_of_its_own_steps_stands_between_the_call_and_its_result() {
    let step = |id: &str, from: &str| Explained {
        id: id.to_owned(),
        quads: vec![Quad { s: Term::iri(id), p: Term::iri(prov::WAS_DERIVED_FROM), o: Term::iri(from), g: None }],
    };
    let mut records = react_run();
    let called = iri::iteration(&records[0].header.session, 1);
    let observed = records.iter_mut().find(|record| record.header.name == Name::observation(1)).unwrap();
    let Body::Observed(observed) = &mut observed.body else { panic!("it is a result") };
    observed.trace = vec![step("urn:rag:question", &called), step("urn:rag:answer", "urn:rag:question")];
    let told = events(&records);
    let place = |id: &str| told.iter().position(|event| event.explain_id == id).unwrap();
    let observation = format!("{called}/observation");
    assert!(place("urn:rag:question") < place("urn:rag:answer") && place("urn:rag:answer") < place(&observation));
    let parents: Vec<_> = told[place(&observation)]
        .quads
        .iter()
        .filter(|quad| quad.s == Term::iri(&observation) && quad.p == Term::iri(prov::WAS_DERIVED_FROM))
        .map(|quad| quad.o.clone())
        .collect();
    assert_eq!(parents, [Term::iri("urn:rag:answer")]);
}
