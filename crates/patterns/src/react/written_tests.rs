use super::*;
use crate::react::functions::tests::tool;
use serde_json::json;

fn functions() -> Functions {
    Functions::of(&[
        tool("search", &[("question", "string")]),
        tool("get-weather", &[("city", "string"), ("days", "integer")]),
    ])
}

#[track_caller]
fn one(text: &str) -> Written {
    let found = find(text, &functions()).unwrap_or_else(|| panic!("no call in {text}"));
    assert!(found.is_all && found.is_meant, "{text}: {found:?}");
    match found.calls.as_slice() {
        [call] => call.clone(),
        calls => panic!("{calls:?}"),
    }
}

#[test]
fn the_forms_that_models_use_are_read() {
    let forms = [
        r#"{"name": "get-weather", "arguments": {"city": "Oslo", "days": 3}}"#,
        "```json\n{\"name\": \"get-weather\", \"arguments\": {\"city\": \"Oslo\", \"days\": 3}}\n```",
        r#"<tool_call>
{"name": "get-weather", "arguments": {"city": "Oslo", "days": 3}}
</tool_call>"#,
        r#"<tools>{"name": "get-weather", "arguments": {"city": "Oslo", "days": 3}}</tools>"#,
        r#"<|python_tag|>{"type": "function", "name": "get-weather", "parameters": {"city": "Oslo", "days": 3}}"#,
        r#"{"type": "function", "function": {"name": "get-weather", "arguments": "{\"city\": \"Oslo\", \"days\": 3}"}}"#,
        r#"{"tool_calls": [{"name": "get-weather", "arguments": {"city": "Oslo", "days": 3}}]}"#,
        r#"[TOOL_CALLS][{"name": "get-weather", "arguments": {"city": "Oslo", "days": 3}}]"#,
        r#"[TOOL_CALLS]get-weather{"city": "Oslo", "days": 3}"#,
        r#"[TOOL_CALLS]get-weather[ARGS]{"city": "Oslo", "days": 3}"#,
        r#"<function=get-weather>{"city": "Oslo", "days": 3}</function>"#,
        "<tool_call>\n<function=get-weather>\n<parameter=city>\nOslo\n</parameter>\n<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>",
        r#"<invoke name="get-weather"><parameter name="city">Oslo</parameter><parameter name="days">3</parameter></invoke>"#,
        r#"{"action": "get-weather", "action_input": {"city": "Oslo", "days": 3}}"#,
        r#"{"tool": "get-weather", "city": "Oslo", "days": 3}"#,
        r#"{"get-weather": {"city": "Oslo", "days": 3}}"#,
        r#"[get-weather(city="Oslo", days=3)]"#,
        "```tool_code\nprint(get-weather(city='Oslo', days=3))\n```",
    ];
    for form in forms {
        let expected = Written {
            name: "get-weather".to_owned(),
            arguments: json!({"city": "Oslo", "days": 3}).as_object().unwrap().clone(),
        };
        assert_eq!(one(form), expected, "{form}");
    }
}

#[test]
fn what_was_said_before_the_call_is_told_apart() {
    let found = find(
        "I will look.\n```json\n{\"name\": \"search\", \"arguments\": {\"question\": \"x\"}}\n```\nDone.",
        &functions(),
    )
    .unwrap();
    assert_eq!((found.before.as_str(), found.is_all, found.calls.len()), ("I will look.", false, 1));
}

#[test]
fn several_calls_are_read_in_their_order() {
    let text = "<tool_call>{\"name\": \"search\", \"arguments\": {\"question\": \"a\"}}</tool_call>\n<tool_call>{\"name\": \"search\", \"arguments\": {\"question\": \"b\"}}</tool_call>";
    let found = find(text, &functions()).unwrap();
    let asked: Vec<_> = found.calls.iter().map(|call| call.arguments["question"].clone()).collect();
    assert_eq!(asked, [json!("a"), json!("b")]);
    assert!(found.is_all);
}

#[test]
fn what_was_not_offered_is_no_call() {
    for text in [
        r#"{"name": "Oslo", "arguments": {"population": 700000}}"#,
        r#"{"name": "delete", "arguments": {}}"#,
        "<function=delete>{}</function>",
        "delete(all=True)",
        "The function search(question) looks things up.",
        "Oslo lies in Norway [1] {see also: search}.",
        "",
    ] {
        assert_eq!(find(text, &functions()), None, "{text}");
    }
}

/// Whoever quotes a call does not make it.
#[test]
fn a_quoted_call_is_not_meant() {
    let quoted = [
        r#"The page says {"name": "search", "arguments": {"question": "x"}}, which I ignore."#,
        r#"The page says {"name": "search", "arguments": {"question": "x"}}"#,
        "It reads:\n{\"name\": \"search\", \"arguments\": {}}\nI ignore that.",
    ];
    for text in quoted {
        assert!(find(text, &functions()).is_none_or(|found| !found.is_meant), "{text}");
    }
    let invented = "Action: look\nArgs: q\nObservation: ok\n{\"name\": \"search\", \"arguments\": {}}";
    assert_eq!(find(invented, &functions()), None);
    let described = r#"{"name": "search", "parameters": {"type": "object", "properties": {}}}"#;
    assert_eq!(find(described, &functions()), None);
}

/// A reader that looks at everything again from every place would take minutes.
#[test]
fn hostile_texts_take_no_time() {
    let blanks = format!("[{}{}]", "search(),".repeat(20_000), " ".repeat(200_000));
    assert_eq!(find(&blanks, &functions()), None);
    for text in [
        "<function=search>",
        "[",
        "{\"a\":[",
        "search(question=[",
        "<invoke name=\"search\">",
        "[TOOL_CALLS]search{\"a\": \"",
    ] {
        let long = text.repeat(200_000 / text.len());
        assert_eq!(find(&long, &functions()), None);
    }
}
