//! The contract of the graph: what is found is what a filter over all projected runs finds, in a stable order.

use super::runs::{Bench, StorePorts};
use super::teams::{agent, question};
use crate::ports::{Answer, Asking, Graph, GraphError, QuadPattern, QueryLimits, RunFilter};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use trellis_domain::limits::SomeLimits;
use trellis_domain::message::AgentRequest;
use trellis_domain::rdf::{Quad, Term};
use trellis_domain::{RunId, Workspace};
use trellis_patterns::project;
use trellis_provenance::iri;
use trellis_provenance::vocabulary::{GRAPH_RETRIEVAL, prov, rdf, tg, trellis};

/// A store and the graph of its journal.
pub type GraphStore = (StorePorts, Arc<dyn Graph>);

/// What every adapter does.
pub async fn suite<F: Future<Output = GraphStore>>(fresh: impl Fn() -> F) {
    a_run_is_current_at_any_time(fresh().await).await;
    every_pattern_finds_what_a_filter_finds(fresh().await).await;
    the_newest_questions_win_under_a_limit(fresh().await).await;
    workspaces_see_nothing_of_each_other(fresh().await).await;
}

/// What an adapter with SPARQL does besides.
pub async fn sparql_suite<F: Future<Output = GraphStore>>(fresh: impl Fn() -> F) {
    each_form_of_query_has_its_answer(fresh().await).await;
    limits_end_a_query_and_say_so(fresh().await).await;
    a_query_harms_nothing_but_itself(fresh().await).await;
    long_queries_leave_room_for_others(fresh().await).await;
}

/// A bench over a graph, with runs of every pattern: finished, in a conversation, and one that is open.
pub struct Scene {
    pub bench: Bench,
    pub graph: Arc<dyn Graph>,
    /// In the order in which they were asked; the last one is open.
    pub runs: Vec<RunId>,
}

impl std::fmt::Debug for Scene {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scene").field("runs", &self.runs).finish_non_exhaustive()
    }
}

impl Scene {
    pub async fn of((store, graph): GraphStore) -> Self {
        Self { bench: Bench::play(store).await, graph, runs: Vec::new() }
    }

    async fn with_every_pattern(place: GraphStore) -> Self {
        let mut scene = Self::of(place).await;
        let plan = json!({"plan": [{"say": "zero", "tool": true}, {"say": "one", "needs": [0]}]});
        scene.ask(&json!({"team": [[agent("a"), {"fail": true}]]}), "supervisor", "").await;
        scene.ask(&plan, "plan-then-execute", "").await;
        scene.ask(&agent("first"), "react", "talk").await;
        scene.ask(&agent("second"), "react", "talk").await;
        scene.begin(&agent("third"), "react", "talk").await;
        scene
    }

    /// Accepts a question; nobody works on it yet.
    pub async fn begin(&mut self, scene: &Value, pattern: &str, conversation: &str) -> RunId {
        let request = AgentRequest { conversation_id: conversation.to_owned(), ..question(scene, pattern) };
        let run = self.bench.request(self.runs.len(), request, SomeLimits::default()).await;
        self.runs.push(run.clone());
        run
    }

    pub async fn ask(&mut self, scene: &Value, pattern: &str, conversation: &str) -> RunId {
        let run = self.begin(scene, pattern, conversation).await;
        self.bench.finish(std::slice::from_ref(&run), 1).await;
        run
    }

    /// All quads of the workspace, from its records.
    pub async fn quads(&self) -> BTreeSet<Quad> {
        let journal = &self.bench.orchestrator.ports.journal;
        let all = journal.runs(&Workspace::default(), &RunFilter::default(), None, usize::MAX).await;
        let mut quads = BTreeSet::new();
        for run in all.expect("the store works").runs {
            quads.extend(project(&self.bench.records(&run.run).await));
        }
        quads
    }

    async fn found(&self, pattern: &QuadPattern, limit: usize) -> Vec<Quad> {
        let found = self.graph.matching(&Workspace::default(), pattern, limit).await.expect("the store works");
        assert_eq!(found.missing_runs, 0, "few runs are always looked at");
        found.found
    }

    /// Compares an answer with that of a filter over all these quads.
    pub async fn agrees(&self, quads: &BTreeSet<Quad>, pattern: &QuadPattern) {
        let expected: BTreeSet<_> = quads.iter().filter(|quad| pattern.matches(quad)).cloned().collect();
        let found = self.found(pattern, usize::MAX).await;
        assert_eq!(found.len(), expected.len(), "each quad once: {pattern:?}");
        assert_eq!(found.iter().cloned().collect::<BTreeSet<_>>(), expected, "{pattern:?}");
        let first = &found[..found.len().min(2)];
        assert_eq!(self.found(pattern, 2).await, first, "a limit cuts off the end: {pattern:?}");
    }

    async fn query(&self, sparql: &str, limits: QueryLimits) -> Result<Answer, GraphError> {
        let asking = Asking { workspace: &Workspace::default(), caller: None, knowledge: None };
        self.graph.query(asking, sparql, limits).await.map(|answer| answer.found)
    }
}

/// Every pattern that is made of the parts of a quad.
pub fn patterns(quad: &Quad, graph: Option<&str>) -> impl Iterator<Item = QuadPattern> {
    let part = |chosen: bool, term: &Term| chosen.then(|| term.clone());
    (0..8).map(move |bits: u8| QuadPattern {
        s: part(bits & 1 > 0, &quad.s),
        p: part(bits & 2 > 0, &quad.p),
        o: part(bits & 4 > 0, &quad.o),
        g: graph.map(str::to_owned),
        collection: None,
    })
}

async fn a_run_is_current_at_any_time(place: GraphStore) {
    let mut scene = Scene::of(place).await;
    let run = scene.begin(&agent("a"), "react", "").await;
    let workspace = Workspace::default();
    for state in ["open", "finished"] {
        let found = scene.graph.run(&workspace, &run).await.expect("the store works");
        assert!(!found.is_empty(), "{state}");
        assert_eq!(found, project(&scene.bench.records(&run).await), "{state}");
        let root = QuadPattern { s: Some(Term::iri(iri::session(&run))), ..QuadPattern::default() };
        scene.agrees(&found.into_iter().collect(), &root).await;
        if state == "open" {
            scene.bench.finish(std::slice::from_ref(&run), 1).await;
        }
    }
    let unknown = RunId::new("nobody").expect("a valid id");
    assert_eq!(scene.graph.run(&workspace, &unknown).await.expect("the store works"), []);
}

async fn every_pattern_finds_what_a_filter_finds(place: GraphStore) {
    let scene = Scene::with_every_pattern(place).await;
    let quads = scene.quads().await;
    let links = [rdf::TYPE, prov::WAS_DERIVED_FROM, tg::DOCUMENT, trellis::EARLIER_QUESTION];
    let of_each = links.iter().filter_map(|link| quads.iter().find(|quad| quad.p.as_iri() == Some(link)));
    let chosen: Vec<_> = of_each.chain(quads.iter().step_by(quads.len() / 12)).collect();
    assert!(chosen.len() > 15, "every kind of link is there");
    for pattern in chosen.into_iter().flat_map(|quad| patterns(quad, None)) {
        scene.agrees(&quads, &pattern).await;
    }
    let first = quads.first().expect("there are quads");
    for graph in [GRAPH_RETRIEVAL, "", "urn:graph:other"] {
        for pattern in patterns(first, Some(graph)) {
            scene.agrees(&quads, &pattern).await;
        }
    }
    let crossing = QuadPattern { p: Some(Term::iri(trellis::EARLIER_QUESTION)), ..QuadPattern::default() };
    assert_eq!(scene.found(&crossing, 100).await.len(), 3, "the links of a conversation cross runs");
    for unknown in ["urn:trustgraph:agent:nobody", "urn:trustgraph:agent:", "urn:trustgraph:agent:a b/i1", "urn:x", ""]
    {
        let unknown = Some(Term::iri(unknown));
        scene.agrees(&quads, &QuadPattern { s: unknown.clone(), ..QuadPattern::default() }).await;
        scene.agrees(&quads, &QuadPattern { o: unknown, ..QuadPattern::default() }).await;
    }
}

async fn the_newest_questions_win_under_a_limit(place: GraphStore) {
    let scene = Scene::with_every_pattern(place).await;
    let questions = QuadPattern { p: Some(Term::iri(tg::QUERY)), ..QuadPattern::default() };
    let found = scene.found(&questions, 100).await;
    let roots: Vec<_> = scene.runs.iter().rev().map(|run| Term::iri(iri::session(run))).collect();
    let subjects: Vec<_> = found.iter().map(|quad| quad.s.clone()).collect();
    assert_eq!(subjects[..roots.len()], roots, "newest run first, whatever its state");
    assert_eq!(subjects.len(), roots.len() + 2, "then those of the two subagents");
    let derived = QuadPattern {
        s: Some(subjects[roots.len()].clone()),
        p: Some(Term::iri(prov::WAS_DERIVED_FROM)),
        ..QuadPattern::default()
    };
    assert_eq!(scene.found(&derived, 1).await.len(), 1, "which are told by what they derive from");
    scene.agrees(&scene.quads().await, &questions).await;
}

async fn workspaces_see_nothing_of_each_other(place: GraphStore) {
    let mut scene = Scene::of(place).await;
    let run = scene.ask(&agent("a"), "react", "").await;
    let other = Workspace::new("other").expect("a valid name");
    assert_eq!(scene.graph.run(&other, &run).await.expect("the store works"), []);
    let about = |s: Option<Term>, p: Option<Term>| QuadPattern { s, p, ..QuadPattern::default() };
    let root = Some(Term::iri(iri::session(&run)));
    for pattern in [about(None, None), about(root, None), about(None, Some(Term::iri(tg::QUERY)))] {
        assert_eq!(scene.graph.matching(&other, &pattern, 10).await.expect("the store works").found, []);
    }
}

async fn each_form_of_query_has_its_answer(place: GraphStore) {
    let scene = Scene::with_every_pattern(place).await;
    let limits = QueryLimits::default();
    let root = iri::session(&scene.runs[4]);
    let asked = scene.query(&format!("ASK {{ <{root}> tg:query ?q }}"), limits).await.expect("a good query");
    assert_eq!(asked, Answer::Truth(true), "an open run is seen");
    let rows = scene.query("SELECT ?s ?none { ?s tg:query ?q }", limits).await.expect("a good query");
    let Answer::Rows { variables, rows, truncated: false } = rows else { panic!("{rows:?}") };
    assert_eq!((variables, rows.len()), (vec!["s".to_owned(), "none".to_owned()], 7));
    assert!(rows.iter().all(|row| row[0].is_some() && row[1].is_none()), "unbound is nothing");
    let built = scene.query("CONSTRUCT { ?s tg:query ?q } { ?s tg:query ?q }", limits).await;
    assert!(matches!(&built, Ok(Answer::Constructed(triples)) if triples.len() == 7), "{built:?}");
    let described = scene.query(&format!("DESCRIBE <{root}>"), limits).await;
    assert!(matches!(&described, Ok(Answer::Described(triples)) if triples.len() > 5), "{described:?}");
    // Later questions of the conversation point here, from other runs.
    let earlier = iri::session(&scene.runs[2]);
    let links = format!("SELECT ?s {{ ?s trellis:earlierQuestion <{earlier}> }}");
    let found = scene.query(&links, limits).await.expect("a good query");
    assert!(matches!(&found, Answer::Rows { rows, .. } if rows.len() == 2), "{found:?}");
}

async fn limits_end_a_query_and_say_so(place: GraphStore) {
    let scene = Scene::with_every_pattern(place).await;
    let limits = QueryLimits { max_rows: 3, ..QueryLimits::default() };
    let cut = scene.query("SELECT ?s { ?s ?p ?o }", limits).await.expect("a good query");
    assert!(matches!(&cut, Answer::Rows { rows, truncated: true, .. } if rows.len() == 3), "{cut:?}");
    let large = scene.query("CONSTRUCT { ?s ?p ?o } { ?s ?p ?o }", limits).await;
    assert!(matches!(large, Err(GraphError::TooLarge(_))), "{large:?}");
    for wrong in ["SELECT", "", "INSERT DATA { <urn:s> <urn:p> 1 }", "SELECT * { SERVICE <urn:x> { ?s ?p ?o } }"] {
        let refused = scene.query(wrong, limits).await;
        assert!(matches!(refused, Err(GraphError::Query(_))), "{wrong:?}: {refused:?}");
    }
    let hurried = QueryLimits { time: Duration::from_millis(20), ..QueryLimits::default() };
    let late = scene.query(COUNTING, hurried).await;
    assert!(matches!(late, Err(GraphError::TimedOut(time)) if time == hurried.time), "{late:?}");
}

/// Counts for ever, and takes hardly any memory.
const COUNTING: &str = "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l }";

async fn a_query_harms_nothing_but_itself(place: GraphStore) {
    let scene = Scene::with_every_pattern(place).await;
    let limits = QueryLimits::default();
    let sorted = "SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l } ORDER BY ?a";
    let doubled: Vec<_> = (0..60).map(|n| format!("BIND(CONCAT(?x{n}, ?x{n}) AS ?x{}) ", n + 1)).collect();
    let doubled = doubled.concat();
    let doubled = format!("SELECT (STRLEN(?x60) AS ?n) {{ BIND(\"aaaaaaaa\" AS ?x0) {doubled} }}");
    for monster in [sorted, &doubled] {
        let refused = scene.query(monster, limits).await;
        assert!(matches!(refused, Err(GraphError::TooLarge(_) | GraphError::TimedOut(_))), "{monster}: {refused:?}");
    }
    let asked = scene.query("ASK { ?s tg:query ?q }", limits).await.expect("a good query");
    assert_eq!(asked, Answer::Truth(true), "others are answered afterwards");
}

async fn long_queries_leave_room_for_others(place: GraphStore) {
    let scene = Scene::with_every_pattern(place).await;
    let (mine, other) = (Workspace::default(), Workspace::new("other").expect("a valid name"));
    let limits = QueryLimits::default();
    for (caller, stranger) in [(None, None), (Some("ann"), Some("bob"))] {
        let mut long = tokio::task::JoinSet::new();
        for _ in 0..8 {
            let graph = Arc::clone(&scene.graph);
            long.spawn(async move {
                let asking = Asking { workspace: &Workspace::default(), caller, knowledge: None };
                graph.query(asking, COUNTING, limits).await
            });
        }
        let ask = |workspace, caller, time| {
            let asking = Asking { workspace, caller, knowledge: None };
            scene.graph.query(asking, "ASK {}", QueryLimits { time, ..limits })
        };
        // Those who came later may be before them, but not for long.
        let deadline = tokio::time::Instant::now() + limits.time / 2;
        loop {
            match ask(&mine, caller, Duration::from_millis(500)).await {
                Err(GraphError::Busy(_)) => break,
                early => assert!(tokio::time::Instant::now() < deadline, "{early:?}"),
            }
        }
        let answer = ask(&other, stranger, limits.time).await;
        assert_eq!(answer.expect("a good query").found, Answer::Truth(true), "there is a place for somebody else");
        assert!(long.try_join_next().is_none(), "while they go on");
        // Nobody waits for them any more, so that nothing of them is left.
        drop(long);
        let answer = ask(&mine, caller, limits.time).await;
        assert_eq!(answer.expect("a good query").found, Answer::Truth(true));
    }
}
