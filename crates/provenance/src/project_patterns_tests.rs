//! Plans and supervisors as quads.

use crate::fixture::{
    Script, cancelled_plan, ending, plan_run, planned, priced, reply, revision, routing, said, step_answer,
    supervisor_run, unreadable,
};
use crate::{Event, Format, events, export, iri, project};
use expect_test::{expect, expect_file};
use trellis_domain::reading::DIRECT_STEP;
use trellis_domain::record::{Name, Reading, Record};
use trellis_domain::run::Termination;

#[test]
fn a_whole_plan_becomes_these_quads() {
    let nquads = export(&project(&plan_run()), Format::NQuads).unwrap();
    expect_file!["../snapshots/plan-run.nq"].assert_eq(&nquads);
}

#[test]
fn a_cancelled_plan_becomes_these_quads() {
    let nquads = export(&project(&cancelled_plan()), Format::NQuads).unwrap();
    expect_file!["../snapshots/cancelled-plan-run.nq"].assert_eq(&nquads);
}

#[test]
fn a_whole_run_with_subagents_becomes_these_quads() {
    let nquads = export(&project(&supervisor_run()), Format::NQuads).unwrap();
    expect_file!["../snapshots/supervisor-run.nq"].assert_eq(&nquads);
}

fn ids(records: &[Record]) -> String {
    let line = |event: Event| format!("{} {}", event.seq, event.explain_id.trim_start_matches(iri::AGENT));
    events(records).into_iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_events_of_a_plan_are_its_plans_its_results_and_its_end() {
    expect![[r#"
        1 planner
        5 planner/pattern-decision
        7 planner/plan
        10 planner/step/1
        11 planner/step/0
        12 planner/plan/1
        14 planner/step/3
        18 planner/step/4
        20 planner/synthesis"#]]
    .assert_eq(&ids(&plan_run()));
}

#[test]
fn the_events_of_a_supervisor_are_decompositions_findings_and_its_end() {
    let own = ids(&supervisor_run());
    expect![[r#"
        2 boss/pattern-decision
        5 boss/decompose
        29 boss/finding/0
        29 boss/finding/1
        29 boss/finding/2
        32 boss/decompose/2
        42 boss/finding/3
        42 boss/finding/4
        45 boss/synthesis"#]]
    .assert_eq(&own.lines().filter(|line| line.contains(" boss/")).collect::<Vec<_>>().join("\n"));
}

#[test]
fn a_plan_that_nobody_could_read_has_one_step() {
    let mut script = Script::new("s");
    script.accepted("why?", None).routed(routing());
    script.said(Name::plan(0), priced(unreadable("One."))).said(Name::plan(0).retry(), priced(unreadable("Two.")));
    script.said(Name::step(0), step_answer("", "So."));
    let quads = project(&script.records);
    expect![[r#"
        type <http://www.w3.org/ns/prov#Entity>
        type <https://trustgraph.ai/ns/Error>
        type <https://trustgraph.ai/ns/Plan>
        label "Plan with 1 steps"
        wasDerivedFrom <urn:trustgraph:agent:s>
        wasDerivedFrom <urn:trustgraph:agent:s/pattern-decision>
        inToken "420"
        llmDurationMs "2400"
        llmModel "qwen2.5:7b"
        outToken "34"
        planStep "Answer the question directly"
        thought <urn:trustgraph:agent:s/plan/retry/thought>
        thought <urn:trustgraph:agent:s/plan/thought>
        toolError "neither action nor answer"
        decision <urn:trustgraph:agent:s/plan/decision/tool>"#]]
    .assert_eq(&said(&quads, "urn:trustgraph:agent:s/plan"));
    assert!(said(&quads, "urn:trustgraph:agent:s/step/0").contains(DIRECT_STEP));
}

#[test]
fn a_plan_that_is_kept_and_then_revised_was_kept_as_it_was() {
    let mut script = Script::new("s");
    script.accepted("why?", None).routed(routing());
    script.said(Name::plan(0), reply("", Reading::Plan { steps: vec![planned("A", &[])], mended: Vec::new() }));
    script
        .said(Name::plan(1), revision(None, "Fine."))
        .said(Name::plan(2), revision(Some(vec![planned("B", &[])]), "No."));
    let quads = project(&script.records);
    expect![[r#"
        type <http://www.w3.org/ns/prov#Entity>
        type <urn:trellis:ns:PlanReview>
        label "Plan Review"
        wasDerivedFrom <urn:trustgraph:agent:s/plan>
        llmDurationMs "1200"
        thought <urn:trustgraph:agent:s/plan/1/thought>
        decision <urn:trustgraph:agent:s/plan/1/decision/replan>"#]]
    .assert_eq(&said(&quads, "urn:trustgraph:agent:s/plan/1"));
    let revised = said(&quads, "urn:trustgraph:agent:s/plan/2");
    assert!(revised.contains("wasDerivedFrom <urn:trustgraph:agent:s/plan>"), "{revised}");
    assert!(revised.contains("review <urn:trustgraph:agent:s/plan/1>"), "{revised}");
}

#[test]
fn a_plan_that_never_came_is_no_plan() {
    let mut script = Script::new("s");
    script.accepted("why?", None).routed(routing());
    script.said(Name::plan(0), reply("", Reading::Failed { reason: "the model is down".to_owned() }));
    script.ended(ending(Termination::Error, "", Some("the model is down")));
    let quads = project(&script.records);
    expect![[r#"
        type <http://www.w3.org/ns/prov#Entity>
        type <https://trustgraph.ai/ns/Error>
        type <urn:trellis:ns:UnusedReply>
        label "Unused Reply"
        wasInfluencedBy <urn:trustgraph:agent:s>
        llmDurationMs "1200"
        toolError "the model is down""#]]
    .assert_eq(&said(&quads, "urn:trustgraph:agent:s/plan"));
    assert!(said(&quads, "urn:trustgraph:agent:s/final").contains("unusedReply <urn:trustgraph:agent:s/plan>"));
}

#[test]
fn routing_that_was_cut_short_is_told_of_at_the_end() {
    let mut script = Script::new("s");
    let chosen = reply("", Reading::Chosen { name: "general".to_owned() });
    script.accepted("why?", None).said(Name::route_task_type(), priced(chosen));
    script.ended(ending(Termination::Timeout, "", Some("too slow")));
    expect![[r#"
        type <http://www.w3.org/ns/prov#Entity>
        type <urn:trellis:ns:UnusedReply>
        label "Unused Reply"
        wasInfluencedBy <urn:trustgraph:agent:s>
        inToken "210"
        llmDurationMs "1200"
        llmModel "qwen2.5:7b"
        outToken "17""#]]
    .assert_eq(&said(&project(&script.records), "urn:trustgraph:agent:s/route/task-type"));
}
