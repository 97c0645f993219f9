use crate::projector::project;
use crate::projector::tests::fixture::{Script, call, check_with, plan_run, react_run, routing, supervisor_run, texts};
use expect_test::{Expect, expect};
use serde_json::json;
use trellis_domain::rdf::Quad;
use trellis_domain::rdf::Term;
use trellis_domain::record::Record;
use trellis_provenance::Fault;
use trellis_provenance::vocabulary::{prov, rdf, tg, trellis};

/// The faults of the fixture's graph after a change.
fn faults_after(change: impl FnOnce(&mut Vec<Quad>), expected: &Expect) {
    faults_of(&react_run(), change, expected);
}

fn faults_of(records: &[Record], change: impl FnOnce(&mut Vec<Quad>), expected: &Expect) {
    let mut quads = project(records);
    change(&mut quads);
    let faults: Vec<_> = check_with(&quads, &texts(records)).iter().map(ToString::to_string).collect();
    expected.assert_eq(&faults.join("\n"));
}

fn set(quads: &mut [Quad], node: &str, property: &str, value: &Term) {
    let node = if node.starts_with('/') { format!("8f2c1a{node}") } else { node.to_owned() };
    let node = format!("urn:trustgraph:agent:{node}");
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

#[test]
fn a_finding_with_a_foreign_goal_is_found() {
    faults_of(
        &supervisor_run(),
        |quads| set(quads, "boss/finding/0", tg::SUBAGENT_GOAL, &Term::literal("What is Y?")),
        &expect![[
            r#"urn:trustgraph:agent:boss/finding/0 says "What is Y?" for https://trustgraph.ai/ns/subagentGoal, but urn:trustgraph:agent:boss/decompose does not"#
        ]],
    );
}

#[test]
fn a_subagent_with_another_pattern_than_its_supervisor_chose_is_found() {
    faults_of(
        &supervisor_run(),
        |quads| {
            let other = Term::literal("supervisor");
            set(quads, "boss-0/pattern-decision", tg::PATTERN, &other);
            set(quads, "boss-0/pattern-decision/decision/pattern", trellis::CHOSEN, &other);
        },
        &expect![[
            r#"urn:trustgraph:agent:boss/decompose/decision/subagent-pattern chose "react", but urn:trustgraph:agent:boss-0/pattern-decision does otherwise"#
        ]],
    );
}

#[test]
fn a_sibling_too_few_is_found() {
    faults_of(
        &supervisor_run(),
        |quads| set(quads, "boss/fanout/boss-r1", tg::EXPECTED_SIBLINGS, &Term::literal("2")),
        &expect![[r#"
            urn:trustgraph:agent:boss/fanout/boss-r1 expects 2 findings, but there are 3
            urn:trustgraph:agent:boss/fanout/boss-r1 expects 2 joined findings, but there are 3
            urn:trustgraph:agent:boss/fanout/boss-r1 expects 2 subagents, but there are 3"#]],
    );
}

#[test]
fn a_step_with_a_tool_that_nobody_chose_is_found() {
    faults_of(
        &plan_run(),
        |quads| set(quads, "planner/step/0", trellis::TOOL, &Term::literal("weather")),
        &expect![[
            r#"urn:trustgraph:agent:planner/step/0/decision/tool chose "knowledge-query", but urn:trustgraph:agent:planner/step/0 does otherwise"#
        ]],
    );
}

#[test]
fn a_planned_step_that_is_not_there_is_missed_by_all_that_refer_to_it() {
    faults_of(
        &plan_run(),
        |quads| quads.retain(|quad| quad.s.text() != "urn:trustgraph:agent:planner/plan/planned/0"),
        &expect![[r#"
            urn:trustgraph:agent:planner/plan refers with urn:trellis:ns:plannedStep to urn:trustgraph:agent:planner/plan/planned/0, which is not in the graph
            urn:trustgraph:agent:planner/plan/1/planned/3 refers with urn:trellis:ns:dependsOnPlanned to urn:trustgraph:agent:planner/plan/planned/0, which is not in the graph
            urn:trustgraph:agent:planner/plan/1/planned/4 refers with urn:trellis:ns:dependsOnPlanned to urn:trustgraph:agent:planner/plan/planned/0, which is not in the graph
            urn:trustgraph:agent:planner/plan/planned/2 refers with urn:trellis:ns:dependsOnPlanned to urn:trustgraph:agent:planner/plan/planned/0, which is not in the graph
            urn:trustgraph:agent:planner/step/0 refers with urn:trellis:ns:planned to urn:trustgraph:agent:planner/plan/planned/0, which is not in the graph"#]],
    );
}

#[test]
fn a_plan_that_took_the_place_of_a_step_must_be_there() {
    faults_of(
        &plan_run(),
        |quads| {
            let nowhere = Term::iri("urn:trustgraph:agent:planner/plan/9");
            set(quads, "planner/plan/planned/2", trellis::SUPERSEDED_BY, &nowhere);
        },
        &expect![
            "urn:trustgraph:agent:planner/plan/planned/2 refers with urn:trellis:ns:supersededBy to urn:trustgraph:agent:planner/plan/9, which is not in the graph"
        ],
    );
}

#[test]
fn a_step_that_was_planned_otherwise_is_found() {
    faults_of(
        &plan_run(),
        |quads| set(quads, "planner/plan/planned/0", trellis::GOAL, &Term::literal("Find the owner")),
        &expect![[r#"
            urn:trustgraph:agent:planner/plan/planned/0 says "Find the owner" for urn:trellis:ns:goal, but urn:trustgraph:agent:planner/plan does not
            urn:trustgraph:agent:planner/step/0 says "Find the maker" for https://trustgraph.ai/ns/planStep, but urn:trustgraph:agent:planner/plan/planned/0 does not"#]],
    );
    faults_of(
        &plan_run(),
        |quads| set(quads, "planner/plan/planned/0", tg::STEP_NUMBER, &Term::literal("7")),
        &expect![[
            r#"urn:trustgraph:agent:planner/step/0 says "0" for https://trustgraph.ai/ns/stepNumber, but urn:trustgraph:agent:planner/plan/planned/0 does not"#
        ]],
    );
}

#[test]
fn a_subagent_with_the_goal_of_another_is_found() {
    faults_of(
        &supervisor_run(),
        |quads| {
            set(quads, "boss-0", tg::QUERY, &Term::literal("Who owns X?"));
            set(quads, "boss-0/completion", tg::SUBAGENT_GOAL, &Term::literal("Who owns X?"));
        },
        &expect![[
            r#"urn:trustgraph:agent:boss-0 says "Who owns X?" for https://trustgraph.ai/ns/query, but urn:trustgraph:agent:boss/fanout/boss-r1/goal/0 does not"#
        ]],
    );
}

#[test]
fn a_finding_of_another_fan_out_is_found() {
    faults_of(
        &supervisor_run(),
        |quads| set(quads, "boss/finding/0", tg::CORRELATION_ID, &Term::literal("boss-r2")),
        &expect![[
            r#"urn:trustgraph:agent:boss/finding/0 says "boss-r2" for https://trustgraph.ai/ns/correlationId, but urn:trustgraph:agent:boss/fanout/boss-r1 does not"#
        ]],
    );
}

#[test]
fn a_session_without_its_activity_is_found() {
    faults_after(
        |quads| quads.retain(|quad| quad.s.text() != "urn:trustgraph:agent:8f2c1a/run"),
        &expect![[r#"
        urn:trustgraph:agent:8f2c1a refers with urn:trellis:ns:run to urn:trustgraph:agent:8f2c1a/run, which is not in the graph
        urn:trustgraph:agent:8f2c1a/routing refers with http://www.w3.org/ns/prov#wasGeneratedBy to urn:trustgraph:agent:8f2c1a/run, which is not in the graph"#]],
    );
}

#[test]
fn a_subagent_that_came_back_to_the_wrong_supervisor_is_found() {
    faults_of(
        &supervisor_run(),
        |quads| set(quads, "boss-0", tg::PARENT_SESSION_ID, &Term::iri("urn:trustgraph:agent:boss-1")),
        &expect![[
            r#"urn:trustgraph:agent:boss-0 says "urn:trustgraph:agent:boss-1" for https://trustgraph.ai/ns/parentSessionId, but urn:trustgraph:agent:boss/decompose does not"#
        ]],
    );
}
