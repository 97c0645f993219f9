//! The graph keeps its contract with its view at an endpoint.

use crate::{Home, Homes, endpoint};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::sync::watch;
use trellis_domain::Workspace;
use trellis_domain::rdf::Term;
use trellis_orchestrator::contract::graph::{GraphStore, Scene, patterns};
use trellis_orchestrator::contract::knowledge::KnowledgeStore;
use trellis_orchestrator::contract::teams::agent;
use trellis_orchestrator::contract::{graph, knowledge};
use trellis_orchestrator::ports::{Answer, Asking, Graph, QueryLimits};
use trellis_servers::Fuseki;
use trellis_sparql::RemoteGraph;

/// With a view that follows the runs, or with one that stays as it is. All stores share a dataset.
fn store(homes: &Homes, fuseki: &Fuseki, keeps_up: bool) -> KnowledgeStore {
    let home = Home::new();
    let graph = home.graph(fuseki);
    if keeps_up {
        let keeper = graph.clone();
        tokio::spawn(async move {
            let (_stop, stopped) = watch::channel(false);
            keeper.keep_up(stopped).await;
        });
    }
    let knowledge = Arc::clone(&home.store.knowledge) as _;
    let store = (home.ports(), Arc::new(graph) as Arc<dyn Graph>);
    homes.keep(home);
    (store, knowledge)
}

fn graph_store(homes: &Homes, fuseki: &Fuseki, keeps_up: bool) -> GraphStore {
    store(homes, fuseki, keeps_up).0
}

#[tokio::test(flavor = "multi_thread")]
async fn the_remote_graph_keeps_its_contract() {
    let (homes, fuseki) = (Homes::default(), Fuseki::shared());
    graph::suite(async || graph_store(&homes, &fuseki, false)).await;
    graph::suite(async || graph_store(&homes, &fuseki, true)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_remote_graph_answers_sparql() {
    let (homes, fuseki) = (Homes::default(), Fuseki::shared());
    graph::sparql_suite(async || graph_store(&homes, &fuseki, true)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_loaded_stays_in_the_store_and_is_found_with_the_runs() {
    let (homes, fuseki) = (Homes::default(), Fuseki::shared());
    knowledge::suite(async || store(&homes, &fuseki, true)).await;
    knowledge::sparql_suite(async || store(&homes, &fuseki, true)).await;
}

pub(crate) async fn triples(graph: &RemoteGraph, sparql: &str) -> BTreeSet<Vec<Option<Term>>> {
    let asking = Asking { workspace: &Workspace::default(), caller: None, knowledge: None };
    match graph.query(asking, sparql, QueryLimits::default()).await.unwrap().found {
        Answer::Rows { rows, truncated: false, .. } => rows.into_iter().collect(),
        other => panic!("{other:?}"),
    }
}

pub(crate) const ALL: &str = "SELECT ?s ?p ?o { ?s ?p ?o }";

/// What is open, finished, in the view, or derived again says the same, in every process; and the endpoint has it.
#[tokio::test(flavor = "multi_thread")]
async fn the_view_changes_no_answer() {
    let (home, fuseki) = (Home::new(), Fuseki::shared());
    let (one, two) = (home.graph(&fuseki), home.graph(&fuseki));
    let mut scene = Scene::of((home.ports(), Arc::new(one.clone()) as Arc<dyn Graph>)).await;
    let first = scene.ask(&agent("first"), "react", "talk").await;
    assert_eq!((one.lag().await.unwrap(), two.catch_up().await.unwrap(), one.lag().await.unwrap()), (1, 1, 0));
    let graphs = endpoint::graphs(&fuseki, &home.followed().name).await;
    assert!(graphs.len() == 1 && graphs[0].ends_with(&format!(":default:{first}")), "{graphs:?}");
    let questions = format!("SELECT ?q {{ GRAPH <{}> {{ ?s <https://trustgraph.ai/ns/query> ?q }} }}", graphs[0]);
    assert_eq!(endpoint::select(&fuseki, &questions).await.len(), 1);
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
    assert_eq!(one.catch_up().await.unwrap(), 1);
    agree().await;
    // A term that the query computes, so that nobody could tell the endpoint what it is.
    let computed =
        format!("SELECT ?p ?o {{ BIND(IRI(CONCAT(\"urn:trustgraph:\", \"agent:{first}\")) AS ?s) ?s ?p ?o }}");
    let named = format!("SELECT ?p ?o {{ <urn:trustgraph:agent:{first}> ?p ?o }}");
    let of_first = triples(&one, &named).await;
    assert!(of_first.len() > 5 && triples(&one, &computed).await == of_first, "{of_first:?}");
    assert_eq!(two.rebuild().await.unwrap(), 2, "the open run is not in it");
    agree().await;
    assert_eq!(endpoint::graphs(&fuseki, &home.followed().name).await.len(), 2);
}

/// What somebody else wrote into the graph of a run goes when the run is taken in again, and a mark that is of another
/// history has the view derived anew.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_view_is_put_right() {
    let (home, fuseki) = (Home::new(), Fuseki::shared());
    let graph = home.graph(&fuseki);
    let mut scene = Scene::of((home.ports(), Arc::new(graph.clone()) as Arc<dyn Graph>)).await;
    let run = scene.ask(&agent("a"), "react", "").await;
    graph.catch_up().await.unwrap();
    let right = triples(&graph, ALL).await;
    let name = endpoint::graphs(&fuseki, &home.followed().name).await.remove(0);
    let nonsense = format!("INSERT DATA {{ GRAPH <{name}> {{ <urn:s> <urn:p> \"nonsense\" }} }}");
    endpoint::update(&fuseki, &nonsense).await;
    assert_eq!(triples(&graph, ALL).await.len(), right.len() + 1);
    graph.renew(&Workspace::default(), &run).await.unwrap();
    assert_eq!(triples(&graph, ALL).await, right, "the run is written whole");

    let mark = name.replace(":graph:", ":mark:");
    let mark = mark.split(":default:").next().unwrap();
    for wrong in ["\"{}\"", "REPLACE(?o, '\"identity\":\"..', '\"identity\":\"00')"] {
        endpoint::update(&fuseki, &nonsense).await;
        let forge = format!(
            "DELETE {{ GRAPH ?g {{ ?s ?p ?o }} }} INSERT {{ GRAPH ?g {{ ?s ?p ?n }} }} \
             WHERE {{ GRAPH ?g {{ ?s ?p ?o }} FILTER(?g = <{mark}>) BIND({wrong} AS ?n) }}"
        );
        endpoint::update(&fuseki, &forge).await;
        assert_eq!(triples(&graph, ALL).await, right, "{wrong}: nothing of it is read until it is derived anew");
        assert_eq!(graph.catch_up().await.unwrap(), 1, "{wrong}");
        assert_eq!(triples(&graph, ALL).await, right, "{wrong}");
    }
}
