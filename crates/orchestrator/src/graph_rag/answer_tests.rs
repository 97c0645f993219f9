use super::*;
use crate::graph_rag::{GraphBounds, IndexedKnowledge, TraversalStep};
use crate::memory::scripted::ScriptedPrompter;
use crate::memory::{MemoryKnowledge, MemorySearch};
use crate::ports::{KnowledgePlace, RealWorld};
use std::ops::ControlFlow;
use std::time::Duration;
use trellis_domain::decision::DecidedBy;
use trellis_domain::rdf::Quad;
use trellis_domain::{Collection, Workspace};
use trellis_provenance::vocabulary::{rdfs, tg, trellis};

fn place() -> KnowledgePlace {
    KnowledgePlace { workspace: Workspace::default(), collection: Collection::default() }
}

fn edge(s: &str, p: &str, o: &str) -> Quad {
    let node = |name: &str| Term::iri(format!("http://ex.org/{name}"));
    Quad { s: node(s), p: node(p), o: node(o), g: None }
}

fn label(s: &str, text: &str) -> Quad {
    let o = Term::Literal { value: text.to_owned(), datatype: String::new(), language: "en".to_owned() };
    Quad { s: Term::iri(format!("http://ex.org/{s}")), p: Term::iri(rdfs::LABEL), o, g: None }
}

fn curies() -> Vec<Quad> {
    vec![
        label("mc", "Marie Curie"),
        label("pc", "Pierre"),
        edge("mc", "bornIn", "Warsaw"),
        edge("mc", "spouse", "pc"),
        edge("pc", "bornIn", "Paris"),
        edge("Warsaw", "capitalOf", "Poland"),
        edge("Mount_Everest", "liesIn", "Nepal"),
    ]
}

/// A model that finds Marie Curie, scores as it is told and repeats what it was shown.
fn model(scores: &'static str) -> ScriptedPrompter {
    ScriptedPrompter::new(move |call| match call.id.as_str() {
        "extract-concepts" => Ok("- Marie Curie\n2. birthplace\n".to_owned()),
        "kg-edge-scoring" => Ok(scores.to_owned()),
        "kg-synthesis" => Ok(format!("From {}.", call.variables["knowledge"])),
        other => Err(format!("nobody asked for {other}")),
    })
}

#[derive(Default)]
struct Heard(Vec<String>, String);

impl Listener for Heard {
    fn explained(&mut self, told: &Explained) {
        self.0.push(told.id.clone());
    }

    fn answer(&mut self) -> &mut dyn ReplySink {
        self
    }
}

impl ReplySink for Heard {
    fn text(&mut self, text: &str) -> ControlFlow<()> {
        self.1.push_str(text);
        ControlFlow::Continue(())
    }

    fn restart(&mut self) {
        self.1.clear();
    }
}

async fn rag(quads: Vec<Quad>, prompter: ScriptedPrompter) -> GraphRag {
    let names = EntityNames { search: Arc::new(MemorySearch::default()), embedder: None };
    let knowledge = IndexedKnowledge::new(Arc::new(MemoryKnowledge::default()), names.clone());
    knowledge.add(&place(), "file", quads).await.unwrap();
    knowledge.finish(&place(), "file").await.unwrap();
    GraphRag { knowledge: Arc::new(knowledge), names, prompter: Arc::new(prompter), world: Arc::new(RealWorld) }
}

fn question() -> GraphQuestion {
    let mut question = GraphQuestion::new(place(), "Where was Marie Curie born?", "U");
    question.parent = Some("urn:trustgraph:agent:S/i1".to_owned());
    question.document = Some("urn:trustgraph:agent:S/i1/observation".to_owned());
    question
}

async fn ask(rag: &GraphRag, question: &GraphQuestion) -> GraphAnswer {
    let asker = Asker { timeout: Duration::from_mins(1), ..Asker::default() };
    let mut heard = Heard::default();
    let answer = rag.answer(question, asker, &mut heard).await.unwrap();
    let told: Vec<_> = answer.trace.iter().map(|told| told.id.clone()).collect();
    assert_eq!(told, heard.0, "what is told at the end was told before");
    if answer.written == Written::ByModel {
        assert_eq!(answer.text, heard.1);
    }
    answer
}

fn objects(answer: &GraphAnswer, property: &str) -> Vec<String> {
    let quads = answer.trace.iter().flat_map(|told| &told.quads);
    quads.filter(|quad| quad.p.as_iri() == Some(property)).map(|quad| quad.o.to_string()).collect()
}

/// The first edge that is shown, whatever it is.
const FIRST: &str = r#"{"id": "e1", "score": 9, "reason": "it is the place"}"#;

#[tokio::test]
async fn an_answer_comes_from_edges_that_the_model_chose_and_every_step_is_told() {
    let rag = rag(curies(), model(FIRST)).await;
    let answer = ask(&rag, &question()).await;
    assert_eq!(answer.written, Written::ByModel);
    assert!(answer.text.contains("Marie Curie"), "{}", answer.text);
    assert_eq!(answer.trace.len(), 5);
    assert_eq!(objects(&answer, tg::CONCEPT)[..2], [r#""Marie Curie""#, r#""birthplace""#]);
    assert!(objects(&answer, tg::ENTITY).contains(&"<http://ex.org/mc>".to_owned()));
    let kept = objects(&answer, tg::SELECTED_EDGE).len();
    assert_eq!((kept, objects(&answer, tg::EDGE_COUNT)), (2, vec![r#""2""#.to_owned()]), "one of each hop");
    assert_eq!(objects(&answer, tg::DOCUMENT), ["<urn:trustgraph:agent:S/i1/observation>"]);
    let asked: Vec<_> = answer.calls.iter().map(|call| call.prompt.id.as_str()).collect();
    assert_eq!(asked, ["extract-concepts", "kg-edge-scoring", "kg-edge-scoring", "kg-synthesis"]);
    let (options, chosen) = (objects(&answer, trellis::OPTION), objects(&answer, trellis::CHOSEN));
    assert!(chosen.len() == 2 && chosen.iter().all(|chosen| options.contains(chosen)), "{chosen:?} of {options:?}");
}

#[tokio::test]
async fn the_next_hop_starts_where_the_kept_edges_end() {
    let rag = rag(curies(), model(r#"{"edges": [{"id": "e1", "score": 5}, {"id": "e2", "score": 5}]}"#)).await;
    let mut question = question();
    question.bounds.path = 1;
    let near = ask(&rag, &question).await;
    assert!(!near.text.contains("Poland") && !near.text.contains("Paris"), "{}", near.text);
    question.bounds.path = 2;
    let far = ask(&rag, &question).await;
    assert!(far.text.contains("Poland") || far.text.contains("Paris"), "{}", far.text);
    assert!(!far.text.contains("Everest"), "nothing leads there: {}", far.text);
}

#[tokio::test]
async fn what_a_model_gets_wrong_costs_the_step_its_model_and_no_more() {
    let wrong = ["", "I cannot.", r#"{"edges": [{"id": "e99", "score": 9}]}"#, r#"{"edges": 7}"#, "[[[["];
    for scores in wrong {
        let rag = rag(curies(), model(scores)).await;
        let answer = ask(&rag, &question()).await;
        assert_eq!(
            answer.written,
            if answer.text.starts_with("From") { Written::ByModel } else { Written::FromNothing }
        );
        assert_eq!(answer.trace.len(), 5, "for {scores:?}");
        assert!(
            objects(&answer, trellis::DECIDED_BY).contains(&format!("{:?}", DecidedBy::Fallback.as_str())),
            "{scores}"
        );
    }
}

#[tokio::test]
async fn without_any_model_there_is_what_was_found() {
    let nobody = ScriptedPrompter::new(|_| Err("it is down".to_owned()));
    let rag = rag(curies(), nobody).await;
    let mut question = question();
    question.concepts = vec!["Marie Curie".to_owned(), "born in".to_owned()];
    let answer = ask(&rag, &question).await;
    assert!(matches!(&answer.written, Written::Unwritten(why) if why.contains("it is down")), "{answer:?}");
    assert!(answer.text.contains("Marie Curie | born In | Warsaw"), "{}", answer.text);
    assert!(answer.calls.iter().all(|call| call.reply.is_none()) && answer.calls.len() >= 2);
}

#[tokio::test]
async fn an_empty_collection_asks_nobody() {
    let rag = rag(Vec::new(), ScriptedPrompter::new(|_| panic!("nobody is asked"))).await;
    let answer = ask(&rag, &question()).await;
    assert_eq!(answer.text, "The collection `default` has no knowledge.");
    assert!(answer.trace.is_empty() && answer.calls.is_empty());
}

#[tokio::test]
async fn knowledge_without_an_index_of_names_says_what_to_do() {
    let mut rag = rag(curies(), model(FIRST)).await;
    rag.names.search = Arc::new(MemorySearch::default());
    let answer = ask(&rag, &question()).await;
    assert!(answer.text.contains("Loading its files again"), "{}", answer.text);
    let mut question = question();
    question.entities = vec!["http://ex.org/mc".to_owned()];
    let answer = ask(&rag, &question).await;
    assert_eq!(answer.written, Written::ByModel, "entities that are named need no index");
}

#[tokio::test]
async fn nothing_called_so_is_told_with_the_concepts() {
    let elsewhere = ScriptedPrompter::new(|_| Ok("Ada Lovelace".to_owned()));
    let answer = ask(&rag(curies(), elsewhere).await, &question()).await;
    assert!(answer.text.contains("called like this: Ada Lovelace. Only words were compared"), "{}", answer.text);
    assert_eq!(answer.trace.len(), 5, "also this is told to the end");
}

#[tokio::test]
async fn a_node_with_very_many_edges_leaves_room_for_the_others() {
    let mut quads: Vec<Quad> = (0..3_000).map(|n| edge("hub", "links", &format!("page{n}"))).collect();
    quads.extend([label("hub", "Marie Curie hub"), label("mc", "Marie Curie"), edge("mc", "bornIn", "Warsaw")]);
    let shown = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let seen = Arc::clone(&shown);
    let prompter = ScriptedPrompter::new(move |call| match call.id.as_str() {
        "kg-edge-scoring" => {
            seen.lock().push(call.variables["knowledge"].as_array().unwrap().len());
            Ok(r#"{"edges": []}"#.to_owned())
        }
        _ => Ok("Marie Curie\nborn in".to_owned()),
    });
    let rag = rag(quads, prompter).await;
    let answer = ask(&rag, &question()).await;
    assert_eq!(*shown.lock(), [30], "no more than a model is shown");
    let options = objects(&answer, trellis::OPTION);
    assert!(options.iter().any(|option| option.contains("Warsaw")), "{options:?}");
    let excluded = objects(&answer, trellis::EXCLUDED_OPTION);
    assert!(excluded.iter().any(|told| told.contains("more edges of 1 entities")), "{excluded:?}");
    assert_eq!(answer.written, Written::FromNothing);
}

#[tokio::test]
async fn what_is_kept_has_room_in_what_is_told_and_what_has_none_is_named() {
    let note = |n: usize| Quad {
        s: Term::iri("http://ex.org/mc"),
        p: Term::iri("http://ex.org/note"),
        o: Term::literal(format!("{n} {}", "x".repeat(4_000))),
        g: None,
    };
    let mut quads: Vec<Quad> = (0..100).map(note).collect();
    quads.push(label("mc", "Marie Curie"));
    let prompter = ScriptedPrompter::new(|call| match call.id.as_str() {
        "extract-concepts" => Ok("Marie Curie".to_owned()),
        "kg-edge-scoring" => {
            let edges: Vec<_> = (1..=100).map(|n| json!({"id": format!("e{n}"), "score": 5})).collect();
            Ok(json!({ "edges": edges }).to_string())
        }
        _ => Ok("She wrote notes.".to_owned()),
    });
    let rag = rag(quads, prompter).await;
    let mut question = question();
    question.bounds = GraphBounds::wished(|_| Some(1_000));
    let answer = ask(&rag, &question).await;
    let bytes: usize = answer.trace.iter().flat_map(|told| &told.quads).map(Quad::text_bytes).sum();
    assert!(bytes < 512 << 10, "{bytes}");
    let kept = objects(&answer, tg::SELECTED_EDGE).len();
    assert_eq!((kept, objects(&answer, trellis::CHOSEN).len()), (64, 64), "256 KiB of them");
    let excluded = objects(&answer, trellis::EXCLUDED_OPTION);
    assert!(excluded.iter().any(|told| told.contains("36 edges that would have been chosen")), "{excluded:?}");
}

#[tokio::test]
async fn only_what_a_caller_allows_is_followed() {
    let mut quads = curies();
    let person = |name: &str| {
        let (s, o) = (Term::iri(format!("http://ex.org/{name}")), Term::iri("http://ex.org/Person"));
        Quad { s, p: Term::iri("http://www.w3.org/1999/02/22-rdf-syntax-ns#type"), o, g: None }
    };
    quads.extend([person("mc"), person("pc")]);
    let all = r#"{"edges": [{"id": "e1", "score": 5}, {"id": "e2", "score": 4}, {"id": "e3", "score": 3}]}"#;
    let rag = rag(quads, model(all)).await;
    let mut question = question();
    question.entities = vec!["http://ex.org/mc".to_owned(), "http://ex.org/Warsaw".to_owned()];
    question.steps = vec![
        TraversalStep { types: vec!["http://ex.org/Person".to_owned()], ..TraversalStep::default() },
        TraversalStep { relationships: vec!["http://ex.org/spouse".to_owned()], ..TraversalStep::default() },
    ];
    question.bounds.path = 1;
    let answer = ask(&rag, &question).await;
    assert!(answer.text.contains("spouse") && !answer.text.contains("Warsaw"), "{}", answer.text);
}

#[tokio::test]
async fn documents_that_edges_were_taken_from_are_named() {
    let mut quads = curies();
    let source = |s: &str, p: &str, o: Term| Quad {
        s: Term::iri(s),
        p: Term::iri(p),
        o,
        g: Some("urn:graph:source".to_owned()),
    };
    let Quad { s, p, o, .. } = edge("mc", "bornIn", "Warsaw");
    let quoted = Term::Quoted { triple: Box::new(trellis_domain::rdf::Triple { s, p, o }) };
    let derived = "http://www.w3.org/ns/prov#wasDerivedFrom";
    quads.extend([
        source("urn:subgraph", "https://trustgraph.ai/ns/contains", quoted),
        source("urn:subgraph", derived, Term::iri("urn:chunk")),
        source("urn:chunk", derived, Term::iri("urn:doc")),
        source("urn:doc", "http://purl.org/dc/elements/1.1/title", Term::literal("A life")),
    ]);
    let all = r#"{"edges": [{"id": "e1", "score": 5}, {"id": "e2", "score": 4}, {"id": "e3", "score": 3}]}"#;
    let answer = ask(&rag(quads, model(all)).await, &question()).await;
    assert_eq!(answer.sources, [Source { uri: "urn:doc".to_owned(), title: "A life".to_owned() }]);
    assert!(!answer.text.contains("urn:chunk"), "how it was extracted is no fact: {}", answer.text);
}

#[tokio::test]
async fn a_workspace_and_a_collection_see_their_own() {
    let rag = rag(curies(), model(FIRST)).await;
    for (workspace, collection) in [("other", "default"), ("default", "other")] {
        let mut question = question();
        question.place = KnowledgePlace {
            workspace: Workspace::new(workspace).unwrap(),
            collection: Collection::new(collection).unwrap(),
        };
        assert!(ask(&rag, &question).await.text.ends_with("has no knowledge."));
    }
}

#[tokio::test]
async fn what_is_removed_is_not_found_any_more() {
    let rag = rag(curies(), model(FIRST)).await;
    assert!(rag.names.knows_any(&place()).await.unwrap());
    assert_eq!(rag.knowledge.remove(&place()).await.unwrap(), Some(7));
    assert!(!rag.names.knows_any(&place()).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn steps_leave_time_for_the_answer() {
    let slow = ScriptedPrompter::new(|call| match call.id.as_str() {
        "kg-synthesis" => Ok("In Warsaw.".to_owned()),
        _ => Err(crate::memory::scripted::SILENT.to_owned()),
    });
    let answer = ask(&rag(curies(), slow).await, &question()).await;
    assert_eq!((answer.text.as_str(), answer.written), ("In Warsaw.", Written::ByModel));
}

#[test]
fn concepts_are_read_from_lists_of_all_kinds() {
    let text = "1. Marie Curie\n2) \"Radium\"\n- polonium\n\n* 1903 Nobel Prize\nMarie Curie\n---\n";
    assert_eq!(listed(text), ["Marie Curie", "Radium", "polonium", "1903 Nobel Prize"]);
    assert_eq!(listed(&"x\n".repeat(50)).len(), 1);
    assert_eq!(listed("2001 was a film"), ["2001 was a film"]);
}

#[test]
fn wishes_have_bounds() {
    let wished = |number: u64| GraphBounds::wished(move |_| Some(number));
    assert_eq!(wished(0), GraphBounds::default());
    assert_eq!(GraphBounds::wished(|_| None), GraphBounds::default());
    assert_eq!((wished(u64::MAX).path, wished(u64::MAX).candidates), (4, 1000));
}
