//! Workspaces, and stores, share a dataset and see nothing of each other.

use crate::{Home, endpoint};
use std::sync::Arc;
use trellis_domain::limits::SomeLimits;
use trellis_domain::message::AgentRequest;
use trellis_domain::rdf::Term;
use trellis_domain::{RequestId, RunId, Scope, Workspace};
use trellis_orchestrator::Question;
use trellis_orchestrator::accept::UnknownNames;
use trellis_orchestrator::contract::graph::Scene;
use trellis_orchestrator::contract::teams::{agent, question};
use trellis_orchestrator::ports::{Answer, Asking, Graph, QuadPattern, QueryLimits};
use trellis_servers::Fuseki;
use trellis_sparql::RemoteGraph;

async fn rows(graph: &RemoteGraph, workspace: &Workspace, sparql: &str) -> Vec<Vec<Option<Term>>> {
    let asking = Asking { workspace, caller: None, knowledge: None };
    match graph.query(asking, sparql, QueryLimits::default()).await.unwrap().found {
        Answer::Rows { rows, .. } => rows,
        other => panic!("{other:?}"),
    }
}

async fn ask_in(scene: &Scene, workspace: &Workspace) -> RunId {
    let request = AgentRequest { pattern: "react".to_owned(), ..question(&agent("theirs"), "react") };
    let asked = Question {
        scope: Scope { workspace: workspace.clone(), ..Scope::default() },
        request_id: RequestId::new("of-another").unwrap(),
        request,
        limits: SomeLimits::default(),
        names: UnknownNames::Refuse,
        selection: trellis_domain::Selection::default(),
        by: None,
    };
    scene.bench.runs().accept(asked).await.unwrap().run
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_tenant_sees_nothing_of_the_first() {
    let (home, neighbour, fuseki) = (Home::new(), Home::new(), Fuseki::shared());
    let (graph, other_store) = (home.graph(&fuseki), neighbour.graph(&fuseki));
    let mut scene = Scene::of((home.ports(), Arc::new(graph.clone()) as Arc<dyn Graph>)).await;
    // The name of one begins as that of the other.
    let (mine, theirs) = (Workspace::default(), Workspace::new("default2").unwrap());
    let run = scene.ask(&agent("mine"), "react", "").await;
    let their_run = ask_in(&scene, &theirs).await;
    assert_eq!(graph.catch_up().await.unwrap(), 1);
    let name = endpoint::graphs(&fuseki, &home.followed().name).await.remove(0);
    let node = format!("urn:trustgraph:agent:{run}");
    let queries = [
        format!("SELECT ?p ?o {{ <{node}> ?p ?o }}"),
        format!("SELECT ?s {{ ?s ?p <{node}> }}"),
        format!("SELECT ?s {{ GRAPH <{name}> {{ ?s ?p ?o }} }}"),
        format!("SELECT ?s FROM <{name}> {{ ?s ?p ?o }}"),
        format!("SELECT ?s FROM NAMED <{name}> {{ GRAPH ?g {{ ?s ?p ?o }} }}"),
        "SELECT ?g { GRAPH ?g { ?s ?p ?o } FILTER(STRSTARTS(STR(?g), \"urn:trellis:\")) }".to_owned(),
        format!("SELECT ?s {{ ?s ?p ?o FILTER(CONTAINS(STR(?s), \"{run}\")) }}"),
    ];
    for sparql in &queries {
        assert_eq!(rows(&graph, &theirs, sparql).await, Vec::<Vec<_>>::new(), "{sparql}");
        assert_eq!(rows(&other_store, &mine, sparql).await, Vec::<Vec<_>>::new(), "another store: {sparql}");
    }
    assert!(rows(&graph, &mine, &queries[0]).await.len() > 5, "there would have been something");
    let all = QuadPattern::default();
    let found = graph.matching(&theirs, &all, 1_000).await.unwrap().found;
    let is_theirs = |quad: &trellis_domain::rdf::Quad| !format!("{quad:?}").contains(run.as_str());
    assert!(!found.is_empty() && found.iter().all(is_theirs), "they see their own run {their_run} only");
    assert_eq!(other_store.rebuild().await.unwrap(), 0);
    assert!(endpoint::graphs(&fuseki, &home.followed().name).await.contains(&name), "nobody removes what is another's");
}
