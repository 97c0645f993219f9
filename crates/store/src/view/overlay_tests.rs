use super::fixtures::{RETRIEVAL, correlation_id, iri, quad, session_id, session_iri, trace};
use super::{Bounds, NoOverlay, Overlay, QueryError, RunQuads, View};
use std::collections::BTreeMap;
use std::sync::Mutex;
use tempfile::TempDir;
use trellis_domain::rdf::{Quad, Term};
use trellis_orchestrator::ports::Answer;

const PREFIXES: &str = "PREFIX prov: <http://www.w3.org/ns/prov#> PREFIX tg: <https://trustgraph.ai/ns/>
    PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>\n";

/// Keeps runs in memory and notes which were projected.
#[derive(Default)]
struct OpenRuns {
    runs: BTreeMap<String, Vec<Quad>>,
    projected: Mutex<Vec<String>>,
}

impl OpenRuns {
    fn of(runs: impl IntoIterator<Item = usize>) -> Self {
        Self { runs: runs.into_iter().map(|run| (session_id(run), trace(run))).collect(), ..Self::default() }
    }

    fn projected(&self) -> Vec<String> {
        std::mem::take(&mut self.projected.lock().unwrap())
    }
}

impl Overlay for OpenRuns {
    fn runs(&self) -> Vec<String> {
        self.runs.keys().cloned().collect()
    }

    fn run_of(&self, iri: &str) -> Option<String> {
        let session = iri.strip_prefix("urn:trustgraph:agent:")?.split('/').next()?;
        self.runs.contains_key(session).then(|| session.to_owned())
    }

    fn runs_naming(&self, iri: &str) -> Vec<String> {
        let mut runs: Vec<_> = self.run_of(iri).into_iter().collect();
        let follows = |quads: &[Quad]| quads.iter().any(|quad| quad.p == follows_on() && quad.o.as_iri() == Some(iri));
        runs.extend(self.runs.iter().filter(|(_, quads)| follows(quads)).map(|(run, _)| run.clone()));
        runs
    }

    fn project(&self, run: &str) -> Vec<Quad> {
        self.projected.lock().unwrap().push(run.to_owned());
        self.runs[run].clone()
    }
}

fn follows_on() -> Term {
    iri("urn:trellis:ns:earlierQuestion")
}

fn view_of(runs: impl IntoIterator<Item = usize>) -> (TempDir, View) {
    let folder = tempfile::tempdir().unwrap();
    let view = View::open(folder.path()).unwrap();
    let runs: Vec<_> = runs.into_iter().map(|run| RunQuads { workspace: "w".into(), quads: trace(run) }).collect();
    view.absorb(&runs, 1).unwrap();
    (folder, view)
}

fn sorted_rows(view: &View, sparql: &str, overlay: &(dyn Overlay + Sync)) -> Vec<Vec<Option<Term>>> {
    let answer = view.query("w", &format!("{PREFIXES}{sparql}"), overlay, &Bounds::default()).unwrap();
    let Answer::Rows { mut rows, truncated: false, .. } = answer else { panic!("no full rows: {answer:?}") };
    rows.sort();
    rows
}

fn queries() -> Vec<String> {
    let (in_view, in_overlay) = (session_iri(1), session_iri(7));
    let mut queries = vec![
        "SELECT ?q { ?s tg:query ?q }".to_owned(),
        "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }".to_owned(),
        "SELECT ?c (COUNT(?s) AS ?n) { ?s a ?c } GROUP BY ?c".to_owned(),
        format!("SELECT ?s ?t {{ ?s tg:correlationId \"{}\" ; prov:startedAtTime ?t }}", correlation_id(1)),
        format!("SELECT ?s {{ GRAPH <{RETRIEVAL}> {{ ?s a tg:Conclusion }} }}"),
        "SELECT ?g ?s { GRAPH ?g { ?s a tg:Question } }".to_owned(),
        format!("SELECT ?s ?p ?o {{ GRAPH <{RETRIEVAL}> {{ ?s ?p ?o }} }}"),
        format!("SELECT ?s ?o {{ GRAPH <{RETRIEVAL}> {{ ?s tg:query ?o }} }}"),
        format!("SELECT ?s ?p {{ GRAPH <{RETRIEVAL}> {{ ?s ?p \"general\" }} }}"),
        "SELECT ?g { GRAPH ?g {} }".to_owned(),
        format!("SELECT ?s FROM <{RETRIEVAL}> FROM <urn:other> {{ ?s rdfs:label \"Conclusion\" }}"),
        "SELECT ?s ?a { ?s a tg:Question OPTIONAL { ?s tg:answer ?a } FILTER EXISTS { ?d prov:wasDerivedFrom ?s } }"
            .to_owned(),
    ];
    for session in [&in_view, &in_overlay] {
        queries.push(format!("SELECT ?p ?o {{ <{session}> ?p ?o }}"));
        queries.push(format!("SELECT ?s {{ ?s prov:wasDerivedFrom <{session}> }}"));
        queries.push(format!("SELECT ?n {{ <{session}/final> prov:wasDerivedFrom+ ?n }}"));
        queries.push(format!("SELECT ?n ?l {{ ?n prov:wasDerivedFrom+ <{session}> ; rdfs:label ?l }}"));
    }
    queries
}

#[test]
fn view_and_overlay_answer_like_one_view() {
    let (_a, whole) = view_of(0..10);
    let (_b, part) = view_of(0..5);
    let overlay = OpenRuns::of(5..10);
    for sparql in queries() {
        let wanted = sorted_rows(&whole, &sparql, &NoOverlay);
        assert!(!wanted.is_empty(), "{sparql}");
        assert_eq!(sorted_rows(&part, &sparql, &overlay), wanted, "{sparql}");
    }
}

/// A run may be absorbed after the overlay was taken.
#[test]
fn a_run_in_both_places_counts_once() {
    let (_a, whole) = view_of(0..10);
    let overlay = OpenRuns::of(3..10);
    for sparql in queries() {
        assert_eq!(sorted_rows(&whole, &sparql, &overlay), sorted_rows(&whole, &sparql, &NoOverlay), "{sparql}");
    }
}

#[test]
fn only_runs_that_can_match_are_projected_and_each_once() {
    let (_folder, view) = view_of(0..5);
    let overlay = OpenRuns::of(5..10);
    let (absorbed, open) = (session_iri(1), session_iri(7));
    let cases = [
        (format!("SELECT * {{ <{open}> ?p ?o }}"), vec![session_id(7)]),
        (format!("SELECT * {{ ?s prov:wasDerivedFrom <{open}/i1> }}"), vec![session_id(7)]),
        (format!("SELECT * {{ <{open}/final> prov:wasDerivedFrom+ ?n . ?n ?p ?o }}"), vec![session_id(7)]),
        (format!("SELECT * {{ <{absorbed}> ?p ?o }}"), vec![]),
        (format!("SELECT * {{ ?s prov:wasDerivedFrom <{absorbed}/i1> }}"), vec![]),
        (
            "SELECT * { ?s tg:query ?q . ?s a ?c . ?n prov:wasDerivedFrom ?s }".to_owned(),
            (5..10).map(session_id).collect(),
        ),
        (format!("SELECT * {{ <{open}> ?p ?o . ?s ?q ?o }}"), (5..10).map(session_id).collect()),
    ];
    for (sparql, mut wanted) in cases {
        view.query("w", &format!("{PREFIXES}{sparql}"), &overlay, &Bounds::default()).unwrap();
        let mut projected = overlay.projected();
        projected.sort();
        wanted.sort();
        assert_eq!(projected, wanted, "{sparql}");
    }
}

/// A question may follow on one of another run, in the view or not.
#[test]
fn links_between_runs_are_found_from_both_ends() {
    let (_folder, view) = view_of(0..5);
    let mut overlay = OpenRuns::of(5..8);
    let link = |to: usize| quad(&session_iri(7), follows_on().text(), iri(&session_iri(to)), Some(RETRIEVAL));
    overlay.runs.get_mut(&session_id(7)).unwrap().extend([link(1), link(6)]);
    for earlier in [1, 6] {
        let sparql = format!("SELECT ?s {{ ?s <urn:trellis:ns:earlierQuestion> <{}> }}", session_iri(earlier));
        assert_eq!(sorted_rows(&view, &sparql, &overlay), [[Some(iri(&session_iri(7)))]], "{earlier}");
    }
}

#[test]
fn an_overlay_beyond_the_limit_is_refused() {
    let (_folder, view) = view_of(0..1);
    let limits = Bounds { max_overlay_quads: 150, ..Bounds::default() };
    let everything = view.query("w", "ASK { ?s ?p ?o FILTER NOT EXISTS { ?o ?q ?s } }", &OpenRuns::of(1..4), &limits);
    assert!(matches!(everything, Err(QueryError::OverlayTooLarge { max: 150 })));
    let one_run = format!("ASK {{ <{}> ?p ?o }}", session_iri(2));
    assert_eq!(view.query("w", &one_run, &OpenRuns::of(1..4), &limits).unwrap(), Answer::Truth(true));
}

#[test]
fn graphs_of_the_overlay_are_named_graphs() {
    let (_folder, view) = view_of(0..1);
    let mut overlay = OpenRuns::default();
    overlay.runs.insert("r".into(), vec![quad("urn:s", "urn:p", iri("urn:o"), Some("urn:only-here"))]);
    let graphs = sorted_rows(&view, "SELECT ?g { GRAPH ?g {} }", &overlay);
    let names: Vec<_> = graphs.iter().map(|row| row[0].as_ref().unwrap().text()).collect();
    assert_eq!(names, [RETRIEVAL, "urn:only-here"]);
}
