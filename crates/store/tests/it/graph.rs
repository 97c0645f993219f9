//! Projection, view and overlay say the same, whatever is open, finished or rebuilt.

use crate::{open, ports};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::sync::watch;
use trellis_domain::Workspace;
use trellis_domain::limits::SomeLimits;
use trellis_domain::rdf::{Quad, Term};
use trellis_orchestrator::contract::graph::{Scene, patterns};
use trellis_orchestrator::contract::runs::{Bench, SCRIPT};
use trellis_orchestrator::contract::teams::agent;
use trellis_orchestrator::memory::scripted::ScriptedPrompter;
use trellis_orchestrator::ports::{Answer, Asking, Graph, QuadPattern, QueryLimits};
use trellis_store::Store;

const ALL: &str = "SELECT ?s ?p ?o WHERE { ?s ?p ?o } ORDER BY ?s ?p ?o";
const QUESTIONS: &str = "SELECT ?q WHERE { ?s <https://trustgraph.ai/ns/query> ?q } ORDER BY ?q";

pub(crate) async fn rows(store: &Store, sparql: &str) -> Vec<Vec<String>> {
    let asking = Asking { workspace: &Workspace::default(), caller: None, knowledge: None };
    match store.graph.query(asking, sparql, QueryLimits::default()).await.unwrap().found {
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
    let bench = Bench::new(ports(&store), ScriptedPrompter::replies(&SCRIPT)).await;
    let first = bench.ask(1, SomeLimits::default()).await;
    bench.finish(std::slice::from_ref(&first), 1).await;
    assert_eq!(store.graph.catch_up().unwrap(), 1);
    let second = bench.ask(2, SomeLimits::default()).await;
    bench.finish(std::slice::from_ref(&second), 1).await;
    let _third = bench.ask(3, SomeLimits::default()).await;

    assert_eq!(store.graph.lag().unwrap(), 1);
    assert_eq!(rows(&store, QUESTIONS).await, [["question 1"], ["question 2"], ["question 3"]]);
    let mixed = rows(&store, ALL).await;
    assert_eq!(store.graph.catch_up().unwrap(), 1);
    assert_eq!(rows(&store, ALL).await, mixed, "absorbing a run changes no answer");
    assert_eq!(store.graph.rebuild().unwrap(), 2);
    assert_eq!(rows(&store, ALL).await, mixed, "a rebuild changes nothing");

    let projected = store.graph.run(&Workspace::default(), &first).await.unwrap();
    let about =
        format!("SELECT ?s ?p ?o WHERE {{ ?s ?p ?o FILTER(STRSTARTS(STR(?s), 'urn:trustgraph:agent:{first}')) }}");
    assert_eq!(rows(&store, &about).await.len(), projected.len(), "the view holds exactly what is projected");
    let faults = trellis_provenance::check(&projected, &|_| None);
    assert!(faults.iter().all(|fault| fault.to_string().contains("document")), "{faults:?}");
}

/// What becomes of a run before its graph is asked.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fate {
    Open,
    Finished,
    /// Finished, and the view has it.
    Absorbed,
}

/// A run, and what becomes of it.
#[derive(Debug, Clone)]
struct Part {
    scene: Value,
    pattern: &'static str,
    conversation: &'static str,
    fate: Fate,
}

fn any_part() -> impl Strategy<Value = Part> {
    let plan = json!({"plan": [{"say": "zero", "tool": true, "fail": true}, {"say": "one", "needs": [0]}]});
    let scenes = prop_oneof![
        (0..3_u32).prop_map(|tools| (json!({"tools": tools, "answer": "so"}), "react")),
        Just((plan, "plan-then-execute")),
        Just((json!({"team": [[agent("a"), {"fail": true}], [agent("b")]]}), "supervisor")),
        Just((json!({"fail": true}), "react")),
    ];
    let fate = prop_oneof![Just(Fate::Open), Just(Fate::Finished), Just(Fate::Absorbed)];
    (scenes, prop_oneof![Just(""), Just("talk")], fate).prop_map(|((scene, pattern), conversation, fate)| Part {
        scene,
        pattern,
        conversation,
        fate,
    })
}

/// A quad of the graph by its place, and changes of it, so that some patterns match nothing.
fn any_pattern() -> impl Strategy<Value = (prop::sample::Index, prop::sample::Index, usize, Option<&'static str>)> {
    let graph = prop_oneof![4 => Just(None), 1 => Just(Some("urn:graph:retrieval")), 1 => Just(Some(""))];
    (any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..8_usize, graph)
}

async fn play(parts: &[Part]) -> (TempDir, Store, Scene) {
    let folder = TempDir::new().unwrap();
    let store = open(folder.path()).unwrap();
    let mut scene = Scene::of((ports(&store), Arc::clone(&store.graph) as Arc<dyn Graph>)).await;
    // Open runs last: workers take whatever is open.
    for fate in [Fate::Absorbed, Fate::Finished, Fate::Open] {
        for part in parts.iter().filter(|part| part.fate == fate) {
            match fate {
                Fate::Open => scene.begin(&part.scene, part.pattern, part.conversation).await,
                Fate::Finished | Fate::Absorbed => scene.ask(&part.scene, part.pattern, part.conversation).await,
            };
        }
        if fate == Fate::Absorbed {
            store.graph.catch_up().unwrap();
        }
    }
    (folder, store, scene)
}

#[test]
fn any_pattern_over_any_runs_finds_what_a_filter_finds() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let parts = prop::collection::vec(any_part(), 1..7);
    let chosen = prop::collection::vec(any_pattern(), 60);
    let mut runner = TestRunner::new(Config { cases: 6, failure_persistence: None, ..Config::default() });
    let checked = runner.run(&(parts, chosen), |(parts, chosen)| {
        runtime.block_on(async {
            let (_folder, _store, scene) = play(&parts).await;
            let quads = scene.quads().await;
            let listed: Vec<&Quad> = quads.iter().collect();
            for (one, other, bits, graph) in chosen {
                let (one, other) = (one.get(&listed), other.get(&listed));
                let mixed = Quad { p: other.p.clone(), ..(*one).clone() };
                for quad in [*one, &mixed] {
                    let pattern = patterns(quad, graph).nth(bits).unwrap();
                    scene.agrees(&quads, &pattern).await;
                }
            }
        });
        Ok(())
    });
    checked.unwrap();
}

/// A walk through a run while it grows must not see what it remembered.
#[tokio::test(flavor = "multi_thread")]
async fn a_remembered_run_is_projected_anew_when_it_has_grown() {
    let parts = [Part { scene: agent("a"), pattern: "react", conversation: "", fate: Fate::Open }];
    let (_folder, store, scene) = play(&parts).await;
    let run = &scene.runs[0];
    let graph = &store.graph;
    let before = graph.run(&Workspace::default(), run).await.unwrap();
    assert_eq!(graph.run(&Workspace::default(), run).await.unwrap(), before);
    scene.bench.finish(std::slice::from_ref(run), 1).await;
    let after = graph.run(&Workspace::default(), run).await.unwrap();
    assert!(after.len() > before.len());
    assert_eq!(after.into_iter().collect::<BTreeSet<_>>(), scene.quads().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_absorbed_as_they_finish_until_it_is_told_to_stop() {
    let folder = TempDir::new().unwrap();
    let store = open(folder.path()).unwrap();
    let (stop, stopped) = watch::channel(false);
    let graph = Arc::clone(&store.graph);
    let keeper = tokio::spawn(async move { graph.keep_up(stopped).await });
    let mut scene = Scene::of((ports(&store), Arc::clone(&store.graph) as Arc<dyn Graph>)).await;
    for _ in 0..2 {
        scene.ask(&agent("a"), "react", "").await;
        let caught_up = async {
            while store.graph.lag().unwrap() > 0 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(std::time::Duration::from_secs(30), caught_up).await.expect("nobody had to ask for it");
    }
    stop.send_replace(true);
    keeper.await.unwrap();
    scene.ask(&agent("b"), "react", "").await;
    assert_eq!(store.graph.lag().unwrap(), 1, "it has stopped");
    let everything = QuadPattern { p: Some(Term::iri("https://trustgraph.ai/ns/query")), ..QuadPattern::default() };
    scene.agrees(&scene.quads().await, &everything).await;
}
