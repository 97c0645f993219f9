//! The contract of notes.

use crate::ports::{Note, Notes};
use std::sync::Arc;
use trellis_domain::{Flow, Scope};

const KIND: &str = "promise";
const WORKS: &str = "the store works";

fn note(name: &str, text: &str) -> Note {
    Note { name: name.to_owned(), kind: KIND, scope: Scope::default(), text: text.to_owned() }
}

/// Each call gives notes that nobody has written anything into.
pub async fn suite<F: Future<Output = Arc<dyn Notes>>>(fresh: impl Fn() -> F) {
    a_note_is_there_until_it_is_removed(&*fresh().await).await;
    what_is_there_is_not_begun_again(&*fresh().await).await;
    lines_stay_in_order(&*fresh().await).await;
    only_notes_of_this_kind_and_flow_are_taken_over(&*fresh().await).await;
}

async fn taken(notes: &dyn Notes) -> Vec<String> {
    let mut taken = notes.take_over(KIND, &Scope::default()).await.expect(WORKS);
    taken.sort();
    taken
}

async fn a_note_is_there_until_it_is_removed(notes: &dyn Notes) {
    let first = note("a", "one \0 \u{1F600}\nline");
    assert!(notes.begin(&first).await.expect(WORKS));
    assert_eq!(taken(notes).await, [""; 0], "this process holds it already");
    assert!(notes.update(&note("a", "two")).await.expect(WORKS));
    notes.hold().await.expect(WORKS);
    notes.let_go(&first).await.expect(WORKS);
    assert_eq!(taken(notes).await, ["two"]);
    notes.remove(&first).await.expect(WORKS);
    notes.remove(&first).await.expect(WORKS);
    notes.leave().await.expect(WORKS);
    assert_eq!(taken(notes).await, [""; 0]);
    assert!(!notes.update(&first).await.expect(WORKS), "it is not there any more");
}

async fn what_is_there_is_not_begun_again(notes: &dyn Notes) {
    assert!(notes.begin(&note("a", "one")).await.expect(WORKS));
    assert!(!notes.begin(&note("a", "again")).await.expect(WORKS));
    notes.leave().await.expect(WORKS);
    assert!(!notes.update(&note("a", "late")).await.expect(WORKS), "it was let go");
    assert_eq!(taken(notes).await, ["one"]);
}

async fn lines_stay_in_order(notes: &dyn Notes) {
    let (first, second) = (note("a", "one"), note("b", "two"));
    for note in [&first, &second] {
        assert!(notes.begin(note).await.expect(WORKS));
    }
    for line in ["x", "", "y \u{0} z"] {
        assert!(notes.add(&first, line).await.expect(WORKS));
    }
    assert_eq!(notes.lines(&first).await.expect(WORKS), ["x", "", "y \u{0} z"]);
    assert_eq!(notes.lines(&second).await.expect(WORKS), [""; 0]);
    notes.remove(&first).await.expect(WORKS);
    assert!(!notes.add(&first, "late").await.expect(WORKS));
    assert!(notes.begin(&first).await.expect(WORKS));
    assert_eq!(notes.lines(&first).await.expect(WORKS), [""; 0], "lines go with their note");
}

async fn only_notes_of_this_kind_and_flow_are_taken_over(notes: &dyn Notes) {
    let elsewhere = Scope { flow: Flow::new("other").expect(WORKS), ..Scope::default() };
    let all =
        [note("a", "one"), Note { kind: "other", ..note("b", "two") }, Note { scope: elsewhere, ..note("c", "three") }];
    for note in &all {
        assert!(notes.begin(note).await.expect(WORKS));
    }
    notes.leave().await.expect(WORKS);
    assert_eq!(taken(notes).await, ["one"]);
    assert_eq!(taken(notes).await, [""; 0]);
}

/// Two processes over the same notes.
pub async fn two_processes(one: &dyn Notes, other: &dyn Notes) {
    let promise = note("a", "one");
    assert!(one.begin(&promise).await.expect(WORKS));
    assert_eq!(taken(other).await, [""; 0], "its process is there");
    assert!(!other.begin(&promise).await.expect(WORKS));
    one.leave().await.expect(WORKS);
    assert_eq!(taken(other).await, ["one"]);
    for wrote in [one.update(&note("a", "two")).await, one.add(&promise, "line").await] {
        assert!(!wrote.expect(WORKS), "somebody else holds it");
    }
    one.let_go(&promise).await.expect(WORKS);
    assert_eq!(taken(one).await, [""; 0], "only its holder lets go");
    assert_eq!(other.lines(&promise).await.expect(WORKS), [""; 0]);
}

/// One process that does not say any more that it is there, for longer than it is waited for.
pub async fn whoever_is_gone_loses_notes(gone: &dyn Notes, other: &dyn Notes, pass: impl AsyncFn()) {
    assert!(gone.begin(&note("a", "one")).await.expect(WORKS));
    pass().await;
    assert_eq!(taken(other).await, ["one"]);
    pass().await;
    other.hold().await.expect(WORKS);
    assert_eq!(taken(gone).await, [""; 0], "it is held by whoever says so");
    assert!(!gone.update(&note("a", "two")).await.expect(WORKS));
}
