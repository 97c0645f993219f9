//! The stock explain client's way of reading, as the reference describes it: what it lists must be the
//! whole run, each step once and in order.

use crate::plan::PlanDecision;
use crate::plan::PlanNames;
use crate::projector::tests::fixture::{
    Script, Team, asked_run, call, cancelled_by_somebody, cancelled_plan, cancelled_supervisor, check_with, ending,
    parked_run, plan_run, planned, react_run, reply, result, routing, supervisor_run, texts,
};
use crate::projector::tests::random_run::{any_run, finished_react_run, finished_run};
use crate::projector::{events, project};
use crate::react::several_tests::long;
use crate::supervisor::TeamNames;
use crate::synthesis::SynthesisName;
use expect_test::expect;
use proptest::prelude::*;
use std::collections::BTreeSet;
use trellis_domain::SessionId;
use trellis_domain::fan_out::JoinCause;
use trellis_domain::limits::Limits;
use trellis_domain::rdf::{Quad, Term};
use trellis_domain::reading::Citation;
use trellis_domain::record::{Name, Reading, Record, Replied};
use trellis_domain::run::Termination;
use trellis_provenance::vocabulary::{prov, rdf, tg, trellis};
use trellis_provenance::{Event, iri};

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

/// The classes through which it goes on.
const WALKED: [&str; 6] = [
    tg::class::ANALYSIS,
    tg::class::OBSERVATION,
    tg::class::DECOMPOSITION,
    tg::class::FINDING,
    tg::class::PLAN,
    tg::class::STEP_RESULT,
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
            Some(class) if WALKED.contains(&class) => {
                listed.push((class, child.to_owned()));
                walk(graph, child, depth - 1, listed);
            }
            Some(class @ (tg::class::CONCLUSION | tg::class::SYNTHESIS)) => listed.push((class, child.to_owned())),
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

fn listing(records: &[Record]) -> String {
    let line = |(class, node): (&str, String)| {
        format!("{} {}", class.trim_start_matches(tg::NS), iri::path_of(&node).unwrap())
    };
    stock_trace(records).into_iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Who asked is told beside the question, where the stock client does not look.
#[test]
fn who_asked_changes_nothing_for_it() {
    let told = asked_run();
    let first = |records: &[Record]| class(&events(records).into_iter().next().unwrap().quads);
    assert!(project(&told).iter().any(|quad| quad.p.text() == prov::WAS_ATTRIBUTED_TO));
    assert_eq!((listing(&told), first(&told)), (listing(&react_run()), first(&react_run())));
    assert_eq!(listing(&cancelled_by_somebody()), listing(&cancelled_plan()), "nor does who cancelled");
}

#[test]
fn what_people_are_asked_and_say_changes_nothing_for_it() {
    let without = parked_run().into_iter().filter(|record| record.body.as_parked().is_none());
    let without = without.filter(|record| record.body.as_settled().is_none());
    let without: Vec<_> = without.filter(|record| record.body.as_told().is_none()).collect();
    assert_eq!(listing(&parked_run()), listing(&without));
    let of_session = |quad: &Quad| {
        quad.p.text() == prov::WAS_DERIVED_FROM && quad.o.text() == iri::session(&SessionId::new("9a3b2c").unwrap())
    };
    let more = |records: &[Record]| project(records).iter().filter(|quad| of_session(quad)).count();
    assert_eq!(more(&parked_run()), more(&without) + 2, "however many there are");
}

#[test]
fn a_whole_run_is_listed_in_order() {
    let listed = stock_trace(&react_run());
    let classes: Vec<_> = listed.iter().map(|(class, _)| class.trim_start_matches(tg::NS)).collect();
    let (analysis, observation) = ("Analysis", "Observation");
    assert_eq!(classes, [analysis, observation, analysis, observation, analysis, observation, "Conclusion"]);
}

#[test]
fn a_long_session_is_listed_whole() {
    let mut script = Script::new("s");
    script.accepted("why?", None).routed(routing());
    for n in 1..=100 {
        script.replied(n, call("", "weather", serde_json::json!({}))).observed(n, result("Rain."));
    }
    script.ended(ending(Termination::FinalAnswer, "Rain.", None));
    let listed = stock_trace(&script.records);
    let count = |class: &str| listed.iter().filter(|(found, _)| *found == class).count();
    let (analyses, observations) = (count(tg::class::ANALYSIS), count(tg::class::OBSERVATION));
    assert_eq!((analyses, observations, count(tg::class::CONCLUSION)), (100, 100, 1));
    assert_eq!(check_with(&project(&script.records), &texts(&script.records)), []);
}

#[test]
fn several_calls_of_one_reply_are_listed_with_their_results_and_none_twice() {
    expect![[r#"
        Analysis i1
        Analysis i1/call/2
        Observation i1/call/2/observation
        Observation i1/observation
        Analysis i2
        Analysis i2/call/2
        Observation i2/call/2/observation
        Observation i2/observation
        Conclusion final"#]]
    .assert_eq(&listing(&long(2)));
    let listed = stock_trace(&long(60));
    let nodes: BTreeSet<_> = listed.iter().map(|(_, node)| node).collect();
    assert_eq!((listed.len(), nodes.len()), (4 * 60 + 1, 4 * 60 + 1), "also in a long session");
}

#[test]
fn a_plan_is_listed_with_its_revision_its_steps_and_one_synthesis() {
    expect![[r#"
        Plan plan
        Plan plan/1
        StepResult step/3
        StepResult step/4
        Synthesis synthesis
        StepResult step/0
        StepResult step/1"#]]
    .assert_eq(&listing(&plan_run()));
}

#[test]
fn a_cancelled_plan_is_listed_with_the_steps_that_were_begun() {
    expect![[r#"
        Plan plan
        Conclusion final
        StepResult step/0
        StepResult step/1"#]]
    .assert_eq(&listing(&cancelled_plan()));
}

#[test]
fn a_supervisor_is_listed_with_its_rounds_its_findings_and_a_synthesis_for_each() {
    expect![[r#"
        Decomposition decompose
        Decomposition decompose/2
        Finding finding/3
        Synthesis synthesis
        Finding finding/4
        Synthesis synthesis
        Finding finding/0
        Synthesis synthesis
        Finding finding/1
        Synthesis synthesis
        Finding finding/2
        Synthesis synthesis"#]]
    .assert_eq(&listing(&supervisor_run()));
}

#[test]
fn subagents_are_not_in_the_list_of_sessions() {
    let graph = project(&supervisor_run());
    let has = |node: &str, property: &str| graph.iter().any(|quad| quad.s.text() == node && quad.p.text() == property);
    let sessions = graph.iter().filter(|quad| quad.p.text() == tg::QUERY).map(|quad| quad.s.text());
    let roots: Vec<_> = sessions.filter(|session| !has(session, prov::WAS_DERIVED_FROM)).collect();
    assert_eq!(roots, ["urn:trustgraph:agent:boss"]);
}

#[test]
fn the_largest_fan_out_fits_into_what_is_read_of_a_node() {
    let boss = SessionId::new("boss").unwrap();
    let team = Team::new(&boss, 1, 0, &[("Look", "react"); 8]);
    let mut script = Script::new("boss");
    script.accepted("why?", None).routed_to("supervisor", Vec::new());
    let reading = Reading::decided(crate::supervisor::Goals { goals: Some(Vec::new()) });
    script.said(Name::decompose(), reply("Divide.", reading));
    team.begin(&mut script, None);
    for goal in &team.fan_out.goals {
        script.enter(&goal.session).ended(ending(Termination::FinalAnswer, "yes", None));
    }
    team.join(&mut script, JoinCause::AllEnded);
    let next = Team::new(&boss, 2, 8, &[("Look again", "react")]);
    next.begin(&mut script, None);
    let listed = stock_trace(&script.records);
    let count = |class: &str| listed.iter().filter(|(found, _)| *found == class).count();
    assert_eq!((count(tg::class::FINDING), count(tg::class::DECOMPOSITION)), (8, 2));
}

#[test]
fn the_answer_of_three_full_rounds_is_within_what_is_read_of_a_node() {
    let boss = SessionId::new("boss").unwrap();
    let mut script = Script::new("boss");
    script.accepted("why?", None);
    for round in 1..=3 {
        let team = Team::new(&boss, round, (round - 1) * 8, &[("Look", "react"); 8]);
        team.begin(&mut script, None);
        for goal in &team.fan_out.goals {
            script.enter(&goal.session).ended(ending(Termination::FinalAnswer, "yes", None));
        }
        team.join(&mut script, JoinCause::AllEnded);
    }
    let citations = (0..24).map(|index| Citation { index, confidence: None }).collect();
    let answer = reply("", Reading::answered("yes"));
    script.said(Name::synthesis(), Replied { citations, ..answer });
    script.ended(ending(Termination::SubagentsComplete, "yes", None));
    let graph = project(&script.records);
    let about = graph.iter().filter(|quad| quad.s.text() == "urn:trustgraph:agent:boss/synthesis");
    let read: Vec<_> = about.take(QUADS_PER_NODE).collect();
    assert_eq!(class(read.iter().copied()), Some(tg::class::SYNTHESIS));
    assert!(read.iter().any(|quad| quad.p.text() == tg::DOCUMENT));
}

#[test]
fn the_question_is_the_only_node_in_the_list_of_sessions() {
    let graph = project(&react_run());
    let queried: Vec<_> = graph.iter().filter(|quad| quad.p.text() == tg::QUERY).map(|quad| quad.s.text()).collect();
    assert_eq!(queried, ["urn:trustgraph:agent:8f2c1a"]);
    assert!(!graph.iter().any(|quad| quad.s.text() == queried[0] && quad.p.text() == prov::WAS_DERIVED_FROM));
}

/// What the caller brought along has its node and its text; the question stays one that nothing lies behind.
#[test]
fn a_history_that_was_brought_along_is_told_and_changes_nothing_for_the_stock_reader() {
    let records = cancelled_plan();
    let graph = project(&records);
    let (root, node) = ("urn:trustgraph:agent:planner", "urn:trustgraph:agent:planner/history");
    let says = |s: &str, p: &str| graph.iter().find(|quad| quad.s.text() == s && quad.p.text() == p);
    assert_eq!(says(root, trellis::BROUGHT_HISTORY).map(|quad| quad.o.text()), Some(node));
    assert!(says(root, prov::WAS_DERIVED_FROM).is_none() && says(node, prov::WAS_DERIVED_FROM).is_none());
    let text = crate::projector::documents(&records).into_iter().find(|document| document.id == node).unwrap().text;
    assert_eq!(text.text(), "Step 1\nAction: look\nArgs: {}\nObservation: Nothing.");
    let hash = trellis_domain::Hash::of(text.text()).to_string();
    assert_eq!(says(node, trellis::DOCUMENT_HASH).map(|quad| quad.o.text()), Some(hash.as_str()));
    assert_eq!(trellis_provenance::trace(&graph).sessions[0].history.as_ref().map(|link| link.id.as_str()), Some(node));
    assert_eq!(class(&events(&records)[0].clone().into_inline()), Some(tg::class::AGENT_QUESTION));
}

#[test]
fn inline_events_are_taken_for_what_they_are() {
    let classes: Vec<_> = events(&react_run()).iter().map(|event| class(&event.clone().into_inline())).collect();
    let (analysis, observation) = (Some(tg::class::ANALYSIS), Some(tg::class::OBSERVATION));
    assert_eq!(classes[..2], [Some(tg::class::AGENT_QUESTION), None]);
    assert_eq!(classes[2..8], [analysis, observation, analysis, observation, analysis, observation]);
    assert_eq!(classes[8..], [Some(tg::class::CONCLUSION)]);
}

/// The class that each inline event is taken for.
fn taken_for(records: &[Record]) -> String {
    let line = |event: &Event| {
        let class = class(&event.clone().into_inline()).map_or("nothing", |class| class.trim_start_matches(tg::NS));
        format!("{class} {}", event.explain_id.trim_start_matches(iri::AGENT))
    };
    events(records).iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn inline_events_of_plans_are_taken_for_what_they_are() {
    expect![[r#"
        AgentQuestion planner
        nothing planner/pattern-decision
        Plan planner/plan
        StepResult planner/step/1
        StepResult planner/step/0
        Plan planner/plan/1
        StepResult planner/step/3
        StepResult planner/step/4
        Synthesis planner/synthesis"#]]
    .assert_eq(&taken_for(&plan_run()));
    expect![[r#"
        AgentQuestion planner
        nothing planner/pattern-decision
        Plan planner/plan
        Conclusion planner/final
        nothing planner/step/0/result
        nothing planner/step/1/retry
        nothing planner/step/2"#]]
    .assert_eq(&taken_for(&cancelled_plan()));
}

#[test]
fn inline_events_of_supervisors_are_taken_for_what_they_are() {
    expect![[r#"
        AgentQuestion boss
        nothing boss/pattern-decision
        Decomposition boss/decompose
        AgentQuestion boss-0
        nothing boss-0/pattern-decision
        AgentQuestion boss-1
        nothing boss-1/pattern-decision
        AgentQuestion boss-2
        nothing boss-2/pattern-decision
        Analysis boss-0/i1
        Observation boss-0/i1/observation
        Conclusion boss-0/final
        Decomposition boss-1/decompose
        AgentQuestion boss-1-0
        nothing boss-1-0/pattern-decision
        Analysis boss-1-0/i1
        Observation boss-1-0/i1/observation
        Conclusion boss-1-0/final
        Finding boss-1/finding/0
        Synthesis boss-1/synthesis
        Conclusion boss-2/final
        Finding boss/finding/0
        Finding boss/finding/1
        Finding boss/finding/2
        Decomposition boss/decompose/2
        AgentQuestion boss-3
        nothing boss-3/pattern-decision
        AgentQuestion boss-4
        nothing boss-4/pattern-decision
        Plan boss-3/plan
        StepResult boss-3/step/0
        Synthesis boss-3/synthesis
        Conclusion boss-4/final
        Finding boss/finding/3
        Finding boss/finding/4
        nothing boss-4/i1
        Synthesis boss/synthesis"#]]
    .assert_eq(&taken_for(&supervisor_run()));
}

/// What it takes for an event's document: the last of all, whatever it is about.
fn document(event: &Event) -> Option<Term> {
    let inline = event.clone().into_inline().into_iter().rev();
    inline.map(|quad| (quad.p, quad.o)).find(|(p, _)| p.text() == tg::DOCUMENT).map(|(_, o)| o)
}

/// The document that the graph has for an event's main node.
fn own_document(event: &Event) -> Option<&Term> {
    let mut own = event.quads.iter().filter(|quad| quad.s.text() == event.explain_id);
    own.find(|quad| quad.p.text() == tg::DOCUMENT).map(|quad| &quad.o)
}

#[test]
fn the_document_of_the_last_event_is_the_answer() {
    let events = events(&react_run());
    assert_eq!(document(events.last().unwrap()), Some(Term::iri("urn:trustgraph:agent:8f2c1a/answer")));
}

#[test]
fn the_document_of_an_event_is_its_own_or_none() {
    for records in [react_run(), plan_run(), cancelled_plan(), supervisor_run(), cancelled_supervisor()] {
        for event in events(&records) {
            assert_eq!(document(&event), own_document(&event).cloned(), "{}", event.explain_id);
        }
    }
}

#[test]
fn a_thought_is_never_taken_for_the_answer_of_a_session_that_failed() {
    let mut script = Script::new("s");
    script.accepted("why?", None).replied(1, reply("I wonder.", Reading::Failed { reason: "down".to_owned() }));
    script.ended(ending(Termination::Error, "", Some("down")));
    let events = events(&script.records);
    let end = events.last().unwrap();
    let thought = Term::iri("urn:trustgraph:agent:s/final/thought");
    assert!(end.quads.iter().any(|quad| quad.p.text() == tg::DOCUMENT && quad.o == thought), "the graph has it");
    assert_eq!(document(end), None);
}

#[test]
fn the_goals_of_a_decomposition_are_each_taken_once() {
    let events = events(&supervisor_run());
    let event = events.iter().find(|event| event.explain_id.ends_with("boss/decompose")).unwrap();
    let inline = event.clone().into_inline();
    let goals = inline.iter().filter(|quad| quad.p.text() == tg::SUBAGENT_GOAL).map(|quad| quad.o.text());
    assert_eq!(goals.collect::<Vec<_>>(), ["What is X?", "How old is X?", "Who owns X?"]);
}

#[test]
fn the_longest_plan_is_within_what_is_read_of_a_node() {
    let mut script = Script::new("s");
    let steps: Vec<_> = (0..Limits::default().max_plan_steps).map(|i| planned(&format!("Do {i}"), &[])).collect();
    let count = steps.len();
    let plan = reply("", Reading::decided(PlanDecision { steps: Some(steps) }));
    script.accepted("why?", None).routed_to("plan-then-execute", Vec::new()).said(Name::plan(0), plan);
    let graph = project(&script.records);
    let about = graph.iter().filter(|quad| quad.s.text() == "urn:trustgraph:agent:s/plan");
    let read: Vec<_> = about.take(QUADS_PER_NODE).collect();
    assert_eq!(class(read.iter().copied()), Some(tg::class::PLAN));
    assert_eq!(read.iter().filter(|quad| quad.p.text() == tg::PLAN_STEP).count(), count);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Ends are listed once for every node on the way to them.
    #[test]
    fn everything_of_the_root_session_is_listed(records in finished_run()) {
        let mut listed = stock_trace(&records);
        let root = &records[0].header.session;
        let walked = |event: &&Event| event.session == *root && class(&Event::clone(event).into_inline()).is_some();
        let events = events(&records);
        let ids: Vec<_> = events.iter().filter(walked).map(|event| event.explain_id.as_str()).collect();
        let mut expected = Vec::new();
        for event in events.iter().filter(walked).filter(|event| event.explain_id != iri::session(root)) {
            let class = class(&event.clone().into_inline()).unwrap();
            let is_end = [tg::class::CONCLUSION, tg::class::SYNTHESIS].contains(&class);
            let ways = if is_end { parents(event).filter(|parent| ids.contains(parent)).count() } else { 1 };
            expected.extend(std::iter::repeat_n((class, event.explain_id.clone()), ways));
        }
        listed.retain(|(_, node)| ids.contains(&node.as_str()));
        listed.sort();
        expected.sort();
        prop_assert_eq!(listed, expected);
    }

    #[test]
    fn the_document_of_any_event_is_its_own_or_none(records in any_run()) {
        for event in events(&records) {
            prop_assert_eq!(document(&event), own_document(&event).cloned(), "{}", event.explain_id);
        }
    }

    /// The rules of the original's own checker of recorded streams that every pattern keeps.
    #[test]
    fn events_hang_together(records in finished_run()) {
        let on_time: Vec<Record> = records.into_iter().filter(|record| !record.header.late).collect();
        let events = events(&on_time);
        let ids: Vec<_> = events.iter().map(|event| event.explain_id.as_str()).collect();
        let unique: BTreeSet<_> = ids.iter().collect();
        prop_assert_eq!(unique.len(), ids.len());
        prop_assert!(events.iter().flat_map(parents).all(|parent| ids.contains(&parent)));
        let roots: Vec<_> = events.iter().filter(|event| parents(event).next().is_none()).collect();
        prop_assert_eq!(roots.len(), 1);
        prop_assert_eq!(&roots[0].explain_id, ids[0]);
    }

    /// A plan's steps are leaves, all but the last, so this holds for the other patterns only.
    #[test]
    fn one_event_is_the_last(records in finished_react_run()) {
        let on_time: Vec<Record> = records.into_iter().filter(|record| !record.header.late).collect();
        let events = events(&on_time);
        let ends: Vec<_> = ends(&events).collect();
        prop_assert_eq!(ends, [events.last().unwrap().explain_id.as_str()]);
    }
}

fn parents(event: &Event) -> impl Iterator<Item = &str> {
    let own = event.quads.iter().filter(|quad| quad.s.text() == event.explain_id);
    own.filter(|quad| quad.p.text() == prov::WAS_DERIVED_FROM).map(|quad| quad.o.text())
}

/// The nodes that nothing derives from.
fn ends(events: &[Event]) -> impl Iterator<Item = &str> {
    let derived: BTreeSet<&str> = events.iter().flat_map(parents).collect();
    events.iter().map(|event| event.explain_id.as_str()).filter(move |id| !derived.contains(id))
}

#[test]
fn what_nothing_derives_from_is_the_synthesis_and_the_other_steps_of_plans() {
    let on_time: Vec<Record> = supervisor_run().into_iter().filter(|record| !record.header.late).collect();
    assert_eq!(ends(&events(&on_time)).collect::<Vec<_>>(), ["urn:trustgraph:agent:boss/synthesis"]);
    let listed: Vec<_> = ends(&events(&plan_run())).filter_map(iri::path_of).map(str::to_owned).collect();
    assert_eq!(listed, ["step/1", "step/0", "step/3", "synthesis"]);
}
