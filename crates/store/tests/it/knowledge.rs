//! Loaded knowledge on disk: a set in whatever order it came, there when it was finished, and never guessed at.

use crate::open;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use trellis_domain::rdf::{Quad, Term};
use trellis_domain::{Collection, Workspace};
use trellis_orchestrator::contract::graph::patterns;
use trellis_orchestrator::ports::{Graph, Knowledge, KnowledgeError, KnowledgePlace, QuadPattern};
use trellis_store::Store;

fn place(collection: &str) -> KnowledgePlace {
    KnowledgePlace { workspace: Workspace::default(), collection: Collection::new(collection).unwrap() }
}

fn quad(s: usize, p: usize, o: &str, g: Option<usize>) -> Quad {
    let g = g.map(|g| format!("urn:g{g}"));
    Quad { s: Term::iri(format!("urn:s{s}")), p: Term::iri(format!("urn:p{p}")), o: Term::literal(o), g }
}

fn many(count: usize) -> Vec<Quad> {
    (0..count).map(|n| quad(n / 10, n % 10, &format!("value {n}"), (n % 3 == 0).then_some(n % 2))).collect()
}

async fn all(store: &Store, collection: &str) -> BTreeSet<Quad> {
    let found = store.knowledge.matching(&place(collection), &QuadPattern::default(), usize::MAX).await.unwrap();
    found.into_iter().collect()
}

fn any_batches() -> impl Strategy<Value = Vec<(bool, Vec<Quad>)>> {
    let quad = (0..4_usize, 0..3_usize, "[ab]{0,1}", prop::option::of(0..2_usize));
    let quads = prop::collection::vec(quad.prop_map(|(s, p, o, g)| quad_of(s, p, &o, g)), 0..12);
    prop::collection::vec((any::<bool>(), quads), 1..8)
}

fn quad_of(s: usize, p: usize, o: &str, g: Option<usize>) -> Quad {
    quad(s, p, o, g)
}

/// Any batches into two collections, finished and opened again or not, answer like two sets.
#[test]
fn however_it_is_loaded_it_answers_like_a_set() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut runner = TestRunner::new(Config { cases: 10, ..Config::default() });
    let checked = runner.run(&(any_batches(), any::<u8>(), any::<u8>()), |(batches, closes, removes)| {
        runtime.block_on(async {
            let folder = TempDir::new().unwrap();
            let mut store = open(folder.path()).unwrap();
            let (mut one, mut two) = (BTreeSet::new(), BTreeSet::new());
            for (n, (first, quads)) in batches.into_iter().enumerate() {
                let (set, name) = if first { (&mut one, "one") } else { (&mut two, "two") };
                let before = set.len();
                set.extend(quads.iter().cloned());
                let added = store.knowledge.add(&place(name), "source", quads).await.unwrap();
                prop_assert_eq!(added.new, (set.len() - before) as u64);
                if removes & (1 << n) > 0 {
                    let graph = "urn:g1".to_owned();
                    let before = set.len();
                    set.retain(|quad| quad.g.as_ref() != Some(&graph));
                    let removed = store.knowledge.remove_graphs(&place(name), "other", &[graph]).await.unwrap();
                    prop_assert_eq!(removed, (before - set.len()) as u64);
                }
                if closes & (1 << n) > 0 {
                    store.knowledge.finish(&place(name), "source").await.unwrap();
                    drop(store);
                    store = open(folder.path()).unwrap();
                }
            }
            let union: BTreeSet<_> = one.union(&two).cloned().collect();
            for of in union.iter().step_by(3) {
                for pattern in [None, Some(""), Some("urn:g1")].into_iter().flat_map(|graph| patterns(of, graph)) {
                    for (set, collection) in [(&union, None), (&one, Some("one")), (&two, Some("two"))] {
                        let collection = collection.map(|name| Collection::new(name).unwrap());
                        let pattern = QuadPattern { collection, ..pattern.clone() };
                        let expected: BTreeSet<_> = set.iter().filter(|quad| pattern.matches(quad)).cloned().collect();
                        let found =
                            store.graph.matching(&Workspace::default(), &pattern, usize::MAX).await.unwrap().found;
                        prop_assert_eq!(found.len(), expected.len());
                        prop_assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), expected);
                    }
                }
            }
            let checked = store.check_knowledge();
            prop_assert_eq!(checked.faults, Vec::<String>::new());
            prop_assert_eq!(checked.quads, (one.len() + two.len()) as u64);
            Ok(())
        })
    });
    checked.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_finished_survives_and_a_rebuild_of_the_graph_leaves_it_alone() {
    let folder = TempDir::new().unwrap();
    let quads = many(30_000);
    {
        let store = open(folder.path()).unwrap();
        for batch in quads.chunks(10_000) {
            store.knowledge.add(&place("default"), "file", batch.to_vec()).await.unwrap();
        }
        store.knowledge.finish(&place("default"), "file").await.unwrap();
    }
    let store = open(folder.path()).unwrap();
    store.graph.rebuild().unwrap();
    assert_eq!(all(&store, "default").await, quads.iter().cloned().collect());
    let again = store.knowledge.add(&place("default"), "file", quads).await.unwrap();
    assert_eq!(again.new, 0);
    assert_eq!(store.check_knowledge().faults, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collection_that_goes_leaves_nothing_behind() {
    let folder = TempDir::new().unwrap();
    let store = open(folder.path()).unwrap();
    for name in ["gone", "kept"] {
        store.knowledge.add(&place(name), "file", many(20_000)).await.unwrap();
        store.knowledge.finish(&place(name), "file").await.unwrap();
    }
    assert_eq!(store.knowledge.remove(&place("gone")).await.unwrap(), Some(20_000));
    assert_eq!(all(&store, "gone").await, BTreeSet::new());
    let checked = store.check_knowledge();
    assert_eq!((checked.faults, checked.quads), (Vec::<String>::new(), 20_000), "no row of it is left");
    store.knowledge.add(&place("gone"), "file", many(7)).await.unwrap();
    drop(store);
    let store = open(folder.path()).unwrap();
    assert_eq!(all(&store, "gone").await.len(), 7);
    assert_eq!(all(&store, "kept").await.len(), 20_000);
    assert_eq!(store.check_knowledge().faults, Vec::<String>::new());
}

/// All files below a folder, by what leads to them.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(files_below(&path)) } else { files.push(path) }
    }
    files.sort();
    files
}

fn copy_into(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (path, target) = entry.map(|entry| (entry.path(), to.join(entry.file_name()))).unwrap();
        if path.is_dir() {
            copy_into(&path, &target);
        } else {
            std::fs::copy(path, target).unwrap();
        }
    }
}

fn copy(from: &Path) -> TempDir {
    let copy = TempDir::new().unwrap();
    copy_into(from, copy.path());
    copy
}

/// One flipped byte in any file is told by the check, or harmless; it never turns into an answer that lacks something
/// without a word, and nothing is thrown away over it.
#[tokio::test(flavor = "multi_thread")]
async fn damage_is_told_and_nothing_is_thrown_away() {
    let folder = TempDir::new().unwrap();
    let quads = many(2_000);
    {
        let store = open(folder.path()).unwrap();
        store.knowledge.add(&place("default"), "file", quads.clone()).await.unwrap();
        store.knowledge.finish(&place("default"), "file").await.unwrap();
    }
    let expected: BTreeSet<_> = quads.into_iter().collect();
    let mut told = 0;
    for file in files_below(&folder.path().join("knowledge")) {
        let file = file.strip_prefix(folder.path()).unwrap();
        let copy = copy(folder.path());
        let mut bytes = std::fs::read(copy.path().join(file)).unwrap();
        let Some(middle) = bytes.len().checked_div(2).filter(|_| !bytes.is_empty()) else { continue };
        bytes[middle] ^= 0x20;
        std::fs::write(copy.path().join(file), &bytes).unwrap();
        let store = open(copy.path()).unwrap();
        let checked = store.check_knowledge();
        told += usize::from(!checked.faults.is_empty());
        let found = store.knowledge.matching(&place("default"), &QuadPattern::default(), usize::MAX).await;
        let same = found.as_ref().is_ok_and(|found| found.iter().cloned().collect::<BTreeSet<_>>() == expected);
        assert!(same || !checked.faults.is_empty(), "{}: wrong and not told: {found:?}", file.display());
        if let Err(error) = found {
            assert!(matches!(error, KnowledgeError::Store(_)), "{}: {error:?}", file.display());
        }
        drop(store);
        assert!(copy.path().join("knowledge/1/quads").exists(), "what cannot be read is left where it is");
    }
    assert!(told >= 2, "tables of both trees are looked at");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_version_left_is_refused() {
    let folder = TempDir::new().unwrap();
    std::fs::create_dir_all(folder.path().join("knowledge/2")).unwrap();
    let store = open(folder.path()).unwrap();
    let refused = store.knowledge.add(&place("default"), "file", many(1)).await;
    assert!(
        matches!(&refused, Err(KnowledgeError::Store(error)) if error.to_string().contains("cannot be opened")),
        "{refused:?}"
    );
    let asked = store.graph.matching(&Workspace::default(), &QuadPattern::default(), 1).await;
    assert!(asked.is_err(), "nobody says that there is nothing");
    assert!(folder.path().join("knowledge/2").exists());
}

/// A term stays as long as anything uses it, and comes back with what uses it again.
#[tokio::test]
async fn terms_go_with_the_last_graph_that_uses_them() {
    let folder = TempDir::new().unwrap();
    let store = open(folder.path()).unwrap();
    let said = |text: &str, graph: usize| quad(1, 1, text, Some(graph));
    let both = vec![said("shared", 1), said("alone", 1), said("shared", 2)];
    store.knowledge.add(&place("one"), "d", both).await.unwrap();
    store.knowledge.finish(&place("one"), "d").await.unwrap();
    let graphs = ["urn:g1".to_owned()];
    assert_eq!(store.knowledge.remove_graphs(&place("one"), "d", &graphs).await.unwrap(), 2);
    assert_eq!(all(&store, "one").await, BTreeSet::from([said("shared", 2)]));
    drop(store);
    let store = open(folder.path()).unwrap();
    let checked = store.check_knowledge();
    assert_eq!((checked.quads, checked.faults), (1, Vec::new()));
    // They are written again if they are said again.
    store.knowledge.add(&place("one"), "d", vec![said("alone", 3)]).await.unwrap();
    store.knowledge.finish(&place("one"), "d").await.unwrap();
    drop(store);
    let store = open(folder.path()).unwrap();
    assert_eq!(all(&store, "one").await, BTreeSet::from([said("shared", 2), said("alone", 3)]));
    assert_eq!(store.check_knowledge().faults, Vec::<String>::new());
}
