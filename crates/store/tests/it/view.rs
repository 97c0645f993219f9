//! The view belongs to its journal: it is opened when it is needed, follows, notices another log, and says what it lacks.

use crate::damage::{fill, flip};
use crate::graph::rows;
use crate::{open, ports};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use trellis_domain::Workspace;
use trellis_domain::limits::SomeLimits;
use trellis_orchestrator::contract::runs::{Bench, SCRIPT};
use trellis_orchestrator::memory::scripted::ScriptedPrompter;
use trellis_orchestrator::ports::{Answer, Asking, Graph, QuadPattern, QueryLimits};
use trellis_store::Store;

pub(crate) const QUESTIONS: &str = "SELECT ?s WHERE { ?s <https://trustgraph.ai/ns/query> ?q }";

fn asking(workspace: &Workspace) -> Asking<'_> {
    Asking { workspace, caller: None, knowledge: None }
}

async fn bench(store: &Store) -> Bench {
    Bench::new(ports(store), ScriptedPrompter::replies(&SCRIPT)).await
}

pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (path, to) = (entry.as_ref().unwrap().path(), to.join(entry.unwrap().file_name()));
        if path.is_dir() {
            copy(&path, &to);
        } else {
            fs::copy(path, to).unwrap();
        }
    }
}

pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_view_is_opened_when_somebody_asks_for_it() {
    let folder = TempDir::new().unwrap();
    let runs = fill(folder.path(), 2).await;
    let store = open(folder.path()).unwrap();
    store.graph.run(&Workspace::default(), &runs[0]).await.unwrap();
    assert!(!folder.path().join("view").exists(), "what concerns one run needs no view");
    assert_eq!(rows(&store, QUESTIONS).await.len(), 2);
    assert!(folder.path().join("view").exists());
}

/// A journal from a backup beside the view of what came after it.
#[tokio::test(flavor = "multi_thread")]
async fn a_view_of_a_journal_that_was_put_back_is_derived_anew() {
    let (folder, backup) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    fill(folder.path(), 2).await;
    copy(folder.path(), backup.path());
    let store = open(folder.path()).unwrap();
    let more = bench(&store).await;
    let later = [more.ask(10, SomeLimits::default()).await, more.ask(11, SomeLimits::default()).await];
    more.finish(&later, 1).await;
    assert_eq!(store.graph.catch_up().unwrap(), 4);
    drop((more, store));
    copy(&folder.path().join("view"), &backup.path().join("view"));

    let store = open(backup.path()).unwrap();
    assert_eq!(rows(&store, QUESTIONS).await.len(), 2, "runs that do not exist are not listed");
    // And it has as many commits again, but others.
    let other = bench(&store).await;
    let runs = [20, 21, 22].map(|n| other.ask(n, SomeLimits::default()));
    let mut asked = Vec::new();
    for run in runs {
        asked.push(run.await);
    }
    other.finish(&asked, 1).await;
    drop((other, store));
    fs::remove_dir_all(backup.path().join("view")).unwrap();
    copy(&folder.path().join("view"), &backup.path().join("view"));
    let store = open(backup.path()).unwrap();
    assert_eq!(store.graph.catch_up().unwrap(), 5);
    assert_eq!(rows(&store, QUESTIONS).await.len(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_view_of_the_same_journal_is_kept() {
    let folder = TempDir::new().unwrap();
    fill(folder.path(), 3).await;
    let store = open(folder.path()).unwrap();
    assert_eq!(store.graph.catch_up().unwrap(), 3);
    drop(store);
    let store = open(folder.path()).unwrap();
    assert_eq!(store.graph.catch_up().unwrap(), 0, "nothing is absorbed twice");
    assert_eq!(rows(&store, QUESTIONS).await.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_that_is_damaged_anywhere_is_derived_anew() {
    let folder = TempDir::new().unwrap();
    fill(folder.path(), 3).await;
    let store = open(folder.path()).unwrap();
    store.graph.catch_up().unwrap();
    let whole = rows(&store, "SELECT * { ?s ?p ?o } ORDER BY ?s ?p ?o").await;
    drop(store);
    let kept = TempDir::new().unwrap();
    copy(folder.path(), kept.path());
    let names = files(&folder.path().join("view"));
    for file in names.iter().map(|file| file.strip_prefix(folder.path()).unwrap()) {
        for part in [0, 1, 3] {
            let damaged = TempDir::new().unwrap();
            copy(kept.path(), damaged.path());
            let path = damaged.path().join(file);
            let length = usize::try_from(fs::metadata(&path).unwrap().len()).unwrap();
            flip(&path, (length * part / 4).min(length - 1));
            let store = open(damaged.path()).unwrap();
            // The damage is found by opening it or by reading it, and then it is gone.
            let everything = QueryLimits::default();
            let first = store.graph.query(asking(&Workspace::default()), "SELECT * { ?s ?p ?o }", everything).await;
            if let Err(error) = first {
                assert!(error.to_string().contains("view"), "{error}");
            }
            store.graph.catch_up().unwrap();
            assert_eq!(rows(&store, "SELECT * { ?s ?p ?o } ORDER BY ?s ?p ?o").await, whole, "{file:?} {part}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_that_is_far_behind_answers_and_says_what_it_lacks() {
    const OPEN: usize = 1_001;
    let folder = TempDir::new().unwrap();
    fill(folder.path(), 1).await;
    let store = open(folder.path()).unwrap();
    store.graph.catch_up().unwrap();
    let bench = bench(&store).await;
    let mut newest = None;
    for n in 0..OPEN {
        newest = Some(bench.ask(100 + n, SomeLimits::default()).await);
    }
    let workspace = Workspace::default();
    let ask = async |query: &str| store.graph.query(asking(&workspace), query, QueryLimits::default()).await.unwrap();
    let all = ask(QUESTIONS).await;
    assert!(matches!(&all.found, Answer::Rows { rows, .. } if rows.len() == 1), "{all:?}");
    assert_eq!(all.missing_runs, OPEN);
    let newest = newest.unwrap();
    let one = ask(&format!("ASK {{ <urn:trustgraph:agent:{newest}> ?p ?o }}")).await;
    assert_eq!((one.found, one.missing_runs), (Answer::Truth(true), 0), "a run that is named is always looked at");
    let found = store.graph.matching(&Workspace::default(), &QuadPattern::default(), 5).await.unwrap();
    assert_eq!((found.found.len(), found.missing_runs), (5, OPEN));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_can_be_projected_anew() {
    let folder = TempDir::new().unwrap();
    let runs = fill(folder.path(), 2).await;
    let store = open(folder.path()).unwrap();
    store.graph.catch_up().unwrap();
    let before = rows(&store, "SELECT * { ?s ?p ?o } ORDER BY ?s ?p ?o").await;
    store.graph.renew(&Workspace::default(), &runs[0]).unwrap();
    assert_eq!(rows(&store, "SELECT * { ?s ?p ?o } ORDER BY ?s ?p ?o").await, before, "the records are the same");
    assert_eq!(store.graph.lag().unwrap(), 0);
}
