use super::*;
use crate::fixture::{Script, answer, only_option, react_run};
use crate::random_run::any_run;
use crate::{events, vocabulary};
use expect_test::expect;
use proptest::prelude::*;
use std::collections::BTreeSet;
use trellis_domain::rdf::Quad;

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
        urn:trustgraph:agent:8f2c1a/final/thought | Agent Thought: answer | That must do.
        urn:trustgraph:agent:8f2c1a/answer | Agent Answer: What does Company X make, and is it raining where ... | Trellises. Unknown.
    "#]].assert_eq(&listed(&react_run()));
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
    script.accepted("why?", None).replied(1, reply);
    assert!(documents(&script.records).is_empty());
}

/// The ids of all documents that quads refer to.
fn referred_to(quads: &[Quad]) -> BTreeSet<String> {
    use vocabulary::{tg, trellis};
    let properties = [tg::DOCUMENT, trellis::RATIONALE, trellis::REJECTED_REPLY, tg::ROUTING_RATIONALE];
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
