//! Projection, view and overlay say the same, whatever is open, finished or rebuilt.

use crate::open;
use std::sync::Arc;
use tempfile::TempDir;
use trellis_domain::Workspace;
use trellis_domain::limits::SomeLimits;
use trellis_orchestrator::contract::runs::{Bench, SCRIPT};
use trellis_orchestrator::memory::scripted::ScriptedPrompter;
use trellis_orchestrator::ports::{Config, Journal};
use trellis_store::Store;
use trellis_store::view::{Answer, QueryLimits};

const ALL: &str = "SELECT ?s ?p ?o WHERE { ?s ?p ?o } ORDER BY ?s ?p ?o";
const QUESTIONS: &str = "SELECT ?q WHERE { ?s <https://trustgraph.ai/ns/query> ?q } ORDER BY ?q";

fn rows(store: &Store, sparql: &str) -> Vec<Vec<String>> {
    match store.graph.query(&Workspace::default(), sparql, &QueryLimits::default()).unwrap() {
        Answer::Rows { rows, .. } => rows
            .into_iter()
            .map(|row| {
                row.into_iter().map(|term| term.map(|term| term.text().to_owned()).unwrap_or_default()).collect()
            })
            .collect(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_sees_open_finished_and_absorbed_runs_alike() {
    let folder = TempDir::new().unwrap();
    let store = open(folder.path()).unwrap();
    let ports = (Arc::clone(&store.journal) as Arc<dyn Journal>, Arc::clone(&store.config) as Arc<dyn Config>);
    let bench = Bench::new(ports, ScriptedPrompter::replies(&SCRIPT)).await;
    let first = bench.ask(1, SomeLimits::default()).await;
    bench.finish(std::slice::from_ref(&first), 1).await;
    assert_eq!(store.graph.catch_up().unwrap(), 1);
    let second = bench.ask(2, SomeLimits::default()).await;
    bench.finish(std::slice::from_ref(&second), 1).await;
    let _third = bench.ask(3, SomeLimits::default()).await;

    assert_eq!(store.graph.lag().unwrap(), 1);
    assert_eq!(rows(&store, QUESTIONS), [["question 1"], ["question 2"], ["question 3"]]);
    let mixed = rows(&store, ALL);
    assert_eq!(store.graph.catch_up().unwrap(), 1);
    assert_eq!(rows(&store, ALL), mixed, "absorbing a run changes no answer");
    assert_eq!(store.graph.rebuild().unwrap(), 2);
    assert_eq!(rows(&store, ALL), mixed, "a rebuild changes nothing");

    let projected = store.graph.run(&Workspace::default(), &first).unwrap();
    let about =
        format!("SELECT ?s ?p ?o WHERE {{ ?s ?p ?o FILTER(STRSTARTS(STR(?s), 'urn:trustgraph:agent:{first}')) }}");
    assert_eq!(rows(&store, &about).len(), projected.len(), "the view holds exactly what is projected");
    let faults = trellis_provenance::check(&projected, &|_| None);
    assert!(faults.iter().all(|fault| fault.to_string().contains("document")), "{faults:?}");
}
