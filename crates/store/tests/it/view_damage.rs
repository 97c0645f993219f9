//! The view is damaged in every way that files are. Either the check names it, or every answer is as before.

use crate::damage::{fill, flip_bits};
use crate::graph::rows;
use crate::view::{copy, files};
use crate::{open, ports};
use serde_json::json;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use trellis_domain::limits::SomeLimits;
use trellis_domain::rdf::{Quad, Term};
use trellis_domain::{RunId, Timestamp, Workspace};
use trellis_orchestrator::contract::graph::patterns;
use trellis_orchestrator::contract::runs::Bench;
use trellis_orchestrator::contract::teams::{agent, question};
use trellis_orchestrator::ports::{Asking, Graph, QuadPattern, QueryLimits};
use trellis_store::view::{Bounds, Cursor, NoOverlay, RunQuads, View};
use trellis_store::{ErasureRequest, Store};

const ALL: &str = "SELECT * { ?s ?p ?o } ORDER BY ?s ?p ?o";
const LABELS: &str =
    "SELECT ?l (COUNT(?s) AS ?n) { ?s <http://www.w3.org/2000/01/rdf-schema#label> ?l } GROUP BY ?l ORDER BY ?l";

/// A folder whose view has several tables, and files of earlier times under the same names.
struct Place {
    folder: TempDir,
    /// The view as it is, and as it was.
    whole: TempDir,
    older: TempDir,
    /// Answers of the whole view.
    quads: Vec<Quad>,
    sparql: [Vec<Vec<String>>; 2],
}

async fn more(path: &Path, n: usize) {
    let store = open(path).unwrap();
    let bench = Bench::play(ports(&store)).await;
    let scenes = [(json!({"team": [[agent("a"), agent("b")]]}), "supervisor"), (agent("c"), "react")];
    for (place, (scene, pattern)) in scenes.iter().enumerate() {
        let run = bench.request(n + place, question(scene, pattern), SomeLimits::default()).await;
        bench.finish(std::slice::from_ref(&run), 1).await;
    }
    store.graph.catch_up().unwrap();
}

async fn answers(store: &Store) -> [Vec<Vec<String>>; 2] {
    [rows(store, ALL).await, rows(store, LABELS).await]
}

impl Place {
    async fn new() -> Self {
        let (folder, whole, older) = (TempDir::new().unwrap(), TempDir::new().unwrap(), TempDir::new().unwrap());
        let view = folder.path().join("view");
        more(folder.path(), 10).await;
        copy(&view, older.path());
        fs::remove_dir_all(&view).unwrap();
        for n in [20, 30] {
            more(folder.path(), n).await;
        }
        copy(&view, whole.path());
        let place = Self { folder, whole, older, quads: Vec::new(), sparql: Default::default() };
        let quads = place.found(&QuadPattern::default()).into_iter().collect();
        place.restore();
        let sparql = answers(&open(place.folder.path()).unwrap()).await;
        Self { quads, sparql, ..place }
    }

    fn view(&self) -> PathBuf {
        self.folder.path().join("view")
    }

    fn restore(&self) {
        fs::remove_dir_all(self.view()).unwrap_or_default();
        copy(self.whole.path(), &self.view());
    }

    /// The files of the view, named as seen from it.
    fn names(&self) -> Vec<PathBuf> {
        let names = files(self.whole.path()).into_iter();
        let mut names: Vec<_> = names.map(|file| file.strip_prefix(self.whole.path()).unwrap().to_owned()).collect();
        names.sort();
        names
    }

    fn found(&self, pattern: &QuadPattern) -> BTreeSet<Quad> {
        let view = View::open(self.view()).unwrap();
        found(&view, pattern)
    }

    /// The view as it lies there, without the journal: every pattern made of parts of some quads.
    fn every_pattern_finds_the_same(&self, fault: &str) {
        let view = View::open(self.view()).unwrap();
        for quad in self.quads.iter().step_by(self.quads.len() / 12) {
            for graph in [None, quad.g.as_deref(), Some("")] {
                for pattern in patterns(quad, graph) {
                    let expected: BTreeSet<_> =
                        self.quads.iter().filter(|quad| pattern.matches(quad)).cloned().collect();
                    assert_eq!(found(&view, &pattern), expected, "{fault}: {pattern:?}");
                }
            }
        }
    }
}

fn found(view: &View, pattern: &QuadPattern) -> BTreeSet<Quad> {
    let bounds = Bounds { max_rows: usize::MAX, ..Bounds::default() };
    view.matching("default", pattern, &NoOverlay, &bounds).unwrap().into_iter().collect()
}

/// Numbers that seem random and are the same every time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end.max(1)
    }
}

/// Damages a file in one way or another. How; none if it is the same as before.
fn damage(place: &Place, file: &Path, way: usize, numbers: &mut Numbers) -> Option<String> {
    let path = place.view().join(file);
    let mut bytes = fs::read(&path).unwrap();
    let before = bytes.clone();
    let at = numbers.below(bytes.len());
    let how = match way {
        0 => {
            bytes[at] ^= 1 << numbers.below(8);
            "a bit"
        }
        1 => {
            bytes.truncate(at);
            "cut"
        }
        2 => {
            fs::remove_file(&path).unwrap();
            return Some(format!("{} gone", file.display()));
        }
        _ => {
            bytes = fs::read(place.older.path().join(file)).ok()?;
            "of an earlier time"
        }
    };
    fs::write(&path, &bytes).unwrap();
    (bytes != before).then(|| format!("{}: {how} at {at}", file.display()))
}

#[tokio::test(flavor = "multi_thread")]
async fn damage_anywhere_in_the_view_is_named_or_changes_no_answer() {
    let place = Place::new().await;
    let mut numbers = Numbers(7);
    let (mut named, mut harmless, mut older) = (0, 0, 0);
    for file in place.names() {
        for way in [0, 0, 0, 0, 1, 1, 2, 3] {
            place.restore();
            let Some(fault) = damage(&place, &file, way, &mut numbers) else { continue };
            older += usize::from(way == 3);
            let store = open(place.folder.path()).unwrap();
            let faults = store.graph.check().faults;
            if faults.is_empty() {
                harmless += 1;
                assert_eq!(answers(&store).await, place.sparql, "{fault}");
                drop(store);
                place.every_pattern_finds_the_same(&fault);
                continue;
            }
            named += 1;
            let told = faults.join("\n");
            assert!(told.contains(&*place.view().to_string_lossy()), "the file is named: {fault}: {told}");
            drop(store);
            let store = open(place.folder.path()).unwrap();
            assert_eq!(store.graph.check().faults.len(), faults.len(), "looking at it changes nothing: {fault}");
            if way >= 2 {
                store.graph.rebuild().unwrap();
                assert_eq!(store.graph.check().faults, [] as [&str; 0], "{fault}");
                assert_eq!(answers(&store).await, place.sparql, "{fault}");
            }
        }
    }
    assert!(named > 30 && older > 2, "{named} named, {harmless} harmless, {older} of an earlier time");
}

/// Nobody looked at it before it is asked: it says that it is damaged, or answers as always, and then it is whole.
#[tokio::test(flavor = "multi_thread")]
async fn a_query_to_a_damaged_view_is_never_answered_wrongly() {
    let place = Place::new().await;
    let mut numbers = Numbers(11);
    for file in place.names() {
        for way in [0, 0, 1, 2] {
            place.restore();
            let Some(fault) = damage(&place, &file, way, &mut numbers) else { continue };
            let store = open(place.folder.path()).unwrap();
            for (query, expected) in [ALL, LABELS].iter().zip(&place.sparql) {
                let asking = Asking { workspace: &Workspace::default(), caller: None, knowledge: None };
                // Each reads another part of it.
                if let Err(error) = store.graph.query(asking, query, QueryLimits::default()).await {
                    assert!(error.to_string().contains("view"), "{fault}: {error}");
                    store.graph.catch_up().unwrap();
                }
                assert_eq!(rows(&store, query).await, *expected, "{fault}");
            }
        }
    }
}

/// The engine takes the number of parts from a file before it has checked it, and makes room for them: more than there is.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_claims_to_be_huge_does_not_end_the_process() {
    let place = Place::new().await;
    let mut claimed = 0;
    for file in place.names() {
        place.restore();
        let path = place.view().join(&file);
        let bytes = fs::read(&path).unwrap();
        let Some(contents) = bytes.windows(4).rposition(|window| window == b"TOC!") else { continue };
        flip_bits(&path, contents + 7, 0x80);
        let store = open(place.folder.path()).unwrap();
        claimed += store.graph.check().faults.len();
        assert_eq!(answers(&store).await, place.sparql, "{}", file.display());
    }
    assert!(claimed >= 4, "two trees have a version and a table at least: {claimed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_that_is_whole_says_what_it_has() {
    let folder = TempDir::new().unwrap();
    let runs = fill(folder.path(), 3).await;
    let store = open(folder.path()).unwrap();
    let checked = store.graph.check();
    assert_eq!((checked.runs, checked.waiting, checked.faults), (0, 3, vec![]), "there is none yet");
    assert!(!folder.path().join("view").exists(), "looking does not make one");
    store.graph.catch_up().unwrap();
    let checked = store.graph.check();
    let mut quads = BTreeSet::new();
    for run in &runs {
        quads.extend(store.graph.run(&Workspace::default(), run).await.unwrap());
    }
    assert_eq!((checked.runs, checked.waiting, checked.faults), (3, 0, vec![]));
    assert_eq!(checked.quads, quads.len() as u64);
}

fn wish(run: &RunId) -> ErasureRequest {
    ErasureRequest {
        workspace: Workspace::default(),
        run: run.clone(),
        containing: Vec::new(),
        by: "test".to_owned(),
        reason: "asked to".to_owned(),
        time: Timestamp::from_micros(1),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_was_changed_since_then_is_no_damage() {
    let folder = TempDir::new().unwrap();
    let runs = fill(folder.path(), 3).await;
    let store = open(folder.path()).unwrap();
    store.graph.catch_up().unwrap();
    // Erased, and the view does not know it yet.
    store.journal.erase(wish(&runs[0])).await.unwrap();
    let checked = store.graph.check();
    assert_eq!((checked.runs, checked.waiting, checked.faults), (2, 1, vec![]));
    store.graph.renew(&Workspace::default(), &runs[0]).unwrap();
    assert_eq!(store.graph.check().faults, [] as [&str; 0]);
    drop(store);
    let store = open(folder.path()).unwrap();
    store.graph.catch_up().unwrap();
    let checked = store.graph.check();
    assert_eq!((checked.runs, checked.waiting, checked.faults), (3, 0, vec![]));
}

/// Rows that were written well and are wrong all the same, as an error of ours would leave them.
#[tokio::test(flavor = "multi_thread")]
async fn rows_that_are_missing_or_too_many_are_found_without_a_wrong_checksum() {
    let folder = TempDir::new().unwrap();
    let runs = fill(folder.path(), 3).await;
    let said = {
        let store = open(folder.path()).unwrap();
        store.graph.catch_up().unwrap();
        store.graph.run(&Workspace::default(), &runs[1]).await.unwrap()
    };
    let check = |quads: Vec<Quad>| {
        let view = View::open(folder.path().join("view")).unwrap();
        let run = RunQuads { workspace: "default".to_owned(), quads };
        view.absorb(&[run], Cursor::START).unwrap();
        drop(view);
        open(folder.path()).unwrap().graph.check().faults.join("\n")
    };
    assert_eq!(check(said.clone()), "");
    let fewer = check(said[1..].to_vec());
    assert!(fewer.contains("index by subject") && fewer.contains(&format!("run {}: ", runs[1])), "{fewer}");
    assert_eq!(check(said.clone()), "", "what was missing is there again");
    let graph = Some("urn:graph:retrieval".to_owned());
    let foreign = Quad { s: Term::iri("urn:s"), p: Term::iri("urn:p"), o: Term::literal("o"), g: graph };
    let more = check(vec![foreign]);
    assert!(more.contains("index by predicate") && !more.contains("run "), "{more}");
}

/// A process that died while it wrote left the dictionary ahead of the quads.
#[tokio::test(flavor = "multi_thread")]
async fn a_dictionary_that_is_ahead_is_no_damage() {
    let folder = TempDir::new().unwrap();
    fill(folder.path(), 2).await;
    let store = open(folder.path()).unwrap();
    store.graph.catch_up().unwrap();
    drop(store);
    let kept = TempDir::new().unwrap();
    copy(&folder.path().join("view"), kept.path());
    more(folder.path(), 50).await;
    let quads = files(kept.path()).into_iter().find(|file| file.ends_with("quads/current")).unwrap();
    let quads = quads.parent().unwrap();
    let place = folder.path().join("view").join(quads.strip_prefix(kept.path()).unwrap());
    fs::remove_dir_all(&place).unwrap();
    copy(quads, &place);
    let store = open(folder.path()).unwrap();
    let checked = store.graph.check();
    assert_eq!((checked.runs, checked.waiting, checked.faults), (2, 2, vec![]));
}

/// Another view under the same names, whole in itself.
#[tokio::test(flavor = "multi_thread")]
async fn a_dictionary_of_an_earlier_view_is_found() {
    let place = Place::new().await;
    let terms = place.names().into_iter().find(|file| file.ends_with("terms/current")).unwrap();
    let terms = terms.parent().unwrap();
    fs::remove_dir_all(place.view().join(terms)).unwrap();
    copy(&place.older.path().join(terms), &place.view().join(terms));
    let store = open(place.folder.path()).unwrap();
    let told = store.graph.check().faults.join("\n");
    assert!(told.contains("terms are missing"), "{told}");
}
