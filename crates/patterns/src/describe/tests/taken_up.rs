//! What others have begun is told as theirs, and what follows from it as ours.

use super::fixture::{Script, accepted, check_with, ending, only_option, priced, reply, step_answer, texts};
use crate::plan::PlanNames;
use crate::projector::{events, project};
use crate::synthesis::SynthesisName;
use serde_json::Value;
use trellis_domain::decision::{Decision, DecisionKind};
use trellis_domain::message::{AgentStep, PlanStep, StepStatus};
use trellis_domain::rdf::Quad;
use trellis_domain::record::{Accepted, Body, Ended, Name, REVISION, Reading, Record};
use trellis_domain::run::Termination;
use trellis_provenance::ONTOLOGY;
use trellis_provenance::ontology::Ontology;
use trellis_provenance::trace::trace;
use trellis_provenance::vocabulary::{prov, tg, trellis};

const ROOT: &str = "urn:trustgraph:agent:s";

fn routing(pattern: &str) -> Vec<Decision> {
    vec![only_option(DecisionKind::TaskType, "general"), only_option(DecisionKind::Pattern, pattern)]
}

fn asked(step: AgentStep, revision: u32) -> Body {
    Body::from(Accepted { history: vec![step], revision, ..accepted("why?", None) })
}

fn step(goal: &str, status: StepStatus, result: &str, depends_on: &[u32]) -> PlanStep {
    PlanStep {
        goal: goal.to_owned(),
        tool_hint: String::new(),
        depends_on: depends_on.to_vec(),
        status,
        result: result.to_owned(),
    }
}

/// A plan of which others have taken two steps, given up one and left one.
fn planned(revision: u32) -> Vec<Record> {
    let plan = vec![
        step("find", StepStatus::Completed, "found", &[]),
        step("look up", StepStatus::Failed, "no network", &[0]),
        step("guess", StepStatus::Revised, "", &[9]),
        step("compare", StepStatus::Pending, "", &[0, 1]),
    ];
    let mut script = Script::new("s");
    script
        .push(Name::session(), asked(AgentStep { plan, ..AgentStep::default() }, revision))
        .routed_to("plan-then-execute", routing("plan-then-execute"))
        .said(Name::step(3), step_answer("Known.", "alike"))
        .said(Name::synthesis(), priced(reply("", Reading::answered("So."))))
        .ended(Ended { missing: vec![1], ..ending(Termination::PlanPartial, "So.", None) });
    script.records
}

fn supervised() -> Vec<Record> {
    let subagent_results =
        [("debt", "little"), ("law", "none")].map(|(goal, found)| (goal.to_owned(), found.to_owned()));
    let step =
        AgentStep { step_type: "synthesise".into(), subagent_results: subagent_results.into(), ..AgentStep::default() };
    let mut script = Script::new("s");
    script
        .push(Name::session(), asked(step, REVISION))
        .routed_to("supervisor", routing("supervisor"))
        .said(Name::synthesis(), priced(reply("", Reading::answered("So."))))
        .ended(ending(Termination::SubagentsComplete, "So.", None));
    script.records
}

fn ids(records: &[Record]) -> Vec<String> {
    let id = |explain_id: &str| explain_id.strip_prefix(ROOT).unwrap_or(explain_id).to_owned();
    events(records).iter().map(|event| id(&event.explain_id)).collect()
}

/// Everything that a node says for a property.
fn says<'q>(quads: &'q [Quad], node: &str, property: &str) -> Vec<&'q str> {
    let node = format!("{ROOT}{node}");
    let said = quads.iter().filter(|quad| quad.s.text() == node && quad.p.text() == property);
    said.map(|quad| quad.o.text()).collect()
}

fn is_in_order(records: &[Record]) {
    let quads = project(records);
    assert_eq!(check_with(&quads, &texts(records)), []);
    assert_eq!(Ontology::parse(ONTOLOGY).unwrap().problems(&quads), []);
}

#[test]
fn a_plan_of_others_is_told_with_what_came_of_it_and_where_that_is_from() {
    let records = planned(REVISION);
    is_in_order(&records);
    assert_eq!(ids(&records), ["", "/pattern-decision", "/plan", "/step/0", "/step/1", "/step/3", "/synthesis"]);
    let quads = project(&records);
    let (history, plan) = (format!("{ROOT}/history"), format!("{ROOT}/plan"));
    for node in ["/plan", "/step/0", "/step/1"] {
        assert_eq!(says(&quads, node, prov::WAS_INFLUENCED_BY), [history.as_str()], "{node}");
        assert!(says(&quads, node, trellis::DECISION).is_empty(), "nobody here chose anything: {node}");
    }
    assert_eq!(says(&quads, "/step/1", tg::TOOL_ERROR), ["no network"]);
    assert_eq!(says(&quads, "/plan", trellis::PLANNED_STEP).len(), 4);
    assert_eq!(texts(&records)[&format!("{ROOT}/step/0/doc")], "found");
    // What was left is a step of ours in a plan of theirs.
    assert_eq!(says(&quads, "/step/3", prov::WAS_DERIVED_FROM), [plan.as_str()]);
    assert!(says(&quads, "/step/3", prov::WAS_INFLUENCED_BY).is_empty());
    assert_eq!(says(&quads, "/step/3", trellis::DEPENDS_ON_STEP).len(), 2);
    assert_eq!(says(&quads, "/synthesis", prov::WAS_INFLUENCED_BY).len(), 3);
}

#[test]
fn findings_of_others_are_what_the_answer_follows_from() {
    let records = supervised();
    is_in_order(&records);
    assert_eq!(ids(&records), ["", "/pattern-decision", "/finding/0", "/finding/1", "/synthesis"]);
    let quads = project(&records);
    let history = format!("{ROOT}/history");
    assert_eq!(says(&quads, "/finding/1", prov::WAS_INFLUENCED_BY), [history.as_str()]);
    assert_eq!(says(&quads, "/finding/1", tg::SUBAGENT_GOAL), ["law"]);
    assert_eq!(texts(&records)[&format!("{ROOT}/finding/1/doc")], "none");
    let findings = [format!("{ROOT}/finding/0"), format!("{ROOT}/finding/1")];
    assert_eq!(says(&quads, "/synthesis", prov::WAS_DERIVED_FROM), findings);
}

#[test]
fn whoever_reads_the_graph_sees_what_is_of_others() {
    let brought = |records: &[Record]| {
        let mut sessions = trace(&project(records)).sessions;
        let steps = serde_json::to_value(sessions.remove(0).steps).unwrap();
        let of_others = |step: &&Value| step["mark"]["brought"] == true;
        let id = |step: &Value| step["id"].as_str().unwrap().strip_prefix(ROOT).unwrap().to_owned();
        steps.as_array().unwrap().iter().filter(of_others).map(id).collect::<Vec<_>>()
    };
    assert_eq!(brought(&planned(REVISION)), ["/plan", "/step/0", "/step/1"]);
    assert_eq!(brought(&supervised()), ["/finding/0", "/finding/1"]);
    assert!(brought(&planned(7)).is_empty());
}

#[test]
fn what_is_left_is_in_order_after_the_history_was_erased() {
    for mut records in [planned(REVISION), supervised()] {
        records[0].body = Body::from(Accepted { revision: REVISION, ..accepted("why?", None) });
        is_in_order(&records);
        assert!(!ids(&records).iter().any(|id| id == "/step/0" || id == "/finding/0"));
    }
}

#[test]
fn runs_under_earlier_rules_tell_of_no_plan_that_was_not_theirs() {
    assert_eq!(ids(&planned(7)), ["", "/pattern-decision", "/step/3", "/synthesis"]);
}
