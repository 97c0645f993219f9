//! The seeded ReAct prompt, rendered with the variables that the pattern gives.

use crate::template::Templates;
use serde_json::{Value, json};
use trellis_domain::reply::ReactReply;
use trellis_patterns::react::parser;

const TEMPLATE: &str = include_str!("../../trellis/seeds/prompts/agent-react.txt");

/// The part that depends on variables.
fn rendered(tools: &Value, context: &Value, history: &Value) -> String {
    let variables = json!({
        "question": "Why is moss green?", "tools": tools, "tool_names": "search,list-all", "context": context,
        "history": history,
    });
    let text = Templates::new().render(TEMPLATE, variables.as_object().unwrap()).unwrap();
    text.split_once("# Tools\n\n").unwrap().1.to_owned()
}

const END: &str = "\n\nWrite the next step now, beginning with `Thought:`.";

#[test]
fn with_tools_context_and_history() {
    let argument = json!({ "name": "query", "type": "string", "description": "what to look for" });
    let tools = json!([
        { "name": "search", "description": "Searches", "arguments": [argument] },
        { "name": "list-all", "description": "Lists", "arguments": [] },
    ]);
    let arguments = json!({ "query": "moss's \"green\"" });
    let history = json!([
        { "thought": "Look it up.", "action": "search", "arguments": arguments, "observation": "two\nlines" },
        { "thought": "Hm.", "action": "__parse_error__", "arguments": {}, "observation": "Error: no keyword" },
    ]);
    let expected = r#"- search: Searches
  - argument "query" (string): what to look for
- list-all: Lists
  - no arguments

The only names that may follow `Action:` are: search,list-all

# Context

Be botanical.

# Question

Why is moss green?

# Steps so far

Thought: Look it up.
Action: search
Args: {"query":"moss's \"green\""}
Observation: two
lines

Thought: Hm.
(The rest of this reply could not be read.)
Observation: Error: no keyword"#;
    assert_eq!(rendered(&tools, &json!("Be botanical."), &history), format!("{expected}{END}"));
}

#[test]
fn with_nothing_but_a_question() {
    let expected = "There are no tools. Give the final answer from what you know.\n\n# Question\n\nWhy is moss green?";
    assert_eq!(rendered(&json!([]), &Value::Null, &json!([])), format!("{expected}{END}"));
}

/// A model that copies the forms to the letter is understood.
#[test]
fn the_forms_that_it_shows_can_be_read() {
    let (_, forms) = TEMPLATE.split_once("To use a tool:\n").unwrap();
    let (action, rest) = forms.split_once("To answer:\n").unwrap();
    let (answer, _) = rest.split_once("Rules of the form:").unwrap();
    let ReactReply::Action { tool, arguments, .. } = parser::read(action) else { panic!("no action: {action}") };
    assert_eq!((tool.as_str(), arguments.len()), ("the name of one tool, exactly as it is listed below", 1));
    assert!(matches!(parser::read(answer), ReactReply::Answer { .. }), "{answer}");
}
