use super::fixtures::{quad, session_iri, trace};
use super::order::{Graphs, IdPattern};
use super::term_id::read_term;
use super::term_id_tests::any_term;
use super::{Bounds, Cancellation, Cursor, NoOverlay, RunQuads, View};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use trellis_domain::rdf::{Quad, Term};
use trellis_orchestrator::ports::QuadPattern;

fn new_view() -> (TempDir, View) {
    let folder = tempfile::tempdir().unwrap();
    let view = View::open(folder.path()).unwrap();
    (folder, view)
}

fn run(workspace: &str, quads: Vec<Quad>) -> RunQuads {
    RunQuads { workspace: workspace.into(), quads }
}

fn found(view: &View, workspace: &str, pattern: &QuadPattern) -> Vec<Quad> {
    let bounds = Bounds { max_rows: usize::MAX, ..Bounds::default() };
    view.matching(workspace, pattern, &NoOverlay, &bounds).unwrap()
}

fn everything(view: &View, workspace: &str) -> BTreeSet<Quad> {
    found(view, workspace, &QuadPattern::default()).into_iter().collect()
}

fn any_quad() -> impl Strategy<Value = Quad> {
    let graph = prop_oneof![Just(None), "urn:g:[a-b]".prop_map(Some)];
    (any_term(), any_term(), any_term(), graph).prop_map(|(s, p, o, g)| Quad { s, p, o, g })
}

/// Patterns made from parts of quads that may be there.
fn any_pattern(quads: Vec<Quad>) -> impl Strategy<Value = QuadPattern> {
    let graph = prop_oneof![Just(String::new()), "urn:g:[a-c]"];
    let part = prop::option::of(prop::sample::select(quads));
    (part.clone(), part.clone(), part, prop::option::of(graph)).prop_map(|(s, p, o, g)| QuadPattern {
        s: s.map(|quad| quad.s),
        p: p.map(|quad| quad.p),
        o: o.map(|quad| quad.o),
        g,
        collection: None,
    })
}

fn quads_and_patterns() -> impl Strategy<Value = (Vec<(bool, Quad)>, Vec<QuadPattern>)> {
    prop::collection::vec((any::<bool>(), any_quad()), 1..40).prop_flat_map(|quads| {
        let known = quads.iter().map(|(_, quad)| quad.clone()).collect();
        (Just(quads), prop::collection::vec(any_pattern(known), 1..12))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn matching_finds_what_a_filter_finds((quads, patterns) in quads_and_patterns()) {
        let (_folder, view) = new_view();
        let of = |first: bool| quads.iter().filter(move |(is_first, _)| *is_first == first).map(|(_, quad)| quad.clone());
        view.absorb(&[run("first", of(true).collect()), run("second", of(false).collect())], 1).unwrap();
        for pattern in &patterns {
            for (name, is_first) in [("first", true), ("second", false)] {
                let mut found = found(&view, name, pattern);
                found.sort();
                let wanted: BTreeSet<_> = of(is_first).filter(|quad| pattern.matches(quad)).collect();
                prop_assert_eq!(found, wanted.into_iter().collect::<Vec<_>>());
            }
            prop_assert_eq!(self::found(&view, "third", pattern), []);
        }
    }
}

#[test]
fn absorbing_twice_changes_nothing() {
    let (_folder, view) = new_view();
    let runs = [run("w", trace(1)), run("w", trace(2))];
    view.absorb(&runs, 7).unwrap();
    let before = everything(&view, "w");
    view.absorb(&runs, 7).unwrap();
    assert_eq!(everything(&view, "w"), before);
    assert_eq!(found(&view, "w", &QuadPattern::default()).len(), before.len());
    assert_eq!(view.cursor().unwrap().number, 7);
}

#[test]
fn the_cursor_starts_at_zero_and_never_goes_back() {
    let (_folder, view) = new_view();
    assert_eq!(view.cursor().unwrap().number, 0);
    view.absorb(&[], 5).unwrap();
    view.absorb(&[run("w", trace(1))], 3).unwrap();
    assert_eq!(view.cursor().unwrap().number, 5);
}

#[test]
fn reopening_keeps_quads_and_cursor() {
    let folder = tempfile::tempdir().unwrap();
    let view = View::open(folder.path()).unwrap();
    view.absorb(&[run("w", trace(1))], 42).unwrap();
    let before = everything(&view, "w");
    drop(view);
    let view = View::open(folder.path()).unwrap();
    assert_eq!(view.cursor().unwrap().number, 42);
    assert_eq!(everything(&view, "w"), before);
}

#[test]
fn a_rebuild_gives_the_same_content() {
    let folder = tempfile::tempdir().unwrap();
    let view = View::open(folder.path()).unwrap();
    view.absorb(&[run("w", trace(1)), run("w", trace(2))], 2).unwrap();
    let before = everything(&view, "w");
    view.clear().unwrap();
    assert_eq!(view.cursor().unwrap().number, 0);
    assert_eq!(everything(&view, "w"), BTreeSet::new());
    view.absorb(&[run("w", trace(1))], 1).unwrap();
    view.absorb(&[run("w", trace(2))], 2).unwrap();
    drop(view);
    let view = View::open(folder.path()).unwrap();
    assert_eq!(everything(&view, "w"), before);
    assert_eq!(view.cursor().unwrap().number, 2);
}

#[test]
fn a_reader_finishes_on_what_it_began_with() {
    let (_folder, view) = new_view();
    view.absorb(&[run("w", trace(1))], 1).unwrap();
    let everything = IdPattern { s: None, p: None, o: None, g: Graphs::All };
    let reader = view.reader("w", Cancellation::default());
    let mut reading = reader.quads(everything);
    let first = reading.next().unwrap().unwrap();
    view.clear().unwrap();
    let rest: Vec<_> = reading.collect::<Result<_, _>>().unwrap();
    assert_eq!(rest.len() + 1, trace(1).len());
    let subject = read_term(&reader.canonical(first.s).unwrap()).unwrap();
    assert!(trace(1).iter().any(|quad| quad.s == subject), "its terms are readable as well");
}

/// More terms than are remembered, so that some are forgotten and written again.
#[test]
fn forgotten_terms_are_still_readable() {
    let (_folder, view) = new_view();
    for cursor in 0..40 {
        let quads = (0..500).map(|n| quad(&format!("urn:s:{cursor}:{n}"), "urn:p", Term::literal("o"), None)).collect();
        view.absorb(&[run("w", quads)], cursor).unwrap();
    }
    assert_eq!(everything(&view, "w").len(), 20_000);
}

#[test]
fn workspaces_do_not_see_each_other() {
    let (_folder, view) = new_view();
    view.absorb(&[run("ours", trace(1)), run("theirs", trace(2))], 1).unwrap();
    let theirs = QuadPattern { s: Some(Term::iri(session_iri(2))), ..QuadPattern::default() };
    assert_eq!(found(&view, "ours", &theirs), []);
    assert_ne!(found(&view, "theirs", &theirs), []);
}

#[test]
fn an_empty_graph_name_is_the_default_graph() {
    let (_folder, view) = new_view();
    view.absorb(&[run("w", vec![quad("urn:s", "urn:p", Term::literal("o"), Some(""))])], 1).unwrap();
    let default_graph = QuadPattern { g: Some(String::new()), ..QuadPattern::default() };
    assert_eq!(found(&view, "w", &default_graph), [quad("urn:s", "urn:p", Term::literal("o"), None)]);
}

/// A process that dies leaves what was written so far. The cursor must tell exactly which runs that are.
#[test]
fn a_crash_leaves_whole_batches() {
    let folder = tempfile::tempdir().unwrap();
    let mut known = 0;
    for written in [3, 5, 9] {
        let view = View::open(folder.path()).unwrap();
        assert_eq!(view.cursor().unwrap().number, known);
        for cursor in known + 1..=written {
            view.absorb(&[run("w", trace(usize::try_from(cursor).unwrap()))], cursor).unwrap();
        }
        drop(view);
        known = written;
        // And some that are in memory only.
        let view = View::open(folder.path()).unwrap();
        view.absorb(&[run("w", trace(100))], 100).unwrap();
        std::mem::forget(view);
    }
    let view = View::open(folder.path()).unwrap();
    assert_eq!(view.cursor().unwrap().number, known);
    assert_eq!(everything(&view, "w"), (1..=usize::try_from(known).unwrap()).flat_map(trace).collect());
}

#[test]
fn opening_reads_no_log() {
    let folder = tempfile::tempdir().unwrap();
    let view = View::open(folder.path()).unwrap();
    view.absorb(&[run("w", trace(1))], 1).unwrap();
    drop(view);
    let mut files = Vec::new();
    list(folder.path(), &mut files);
    assert!(!files.is_empty() && files.iter().all(|path| path.extension().is_none()), "{files:?}");
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { list(&path, files) } else { files.push(path) }
    }
}

fn bytes_on_disk(folder: &Path) -> Vec<u8> {
    let mut files = Vec::new();
    list(folder, &mut files);
    files.into_iter().flat_map(|file| std::fs::read(file).unwrap()).collect()
}

fn has(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn a_run_that_is_absorbed_anew_replaces_what_it_said() {
    let folder = tempfile::tempdir().unwrap();
    let view = View::open(folder.path()).unwrap();
    let (node, child) = (session_iri(1), format!("{}/i1", session_iri(1)));
    let said = |text: &str| {
        let said = |node: &str| quad(node, "urn:says", Term::literal(text), None);
        [said(&node), said(&child)]
    };
    let shared = |node: &str| quad(node, "urn:says", Term::literal("shared"), Some("urn:graph:other"));
    let (first, second) = (said("forget-me-please"), said("kept"));
    let other = [shared(&session_iri(2))];
    view.absorb(&[run("w", first.iter().cloned().chain([shared(&node)]).collect()), run("w", other.to_vec())], 1)
        .unwrap();
    let known = quad("urn:model", "urn:says", Term::literal("not of a session"), None);
    view.absorb(&[run("w", vec![known.clone()])], 2).unwrap();
    drop(view);
    assert!(has(&bytes_on_disk(folder.path()), "forget-me-please"));
    let view = View::open(folder.path()).unwrap();
    view.absorb(&[run("w", second.to_vec())], 3).unwrap();
    let expected: BTreeSet<_> = second.into_iter().chain(other).chain([known]).collect();
    assert_eq!(everything(&view, "w"), expected);
    view.purge().unwrap();
    drop(view);
    assert!(!has(&bytes_on_disk(folder.path()), "forget-me-please"), "nothing is left of it");
    // And it can be said again.
    let view = View::open(folder.path()).unwrap();
    view.absorb(&[run("w", first.to_vec())], 4).unwrap();
    let found = found(&view, "w", &QuadPattern { s: Some(Term::iri(&node)), ..QuadPattern::default() });
    assert_eq!(found, first[..1]);
}

#[test]
fn another_projection_begins_anew() {
    let folder = tempfile::tempdir().unwrap();
    let view = View::open_for(folder.path(), 1).unwrap();
    view.absorb(&[run("w", trace(1))], 1).unwrap();
    drop(view);
    // Of a program that kept its view in another way.
    std::fs::write(folder.path().join("0.jnl"), "log").unwrap();
    let view = View::open_for(folder.path(), 2).unwrap();
    assert_eq!((view.cursor().unwrap(), everything(&view, "w")), (Cursor::START, BTreeSet::new()));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "the old one is gone");
}

#[test]
fn a_cleared_view_goes_with_its_last_reader() {
    let (folder, view) = new_view();
    view.absorb(&[run("w", trace(1))], 1).unwrap();
    let reader = view.reader("w", Cancellation::default());
    view.clear().unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    drop(reader);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// Tables are written and merged while somebody reads.
#[test]
fn a_reader_sees_its_moment_whatever_is_written_meanwhile() {
    let (_folder, view) = new_view();
    view.absorb(&[run("w", trace(1))], 1).unwrap();
    let reader = view.reader("w", Cancellation::default());
    let read = || {
        let everything = IdPattern { s: None, p: None, o: None, g: Graphs::All };
        let quads: Vec<_> = reader.quads(everything).collect::<Result<_, _>>().unwrap();
        (quads.len(), read_term(&reader.canonical(quads[0].s).unwrap()).unwrap())
    };
    let before = read();
    for round in 0..6 {
        view.absorb(&[run("w", trace(2)), run("w", vec![])], 2).unwrap();
        view.absorb(&[run("w", vec![quad(&session_iri(1), "urn:p", Term::literal(round.to_string()), None)])], 3)
            .unwrap();
        view.purge().unwrap();
        assert_eq!(read(), before);
    }
}
