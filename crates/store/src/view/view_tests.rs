use super::fixtures::{quad, session_iri, trace};
use super::order::{Graphs, IdPattern};
use super::source::Source as _;
use super::term_id_tests::any_term;
use super::{Bounds, Cancellation, NoOverlay, RunQuads, View};
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
    assert_eq!(view.cursor().unwrap(), 7);
}

#[test]
fn the_cursor_starts_at_zero_and_never_goes_back() {
    let (_folder, view) = new_view();
    assert_eq!(view.cursor().unwrap(), 0);
    view.absorb(&[], 5).unwrap();
    view.absorb(&[run("w", trace(1))], 3).unwrap();
    assert_eq!(view.cursor().unwrap(), 5);
}

#[test]
fn reopening_keeps_quads_and_cursor() {
    let folder = tempfile::tempdir().unwrap();
    let view = View::open(folder.path()).unwrap();
    view.absorb(&[run("w", trace(1))], 42).unwrap();
    let before = everything(&view, "w");
    drop(view);
    let view = View::open(folder.path()).unwrap();
    assert_eq!(view.cursor().unwrap(), 42);
    assert_eq!(everything(&view, "w"), before);
}

#[test]
fn a_rebuild_gives_the_same_content() {
    let folder = tempfile::tempdir().unwrap();
    let view = View::open(folder.path()).unwrap();
    view.absorb(&[run("w", trace(1)), run("w", trace(2))], 2).unwrap();
    let before = everything(&view, "w");
    view.clear().unwrap();
    assert_eq!(view.cursor().unwrap(), 0);
    assert_eq!(everything(&view, "w"), BTreeSet::new());
    view.absorb(&[run("w", trace(1))], 1).unwrap();
    view.absorb(&[run("w", trace(2))], 2).unwrap();
    drop(view);
    let view = View::open(folder.path()).unwrap();
    assert_eq!(everything(&view, "w"), before);
    assert_eq!(view.cursor().unwrap(), 2);
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
    let subject = reader.term(first.s).unwrap();
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

/// A kill or a power cut leaves a prefix of the journal. Whatever its length, the cursor must tell
/// exactly which runs are there.
#[test]
fn a_cut_journal_leaves_whole_batches() {
    let folder = tempfile::tempdir().unwrap();
    let view = View::open(folder.path()).unwrap();
    for cursor in 1..=8 {
        view.absorb(&[run("w", trace(cursor))], cursor as u64).unwrap();
    }
    drop(view);
    let journal = journal_file(folder.path());
    let written = std::fs::read(&journal).unwrap();
    let end = written.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    let mut cursors = BTreeSet::new();
    for kept in [end, end - 1, end * 3 / 4, end / 2, end / 9] {
        std::fs::write(&journal, &written[..kept]).unwrap();
        let view = View::open(folder.path()).unwrap();
        let cursor = usize::try_from(view.cursor().unwrap()).unwrap();
        assert_eq!(everything(&view, "w"), (1..=cursor).flat_map(trace).collect(), "{kept} bytes of {end}");
        cursors.insert(cursor);
    }
    assert!(cursors.contains(&8) && cursors.contains(&7) && cursors.len() >= 4, "{cursors:?}");
}

fn journal_file(folder: &Path) -> PathBuf {
    let journals = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    journals.filter(|path| path.extension().is_some_and(|extension| extension == "jnl")).max().unwrap()
}
