//! A model that goes in circles is told, and then stopped.

use super::tests::{Fixture, SEARCH};
use crate::contract::Ending;
use trellis_domain::run::{RunState, Termination};

/// Another tool, so that there is something to loop between.
const READ: &str = "Thought: look\nAction: read\nArgs: {\"question\": \"x\"}";

fn search(arguments: &str) -> String {
    format!("Thought: look\nAction: search\nArgs: {arguments}")
}

#[test]
fn a_call_that_brought_nothing_new_is_not_made_again_and_the_model_is_told() {
    let mut fixture = Fixture::new();
    assert!(fixture.play(1, SEARCH, "a fact"));
    assert!(fixture.play(2, SEARCH, "a fact"));
    fixture.reply(3, SEARCH);
    assert!(
        fixture.report(3).starts_with("you named `search` with the same arguments before, so it was not called again")
    );
}

#[test]
fn a_model_that_goes_on_after_it_was_told_twice_ends_the_session_with_what_is_known() {
    let mut fixture = Fixture::new();
    for n in 1..=4 {
        assert_eq!(fixture.play(n, SEARCH, "a fact"), n < 3);
    }
    fixture.reply(5, SEARCH);
    let ending = fixture.ending(5);
    assert_eq!(ending.reason, Termination::Limit);
    assert_eq!(ending.reason.run_state(), RunState::Limit);
    assert_eq!(ending.error.as_deref(), Some("the model called `search` with the same arguments again and again"));
    assert_eq!(
        ending.answer,
        "No final answer: `search` was named again and again with the same arguments. Found so far:\n\
         - search: a fact\n- search: a fact"
    );
}

#[test]
fn two_calls_by_turns_are_a_circle_as_well() {
    let mut fixture = Fixture::new();
    let other = search(r#"{"question": "y"}"#);
    let called: Vec<_> = (1..=5).map(|n| fixture.play(n, if n % 2 == 1 { SEARCH } else { &other }, "a fact")).collect();
    assert_eq!(called, [true, true, true, false, false], "the third brought nothing new");
    fixture.reply(6, &other);
    assert_eq!(fixture.ending(6).reason, Termination::Limit);
}

#[test]
fn what_brings_something_new_each_time_is_called_as_often_as_it_is_asked_for() {
    let mut fixture = Fixture::new();
    for n in 1..=8 {
        assert!(fixture.play(n, SEARCH, &format!("{n} of 8 are done")), "{n}");
    }
}

#[test]
fn something_new_in_between_ends_the_circle() {
    let mut fixture = Fixture::new();
    for n in 1..=9 {
        let new = search(&format!(r#"{{"question": "part {n}"}}"#));
        assert!(fixture.play(n, if n % 3 == 0 { &new } else { SEARCH }, "x") || n % 3 == 2, "{n}");
    }
}

#[test]
fn a_call_that_failed_is_tried_once_more() {
    let (mut fixture, other) = (Fixture::new(), search(r#"{"question": "y"}"#));
    fixture.play(1, &other, "text");
    fixture.reply(2, SEARCH);
    fixture.observe(2, Err("no network"), None);
    assert!(fixture.play(3, &other, "text"), "which brings nothing new");
    fixture.reply(4, SEARCH);
    fixture.observe(4, Err("no network"), None);
    fixture.reply(5, SEARCH);
    assert!(fixture.report(5).contains("so it was not called again"));
}

#[test]
fn a_reply_that_gets_out_of_the_loop_after_being_told_goes_on() {
    let mut fixture = Fixture::new();
    for n in 1..=3 {
        fixture.play(n, SEARCH, "a fact");
    }
    fixture.reply(4, "Final Answer: enough");
    assert_eq!(fixture.ending(4), Ending::answered(Termination::FinalAnswer, "enough"));
}

/// Sessions that began by older rules go on by them.
#[test]
fn by_older_rules_only_equal_calls_in_a_row_count() {
    let mut fixture = Fixture::of_revision(1);
    for n in 1..=3 {
        assert_eq!(fixture.play(n, SEARCH, &format!("fact {n}")), n < 3);
    }
    fixture.reply(4, SEARCH);
    let error = fixture.ending(4).error;
    assert_eq!(error.as_deref(), Some("the model called `search` with the same arguments 4 times in a row"));
    let mut fixture = Fixture::of_revision(1);
    for n in 1..=9 {
        assert!(fixture.play(n, if n % 3 == 0 { READ } else { SEARCH }, "x") || n % 3 == 0, "iteration {n}");
    }
}

#[test]
fn the_same_arguments_in_another_order_are_the_same_call() {
    let mut fixture = Fixture::new();
    fixture.play(1, &search(r#"{"a": 1, "b": {"c": 2, "d": 3}}"#), "x");
    fixture.play(2, &search(r#"{"b": {"d": 3, "c": 2}, "a": 1}"#), "x");
    assert!(!fixture.play(3, &search(r#"{"a": 1, "b": {"c": 2, "d": 3}}"#), "x"));
}
