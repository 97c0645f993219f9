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
fn the_same_call_a_third_time_in_a_row_is_told_to_the_model_and_not_made() {
    let mut fixture = Fixture::new();
    assert!(fixture.play(1, SEARCH, "a fact"));
    assert!(fixture.play(2, SEARCH, "a fact"));
    fixture.reply(3, SEARCH);
    assert!(fixture.report(3).starts_with("you named `search` with the same arguments 3 times in a row"));
}

#[test]
fn the_same_call_a_fourth_time_in_a_row_ends_the_session_with_what_is_known() {
    let mut fixture = Fixture::new();
    for n in 1..=3 {
        fixture.play(n, SEARCH, &format!("fact {n}"));
    }
    fixture.reply(4, SEARCH);
    let ending = fixture.ending(4);
    assert_eq!(ending.reason, Termination::Limit);
    assert_eq!(ending.reason.run_state(), RunState::Limit);
    assert_eq!(ending.error.as_deref(), Some("the model called `search` with the same arguments 4 times in a row"));
    assert_eq!(
        ending.answer,
        "No final answer: `search` was named again and again with the same arguments. Found so far:\n\
         - search: fact 1\n- search: fact 2"
    );
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

#[test]
fn anything_else_in_between_is_no_loop() {
    let between = [search(r#"{"question": "y"}"#), search("{}"), "Thought: I wonder.".to_owned(), READ.to_owned()];
    for between in between {
        let mut fixture = Fixture::new();
        for n in 1..=9 {
            let called = if n % 3 == 0 { fixture.play(n, &between, "x") } else { fixture.play(n, SEARCH, "x") };
            assert!(called || n % 3 == 0, "iteration {n} with {between}");
        }
    }
}

#[test]
fn the_same_arguments_in_another_order_are_the_same_call() {
    let mut fixture = Fixture::new();
    fixture.play(1, &search(r#"{"a": 1, "b": {"c": 2, "d": 3}}"#), "x");
    fixture.play(2, &search(r#"{"b": {"d": 3, "c": 2}, "a": 1}"#), "x");
    assert!(!fixture.play(3, &search(r#"{"a": 1, "b": {"c": 2, "d": 3}}"#), "x"));
}
