use crate::projector::tests::fixture::{
    Script, answer, cancelled_plan, ending, only_option, plan_run, react_run, supervisor_run,
};
use crate::projector::tests::random_run::any_run;
use crate::projector::{documents, events};
use expect_test::expect;
use proptest::prelude::*;
use std::collections::BTreeSet;
use trellis_domain::decision::{Decision, DecisionKind};
use trellis_domain::document::Document;
use trellis_domain::rdf::Quad;
use trellis_domain::record::Record;
use trellis_domain::run::Termination;
use trellis_provenance::node::first_chars;
use trellis_provenance::vocabulary;

fn listed(records: &[Record]) -> String {
    let lines = documents(records).into_iter().map(|d| format!("{} | {} | {}\n", d.id, d.title, d.text.text()));
    lines.collect()
}

#[test]
fn a_run_has_these_documents() {
    expect![[r#"
        urn:trustgraph:agent:8f2c1a/i1/thought | Agent Thought: knowledge-query | I need facts.
        urn:trustgraph:agent:8f2c1a/i1/observation | Agent Observation | X makes trellises in Überlingen.
        urn:trustgraph:agent:8f2c1a/i2/thought | Agent Thought: __parse_error__ | Hm.
        urn:trustgraph:agent:8f2c1a/i2/observation | Agent Observation | Error: neither action nor answer
        urn:trustgraph:agent:8f2c1a/i3/observation | Agent Observation | Error: no such station
        urn:trustgraph:agent:8f2c1a/answer | Agent Answer: What does Company X make, and is it raining where ... | Trellises. Unknown.
        urn:trustgraph:agent:8f2c1a/final/thought | Agent Thought: answer | That must do.
    "#]].assert_eq(&listed(&react_run()));
}

#[test]
fn a_plan_has_these_documents() {
    expect![[r#"
        urn:trustgraph:agent:planner/pattern-decision/decision/task-type/rationale | Rationale: task-type | Nothing special.
        urn:trustgraph:agent:planner/pattern-decision/decision/task-type/rejected | Rejected reply: task-type | poetry
        urn:trustgraph:agent:planner/routing/rationale | Routing rationale | Several parts.
        urn:trustgraph:agent:planner/plan/thought | Agent Thought: plan | First try.
        urn:trustgraph:agent:planner/plan/retry/thought | Agent Thought: plan | Two facts, then compare.
        urn:trustgraph:agent:planner/step/1/doc | Step result: Find the weather | Error: no such station
        urn:trustgraph:agent:planner/step/1/thought | Agent Thought: step 1 | Ask for rain.
        urn:trustgraph:agent:planner/step/0/doc | Step result: Find the maker | Trellises.
        urn:trustgraph:agent:planner/step/0/thought | Agent Thought: step 0 | Ask for facts.
        urn:trustgraph:agent:planner/plan/1/thought | Agent Thought: plan | About the plan.
        urn:trustgraph:agent:planner/plan/1/decision/replan/rationale | Rationale: replan | The station is gone.
        urn:trustgraph:agent:planner/step/3/doc | Step result: Guess the weather | Rain, probably.
        urn:trustgraph:agent:planner/step/3/thought | Agent Thought: step 3 | Ask the ball.
        urn:trustgraph:agent:planner/step/3/retry/thought | Agent Thought: step 3 | It rains there.
        urn:trustgraph:agent:planner/step/3/decision/tool/2/rejected | Rejected reply: tool | crystal ball
        urn:trustgraph:agent:planner/step/4/doc | Step result: Compare | Error: neither tool nor answer
        urn:trustgraph:agent:planner/plan/2/thought | Agent Thought: plan | About the plan.
        urn:trustgraph:agent:planner/plan/2/decision/replan/rationale | Rationale: replan | It will do.
        urn:trustgraph:agent:planner/synthesis/doc | Synthesis | Trellises, in the rain [step 0] [step 3].
        urn:trustgraph:agent:planner/synthesis/thought | Agent Thought: answer | Put together.
    "#]].assert_eq(&listed(&plan_run()));
}

#[test]
fn what_comes_late_is_a_document_too() {
    expect![[r#"
        urn:trustgraph:agent:planner/history | Brought History | Step 1
        Action: look
        Args: {}
        Observation: Nothing.
        urn:trustgraph:agent:planner/pattern-decision/decision/task-type/rationale | Rationale: task-type | Nothing special.
        urn:trustgraph:agent:planner/pattern-decision/decision/task-type/rejected | Rejected reply: task-type | poetry
        urn:trustgraph:agent:planner/routing/rationale | Routing rationale | Several parts.
        urn:trustgraph:agent:planner/plan/thought | Agent Thought: plan | Two facts, then compare.
        urn:trustgraph:agent:planner/step/0/thought | Agent Thought: step 0 | Go.
        urn:trustgraph:agent:planner/step/1/thought | Agent Thought: step 1 | Hm.
        urn:trustgraph:agent:planner/step/1/decision/tool/rejected | Rejected reply: tool | crystal ball
        urn:trustgraph:agent:planner/step/0/doc | Step result: First | Rain.
        urn:trustgraph:agent:planner/step/1/retry/thought | Agent Thought: step/1 | Now.
        urn:trustgraph:agent:planner/step/2/thought | Agent Thought: step/2 | Too late.
    "#]].assert_eq(&listed(&cancelled_plan()));
}

#[test]
fn a_supervisor_has_these_documents() {
    let own = |line: &&str| line.starts_with("urn:trustgraph:agent:boss/");
    let lines = listed(&supervisor_run());
    expect![[r#"
        urn:trustgraph:agent:boss/routing/rationale | Routing rationale | Independent parts.
        urn:trustgraph:agent:boss/decompose/thought | Agent Thought: decompose | Hm.
        urn:trustgraph:agent:boss/decompose/retry/thought | Agent Thought: decompose | Divide.
        urn:trustgraph:agent:boss/fanout/boss-r1/goal/0 | Subagent goal: What is X? | What is X?
        urn:trustgraph:agent:boss/fanout/boss-r1/goal/1 | Subagent goal: How old is X? | How old is X?
        urn:trustgraph:agent:boss/fanout/boss-r1/goal/2 | Subagent goal: Who owns X? | Who owns X?
        urn:trustgraph:agent:boss/finding/0/doc | Finding: What is X? | A ship.
        urn:trustgraph:agent:boss/finding/1/doc | Finding: How old is X? | Founded in 1912 [finding 0].
        urn:trustgraph:agent:boss/review/1/retry/thought | Agent Thought: review | Judge.
        urn:trustgraph:agent:boss/review/1 | Review of round 1 | The owner is unknown.
        urn:trustgraph:agent:boss/review/1/decision/round/2/rejected | Rejected reply: round | perhaps
        urn:trustgraph:agent:boss/fanout/boss-r2/goal/3 | Subagent goal: Does X float? | Does X float?
        urn:trustgraph:agent:boss/fanout/boss-r2/goal/4 | Subagent goal: Who sold X? | Who sold X?
        urn:trustgraph:agent:boss/finding/3/doc | Finding: Does X float? | It floats.
        urn:trustgraph:agent:boss/synthesis/doc | Synthesis | A ship from 1912 [finding 0, finding 1]; it floats [finding 3]."#]].assert_eq(&lines.lines().filter(own).collect::<Vec<_>>().join("\n"));
}

#[test]
fn the_documents_of_a_session_are_found_without_the_rest_of_its_run() {
    let records = supervisor_run();
    let all = documents(&records);
    for session in records.iter().map(|record| &record.header.session).collect::<BTreeSet<_>>() {
        let own: Vec<_> = records.iter().filter(|record| record.header.session == *session).collect();
        let expected: Vec<_> = all.iter().filter(|document| document.session == *session).cloned().collect();
        assert_eq!(documents(&own), expected);
    }
}

#[test]
fn the_reasons_of_choices_are_documents() {
    let pattern = Decision {
        rationale: Document::stored("One dimension only."),
        rejected: Document::stored("swarm"),
        ..only_option(DecisionKind::Pattern, "react")
    };
    let task_type =
        Decision { rationale: Document::stored("Nothing special."), ..only_option(DecisionKind::TaskType, "general") };
    let mut script = Script::new("s");
    script.accepted("why?", None).routed(vec![task_type, pattern]);
    expect![[r#"
        urn:trustgraph:agent:s/pattern-decision/decision/task-type/rationale | Rationale: task-type | Nothing special.
        urn:trustgraph:agent:s/routing/rationale | Routing rationale | One dimension only.
        urn:trustgraph:agent:s/pattern-decision/decision/pattern/rejected | Rejected reply: pattern | swarm
    "#]]
    .assert_eq(&listed(&script.records));
}

#[test]
fn titles_cut_questions_by_character() {
    assert_eq!(first_chars("Größe", 3), "Grö");
    assert_eq!(first_chars("Grö", 3), "Grö");
    assert_eq!(first_chars("", 3), "");
}

#[test]
fn what_was_not_stored_is_no_document() {
    let mut script = Script::new("s");
    let mut reply = answer("Hm.", "yes");
    reply.thought.as_mut().unwrap().stored = false;
    script.accepted("why?", None).replied(1, reply).ended(ending(Termination::FinalAnswer, "", None));
    assert!(documents(&script.records).is_empty());
}

/// The ids of all documents that quads refer to.
fn referred_to(quads: &[Quad]) -> BTreeSet<String> {
    use vocabulary::{tg, trellis};
    let properties =
        [tg::DOCUMENT, trellis::RATIONALE, trellis::REJECTED_REPLY, tg::ROUTING_RATIONALE, tg::SUBAGENT_GOALS];
    let links = quads.iter().filter(|quad| properties.contains(&quad.p.text()));
    links.map(|quad| quad.o.text().to_owned()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_graph_refers_to_exactly_the_documents_there_are(records in any_run()) {
        let quads: Vec<Quad> = events(&records).into_iter().flat_map(|event| event.quads).collect();
        let ids: Vec<_> = documents(&records).into_iter().map(|document| document.id).collect();
        let unique: BTreeSet<_> = ids.iter().cloned().collect();
        prop_assert_eq!(ids.len(), unique.len());
        prop_assert_eq!(unique, referred_to(&quads));
    }
}
