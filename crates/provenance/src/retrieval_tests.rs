use super::*;
use crate::check;
use crate::ontology::Ontology;
use trellis_domain::rdf::Quad;

fn sample() -> Vec<Explained> {
    let trace = GraphTrace::new("U");
    let concepts = ["Curie".to_owned()];
    let triple = Triple { s: Term::iri("urn:curie"), p: Term::iri("urn:born"), o: Term::literal("1867") };
    let kept = KeptEdge {
        triple,
        concept: Some("Curie".to_owned()),
        score: 0.9,
        reasoning: Some("the year".to_owned()),
        choice: 0,
        passages: vec!["urn:trellis:document:1/passage/0".to_owned()],
    };
    let mut choice = Decision::offered(
        DecisionKind::Edges,
        vec!["e1: Curie | born | 1867".to_owned(), "e2: Curie | died | 1934".to_owned()],
        trace.exploration_iri(),
        3,
    );
    choice.chosen = vec![choice.options[0].clone()];
    let usage = Usage { in_token: Some(7), model: Some("m".to_owned()), model_calls: 1, ..Usage::default() };
    vec![
        trace.question("When was Curie born?", Timestamp::default(), Some("urn:trustgraph:agent:S/i1")),
        trace.grounding(&concepts, &usage),
        trace.exploration(1, &["urn:curie".to_owned()]),
        trace.focus(&[kept], &[choice], &usage),
        trace.synthesis(Some("urn:trustgraph:agent:S/i1/observation"), &usage),
    ]
}

fn said(quads: &[Quad], subject: &str) -> Vec<String> {
    let short = |text: String| text.replace(tg::NS, "tg:").replace(prov::NS, "prov:").replace(trellis::NS, "trellis:");
    let about = quads.iter().filter(|quad| quad.s.as_iri() == Some(subject));
    about.map(|quad| short(format!("{} {}", quad.p.text(), quad.o))).collect()
}

#[test]
fn each_step_derives_from_the_one_before_it_and_the_first_from_the_call() {
    let told = sample();
    let ids: Vec<_> = told.iter().map(|told| told.id.as_str()).collect();
    let prov_id = |step: &str| format!("urn:trustgraph:prov:{step}:U");
    assert_eq!(ids[0], "urn:trustgraph:question:U");
    assert_eq!(ids[1..], ["grounding", "exploration", "focus", "synthesis"].map(prov_id));
    let parents = ["urn:trustgraph:agent:S/i1"].into_iter().chain(ids.iter().copied());
    for (told, parent) in told.iter().zip(parents) {
        let derived = format!("prov:wasDerivedFrom <{parent}>");
        assert_eq!(said(&told.quads, &told.id).iter().filter(|said| said.starts_with("prov:was")).count(), 1);
        assert!(said(&told.quads, &told.id).contains(&derived), "{told:?}");
        assert!(told.quads.iter().all(|quad| quad.g.as_deref() == Some("urn:graph:retrieval")));
    }
}

#[test]
fn the_question_says_what_the_original_says() {
    let told = sample();
    let rdf_type = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";
    assert_eq!(
        said(&told[0].quads, &told[0].id),
        [
            format!("{rdf_type} <prov:Entity>"),
            format!("{rdf_type} <tg:Question>"),
            format!("{rdf_type} <tg:GraphRagQuestion>"),
            r#"http://www.w3.org/2000/01/rdf-schema#label "GraphRAG Question""#.to_owned(),
            r#"prov:startedAtTime "1970-01-01T00:00:00Z""#.to_owned(),
            r#"tg:query "When was Curie born?""#.to_owned(),
            "prov:wasDerivedFrom <urn:trustgraph:agent:S/i1>".to_owned(),
        ]
    );
}

#[test]
fn an_edge_is_kept_by_a_choice_that_says_what_else_there_was() {
    let focus = &sample()[3];
    let edge = said(&focus.quads, "urn:trustgraph:prov:edge:U:0").join("\n");
    for expected in
        ["tg:EdgeSelection", "tg:edge ", "tg:concept \"Curie\"", "tg:score \"0.9\"", "tg:reasoning \"the year\""]
    {
        assert!(edge.contains(expected), "{expected} is not in {edge}");
    }
    let decision = "urn:trustgraph:prov:focus:U/decision/edges";
    assert!(edge.contains(&format!("trellis:decision <{decision}>")), "{edge}");
    assert!(edge.contains("trellis:passage <urn:trellis:document:1/passage/0>"), "{edge}");
    let choice = said(&focus.quads, decision);
    assert_eq!(choice.iter().filter(|said| said.starts_with("trellis:option ")).count(), 2);
    assert_eq!(choice.iter().filter(|said| said.starts_with("trellis:chosen ")).count(), 1);
    assert!(choice.contains(&"trellis:optionSource <urn:trustgraph:prov:exploration:U>".to_owned()), "{choice:?}");
}

#[test]
fn a_choice_outside_of_its_options_is_a_fault() {
    let quads = |chosen: &str| {
        let mut quads: Vec<Quad> = sample().into_iter().flat_map(|told| told.quads).collect();
        for quad in quads.iter_mut().filter(|quad| quad.p.as_iri() == Some(trellis::CHOSEN)) {
            quad.o = Term::literal(chosen);
        }
        quads
    };
    let outside = |chosen: &str| {
        let faults = check(&quads(chosen), &|_| None);
        faults.iter().any(|fault| matches!(fault, crate::Fault::ChosenNotOffered { .. }))
    };
    assert!(outside("e9: something else"));
    assert!(!outside("e2: Curie | died | 1934"));
}

#[test]
fn what_is_told_keeps_to_the_published_vocabulary() {
    let ontology = Ontology::parse(crate::ONTOLOGY).unwrap();
    let asked = Asked { query: "What?", time: Timestamp::default(), parent: Some("urn:trustgraph:agent:S/i1") };
    let passage = |document: &str| KeptPassage { document: document.to_owned(), score: 0.03 };
    let found = [passage("urn:trellis:document:d"), passage("urn:trellis:document:d")];
    let documents = DocumentTrace::new("V").whole(&asked, &found, None);
    let quads: Vec<Quad> = sample().into_iter().chain(documents).flat_map(|told| told.quads).collect();
    let problems: Vec<String> = ontology.problems(&quads).iter().map(ToString::to_string).collect();
    // What it hangs under is not part of it.
    let own: Vec<_> = problems.iter().filter(|problem| !problem.contains("agent:S")).collect();
    assert!(own.is_empty(), "{own:#?}");
}

#[test]
fn passages_of_one_document_are_one_chunk_of_the_exploration_and_several_selections() {
    let asked = Asked { query: "What?", time: Timestamp::default(), parent: None };
    let passage = KeptPassage { document: "urn:d".to_owned(), score: 0.5 };
    let told = DocumentTrace::new("V").whole(&asked, &[passage.clone(), passage], Some("urn:text"));
    let ids: Vec<_> = told.iter().map(|told| told.id.as_str()).collect();
    let root = "urn:trustgraph:docrag:V";
    let step = |step: &str| format!("{root}/{step}");
    assert_eq!(ids, [root.to_owned(), step("grounding"), step("exploration"), step("focus"), step("synthesis")]);
    let explored = said(&told[2].quads, ids[2]);
    assert!(explored.contains(&"tg:chunkCount \"2\"".to_owned()), "{explored:?}");
    assert_eq!(explored.iter().filter(|said| said.starts_with("tg:selectedChunk")).count(), 1);
    assert_eq!(said(&told[3].quads, ids[3]).iter().filter(|said| said.starts_with("tg:selectedChunk")).count(), 2);
    assert!(said(&told[4].quads, ids[4]).contains(&"tg:document <urn:text>".to_owned()));
}
