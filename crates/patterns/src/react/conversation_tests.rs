use super::*;
use crate::react::IterationNames as _;
use serde_json::json;
use trellis_domain::record::Name;

fn tools() -> Vec<Arc<ToolItem>> {
    let settings = crate::fixture::settings(&[
        ("tool", "search", r#"{"name": "search", "description": "finds", "type": "text-completion"}"#),
        ("tool", "odd", r#"{"name": "look up", "description": "finds", "type": "text-completion"}"#),
    ]);
    settings.tools.values().cloned().collect()
}

fn call(function: &str, arguments: Value) -> ReplyPart {
    ReplyPart::Call { id: None, function: function.to_owned(), arguments: arguments.to_string().into() }
}

fn result(function: &str, text: &str) -> ChatTurn {
    ChatTurn::ToolResult { call: None, function: function.to_owned(), text: text.into(), is_error: false }
}

fn text(text: &str) -> ReplyPart {
    ReplyPart::Text { text: text.into() }
}

#[test]
fn in_words_a_call_is_a_step_of_the_grammar() {
    let parts = vec![call("look_up", json!({ "thought": "where is it", "question": "moss" }))];
    let turns = [ChatTurn::Assistant { parts }, result("look_up", "green")];
    let written = "Thought: where is it\nAction: look up\nArgs: {\"question\":\"moss\"}";
    let expected =
        [ChatTurn::Assistant { parts: vec![text(written)] }, ChatTurn::User { text: "Observation: green".into() }];
    assert_eq!(in_words(&turns, &tools()), expected);
}

#[test]
fn in_words_each_of_several_calls_has_a_turn_of_its_own() {
    let parts = vec![
        ReplyPart::Thought { text: "hidden".into(), signature: None },
        text("I look at\nboth."),
        call("search", json!({ "question": "a" })),
        call("search", json!({ "question": "b" })),
    ];
    let turns = [ChatTurn::Assistant { parts }, result("search", "A"), result("search", "B")];
    let said = |words: &str| ChatTurn::Assistant { parts: vec![text(words)] };
    let expected = [
        said("Thought: I look at both.\nAction: search\nArgs: {\"question\":\"a\"}"),
        ChatTurn::User { text: "Observation: A".into() },
        said("Action: search\nArgs: {\"question\":\"b\"}"),
        ChatTurn::User { text: "Observation: B".into() },
    ];
    assert_eq!(in_words(&turns, &tools()), expected);
}

#[test]
fn what_follows_from_the_same_side_is_one_turn() {
    let turns = [
        ChatTurn::Assistant { parts: vec![text("hm")] },
        ChatTurn::User { text: "Error: what?".into() },
        ChatTurn::User { text: "Critique: be clear.".into() },
    ];
    let expected = [
        ChatTurn::Assistant { parts: vec![text("hm")] },
        ChatTurn::User { text: "Error: what?\n\nCritique: be clear.".into() },
    ];
    assert_eq!(in_words(&turns, &tools()), expected);
}

const CONVERSATION: [(&str, &str, &str); 2] = [
    ("tool", "search", r#"{"name": "search", "description": "finds", "type": "text-completion"}"#),
    ("prompt", "template.agent-react", r#"{"prompt": "{{ question }}", "conversation": true}"#),
];

fn prompt(fixture: &crate::fixture::Fixture, n: u32) -> crate::PromptOrder {
    super::super::prompt::order(&fixture.session, n)
}

#[test]
fn iterations_become_turns_whose_beginning_never_changes() {
    let settings = crate::fixture::settings(&CONVERSATION);
    let mut fixture = crate::fixture::Fixture::routed(settings, crate::fixture::question("why?"));
    let replies = [
        "Thought: look\nAction: search\nArgs: {\"question\": \"x\"}",
        "Hm. I do not know.",
        "Thought: again\nAction: search\nArgs: {\"question\": \"y\"}",
    ];
    let mut before = Vec::new();
    for (reply, n) in replies.into_iter().zip(1..) {
        let asked = |fixture: &crate::fixture::Fixture| {
            crate::contract::Pattern::decide(
                &super::super::React,
                &fixture.session,
                &crate::fixture::turn(Name::iteration(n)),
            )
        };
        fixture.reply(&asked(&fixture), reply);
        match asked(&fixture).as_slice() {
            [crate::Order::Perform(name, crate::Effect::CallTool { .. })] => {
                fixture.observe(name.clone(), Ok("found"), None);
            }
            orders => fixture.report(orders),
        }
        let order = prompt(&fixture, n + 1);
        assert_eq!(order.variables["history"], json!([]), "nothing is said twice");
        assert_eq!(order.turns[..before.len()], before[..], "a provider finds what it knows");
        assert!(order.turns.len() > before.len());
        before = order.turns;
    }
    let expected = [
        ChatTurn::Assistant { parts: vec![call("search", json!({ "thought": "look", "question": "x" }))] },
        result("search", "[1] found"),
        ChatTurn::Assistant { parts: vec![text("Hm. I do not know.")] },
    ];
    assert_eq!(before[..3], expected);
    assert!(
        matches!(&before[3], ChatTurn::User { text } if text.text().starts_with("Error: no line starts")),
        "{before:?}"
    );
}

#[test]
fn what_a_provider_called_is_said_again_as_it_was() {
    let settings = crate::fixture::settings(&CONVERSATION);
    let mut fixture = crate::fixture::Fixture::routed(settings, crate::fixture::question("why?"));
    let orders = crate::contract::Pattern::decide(
        &super::super::React,
        &fixture.session,
        &crate::fixture::turn(Name::iteration(1)),
    );
    fixture.call(&orders, &[("search", "{ \"question\" : \"x\" }")]);
    fixture.observe(Name::observation_of(1, 1), Err("no network"), None);
    let turns = prompt(&fixture, 2).turns;
    let said = fixture.session.replied(&Name::iteration(1)).unwrap().parts.clone();
    assert_eq!(turns[0], ChatTurn::Assistant { parts: said.clone() });
    let ReplyPart::Call { id, .. } = &said[0] else { panic!("{said:?}") };
    let ChatTurn::ToolResult { call, is_error, .. } = &turns[1] else { panic!("{turns:?}") };
    assert_eq!((call, *is_error), (id, true));
}

#[test]
fn a_call_that_brings_nothing_new_is_not_shown_but_told_below_the_last_result() {
    let settings = crate::fixture::settings(&CONVERSATION);
    let mut fixture = crate::fixture::Fixture::routed(settings, crate::fixture::question("why?"));
    let mut shown = Vec::new();
    for n in 1..=3 {
        let turn = crate::fixture::turn(Name::iteration(n));
        let decide = |fixture: &crate::fixture::Fixture| {
            crate::contract::Pattern::decide(&super::super::React, &fixture.session, &turn)
        };
        fixture.reply(&decide(&fixture), "Thought: look\nAction: search\nArgs: {\"question\": \"x\"}");
        match decide(&fixture).as_slice() {
            [crate::Order::Perform(name, crate::Effect::CallTool { .. })] => {
                fixture.observe(name.clone(), Ok("found"), None);
            }
            orders => fixture.report(orders),
        }
        let turns = prompt(&fixture, n + 1).turns;
        let [ChatTurn::Assistant { .. }, ChatTurn::ToolResult { text, .. }] = turns.as_slice() else {
            panic!("{turns:?}")
        };
        shown.push(text.text().to_owned());
    }
    assert_eq!(shown[0], "[1] found");
    let note = "(You asked for search {\"question\":\"x\"} again. Its result is observation [1] and has not changed.";
    assert!(shown[1].contains(note), "{}", shown[1]);
    assert!(shown[2].starts_with(&shown[1]), "what was shown stays");
    assert_eq!(shown[2].matches(note).count(), 2);
}
