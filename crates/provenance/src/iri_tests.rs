use super::*;
use expect_test::expect;
use trellis_domain::Workspace;

fn session_id() -> SessionId {
    SessionId::new("S").unwrap()
}

#[test]
fn every_name_is_as_the_reference_says() {
    let s = &session_id();
    let names = [
        session(s),
        run(s),
        routing(s),
        routing_rationale(s),
        pattern_decision(s),
        iteration(s, 3),
        thought(s, 3),
        observation(s, 3),
        conclusion(s),
        conclusion_thought(s),
        answer(s),
        plan(s),
        plan_revision(s, 2),
        plan_number(s, 0),
        plan_number(s, 1),
        planned_step(&plan_number(s, 1), 3),
        plan_thought(s),
        step(s, 0),
        step_document(s, 0),
        step_thought(s, 0),
        late_step_result(s, 0),
        decomposition(s, 1),
        decomposition(s, 2),
        decomposition_thought(s),
        fan_out(s, "c1"),
        fan_out_goal(s, "c1", 0),
        join(s, "c1"),
        finding(s, 0),
        finding_document(s, 0),
        review(s, 1),
        review_thought(s, 1),
        completion(s),
        synthesis(s),
        synthesis_document(s),
        synthesis_thought(s),
        terminal(s, Termination::FinalAnswer),
        terminal(s, Termination::SubagentsPartial),
        named(s, &Name::route_task_type()),
        decision(&iteration(s, 3), DecisionKind::Tool, 1),
        decision(&iteration(s, 3), DecisionKind::Tool, 2),
    ];
    expect![[r#"
        urn:trustgraph:agent:S
        urn:trustgraph:agent:S/run
        urn:trustgraph:agent:S/routing
        urn:trustgraph:agent:S/routing/rationale
        urn:trustgraph:agent:S/pattern-decision
        urn:trustgraph:agent:S/i3
        urn:trustgraph:agent:S/i3/thought
        urn:trustgraph:agent:S/i3/observation
        urn:trustgraph:agent:S/final
        urn:trustgraph:agent:S/final/thought
        urn:trustgraph:agent:S/answer
        urn:trustgraph:agent:S/plan
        urn:trustgraph:agent:S/plan/2
        urn:trustgraph:agent:S/plan
        urn:trustgraph:agent:S/plan/1
        urn:trustgraph:agent:S/plan/1/planned/3
        urn:trustgraph:agent:S/plan/thought
        urn:trustgraph:agent:S/step/0
        urn:trustgraph:agent:S/step/0/doc
        urn:trustgraph:agent:S/step/0/thought
        urn:trustgraph:agent:S/step/0/result
        urn:trustgraph:agent:S/decompose
        urn:trustgraph:agent:S/decompose/2
        urn:trustgraph:agent:S/decompose/thought
        urn:trustgraph:agent:S/fanout/c1
        urn:trustgraph:agent:S/fanout/c1/goal/0
        urn:trustgraph:agent:S/fanout/c1/join
        urn:trustgraph:agent:S/finding/0
        urn:trustgraph:agent:S/finding/0/doc
        urn:trustgraph:agent:S/review/1
        urn:trustgraph:agent:S/review/1/thought
        urn:trustgraph:agent:S/completion
        urn:trustgraph:agent:S/synthesis
        urn:trustgraph:agent:S/synthesis/doc
        urn:trustgraph:agent:S/synthesis/thought
        urn:trustgraph:agent:S/final
        urn:trustgraph:agent:S/synthesis
        urn:trustgraph:agent:S/route/task-type
        urn:trustgraph:agent:S/i3/decision/tool
        urn:trustgraph:agent:S/i3/decision/tool/2"#]]
    .assert_eq(&names.join("\n"));
}

#[test]
fn names_that_would_break_an_iri_are_percent_encoded() {
    assert_eq!(pattern("plan then execute"), "urn:trustgraph:agent-pattern:plan%20then%20execute");
    assert_eq!(task_type("risk-assessment"), "urn:trustgraph:agent-task-type:risk-assessment");
    assert_eq!(model("meta/llama 3ü"), "urn:trellis:model:meta%2Fllama%203%C3%BC");
    let item = config_item(&Workspace::default(), "agent-task-type", Some("a:b"));
    assert_eq!(item, "urn:trellis:config:default:agent-task-type:a%3Ab");
}

#[test]
fn a_session_is_found_in_everything_below_it() {
    let s = &session_id();
    for iri in [session(s), run(s), decision(&iteration(s, 1), DecisionKind::Tool, 1), message_id(s, "final", 2)] {
        assert_eq!(session_of(&iri), Some("S"), "{iri}");
    }
    assert_eq!(session_of("urn:trustgraph:agent:"), None);
    assert_eq!(session_of("urn:trustgraph:question:S"), None);
}

#[test]
fn an_iteration_is_found_in_everything_below_it() {
    let s = &session_id();
    assert_eq!(iteration_of(&iteration(s, 12)), Some(12));
    assert_eq!(iteration_of(&observation(s, 12)), Some(12));
    assert_eq!(iteration_of(&message_id(s, "i12", 2)), Some(12));
    assert_eq!(iteration_of(&conclusion(s)), None);
    assert_eq!(iteration_of(&session(s)), None);
}
