//! What was planned is told step by step, and what was sent out goal by goal: in order, none twice.

use crate::plan::PlanDecision;
use crate::plan::PlannedStep;
use crate::projector::tests::fixture::{cancelled_plan, plan_run, said, supervisor_run};
use crate::projector::tests::random_run::any_run;
use crate::projector::{events, project};
use expect_test::expect;
use proptest::prelude::*;
use trellis_domain::rdf::Quad;
use trellis_domain::record::{Reading, Record};
use trellis_provenance::iri;
use trellis_provenance::trace::{Plan, SessionTrace, Step, StepResult, trace};
use trellis_provenance::vocabulary::{trellis, trellis::class};

#[expect(clippy::wildcard_enum_match_arm, reason = "asks for one kind only")]
fn plans(session: &SessionTrace) -> Vec<&Plan> {
    let each = session.steps.iter().filter_map(|step| match step {
        Step::Plan(plan) => Some(plan),
        _ => None,
    });
    each.collect()
}

#[expect(clippy::wildcard_enum_match_arm, reason = "asks for one kind only")]
fn results(session: &SessionTrace) -> Vec<&StepResult> {
    let each = session.steps.iter().filter_map(|step| match step {
        Step::StepResult(result) => Some(result),
        _ => None,
    });
    each.collect()
}

/// The steps of all plans that a session's records hold, plan by plan.
fn steps_of(records: &[Record], session: &str) -> Vec<Vec<PlannedStep>> {
    let own = records.iter().filter(|record| record.header.session.as_str() == session && !record.header.late);
    let steps = |reading: &Reading| reading.decision::<PlanDecision>()?.steps;
    own.filter_map(|record| steps(&record.body.as_replied()?.reading)).collect()
}

fn check_plans(records: &[Record]) {
    for session in &trace(&project(records)).sessions {
        let recorded = steps_of(records, &session.session);
        let plans = plans(session);
        if recorded.is_empty() {
            continue; // No plan, or one that nobody could read.
        }
        assert_eq!(plans.len(), recorded.len());
        let numbers: Vec<_> = plans.iter().flat_map(|plan| &plan.steps).filter_map(|step| step.number).collect();
        assert!(numbers.iter().copied().eq(0..u32::try_from(numbers.len()).unwrap()), "{numbers:?}");
        for (plan, recorded) in plans.iter().zip(&recorded) {
            assert_eq!(plan.steps.len(), recorded.len());
            for (step, recorded) in plan.steps.iter().zip(recorded) {
                assert_eq!((&step.goal, &step.depends_on), (&recorded.goal, &recorded.depends_on));
                assert_eq!(step.tool_hint.as_deref().unwrap_or_default(), recorded.tool_hint);
            }
        }
        check_fates(session, &plans);
    }
}

/// Every step of a plan has a result, or was replaced by the next plan, or is one of the plan in force.
fn check_fates(session: &SessionTrace, plans: &[&Plan]) {
    let results = results(session);
    for (plan, next) in plans.iter().zip(plans.iter().skip(1).map(Some).chain([None])) {
        for step in &plan.steps {
            let result = results.iter().find(|result| Some(result.number) == step.number);
            assert!(result.is_none_or(|result| result.planned == step.id), "{step:?}");
            let expected = next.filter(|_| result.is_none()).map(|next| &next.id);
            assert_eq!(step.superseded_by.as_ref(), expected, "{step:?}");
        }
    }
}

#[test]
fn a_planned_step_tells_what_was_wanted() {
    let quads = project(&plan_run());
    expect![[r#"
        type <http://www.w3.org/ns/prov#Entity>
        type <urn:trellis:ns:PlannedStep>
        label "Planned step: Find the maker"
        stepNumber "0"
        conversationId "talk-2"
        goal "Find the maker"
        toolHint "knowledge-query""#]]
    .assert_eq(&said(&quads, "urn:trustgraph:agent:planner/plan/planned/0"));
    expect![[r#"
        type <http://www.w3.org/ns/prov#Entity>
        type <urn:trellis:ns:PlannedStep>
        label "Planned step: Compare"
        stepNumber "2"
        conversationId "talk-2"
        dependsOnPlanned <urn:trustgraph:agent:planner/plan/planned/0>
        dependsOnPlanned <urn:trustgraph:agent:planner/plan/planned/1>
        goal "Compare"
        supersededBy <urn:trustgraph:agent:planner/plan/1>"#]]
    .assert_eq(&said(&quads, "urn:trustgraph:agent:planner/plan/planned/2"));
    expect![[r#"
        type <http://www.w3.org/ns/prov#Entity>
        type <urn:trellis:ns:PlannedStep>
        label "Planned step: Compare"
        stepNumber "4"
        conversationId "talk-2"
        dependsOnPlanned <urn:trustgraph:agent:planner/plan/1/planned/3>
        dependsOnPlanned <urn:trustgraph:agent:planner/plan/planned/0>
        goal "Compare""#]]
    .assert_eq(&said(&quads, "urn:trustgraph:agent:planner/plan/1/planned/4"));
}

#[test]
fn that_a_step_was_replaced_is_said_when_it_happens() {
    let events = events(&plan_run());
    let saying = events.iter().filter(|event| event.quads.iter().any(|quad| quad.p.text() == trellis::SUPERSEDED_BY));
    let saying: Vec<_> = saying.map(|event| event.explain_id.as_str()).collect();
    assert_eq!(saying, ["urn:trustgraph:agent:planner/plan/1"]);
}

#[test]
fn the_plans_of_whole_runs_are_told_step_by_step() {
    for records in [plan_run(), cancelled_plan(), supervisor_run()] {
        check_plans(&records);
    }
}

/// A graph without our names, as the original would write it.
fn foreign(records: &[Record]) -> Vec<Quad> {
    let ours = |quad: &Quad| [&quad.p, &quad.o].iter().any(|term| term.text().starts_with("urn:trellis:"));
    project(records).into_iter().filter(|quad| !ours(quad)).collect()
}

#[test]
#[expect(clippy::wildcard_enum_match_arm, reason = "asks for two kinds only")]
fn plans_and_goals_without_numbers_are_read_too() {
    let told = |records: &[Record]| -> Vec<String> {
        let sessions = trace(&foreign(records)).sessions;
        let line = |step: &Step| match step {
            Step::Plan(plan) => Some(format!("{:?}", plan.steps.iter().map(|step| &step.goal).collect::<Vec<_>>())),
            Step::Decomposition(step) => {
                Some(format!("{:?}", step.goals.iter().map(|goal| &goal.goal).collect::<Vec<_>>()))
            }
            _ => None,
        };
        sessions[0].steps.iter().filter_map(line).collect()
    };
    let plans =
        [r#"["Compare", "Find the maker", "Find the weather"]"#, r#"["Check", "Compare", "Guess the weather"]"#];
    assert_eq!(told(&plan_run()), plans, "sorted by text");
    let rounds = [r#"["How old is X?", "What is X?", "Who owns X?"]"#, r#"["Does X float?", "Who sold X?"]"#];
    assert_eq!(told(&supervisor_run()), rounds, "sorted by text");
}

#[test]
fn the_question_leads_to_its_activity() {
    for records in [plan_run(), supervisor_run()] {
        let session = &records[0].header.session;
        let question = said(&project(&records), &iri::session(session));
        assert!(question.contains(&format!("run <{}>", iri::run(session))), "{question}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn plans_are_told_step_by_step(records in any_run()) {
        check_plans(&records);
    }

    #[test]
    fn nothing_derives_from_what_was_planned_and_it_derives_from_nothing(records in any_run()) {
        let quads = project(&records);
        let planned: Vec<_> = quads.iter().filter(|quad| quad.o.text() == class::PLANNED_STEP).map(|quad| &quad.s).collect();
        let derived = quads.iter().filter(|quad| quad.p.text() == trellis_provenance::vocabulary::prov::WAS_DERIVED_FROM);
        for quad in derived {
            prop_assert!(!planned.contains(&&quad.s) && !planned.contains(&&quad.o));
        }
    }
}
