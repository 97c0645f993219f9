//! What queries cost, in index keys. A plan that scans would show as tens of thousands.

use super::fixtures::{
    PROV, RDF_TYPE, RETRIEVAL, RUNS_PER_CORRELATION, TG, correlation_id, iri, quad, session_iri, trace,
};
use super::{Bounds, NoOverlay, RunQuads, View};
use std::sync::LazyLock;
use tempfile::TempDir;
use trellis_domain::rdf::Term;
use trellis_orchestrator::ports::{Answer, QuadPattern};

const RUNS: usize = 1_000;
const RARE_GRAPH: &str = "urn:graph:rare";

struct Loaded {
    _folder: TempDir,
    view: View,
    quads: usize,
}

/// 1,000 runs, 100,000 quads, and a few copies in a second graph.
static LOADED: LazyLock<Loaded> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let view = View::open(folder.path()).unwrap();
    let class = |run| quad(&session_iri(run), RDF_TYPE, question(), Some(RARE_GRAPH));
    let copy = |run| (run < 3).then(|| class(run));
    let quads = |run| trace(run).into_iter().chain(copy(run)).collect();
    let runs: Vec<_> = (0..RUNS).map(|run| RunQuads { workspace: "w".into(), quads: quads(run) }).collect();
    for (cursor, batch) in (1_u64..).zip(runs.chunks(100)) {
        view.absorb(batch, cursor).unwrap();
    }
    let quads = runs.iter().map(|run| run.quads.len()).sum::<usize>() - 3;
    Loaded { _folder: folder, view, quads }
});

fn question() -> Term {
    iri(&format!("{TG}Question"))
}

/// Runs one piece of work alone, because the counter is the view's.
fn visited<T>(work: impl FnOnce(&View) -> T) -> (T, u64) {
    static ALONE: parking_lot::Mutex<()> = parking_lot::Mutex::new(());
    let _alone = ALONE.lock();
    let before = LOADED.view.keys_visited();
    let result = work(&LOADED.view);
    (result, LOADED.view.keys_visited() - before)
}

fn check_pattern(pattern: &QuadPattern, expected: usize) {
    let (found, keys) = visited(|view| {
        view.matching("w", pattern, &NoOverlay, &Bounds { max_rows: usize::MAX, ..Bounds::default() }).unwrap().len()
    });
    assert_eq!(found, expected, "{pattern:?}");
    assert_eq!(keys, expected as u64, "{pattern:?}");
}

fn check_query(sparql: &str, expected_rows: usize, max_keys: u64) {
    let (answer, keys) = visited(|view| view.query("w", sparql, &NoOverlay, &Bounds::default()).unwrap());
    let Answer::Rows { rows, .. } = answer else { panic!("no rows") };
    assert_eq!(rows.len(), expected_rows, "{sparql}");
    assert!(keys <= max_keys, "{keys} keys instead of {max_keys} for {sparql}");
}

#[test]
fn patterns_visit_only_what_they_return() {
    let session = || Some(iri(&session_iri(500)));
    let derived = || Some(iri(&format!("{PROV}wasDerivedFrom")));
    let any = QuadPattern::default;
    check_pattern(&QuadPattern { s: session(), ..any() }, 7);
    check_pattern(&QuadPattern { o: session(), ..any() }, 1);
    check_pattern(&QuadPattern { p: derived(), o: session(), ..any() }, 1);
    check_pattern(&QuadPattern { s: session(), o: Some(question()), ..any() }, 1);
    check_pattern(&QuadPattern { p: Some(iri(&format!("{TG}query"))), ..any() }, RUNS);
    check_pattern(&QuadPattern { o: Some(Term::literal(correlation_id(500))), ..any() }, RUNS_PER_CORRELATION);
    check_pattern(&QuadPattern { g: Some(RARE_GRAPH.into()), ..any() }, 3);
    let rdf_type = Some(iri(RDF_TYPE));
    check_pattern(&QuadPattern { p: rdf_type, o: Some(question()), g: Some(RARE_GRAPH.into()), ..any() }, 3);
    // The main graph is found among all quads, which are hardly more.
    let main = QuadPattern { g: Some(RETRIEVAL.into()), ..any() };
    let (found, keys) = visited(|view| {
        view.matching("w", &main, &NoOverlay, &Bounds { max_rows: usize::MAX, ..Bounds::default() }).unwrap().len()
    });
    assert_eq!((found, keys), (LOADED.quads, LOADED.quads as u64 + 3));
}

#[test]
fn single_patterns_of_a_query_visit_only_what_they_return() {
    let session = session_iri(500);
    check_query(&format!("SELECT * {{ <{session}> ?p ?o }}"), 7, 7);
    check_query(&format!("SELECT * {{ ?x <{PROV}wasDerivedFrom> <{session}> }}"), 1, 1);
    check_query(&format!("SELECT (COUNT(*) AS ?n) {{ ?s <{TG}correlationId> \"{}\" }}", correlation_id(500)), 1, 100);
    check_query(&format!("SELECT * {{ GRAPH <{RARE_GRAPH}> {{ ?s a <{TG}Question> }} }}"), 3, 3);
    check_query("SELECT ?g { GRAPH ?g {} }", 2, 3);
    check_query(&format!("SELECT * {{ ?s <{TG}query> ?q }} LIMIT 5"), 5, 7);
}

#[test]
fn joins_visit_only_what_they_join() {
    let (session, correlation) = (session_iri(500), correlation_id(500));
    let by_correlation = format!("?s <{TG}correlationId> \"{correlation}\"");
    check_query(&format!("SELECT * {{ {by_correlation} . ?s <{TG}query> ?q }}"), 100, 200);
    check_query(&format!("SELECT * {{ ?s <{TG}query> ?q . {by_correlation} }}"), 100, 200);
    check_query(&format!("SELECT * {{ ?x <{PROV}wasDerivedFrom> <{session}> . ?x ?p ?o }}"), 6, 7);
    check_query(&format!("SELECT * {{ {by_correlation} OPTIONAL {{ ?s <{TG}query> ?q }} }}"), 100, 200);
    check_query(
        &format!("SELECT * {{ {by_correlation} . ?d <{PROV}wasDerivedFrom> ?s . ?d <{TG}pattern> ?k }}"),
        100,
        300,
    );
    check_query(&format!("SELECT * {{ GRAPH <{RETRIEVAL}> {{ {by_correlation} . ?s <{TG}query> ?q }} }}"), 100, 200);
    check_query(&format!("SELECT * {{ <{session}/final> <{PROV}wasDerivedFrom>+ ?n . ?n a ?c }}"), 20, 40);
    check_query(&format!("SELECT * {{ ?n <{PROV}wasDerivedFrom>+ <{session}> }}"), 11, 24);
}
