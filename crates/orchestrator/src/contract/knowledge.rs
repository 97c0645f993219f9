//! The contract of loaded knowledge: a set of quads for each collection, beside what runs say.

use super::graph::{GraphStore, Scene, patterns};
use super::teams::agent;
use crate::knowledge::{LoadError, Loaded, MOST_COLLECTIONS, NewSource, load};
use crate::ports::{
    Answer, Asking, Graph, Knowledge, KnowledgeError, KnowledgePlace, LoadedBy, LoadedCollection, QuadPattern,
    QueryLimits,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use trellis_domain::rdf::{Quad, Term};
use trellis_domain::{Caller, Collection, Surface, Workspace};
use trellis_provenance::vocabulary::tg;

/// A store, the graph of its journal, and what is loaded there.
pub type KnowledgeStore = (GraphStore, Arc<dyn Knowledge>);

/// What every adapter does.
pub async fn suite<F: Future<Output = KnowledgeStore>>(fresh: impl Fn() -> F) {
    what_is_added_is_there_once(&*fresh().await.1).await;
    equal_terms_are_one(&*fresh().await.1).await;
    every_pattern_finds_what_a_filter_finds(fresh().await).await;
    collections_and_workspaces_are_apart(fresh().await).await;
    a_collection_goes_whole(fresh().await).await;
    graphs_go_with_their_source(fresh().await).await;
    a_batch_with_something_wrong_is_refused_whole(&*fresh().await.1).await;
    collections_are_limited(&*fresh().await.1).await;
    a_load_is_unfinished_until_it_has_all(fresh().await.1).await;
    who_loaded_it_is_on_record(&*fresh().await.1).await;
    the_graph_has_runs_and_knowledge(fresh().await).await;
}

/// What an adapter with SPARQL does besides.
pub async fn sparql_suite<F: Future<Output = KnowledgeStore>>(fresh: impl Fn() -> F) {
    queries_see_runs_and_knowledge(fresh().await).await;
}

const WORKS: &str = "the store works";
const GOOD: &str = "a good query";

fn place(workspace: &str, collection: &str) -> KnowledgePlace {
    KnowledgePlace {
        workspace: Workspace::new(workspace).expect("a valid name"),
        collection: Collection::new(collection).expect("a valid name"),
    }
}

fn here() -> KnowledgePlace {
    place("default", "default")
}

fn quad(s: &str, p: &str, o: Term, g: Option<&str>) -> Quad {
    Quad { s: Term::iri(s), p: Term::iri(p), o, g: g.map(str::to_owned) }
}

/// Quads that share subjects, predicates, objects and graphs.
fn facts() -> Vec<Quad> {
    let mut facts = Vec::new();
    for n in 0..20 {
        let (s, next) = (format!("urn:s{}", n % 5), Term::iri(format!("urn:s{}", (n + 1) % 5)));
        let graph = [None, Some("urn:g1"), Some("urn:g2")][n % 3];
        facts.push(quad(&s, "urn:knows", next, graph));
        facts.push(quad(&s, "urn:name", Term::literal(format!("name {}", n % 4)), graph));
    }
    let blank = Term::Blank { id: "b1".to_owned() };
    facts.push(quad("urn:s1", "urn:has", blank.clone(), None));
    facts.push(Quad { s: blank, p: Term::iri("urn:name"), o: Term::literal("nobody"), g: None });
    facts
}

async fn all_of(knowledge: &dyn Knowledge, place: &KnowledgePlace) -> BTreeSet<Quad> {
    let found = knowledge.matching(place, &QuadPattern::default(), usize::MAX).await.expect(WORKS);
    let set: BTreeSet<_> = found.iter().cloned().collect();
    assert_eq!(found.len(), set.len(), "each quad once");
    set
}

async fn listed(knowledge: &dyn Knowledge, place: &KnowledgePlace) -> Option<LoadedCollection> {
    let all = knowledge.collections(&place.workspace).await.expect(WORKS);
    all.into_iter().find(|found| found.collection == place.collection)
}

async fn what_is_added_is_there_once(knowledge: &dyn Knowledge) {
    let expected: BTreeSet<_> = facts().into_iter().collect();
    assert_eq!(knowledge.collections(&here().workspace).await.expect(WORKS), []);
    let (first, rest) = (facts()[..7].to_vec(), facts()[5..].to_vec());
    let added = knowledge.add(&here(), "a", first.clone()).await.expect(WORKS);
    assert_eq!(added.new, first.iter().collect::<BTreeSet<_>>().len() as u64);
    assert_eq!(all_of(knowledge, &here()).await, first.into_iter().collect(), "it is seen at once");
    let more = knowledge.add(&here(), "a", rest).await.expect(WORKS);
    assert_eq!(added.new + more.new, expected.len() as u64, "what was there is not counted again");
    for _ in 0..2 {
        knowledge.finish(&here(), "a").await.expect(WORKS);
        assert_eq!(all_of(knowledge, &here()).await, expected);
        assert_eq!(listed(knowledge, &here()).await.map(|found| found.quads), Some(expected.len() as u64));
        let again = knowledge.add(&here(), "a", facts()).await.expect(WORKS);
        assert_eq!(again.new, 0, "adding it again changes nothing");
    }
}

async fn equal_terms_are_one(knowledge: &dyn Knowledge) {
    let literal = |datatype: &str, language: &str| Term::Literal {
        value: "a".into(),
        datatype: datatype.into(),
        language: language.into(),
    };
    let same = [("", ""), ("http://www.w3.org/2001/XMLSchema#string", ""), ("", "en"), ("", "EN"), ("urn:t", "")];
    let quads = same.map(|(datatype, language)| quad("urn:s", "urn:p", literal(datatype, language), Some("")));
    let added = knowledge.add(&here(), "a", quads.to_vec()).await.expect(WORKS);
    assert_eq!(added.new, 3, "a plain one, one in a language, one with a type");
    let plain = QuadPattern { o: Some(literal("", "En")), g: Some(String::new()), ..QuadPattern::default() };
    assert_eq!(knowledge.matching(&here(), &plain, 10).await.expect(WORKS).len(), 1);
}

async fn every_pattern_finds_what_a_filter_finds((_, knowledge): KnowledgeStore) {
    let quads: BTreeSet<_> = facts().into_iter().collect();
    knowledge.add(&here(), "a", facts()).await.expect(WORKS);
    for of in quads.iter().step_by(3) {
        for graph in [None, Some(""), Some("urn:g1"), Some("urn:nowhere")] {
            for pattern in patterns(of, graph) {
                let expected: BTreeSet<_> = quads.iter().filter(|quad| pattern.matches(quad)).cloned().collect();
                let found = knowledge.matching(&here(), &pattern, usize::MAX).await.expect(WORKS);
                assert_eq!(found.iter().cloned().collect::<BTreeSet<_>>(), expected, "{pattern:?}");
                let first = knowledge.matching(&here(), &pattern, 2).await.expect(WORKS);
                assert_eq!(first, found[..found.len().min(2)], "a limit cuts off the end: {pattern:?}");
            }
        }
    }
}

async fn collections_and_workspaces_are_apart(((_, graph), knowledge): KnowledgeStore) {
    let places = [here(), place("default", "other"), place("elsewhere", "default"), place("elsewhere", "other")];
    let said = |n: usize| quad("urn:s", "urn:p", Term::literal(format!("said {n}")), None);
    for (n, place) in places.iter().enumerate() {
        knowledge.add(place, "a", vec![said(n)]).await.expect(WORKS);
    }
    for (n, place) in places.iter().enumerate() {
        assert_eq!(all_of(&*knowledge, place).await, BTreeSet::from([said(n)]));
        let collection = Some(place.collection.clone());
        let within = QuadPattern { collection, ..QuadPattern::default() };
        let found = graph.matching(&place.workspace, &within, 10).await.expect(WORKS).found;
        assert_eq!(found, [said(n)], "the graph looks at one collection");
    }
    let of_workspace = graph.matching(&places[2].workspace, &QuadPattern::default(), 10).await.expect(WORKS).found;
    assert_eq!(of_workspace.into_iter().collect::<BTreeSet<_>>(), BTreeSet::from([said(2), said(3)]));
}

async fn a_collection_goes_whole(((_, graph), knowledge): KnowledgeStore) {
    let (mine, other) = (here(), place("default", "other"));
    for place in [&mine, &other] {
        knowledge.add(place, "a", facts()).await.expect(WORKS);
        knowledge.finish(place, "a").await.expect(WORKS);
    }
    let count = facts().into_iter().collect::<BTreeSet<_>>().len() as u64;
    assert_eq!(knowledge.remove(&mine).await.expect(WORKS), Some(count));
    assert_eq!(knowledge.remove(&mine).await.expect(WORKS), None, "there is nothing left");
    assert_eq!(all_of(&*knowledge, &mine).await, BTreeSet::new());
    assert_eq!(listed(&*knowledge, &mine).await, None);
    assert_eq!(all_of(&*knowledge, &other).await.len() as u64, count, "others are left alone");
    let everything = graph.matching(&mine.workspace, &QuadPattern::default(), 1000).await.expect(WORKS).found;
    assert_eq!(everything.len() as u64, count);
    let again = knowledge.add(&mine, "a", facts()).await.expect(WORKS);
    assert_eq!(again.new, count, "it can be loaded again");
    assert_eq!(all_of(&*knowledge, &mine).await.len() as u64, count);
}

async fn graphs_go_with_their_source(((_, graph), knowledge): KnowledgeStore) {
    knowledge.add(&here(), "kept", facts()).await.expect(WORKS);
    knowledge.finish(&here(), "kept").await.expect(WORKS);
    let elsewhere = place("default", "other");
    // Some of it is in other graphs, too, and says the same there.
    let shared = Quad { g: Some("urn:d/1".to_owned()), ..facts()[0].clone() };
    let own = |n: usize| quad(&format!("urn:own{n}"), "urn:says", Term::literal(format!("text {n}")), Some("urn:d/2"));
    let note = quad("urn:d/1", "urn:from", Term::iri("urn:d"), Some("urn:d"));
    let document: Vec<Quad> = (0..12_000).map(own).chain([shared.clone(), note.clone()]).collect();
    for place in [&here(), &elsewhere] {
        knowledge.add(place, "urn:d", document.clone()).await.expect(WORKS);
        knowledge.save(place, "urn:d").await.expect(WORKS);
    }
    assert_eq!(listed(&*knowledge, &here()).await.map(|found| found.unfinished), Some(vec!["urn:d".to_owned()]));
    let graphs = ["urn:d/1", "urn:d/2", "urn:d"].map(str::to_owned);
    let expected: BTreeSet<_> = facts().into_iter().collect();
    let removed = knowledge.remove_graphs(&here(), "urn:d", &graphs).await.expect(WORKS);
    assert_eq!(removed, document.len() as u64);
    assert_eq!(all_of(&*knowledge, &here()).await, expected, "the rest stays");
    let found = listed(&*knowledge, &here()).await.expect("it is there");
    assert_eq!((found.quads, found.sources, found.unfinished), (expected.len() as u64, 1, vec![]));
    assert_eq!(
        knowledge.remove_graphs(&here(), "urn:d", &graphs).await.expect(WORKS),
        0,
        "asked again, nothing happens"
    );
    let of_subject =
        QuadPattern { s: Some(shared.s.clone()), collection: Some(here().collection), ..Default::default() };
    let about = graph.matching(&here().workspace, &of_subject, 100).await.expect(WORKS).found;
    assert!(!about.is_empty() && !about.contains(&shared), "{about:?}");
    let again = knowledge.add(&here(), "urn:d", document.clone()).await.expect(WORKS);
    assert_eq!(again.new, document.len() as u64, "it can be added again");
    let by_text = QuadPattern { o: Some(Term::literal("text 7")), ..QuadPattern::default() };
    assert_eq!(knowledge.matching(&here(), &by_text, 10).await.expect(WORKS), [own(7)], "with all its terms");
    assert_eq!(all_of(&*knowledge, &elsewhere).await.len(), document.len(), "other collections are left alone");
    knowledge.remove_graphs(&elsewhere, "urn:d", &graphs).await.expect(WORKS);
    assert_eq!(listed(&*knowledge, &elsewhere).await, None, "nothing is left of it");
}

async fn a_batch_with_something_wrong_is_refused_whole(knowledge: &dyn Knowledge) {
    let good = quad("urn:s", "urn:p", Term::literal("o"), None);
    let wrong = Quad { s: Term::literal("s"), ..good.clone() };
    let forged = Quad { s: Term::iri("urn:trustgraph:agent:S/end"), ..good.clone() };
    for bad in [wrong, forged] {
        let refused = knowledge.add(&here(), "a", vec![good.clone(), bad]).await;
        assert!(matches!(refused, Err(KnowledgeError::Refused(_))), "{refused:?}");
        assert_eq!(all_of(knowledge, &here()).await, BTreeSet::new(), "nothing of it was taken");
    }
    for source in [String::new(), "x".repeat(10_000)] {
        let refused = knowledge.add(&here(), &source, vec![good.clone()]).await;
        assert!(matches!(refused, Err(KnowledgeError::Refused(_))), "{refused:?}");
    }
    assert_eq!(knowledge.collections(&here().workspace).await.expect(WORKS), [], "not even a name is left");
}

async fn collections_are_limited(knowledge: &dyn Knowledge) {
    let good = || vec![quad("urn:s", "urn:p", Term::literal("o"), None)];
    for n in 0..MOST_COLLECTIONS {
        knowledge.add(&place("default", &format!("c{n}")), "a", good()).await.expect(WORKS);
    }
    let refused = knowledge.add(&place("default", "one-more"), "a", good()).await;
    assert!(matches!(refused, Err(KnowledgeError::Refused(_))), "{refused:?}");
    knowledge.add(&place("default", "c7"), "b", good()).await.expect("one that is there");
    knowledge.add(&place("elsewhere", "one-more"), "a", good()).await.expect("another workspace has room");
    knowledge.remove(&place("default", "c7")).await.expect(WORKS);
    knowledge.add(&place("default", "one-more"), "a", good()).await.expect("there is room again");
}

fn ada() -> Caller {
    Caller::new(Some("ada".to_owned()), Surface::CommandLine)
}

fn source() -> NewSource {
    NewSource { place: here(), name: "file".to_owned(), by: ada() }
}

async fn who_loaded_it_is_on_record(knowledge: &dyn Knowledge) {
    let (place, other) = (here(), Caller::new(None, Surface::Api));
    knowledge.note_loader(&place, "a", &other).await.expect(WORKS);
    assert_eq!(listed(knowledge, &place).await, None, "a source that is not there is noted of nobody");
    for source in ["a", "b", "c"] {
        knowledge.add(&place, source, facts()).await.expect(WORKS);
    }
    let by = async || listed(knowledge, &place).await.expect("it is there").loaded_by;
    assert_eq!(by().await, [LoadedBy::UNRECORDED]);
    knowledge.note_loader(&place, "a", &ada()).await.expect(WORKS);
    knowledge.note_loader(&place, "b", &ada()).await.expect(WORKS);
    assert_eq!(by().await, [LoadedBy::UNRECORDED, (&ada()).into()]);
    for source in ["a", "b", "c"] {
        knowledge.finish(&place, source).await.expect(WORKS);
        knowledge.add(&place, source, facts()).await.expect(WORKS);
    }
    knowledge.note_loader(&place, "c", &other).await.expect(WORKS);
    let mut expected = vec![LoadedBy::from(&ada()), LoadedBy::from(&other)];
    expected.sort();
    assert_eq!(by().await, expected, "it stays with a source that is finished or loaded again");
    assert_eq!(LoadedBy::from(&ada()).to_string(), "ada (command-line)");
    assert_eq!(LoadedBy::UNRECORDED.to_string(), "not recorded");
    knowledge.remove_graphs(&place, "a", &[]).await.expect(WORKS);
    knowledge.remove_graphs(&place, "b", &[]).await.expect(WORKS);
    assert_eq!(by().await, [LoadedBy::from(&other)], "it leaves with its source");
}

async fn a_load_is_unfinished_until_it_has_all(knowledge: Arc<dyn Knowledge>) {
    let whole = |quads: Vec<Quad>| quads.into_iter().map(Ok::<_, String>);
    let begin = |quads, ends_with| {
        let quads = whole(quads).chain(ends_with);
        load(Arc::clone(&knowledge), source(), quads, |_| {})
    };
    let state = async || {
        let found = listed(&*knowledge, &here()).await.expect("it is there");
        (found.quads, found.sources, found.unfinished)
    };
    let broken = begin(facts()[..7].to_vec(), Some(Err("line 8".to_owned()))).await;
    assert!(matches!(broken, Err(LoadError::Source(line)) if line == "line 8"));
    assert_eq!(state().await, (7, 0, vec!["file".to_owned()]), "what was right is there, and that it is not all");
    let all = facts().into_iter().collect::<BTreeSet<_>>().len() as u64;
    let mended = begin(facts(), None).await.expect("all of it is right");
    assert_eq!(mended, Loaded { read: facts().len() as u64, new: all - 7 });
    assert_eq!(state().await, (all, 1, vec![]));
    let again = begin(facts(), None).await.expect("all of it is right");
    assert_eq!(again, Loaded { read: facts().len() as u64, new: 0 });
    assert_eq!(state().await, (all, 1, vec![]));
}

/// A run, knowledge that has nothing to do with it, and knowledge that points at it.
async fn mixed(((store, graph), knowledge): KnowledgeStore) -> (Scene, Arc<dyn Graph>, Quad) {
    let mut scene = Scene::of((store, Arc::clone(&graph))).await;
    let run = scene.ask(&agent("a"), "react", "").await;
    let root = trellis_provenance::iri::session(&run);
    let note = quad("urn:note", "urn:about", Term::iri(root), Some("urn:g1"));
    let asked = quad("urn:poll", tg::QUERY, Term::literal("What do you think?"), None);
    knowledge.add(&here(), "a", facts()).await.expect(WORKS);
    knowledge.add(&place("default", "notes"), "b", vec![note.clone(), asked]).await.expect(WORKS);
    (scene, graph, note)
}

async fn the_graph_has_runs_and_knowledge(store: KnowledgeStore) {
    let (scene, graph, note) = mixed(store).await;
    let mut quads = scene.quads().await;
    quads.extend(facts());
    quads.insert(note.clone());
    quads.insert(quad("urn:poll", tg::QUERY, Term::literal("What do you think?"), None));
    let run = quads.iter().find(|quad| quad.p.as_iri() == Some(tg::QUERY) && quad.s != Term::iri("urn:poll"));
    let run = run.expect("a question was asked").clone();
    for of in [&note, &run, &facts()[0]] {
        for pattern in patterns(of, None) {
            scene.agrees(&quads, &pattern).await;
        }
    }
    let newest = QuadPattern { p: Some(Term::iri(tg::QUERY)), ..QuadPattern::default() };
    let first = graph.matching(&here().workspace, &newest, 1).await.expect(WORKS).found;
    assert_eq!(first, std::slice::from_ref(&run), "runs come before what was loaded");
    let in_other = QuadPattern { o: run.s.clone().into(), collection: Some(here().collection), ..Default::default() };
    let found = graph.matching(&here().workspace, &in_other, 100).await.expect(WORKS).found;
    assert!(!found.contains(&note), "another collection does not know of it: {found:?}");
}

async fn queries_see_runs_and_knowledge(store: KnowledgeStore) {
    let (scene, graph, note) = mixed(store).await;
    let workspace = here().workspace;
    let count = async |workspace: &Workspace, sparql: &str| {
        let asking = Asking { workspace, caller: None, knowledge: None };
        match graph.query(asking, sparql, QueryLimits::default()).await.expect(GOOD).found {
            Answer::Rows { rows, .. } => rows.len(),
            other @ (Answer::Truth(_) | Answer::Constructed(_) | Answer::Described(_)) => panic!("{other:?}"),
        }
    };
    let root = note.o.text();
    let joined = format!("SELECT ?q {{ <urn:note> <urn:about> ?run . ?run tg:query ?q FILTER(?run = <{root}>) }}");
    assert_eq!(count(&workspace, &joined).await, 1, "knowledge and runs are joined");
    assert_eq!(count(&workspace, "SELECT ?a { ?a <urn:knows>+ <urn:s3> }").await, 5, "over several steps");
    let triples: BTreeSet<_> = facts().into_iter().map(|quad| (quad.s, quad.p, quad.o)).collect();
    let friends = triples.iter().filter(|(_, p, _)| p.as_iri() == Some("urn:knows")).count();
    assert_eq!(count(&workspace, "SELECT ?a ?b { ?a <urn:knows> ?b }").await, friends, "a union has each triple once");
    let graphs = count(&workspace, "SELECT DISTINCT ?g { GRAPH ?g { ?s ?p ?o } }").await;
    assert_eq!(graphs, 3, "two of the facts, and that of runs");
    let in_graph = facts().iter().filter(|fact| fact.g.as_deref() == Some("urn:g2")).collect::<BTreeSet<_>>().len();
    assert_eq!(count(&workspace, "SELECT * { GRAPH <urn:g2> { ?s ?p ?o } }").await, in_graph);
    let elsewhere = Workspace::new("elsewhere").expect("a valid name");
    assert_eq!(count(&elsewhere, "SELECT * { ?s ?p ?o }").await, 0);
    let within = async |workspace: &Workspace, collection: &str| {
        let collection = Collection::new(collection).expect("a valid name");
        let asking = Asking { workspace, caller: None, knowledge: Some(&collection) };
        let sparql = "SELECT DISTINCT ?s ?p ?o { ?s ?p ?o }";
        match graph.query(asking, sparql, QueryLimits::default()).await.expect(GOOD).found {
            Answer::Rows { rows, .. } => rows.len(),
            other @ (Answer::Truth(_) | Answer::Constructed(_) | Answer::Described(_)) => panic!("{other:?}"),
        }
    };
    let here = here().collection;
    assert_eq!(within(&workspace, here.as_str()).await, triples.len(), "one collection alone, and nothing of runs");
    assert_eq!(within(&workspace, "no-such-collection").await, 0);
    assert_eq!(within(&elsewhere, here.as_str()).await, 0, "a workspace sees its own");
    drop(scene);
}
