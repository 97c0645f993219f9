//! Plans and supervisors as quads.

use crate::plan::DIRECT_STEP;
use crate::plan::PlanDecision;
use crate::plan::PlanNames;
use crate::projector::tests::fixture::{
    Script, cancelled_plan, ending, plan_run, planned, priced, reply, revision, routing, said, step_answer,
    supervisor_run, unreadable,
};
use crate::projector::{events, project};
use expect_test::{expect, expect_file};
use trellis_domain::record::{Ended, Name, Reading, Record};
use trellis_domain::run::Termination;
use trellis_provenance::vocabulary::tg;
use trellis_provenance::{Event, Format, export, iri};

#[test]
fn a_whole_plan_becomes_these_quads() {
    let nquads = export(&project(&plan_run()), Format::NQuads).unwrap();
    expect_file!["../../../snapshots/plan-run.nq"].assert_eq(&nquads);
}

#[test]
fn a_cancelled_plan_becomes_these_quads() {
    let nquads = export(&project(&cancelled_plan()), Format::NQuads).unwrap();
    expect_file!["../../../snapshots/cancelled-plan-run.nq"].assert_eq(&nquads);
}

#[test]
fn a_whole_run_with_subagents_becomes_these_quads() {
    let nquads = export(&project(&supervisor_run()), Format::NQuads).unwrap();
    expect_file!["../../../snapshots/supervisor-run.nq"].assert_eq(&nquads);
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
    script.accepted("why?", None).routed_to("plan-then-execute", routing());
    script.said(Name::plan(0), priced(unreadable("One."))).said(Name::plan(0).retry(), priced(unreadable("Two.")));
    script.said(Name::step(0), step_answer("", "So."));
    let quads = project(&script.records);
    expect![[r#"
        type <http://www.w3.org/ns/prov#Entity>
        type <https://trustgraph.ai/ns/Error>
        type <https://trustgraph.ai/ns/Plan>
        label "Plan with 1 steps"
        generatedAtTime "2026-04-13T15:16:43Z"
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
        decision <urn:trustgraph:agent:s/plan/decision/tool>
        plannedStep <urn:trustgraph:agent:s/plan/planned/0>
        seq "4""#]]
    .assert_eq(&said(&quads, "urn:trustgraph:agent:s/plan"));
    assert!(said(&quads, "urn:trustgraph:agent:s/step/0").contains(DIRECT_STEP));
}

#[test]
fn a_plan_that_is_kept_and_then_revised_was_kept_as_it_was() {
    let mut script = Script::new("s");
    script.accepted("why?", None).routed_to("plan-then-execute", routing());
    script.said(Name::plan(0), reply("", Reading::decided(PlanDecision { steps: Some(vec![planned("A", &[])]) })));
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
    script.accepted("why?", None).routed_to("plan-then-execute", routing());
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
    let chosen = reply("", Reading::decided("general"));
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

#[test]
fn one_correlation_id_leads_to_everything_of_a_fan_out() {
    let quads = project(&supervisor_run());
    let naming = |property: &str| -> Vec<String> {
        let naming = quads.iter().filter(|quad| quad.p.text() == property && quad.o.text() == "boss-r1");
        naming.map(|quad| quad.s.text().trim_start_matches(iri::AGENT).to_owned()).collect()
    };
    assert_eq!(naming(tg::PARENT_CORRELATION_ID), ["boss-0", "boss-1", "boss-2"], "the sessions that it began");
    let rest = [
        "boss-0/completion",
        "boss-1/completion",
        "boss-2/completion",
        "boss/decompose",
        "boss/fanout/boss-r1",
        "boss/fanout/boss-r1/join",
        "boss/finding/0",
        "boss/finding/1",
        "boss/finding/2",
        "boss/synthesis",
    ];
    assert_eq!(naming(tg::CORRELATION_ID), rest, "how they ended, what was sent out, what came back, the answer");
}

#[test]
fn an_answer_derives_from_every_finding_and_from_the_end_of_every_subagent() {
    let answer = said(&project(&supervisor_run()), "urn:trustgraph:agent:boss/synthesis");
    let parents = answer.lines().filter_map(|line| line.strip_prefix("wasDerivedFrom <urn:trustgraph:agent:"));
    let ends = ["boss-0/final>", "boss-1/synthesis>", "boss-2/final>", "boss-3/synthesis>", "boss-4/final>"];
    let findings = (0..5).map(|index| format!("boss/finding/{index}>"));
    let expected: Vec<_> = ends.map(str::to_owned).into_iter().chain(findings).collect();
    assert_eq!(parents.collect::<Vec<_>>(), expected);
}

#[test]
fn an_end_says_under_which_criteria_it_was_decided() {
    let criteria = |records: &[Record], node: &str| {
        let said = said(&project(records), node);
        said.lines().find_map(|line| line.strip_prefix("terminationCriteria ")).map(str::to_owned)
    };
    let plan = criteria(&plan_run(), "urn:trustgraph:agent:planner/synthesis");
    assert_eq!(plan.as_deref(), Some("\"Stop when both are known.\""));
    assert_eq!(criteria(&supervisor_run(), "urn:trustgraph:agent:boss/synthesis"), None, "none were given");
    let mut script = Script::new("s");
    let words = "Two sources agree.".to_owned();
    let ended = Ended { criteria: words, ..ending(Termination::MaxIterations, "So far.", Some("too many")) };
    script.accepted("why?", None).routed(routing()).ended(ended);
    let conclusion = criteria(&script.records, "urn:trustgraph:agent:s/final");
    assert_eq!(conclusion.as_deref(), Some("\"Two sources agree.\""));
}

#[test]
fn every_way_to_end_is_a_node_with_its_reason() {
    for reason in Termination::ALL {
        let mut script = Script::new("s");
        let ended = ending(*reason, "", (!reason.is_answer()).then_some("it broke"));
        script.accepted("why?", None).routed(routing()).ended(ended);
        let node = if reason.is_synthesis() { "synthesis" } else { "final" };
        let said = said(&project(&script.records), &format!("urn:trustgraph:agent:s/{node}"));
        assert!(said.contains(&format!("terminationReason \"{reason}\"")), "{reason}: {said}");
        assert_eq!(said.contains("toolError \"it broke\""), !reason.is_answer(), "{reason}: {said}");
    }
}
