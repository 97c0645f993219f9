use super::Strength::{Free, Guided, Strict};
use super::*;

#[allow(clippy::unnecessary_wraps, reason = "it is what `learn` takes")]
fn refused(strength: Strength) -> Option<RefusedForm> {
    Some(RefusedForm { strength, why: "no".into() })
}

#[test]
fn a_server_that_never_took_a_schema_is_not_asked_again() {
    let memory = Memory::default();
    assert_eq!(memory.strongest("a"), Strict);
    memory.learn("a", refused(Strict), Free);
    assert_eq!((memory.strongest("a"), memory.strongest("b")), (Free, Free));
    assert_eq!(memory.why_not("b").as_deref(), Some("no"));
}

#[test]
fn a_server_that_took_one_is_asked_again_with_others() {
    let memory = Memory::default();
    memory.learn("a", None, Strict);
    memory.learn("b", refused(Strict), Guided);
    assert_eq!((memory.strongest("a"), memory.strongest("b")), (Strict, Guided));
    assert_eq!((memory.why_not("a"), memory.why_not("b").as_deref()), (None, Some("no")));
    memory.learn("c", refused(Guided), Free);
    assert_eq!((memory.strongest("a"), memory.strongest("c")), (Strict, Free));
}

#[test]
fn requests_without_a_schema_teach_nothing() {
    let memory = Memory::default();
    memory.learn("a", None, Free);
    memory.learn("b", refused(Strict), Guided);
    assert_eq!(memory.strongest("c"), Guided);
}

#[test]
fn what_is_remembered_is_bounded() {
    let memory = Memory::default();
    memory.learn("first", None, Strict);
    for n in 0..2 * KEPT {
        memory.learn(&n.to_string(), refused(Strict), Free);
    }
    assert_eq!(memory.0.lock().prompts.len(), KEPT);
}

#[tokio::test(start_paused = true)]
async fn what_was_refused_is_tried_again_after_an_hour() {
    let memory = Memory::default();
    memory.learn("a", refused(Strict), Free);
    assert_eq!(memory.strongest("b"), Free);
    tokio::time::advance(KEPT_FOR).await;
    assert_eq!((memory.strongest("b"), memory.why_not("b")), (Strict, None));
}
