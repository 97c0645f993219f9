//! The script finds what it needs in the prompts that the program really sends.

use super::{Scene, Tool};
use serde_json::json;

const REACT: &str = "You answer step by step.\n\n# Tools\n\n- search-notes: Search the notes\n  - argument \"query\" \
    (string): What to look for\n- ask-model: Ask\n  - no arguments\n\nThe only names that may follow `Action:` are: \
    search-notes, ask-model\n\n# Question\n\nWho was Ada?\n\nWrite the next step now.";

fn request(text: &str) -> serde_json::Value {
    json!({ "messages": [{ "role": "system", "content": "be brief" }, { "role": "user", "content": text }] })
}

#[test]
fn a_question_is_found_in_a_section_and_between_marks() {
    let (section, marks) =
        (request(REACT), request("# Question\n\n<question-7f3a>\nWho was Ada?\n</question-7f3a>\nWrite."));
    assert_eq!(Scene::new("agent-react", &section).question(), "Who was Ada?");
    assert_eq!(Scene::new("plan-create", &marks).question(), "Who was Ada?");
}

#[test]
fn a_prompt_without_a_question_is_its_own_question() {
    assert_eq!(Scene::new("", &request("Say hello.\n")).question(), "Say hello.");
}

#[test]
fn tools_are_read_from_the_text_with_their_arguments() {
    let search = Tool { name: "search-notes".to_owned(), arguments: vec!["query".to_owned()] };
    let ask = Tool { name: "ask-model".to_owned(), arguments: Vec::new() };
    assert_eq!(Scene::new("agent-react", &request(REACT)).tools(), [search, ask]);
}

#[test]
fn functions_go_before_what_the_text_lists() {
    let mut request = request(REACT);
    let parameters = json!({ "type": "object", "properties": { "company": { "type": "string" } } });
    request["tools"] = json!([{ "type": "function", "function": { "name": "news", "parameters": parameters } }]);
    let scene = Scene::new("agent-react", &request);
    assert_eq!(scene.tools(), [Tool { name: "news".to_owned(), arguments: vec!["company".to_owned()] }]);
}

#[test]
fn a_result_of_a_tool_is_noticed_in_words_and_as_a_message_of_its_own() {
    let with = |role: &str| {
        let mut request = request(REACT);
        request["messages"].as_array_mut().unwrap().push(json!({ "role": role, "content": "Observation: y" }));
        request
    };
    let noticed = [&request(REACT), &with("assistant"), &with("user"), &with("tool")]
        .map(|request| Scene::new("agent-react", request).has_observation());
    assert_eq!(noticed, [false, false, true, true]);
    assert_eq!(Scene::new("agent-react", &with("user")).question(), "Who was Ada?");
}
