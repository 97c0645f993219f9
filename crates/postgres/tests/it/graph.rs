//! Graph and loaded knowledge keep their contracts, also between processes and after a server that crashed.

use crate::server::Server;
use crate::{fresh, ports};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use trellis_domain::rdf::{Quad, Term};
use trellis_domain::{Collection, Workspace};
use trellis_orchestrator::contract::graph::{GraphStore, Scene, patterns};
use trellis_orchestrator::contract::knowledge::KnowledgeStore;
use trellis_orchestrator::contract::teams::agent;
use trellis_orchestrator::contract::{graph, knowledge};
use trellis_orchestrator::ports::{
    Answer, Asking, Graph, GraphError, Knowledge, KnowledgePlace, QuadPattern, QueryLimits,
};
use trellis_postgres::{PostgresGraph, PostgresKnowledge};
use trellis_queries::{Program, QuerySettings};

const QUERY_WORKER: &str = "TRELLIS_TEST_QUERY_WORKER";

/// Not a test: this program as it is started for a query.
#[test]
fn query_worker() {
    if std::env::var_os(QUERY_WORKER).is_some() {
        trellis_queries::work().unwrap();
    }
}

/// The graph of a new process.
async fn graph_of(server: &Server, schema: &str) -> PostgresGraph {
    let graph = PostgresGraph::new(server.database(schema).await);
    let program = Program {
        path: std::env::current_exe().unwrap(),
        arguments: ["graph::query_worker", "--exact", "--nocapture"].map(Into::into).into(),
        variables: vec![(QUERY_WORKER.into(), "1".into())],
    };
    graph.evaluate_with(program, QuerySettings::default());
    graph
}

/// With a view that follows the runs, or with one that stays as it is.
async fn store(server: &Server, schema: &str, keeps_up: bool) -> GraphStore {
    let graph = graph_of(server, schema).await;
    if keeps_up {
        let keeper = graph.clone();
        tokio::spawn(async move {
            let (_stop, stopped) = watch::channel(false);
            keeper.keep_up(stopped).await;
        });
    }
    (ports(server, schema).await, Arc::new(graph) as Arc<dyn Graph>)
}

async fn with_knowledge(server: &Server) -> KnowledgeStore {
    let schema = fresh();
    let store = store(server, &schema, false).await;
    (store, Arc::new(PostgresKnowledge::new(server.database(&schema).await)) as Arc<dyn Knowledge>)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_graph_keeps_its_contract() {
    let server = Server::start();
    graph::suite(async || store(&server, &fresh(), false).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_graph_answers_sparql() {
    let server = Server::start();
    graph::sparql_suite(async || store(&server, &fresh(), true).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn knowledge_keeps_its_contract() {
    let server = Server::start();
    knowledge::suite(async || with_knowledge(&server).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn knowledge_answers_sparql() {
    let server = Server::start();
    knowledge::sparql_suite(async || with_knowledge(&server).await).await;
}

async fn triples(graph: &dyn Graph, sparql: &str) -> BTreeSet<Vec<Option<Term>>> {
    let asking = Asking { workspace: &Workspace::default(), caller: None, knowledge: None };
    match graph.query(asking, sparql, QueryLimits::default()).await.unwrap().found {
        Answer::Rows { rows, truncated: false, .. } => rows.into_iter().collect(),
        other => panic!("{other:?}"),
    }
}

const ALL: &str = "SELECT ?s ?p ?o { ?s ?p ?o }";

/// What is open, finished, in the view, or derived again says the same, in every process, before and after a crash.
#[tokio::test(flavor = "multi_thread")]
async fn the_view_changes_no_answer() {
    let mut server = Server::start();
    let (one, two) = (graph_of(&server, "t").await, graph_of(&server, "t").await);
    let mut scene = Scene::of((ports(&server, "t").await, Arc::new(one.clone()) as Arc<dyn Graph>)).await;
    scene.ask(&agent("first"), "react", "talk").await;
    in_view(&server, &two, 1).await;
    scene.ask(&agent("second"), "react", "talk").await;
    scene.begin(&agent("third"), "react", "talk").await;
    let quads = scene.quads().await;
    let said: BTreeSet<_> =
        quads.iter().map(|quad| [&quad.s, &quad.p, &quad.o].map(|term| Some(term.clone())).to_vec()).collect();
    let agree = async || {
        for quad in quads.iter().step_by(quads.len() / 5) {
            for pattern in patterns(quad, None) {
                scene.agrees(&quads, &pattern).await;
            }
        }
        for graph in [&one, &two] {
            assert_eq!(triples(graph, ALL).await, said);
        }
    };
    agree().await;
    in_view(&server, &one, 2).await;
    agree().await;
    assert_eq!(two.rebuild().await.unwrap(), 2, "the open run is not in it");
    agree().await;
    server.crash();
    server.run();
    agree().await;
    // What was written of the view last may have been lost: it is derived again.
    in_view(&server, &one, 2).await;
    agree().await;
}

/// Takes runs in until so many are in the view: the log has them a moment after they are committed.
async fn in_view(server: &Server, graph: &PostgresGraph, runs: i64) {
    let look = server.look().await;
    let caught_up = async {
        loop {
            graph.catch_up().await.unwrap();
            let row = look.query_one("SELECT count(*) FROM t.view_runs", &[]).await.unwrap();
            if row.get::<_, i64>(0) == runs && graph.lag().await.unwrap() == 0 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), caught_up).await.expect("the log has what was committed");
}

/// What a run said before goes when it is taken in again, and a view that lacks something is derived anew.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_view_is_put_right() {
    let server = Server::start();
    let graph = graph_of(&server, "t").await;
    let mut scene = Scene::of((ports(&server, "t").await, Arc::new(graph.clone()) as Arc<dyn Graph>)).await;
    scene.ask(&agent("a"), "react", "").await;
    in_view(&server, &graph, 1).await;
    let right = triples(&graph, ALL).await;
    let look = server.look().await;
    let count = async |table: &str| {
        let row = look.query_one(&format!("SELECT count(*) FROM t.{table}"), &[]).await.unwrap();
        row.get::<_, i64>(0)
    };
    let (quads, terms) = (count("view_quads").await, count("view_terms").await);
    let say = "INSERT INTO t.view_terms SELECT DISTINCT place, substring(sha256('lnonsense') FROM 1 FOR 16), \
            'lnonsense'::bytea FROM t.view_quads; \
        INSERT INTO t.view_quads SELECT place, s, p, substring(sha256('lnonsense') FROM 1 FOR 16), g \
            FROM t.view_quads WHERE s = (SELECT substring(nodes FROM 1 FOR 16) FROM t.view_runs) LIMIT 1; \
        INSERT INTO t.view_waiting SELECT workspace, run FROM t.view_runs";
    look.batch_execute(say).await.unwrap();
    assert!(count("view_quads").await > quads, "something was said that the run does not say");
    in_view(&server, &graph, 1).await;
    assert_eq!((count("view_quads").await, triples(&graph, ALL).await), (quads, right.clone()));
    assert_eq!(count("view_terms").await, terms, "its text is gone as well");
    look.batch_execute("DELETE FROM t.view_terms").await.unwrap();
    let asking = Asking { workspace: &Workspace::default(), caller: None, knowledge: None };
    let refused = graph.query(asking, ALL, QueryLimits::default()).await;
    assert!(matches!(refused, Err(GraphError::Index(_))), "{refused:?}");
    assert_eq!(triples(&graph, ALL).await, right, "it is laid over until it is derived anew");
    in_view(&server, &graph, 1).await;
    assert_eq!(triples(&graph, ALL).await, right);
}

/// Several processes load the same into one collection at once: each quad is counted once, and nobody waits for ever.
#[tokio::test(flavor = "multi_thread")]
async fn processes_load_into_one_collection_at_once() {
    const QUADS: usize = 2_000;
    let server = Server::start();
    let place = KnowledgePlace { workspace: Workspace::default(), collection: Collection::default() };
    let quad = |n: usize| Quad {
        s: Term::iri(format!("urn:s{}", n % 50)),
        p: Term::iri(format!("urn:p{}", n % 7)),
        o: Term::literal(format!("said {n}")),
        g: n.is_multiple_of(2).then(|| "urn:g".to_owned()),
    };
    let mut loading = JoinSet::new();
    for process in 0..4 {
        let knowledge = PostgresKnowledge::new(server.database("t").await);
        let place = place.clone();
        loading.spawn(async move {
            let mut new = 0;
            for step in 0..10 {
                let at = (step + process * 3) % 10 * (QUADS / 10);
                // Half of each batch is in the next one, too, and every process goes another way.
                let mut batch: Vec<_> = (at..at + QUADS / 5).map(|n| quad(n % QUADS)).collect();
                if process % 2 == 1 {
                    batch.reverse();
                }
                new += knowledge.add(&place, &format!("source {process}"), batch).await.unwrap().new;
            }
            knowledge.finish(&place, &format!("source {process}")).await.unwrap();
            new
        });
    }
    let new: u64 = loading.join_all().await.into_iter().sum();
    assert_eq!(new, QUADS as u64);
    let knowledge = PostgresKnowledge::new(server.database("t").await);
    let listed = knowledge.collections(&place.workspace).await.unwrap();
    assert_eq!((listed[0].quads, listed[0].sources, listed[0].unfinished.len()), (QUADS as u64, 4, 0));
    let found = knowledge.matching(&place, &QuadPattern::default(), usize::MAX).await.unwrap();
    assert_eq!(found.len(), QUADS);
    assert_eq!(knowledge.remove(&place).await.unwrap(), Some(QUADS as u64));
    let look = server.look().await;
    for table in ["knowledge_quads", "knowledge_terms", "knowledge_sources", "knowledge_removed"] {
        let left = look.query_one(&format!("SELECT count(*) FROM t.{table}"), &[]).await.unwrap();
        assert_eq!(left.get::<_, i64>(0), 0, "nothing is left in {table}");
    }
}
