use crate::projector::tests::fixture::{
    Script, answer, asked_run, call, cancelled_by_somebody, cancelled_plan, ending, only_option, react_run, result,
    routing, said, tool_choice, unreadable,
};
use crate::projector::{events, project};
use expect_test::{expect, expect_file};
use serde_json::json;
use trellis_domain::decision::{Decision, DecisionKind};
use trellis_domain::document::Document;
use trellis_domain::rdf::{Quad, Term};
use trellis_domain::record::{Body, Replied};
use trellis_domain::run::Termination;
use trellis_provenance::vocabulary::{prov, rdf, rdfs, tg, trellis};
use trellis_provenance::{Format, export, iri};

fn parents(quads: &[Quad], node: &str) -> Vec<String> {
    let edges = quads.iter().filter(|quad| quad.s.text() == node && quad.p.text() == prov::WAS_DERIVED_FROM);
    edges.map(|quad| quad.o.text().to_owned()).collect()
}

#[test]
fn a_whole_run_becomes_these_quads() {
    let nquads = export(&project(&react_run()), Format::NQuads).unwrap();
    expect_file!["../../../snapshots/react-run.nq"].assert_eq(&nquads);
}

#[test]
fn every_event_is_about_one_node_in_order() {
    let events = events(&react_run());
    let lines: Vec<_> = events.iter().map(|event| format!("{} {}", event.seq, event.explain_id)).collect();
    expect![[r#"
        1 urn:trustgraph:agent:8f2c1a
        2 urn:trustgraph:agent:8f2c1a/pattern-decision
        3 urn:trustgraph:agent:8f2c1a/i1
        4 urn:trustgraph:agent:8f2c1a/i1/observation
        5 urn:trustgraph:agent:8f2c1a/i2
        6 urn:trustgraph:agent:8f2c1a/i2/observation
        7 urn:trustgraph:agent:8f2c1a/i3
        8 urn:trustgraph:agent:8f2c1a/i3/observation
        10 urn:trustgraph:agent:8f2c1a/final"#]]
    .assert_eq(&lines.join("\n"));
}

#[test]
fn the_first_step_derives_from_the_pattern_decision_first_and_then_from_the_session() {
    let events = events(&react_run());
    let first = &events[2];
    let session = &first.session;
    assert_eq!(parents(&first.quads, &first.explain_id), [iri::pattern_decision(session), iri::session(session)]);
}

#[test]
fn a_session_that_ends_before_its_routing_derives_from_the_question_alone() {
    let mut script = Script::new("s");
    script.accepted("why?", None).ended(ending(Termination::Timeout, "", Some("too slow")));
    expect![[r#"
        type <http://www.w3.org/ns/prov#Entity>
        type <https://trustgraph.ai/ns/Conclusion>
        type <https://trustgraph.ai/ns/Error>
        label "Conclusion"
        generatedAtTime "2026-04-13T15:16:42.500000Z"
        wasDerivedFrom <urn:trustgraph:agent:s>
        terminationReason "timeout"
        toolError "too slow"
        seq "2""#]]
    .assert_eq(&said(&project(&script.records), "urn:trustgraph:agent:s/final"));
}

#[test]
fn an_end_between_call_and_result_derives_from_the_call() {
    let mut script = Script::new("s");
    script.accepted("why?", None).routed(routing()).replied(1, call("", "weather", json!({})));
    script.ended(ending(Termination::Cancelled, "", None));
    let before = project(&script.records);
    assert_eq!(parents(&before, "urn:trustgraph:agent:s/final"), ["urn:trustgraph:agent:s/i1"]);
    script.observed(1, result("rain")).header(|header| header.late = true);
    let after = project(&script.records);
    assert_eq!(parents(&after, "urn:trustgraph:agent:s/final"), ["urn:trustgraph:agent:s/i1"]);
    assert!(said(&after, "urn:trustgraph:agent:s/i1/observation").contains("late \"true\""));
}

#[test]
fn a_late_answer_is_told_apart_and_changes_no_conclusion() {
    let mut script = Script::new("s");
    script.accepted("why?", None).routed(routing()).ended(ending(Termination::Cancelled, "", None));
    let conclusion = said(&project(&script.records), "urn:trustgraph:agent:s/final");
    script.replied(1, answer("Because.", "so")).header(|header| header.late = true);
    let after = project(&script.records);
    assert_eq!(said(&after, "urn:trustgraph:agent:s/final"), conclusion);
    expect![[r#"
        type <http://www.w3.org/ns/prov#Entity>
        type <urn:trellis:ns:LateReply>
        label "Late Reply"
        generatedAtTime "2026-04-13T15:16:43Z"
        wasDerivedFrom <urn:trustgraph:agent:s>
        wasDerivedFrom <urn:trustgraph:agent:s/pattern-decision>
        llmDurationMs "1200"
        stepNumber "1"
        thought <urn:trustgraph:agent:s/i1/thought>
        late "true"
        seq "4""#]]
    .assert_eq(&said(&after, "urn:trustgraph:agent:s/i1"));
}

#[test]
fn a_choice_tells_all_it_knows() {
    let decision = Decision {
        chosen: vec!["react".to_owned(), "react".to_owned()],
        signals: vec!["complexity: low".to_owned()],
        rationale: Document::stored("One dimension only."),
        rejected: Document::stored("swarm"),
        ..only_option(DecisionKind::Pattern, "react")
    };
    let mut script = Script::new("s");
    script.accepted("why?", None).routed(vec![decision]);
    let quads = project(&script.records);
    expect![[r#"
        type <urn:trellis:ns:Decision>
        label "Decision: pattern"
        chosen "react"
        configVersion "14"
        decidedBy "only-option"
        decisionKind "pattern"
        enforcement "none"
        option "react"
        optionSource <urn:trellis:config:default:agent-pattern>
        rationale <urn:trustgraph:agent:s/routing/rationale>
        rejectedReply <urn:trustgraph:agent:s/pattern-decision/decision/pattern/rejected>
        signal "complexity: low""#]]
    .assert_eq(&said(&quads, "urn:trustgraph:agent:s/pattern-decision/decision/pattern"));
    assert!(said(&quads, "urn:trustgraph:agent:s/routing").contains("routingRationale"));
    assert!(said(&quads, "urn:trustgraph:agent:s/routing/rationale").starts_with("documentHash"));
}

#[test]
fn two_choices_of_a_kind_stay_two_nodes() {
    let mut script = Script::new("s");
    let twice = vec![tool_choice(Some("crystal ball")), tool_choice(Some("weather"))];
    script.accepted("why?", None).replied(1, Replied { decision: twice, ..call("", "weather", json!({})) });
    let quads = project(&script.records);
    let links = said(&quads, "urn:trustgraph:agent:s/i1");
    assert!(links.contains("decision <urn:trustgraph:agent:s/i1/decision/tool>"), "{links}");
    assert!(links.contains("decision <urn:trustgraph:agent:s/i1/decision/tool/2>"), "{links}");
}

#[test]
fn a_thought_begun_again_names_the_message_it_was_streamed_under() {
    let mut script = Script::new("s");
    script.accepted("why?", None).replied(1, unreadable("Hm.")).header(|header| header.attempt = 2);
    let said = said(&project(&script.records), "urn:trustgraph:agent:s/i1/thought");
    assert!(said.contains("messageId \"urn:trustgraph:agent:s/i1/thought#2\""), "{said}");
}

#[test]
fn a_text_that_was_not_stored_is_not_referred_to() {
    let mut records = react_run();
    for record in &mut records {
        if let Body::Ended(ended) = &mut record.body {
            ended.answer.as_mut().unwrap().stored = false;
        }
    }
    let quads = project(&records);
    let answer = iri::answer(&records[0].header.session);
    assert!(quads.iter().all(|quad| quad.s.text() != answer && quad.o.text() != answer));
    assert!(quads.iter().any(|quad| quad.o == Term::iri(tg::class::ANSWER)), "there was an answer all the same");
}

#[test]
fn who_asked_and_who_configured_are_agents_with_their_names() {
    let quads = project(&asked_run());
    let value = |subject: &str, property: &str| -> Vec<String> {
        let said = quads.iter().filter(|quad| quad.s.text() == subject && quad.p.text() == property);
        said.map(|quad| quad.o.text().to_owned()).collect()
    };
    let question = "urn:trustgraph:agent:8f2c1a";
    let [asker] = &value(question, prov::WAS_ATTRIBUTED_TO)[..] else { panic!("one has asked") };
    assert_eq!(value(asker, rdfs::LABEL), ["alice"]);
    assert_eq!(value(asker, rdf::TYPE), [prov::class::AGENT]);
    let told =
        [trellis::SURFACE, trellis::WORKSPACE, trellis::REQUEST_ID].map(|property| value(question, property).join(" "));
    assert_eq!(told, ["api", "default", "request-7"]);
    let [configuration] = &value(question, trellis::CONFIGURATION)[..] else { panic!("there is one") };
    assert_eq!(value(configuration, trellis::CONFIG_VERSION), ["7"]);
    let [maker] = &value(configuration, prov::WAS_ATTRIBUTED_TO)[..] else { panic!("one has made it") };
    assert_eq!(value(maker, rdfs::LABEL), ["agent question"]);
    let before = project(&react_run());
    assert!(before.iter().all(|quad| quads.contains(quad)), "nothing else is said otherwise");
}

#[test]
fn who_cancelled_is_an_agent_that_the_end_is_attributed_to() {
    let (quads, before) = (project(&cancelled_by_somebody()), project(&cancelled_plan()));
    assert!(before.iter().all(|quad| quads.contains(quad)), "nothing else is said otherwise");
    let more: Vec<_> = quads.into_iter().filter(|quad| !before.contains(quad)).collect();
    let planner = cancelled_plan()[0].header.session.clone();
    let (end, canceller) = (iri::conclusion(&planner), iri::canceller(&planner));
    let told: Vec<_> = more.iter().map(|quad| (quad.s.text(), quad.p.text(), quad.o.text())).collect();
    let expected: [(&str, &str, &str); 5] = [
        (&canceller, rdf::TYPE, prov::class::AGENT),
        (&canceller, rdfs::LABEL, "bob"),
        (&canceller, trellis::CONVERSATION_ID, "talk-2"),
        (&end, prov::WAS_ATTRIBUTED_TO, &canceller),
        (&end, trellis::SURFACE, "command-line"),
    ];
    assert_eq!(told, expected);
}
