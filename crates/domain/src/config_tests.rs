use super::*;
use serde_json::json;

fn item(kind: &str, key: &str, value: &str) -> StoredItem {
    StoredItem { kind: kind.into(), key: key.into(), value: value.into() }
}

#[test]
fn one_bad_item_never_discards_the_good_ones() {
    let (settings, _) = Settings::take(
        7,
        [
            item("tool", "good", r#"{"type": "text-completion", "name": "ask", "description": "d"}"#),
            item("tool", "bad", r#"{"type": "text-completion", "name": "x", "group": "default"}"#),
            item("tool", "orphan", r#"{"type": "tool-service", "name": "joke", "service": "joke"}"#),
            item("agent-pattern", "odd", "not json"),
            item("prompt", "template.q", r#"{"prompt": "{{ question }}"}"#),
        ],
    );
    assert_eq!(settings.tools.keys().collect::<Vec<_>>(), ["ask"]);
    assert!(settings.prompts.contains_key("q"));
    assert!(settings.patterns.contains_key("odd"), "a pattern that is not JSON exists under its key");
    let problems: Vec<_> = settings.problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        problems,
        [
            "agent-pattern/odd: field `value`: not valid JSON: expected ident at line 1 column 2; write a JSON value",
            "tool/bad: field `group`: expected a list of texts, found a text; write a list of texts such as [\"default\"]",
            "tool/joke: field `service`: there is no tool-service `joke`; add tool-service/joke",
        ]
    );
}

#[test]
fn each_kind_names_the_field_and_the_mend() {
    let check = |kind: &str, value: &str, starts: &str| {
        let problem = validate(kind, "k", value).expect_err(value).to_string();
        assert!(problem.starts_with(&format!("{kind}/k: field {starts}")), "{problem}");
    };
    check("tool", "[]", "`value`: expected an object");
    check("tool", r#"{"type":"prompt","name":"x"}"#, "`template`: is missing or empty");
    check("tool", r#"{"type":"prompt","template":"t","arguments":[{}]}"#, "`arguments`: entry 1 has no name");
    check("tool", r#"{"type":"text-completion","state":3}"#, "`state`: expected a text, found a number");
    check(
        "tool",
        r#"{"type":"text-completion","applicable-states":[1]}"#,
        "`applicable-states`: the list contains a number",
    );
    check("tool-service", r#"{"request-queue":"q"}"#, "`response-queue`: is missing");
    check("tool-service", r#"{"url":"https://a.example","headers":[]}"#, "`headers`: expected an object");
    check("mcp", "{}", "`url`: is missing");
    check("prompt", r#"{"prompt":"x"}"#, "`key`: is neither");
    check("agent-pattern", r#"{"limits":{"max-iteration":3}}"#, "`limits`: unknown field");
    check("agent-task-type", r#"{"valid_patterns":"react"}"#, "`valid_patterns`: expected a list");
}

#[test]
fn a_service_without_an_address_is_read_and_not_taken() {
    let queues = r#"{"request-queue": "request:tg:joke", "response-queue": "response:tg:joke"}"#;
    assert!(
        matches!(validate("tool-service", "joke", queues), Ok(ConfigItem::ToolService(_))),
        "runs may be pinned to it"
    );
    let problem = not_served("tool-service", "joke", queues).unwrap().to_string();
    assert!(problem.contains("message broker") && problem.contains("add the `url`"), "{problem}");
    assert_eq!(not_served("tool-service", "joke", r#"{"url": "https://jokes.example/"}"#), None);
    assert_eq!(not_served("tool", "joke", queues), None);
}

#[test]
fn framing_and_states_are_read_under_both_names() {
    let framing = |value: &str| match validate("agent-task-type", "t", value) {
        Ok(ConfigItem::TaskType(task_type)) => task_type.framing,
        other => panic!("{other:?}"),
    };
    assert_eq!(framing(r#"{"framing_prompt": "a"}"#), "a");
    assert_eq!(framing(r#"{"framing": "b"}"#), "b");
    let states = |value: &str| match validate("tool", "t", value) {
        Ok(ConfigItem::Tool(tool)) => tool.applicable_states.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(states(r#"{"type":"text-completion","available_in_states":["a"]}"#), Some(vec!["a".into()]));
    assert_eq!(states(r#"{"type":"text-completion","applicable-states":["a","*"]}"#), None);
}

#[test]
fn a_snapshot_is_named_by_its_content_and_reads_back_the_same() {
    let items = || [item("tool", "b", r#"{"type":"text-completion"}"#), item("flow", "f", "{}")];
    let (settings, bytes) = Settings::take(3, items());
    assert_eq!(settings, Settings::from_snapshot(&bytes).unwrap());
    let mut reversed = items();
    reversed.reverse();
    assert_eq!(settings.snapshot, Settings::take(3, reversed).0.snapshot);
    assert_ne!(settings.snapshot, Settings::take(4, items()).0.snapshot);
}

#[test]
fn items_that_do_not_fit_together_are_named() {
    let (settings, _) = Settings::take(
        1,
        [
            item("tool", "t", r#"{"type":"prompt","name":"look","template":"gone"}"#),
            item("agent-task-type", "general", r#"{"valid_patterns":["react","nope"]}"#),
            item("agent-pattern", "react", "{}"),
        ],
    );
    let problems: Vec<_> = settings.inconsistencies().iter().map(ToString::to_string).collect();
    assert_eq!(
        problems,
        [
            "tool/look: field `template`: there is no prompt `gone`; add it as prompt/template.<id>",
            "agent-task-type/general: field `valid_patterns`: there is no pattern `nope`; add it as agent-pattern, or leave it out",
        ]
    );
}

#[test]
fn models_are_named_by_one_text_or_a_list() {
    let items = [
        item("agent", "model", "openai/gpt-4.1"),
        item("prompt", "template.q", r#"{"prompt": "x", "model": ["ollama/llama3.2", " openai/gpt-4.1 "]}"#),
        item("agent-task-type", "t", r#"{"model": "anthropic/claude-sonnet-4-6"}"#),
    ];
    let settings = Settings::take(1, items).0;
    assert_eq!(settings.problems, []);
    assert_eq!(settings.models, ["openai/gpt-4.1"], "a name without quotes is one");
    assert_eq!(settings.prompts["q"].models, ["ollama/llama3.2", "openai/gpt-4.1"]);
    assert_eq!(settings.task_types["t"].models, ["anthropic/claude-sonnet-4-6"]);
    let quoted = Settings::take(1, [item("agent", "model", r#"["openai/a", "openai/b"]"#)]).0;
    assert_eq!(quoted.models, ["openai/a", "openai/b"]);
}

#[test]
fn what_is_no_name_of_a_model_is_refused() {
    let problem = |kind: &str, key: &str, value: &str| validate(kind, key, value).expect_err(value).to_string();
    let mend = r#"write "provider/name" such as "openai/gpt-4.1-mini", or a list of such names"#;
    let number = problem("prompt", "template.q", r#"{"prompt": "x", "model": 3}"#);
    let expected = "prompt/template.q: field `model`: expected the name of a model, found a number";
    assert_eq!(number, format!("{expected}; {mend}"));
    let of_workspace = problem("agent", "model", "3");
    assert!(of_workspace.starts_with("agent/model: field `value`: expected the name of a model"), "{of_workspace}");
    assert!(problem("agent", "model", r#""""#).contains("is empty"));
    assert!(problem("agent", "model", "my own model").contains("`my own model` is not the name of a model"));
    let list = problem("agent-task-type", "t", r#"{"model": []}"#);
    assert!(list.starts_with("agent-task-type/t: field `model`: the list of models is empty"), "{list}");
    assert!(problem("agent-task-type", "t", r#"{"model": ["a/b", {}]}"#).contains("found an object"));
}

#[test]
fn no_secret_is_left_in_a_redacted_snapshot_and_all_else_is_as_before() {
    let item = |kind: &str, value: &str| StoredItem { kind: kind.into(), key: "it".into(), value: value.into() };
    let tool = r#"{"type": "tool-service", "name": "it", "service": "it", "api_key": "SECRET", "pin-token": 4711, "x": "kept"}"#;
    let items = [
        item("mcp", r#"{"url": "https://me:SECRET@a.example/mcp?key=SECRET", "auth-token": "SECRET"}"#),
        item("tool", tool),
        item(
            "tool-service",
            r#"{"request-queue": "q", "response-queue": "r", "headers": {"Authorization": "SECRET"}}"#,
        ),
        item("mcp", "not JSON: SECRET"),
        item("agent-pattern", r#"{"description": "about a token"}"#),
    ];
    let (settings, bytes) = Settings::take(3, items);
    let text = without_secrets(&String::from_utf8(bytes).unwrap()).unwrap();
    for secret in ["SECRET", "4711"] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
    let read = Settings::from_snapshot(text.as_bytes()).unwrap();
    assert_eq!(read.mcp["it"].url, "https://[redacted]@a.example/mcp?[redacted]");
    assert_eq!(read.tools["it"].setting("x"), Some("kept"));
    assert_eq!((read.version, read.patterns), (3, settings.patterns));
    assert_eq!(read.tool_services["it"].headers["Authorization"], "[redacted]");
    let (_, plain) = Settings::take(3, [item("mcp", r#"{"url": "https://a.example"}"#)]);
    assert_eq!(without_secrets(&String::from_utf8(plain).unwrap()), None);
}

#[test]
fn what_a_call_changes_follows_from_the_kind_unless_it_is_said() {
    let effect = |item: serde_json::Value| match validate("tool", "x", &item.to_string()) {
        Ok(ConfigItem::Tool(tool)) => tool.effect.as_str(),
        other => panic!("{other:?}"),
    };
    let http = |rest: serde_json::Value| {
        let mut item = json!({ "type": "http", "url": "https://a.example/" });
        item.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        effect(item)
    };
    assert_eq!(http(json!({})), "read");
    assert_eq!(http(json!({ "body": { "what": "{what}" } })), "unsafe", "what has a body is a POST");
    assert_eq!(http(json!({ "method": "put", "body": {} })), "idempotent");
    assert_eq!(http(json!({ "method": "PATCH" })), "unsafe");
    assert_eq!(http(json!({ "method": "POST", "effect": "read" })), "read");
    assert_eq!(effect(json!({ "type": "mcp-tool", "mcp-tool": "x" })), "unsafe");
    assert_eq!(effect(json!({ "type": "text-completion" })), "read");
    let wrong = validate("tool", "x", r#"{"type": "text-completion", "effect": "harmless"}"#).unwrap_err();
    assert!(format!("{wrong:?}").contains("use one of read, idempotent, unsafe"), "{wrong:?}");
}
