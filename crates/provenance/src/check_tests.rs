use super::*;
use crate::fixture::{Script, call, react_run, routing};
use crate::random_run::{any_run, finished_run};
use crate::vocabulary::{prov, rdf, tg, trellis};
use crate::{documents, project};
use expect_test::{Expect, expect};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use trellis_domain::rdf::Term;
use trellis_domain::record::Record;

fn texts(records: &[Record]) -> BTreeMap<String, String> {
    documents(records).into_iter().map(|document| (document.id, document.text.text().to_owned())).collect()
}

fn check_with(quads: &[Quad], texts: &BTreeMap<String, String>) -> Vec<Fault> {
    check(quads, &|id| texts.get(id).cloned())
}

/// The faults of the fixture's graph after a change.
fn faults_after(change: impl FnOnce(&mut Vec<Quad>), expected: &Expect) {
    let records = react_run();
    let mut quads = project(&records);
    change(&mut quads);
    let faults: Vec<_> = check_with(&quads, &texts(&records)).iter().map(ToString::to_string).collect();
    expected.assert_eq(&faults.join("\n"));
}

fn set(quads: &mut [Quad], node: &str, property: &str, value: &Term) {
    let node = format!("urn:trustgraph:agent:8f2c1a{node}");
    for quad in quads.iter_mut().filter(|quad| quad.s.text() == node && quad.p.text() == property) {
        quad.o = value.clone();
    }
}

#[test]
fn a_graph_in_order_has_no_faults() {
    faults_after(|_| {}, &expect![[""]]);
}

#[test]
fn an_unfinished_run_lacks_only_its_end() {
    let mut script = Script::new("s");
    script.accepted("why?", None).routed(routing()).replied(1, call("", "weather", json!({})));
    let faults = check_with(&project(&script.records), &texts(&script.records));
    assert_eq!(faults, [Fault::NoEnd { session: "urn:trustgraph:agent:s".to_owned() }]);
}

#[test]
fn a_second_root_is_found() {
    faults_after(
        |quads| quads.extend(project(&Script::new("other").accepted("why?", None).records)),
        &expect![[r#"
            several agent sessions have no parent: urn:trustgraph:agent:8f2c1a, urn:trustgraph:agent:other
            urn:trustgraph:agent:other has no end: neither conclusion nor synthesis"#]],
    );
}

#[test]
fn a_tool_that_was_not_chosen_is_found() {
    faults_after(
        |quads| set(quads, "/i1", tg::ACTION, &Term::literal("weather")),
        &expect![[
            r#"urn:trustgraph:agent:8f2c1a/i1 says "weather", but urn:trustgraph:agent:8f2c1a/i1/decision/tool chose something else"#
        ]],
    );
}

#[test]
fn a_choice_outside_its_set_is_found_even_if_it_was_followed() {
    faults_after(
        |quads| {
            set(quads, "/i1", tg::ACTION, &Term::literal("crystal ball"));
            set(quads, "/i1/decision/tool", trellis::CHOSEN, &Term::literal("crystal ball"));
        },
        &expect![[
            r#"urn:trustgraph:agent:8f2c1a/i1/decision/tool chose "crystal ball", which was not among its options"#
        ]],
    );
}

#[test]
fn a_pattern_outside_its_options_is_found() {
    faults_after(
        |quads| {
            quads.retain(|quad| quad.p.text() != trellis::CHOSEN);
            set(quads, "/pattern-decision", tg::PATTERN, &Term::literal("swarm"));
        },
        &expect![[
            r#"urn:trustgraph:agent:8f2c1a/pattern-decision says "swarm", which was not among the options of urn:trustgraph:agent:8f2c1a/pattern-decision/decision/pattern"#
        ]],
    );
}

#[test]
fn unknown_words_are_found() {
    faults_after(
        |quads| {
            set(quads, "/i1/decision/tool", trellis::ENFORCEMENT, &Term::literal("hope"));
            set(quads, "/final", tg::TERMINATION_REASON, &Term::literal("boredom"));
        },
        &expect![[r#"
            urn:trustgraph:agent:8f2c1a/final has the unknown word "boredom" for https://trustgraph.ai/ns/terminationReason
            urn:trustgraph:agent:8f2c1a/i1/decision/tool has the unknown word "hope" for urn:trellis:ns:enforcement"#]],
    );
}

#[test]
fn a_cycle_is_found_and_what_hangs_on_it_is_not_blamed() {
    faults_after(
        |quads| {
            set(quads, "/i2", prov::WAS_DERIVED_FROM, &Term::iri("urn:trustgraph:agent:8f2c1a/i2/observation"));
        },
        &expect![[r#"
            urn:trustgraph:agent:8f2c1a/i2 derives from itself, directly or through others
            urn:trustgraph:agent:8f2c1a/i2/observation derives from itself, directly or through others"#]],
    );
}

#[test]
fn a_step_in_the_middle_needs_its_observation() {
    faults_after(
        |quads| quads.retain(|quad| quad.s.text() != "urn:trustgraph:agent:8f2c1a/i1/observation"),
        &expect![[r#"
            urn:trustgraph:agent:8f2c1a/i2 refers with http://www.w3.org/ns/prov#wasDerivedFrom to urn:trustgraph:agent:8f2c1a/i1/observation, which is not in the graph
            urn:trustgraph:agent:8f2c1a/i1 is followed by other steps but has no observation"#]],
    );
}

#[test]
fn a_second_end_is_found() {
    faults_after(
        |quads| {
            let second = Term::iri("urn:trustgraph:agent:8f2c1a/synthesis");
            let (p, o) = (Term::iri(rdf::TYPE), Term::iri(tg::class::SYNTHESIS));
            quads.push(Quad { s: second, p, o, g: None });
        },
        &expect![
            "urn:trustgraph:agent:8f2c1a has several ends: urn:trustgraph:agent:8f2c1a/final, urn:trustgraph:agent:8f2c1a/synthesis"
        ],
    );
}

/// Typed nodes that something else refers to.
fn targets(quads: &[Quad]) -> Vec<String> {
    let typed: BTreeSet<_> = quads.iter().filter(|quad| quad.p.text() == rdf::TYPE).map(|quad| quad.s.text()).collect();
    let linked: BTreeSet<_> = quads.iter().filter(|quad| quad.s != quad.o).filter_map(|quad| quad.o.as_iri()).collect();
    typed.intersection(&linked).map(|iri| (*iri).to_owned()).collect()
}

fn places(quads: &[Quad], property: &str) -> Vec<usize> {
    quads.iter().enumerate().filter(|(_, quad)| quad.p.text() == property).map(|(at, _)| at).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_run_in_order_passes(records in any_run()) {
        let faults = check_with(&project(&records), &texts(&records));
        let unfinished = faults.iter().all(|fault| matches!(fault, Fault::NoEnd { .. }));
        let ended = records.iter().any(|record| record.header.name.as_str() == "end");
        prop_assert!(unfinished && faults.is_empty() == ended, "{faults:?}");
    }

    #[test]
    fn a_missing_node_is_noticed(records in finished_run(), which in any::<Index>()) {
        let mut quads = project(&records);
        let targets = targets(&quads);
        let gone = &targets[which.index(targets.len())];
        quads.retain(|quad| quad.s.text() != gone);
        prop_assert!(!check_with(&quads, &texts(&records)).is_empty(), "{gone} is not missed");
    }

    #[test]
    fn another_choice_is_noticed(records in finished_run(), which in any::<Index>(), offered in any::<bool>()) {
        let mut quads = project(&records);
        let places = places(&quads, trellis::CHOSEN);
        let chosen = &mut quads[places[which.index(places.len())]].o;
        let other = if chosen.text() == "weather" { "knowledge-query" } else { "weather" };
        *chosen = Term::literal(if offered { other } else { "something else" });
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
            records.iter().filter(|record| record.header.name.as_str() != "end").cloned().collect();
        let faults = check_with(&project(&without), &texts(&records));
        let unfinished = faults.iter().any(|fault| matches!(fault, Fault::NoEnd { .. }));
        prop_assert!(unfinished);
    }
}
