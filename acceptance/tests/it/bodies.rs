//! The check of request bodies finds what is wrong with one, and names the file and the member.

use acceptance::run_python;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A body for each kind of request that its vendor takes.
fn right() -> [(&'static str, Value); 7] {
    let schema = json!({ "type": "object", "properties": { "query": { "type": "string" } } });
    let function = json!({ "name": "search", "description": "Searches.", "parameters": schema });
    let tools = json!([{ "type": "function", "function": function }]);
    let call = json!({ "id": "D681PevKs", "type": "function", "function": { "name": "search", "arguments": "{}" } });
    let chat = json!([
        { "role": "user", "content": "Why?" },
        { "role": "assistant", "content": "", "tool_calls": [call] },
        { "role": "tool", "tool_call_id": "D681PevKs", "content": "moss" },
    ]);
    let openai = json!({ "model": "m", "messages": chat, "stream": true, "tools": tools, "tool_choice": "required",
        "temperature": 0.2 });
    let use_block = json!({ "type": "tool_use", "id": "toolu_1", "name": "search", "input": {} });
    let result = json!({ "type": "tool_result", "tool_use_id": "toolu_1", "content": "moss" });
    let anthropic = json!({ "model": "m", "max_tokens": 9, "stream": true,
        "messages": [{ "role": "user", "content": "Why?" }, { "role": "assistant", "content": [use_block] },
            { "role": "user", "content": [result] }],
        "tools": [{ "name": "search", "input_schema": schema, "strict": true }] });
    let ollama = json!({ "model": "m", "stream": true, "tools": tools, "format": schema, "options": { "num_predict": 9 },
        "messages": [{ "role": "tool", "tool_name": "search", "content": "moss" }] });
    let gemini = json!({ "contents": [{ "role": "user", "parts": [{ "text": "Why?" }] }],
        "generationConfig": { "maxOutputTokens": 9 } });
    let bedrock = json!({ "messages": [{ "role": "user", "content": [{ "text": "Why?" }] }],
        "inferenceConfig": { "maxTokens": 9 } });
    let responses = json!({ "model": "m", "stream": true, "input": "Why?",
        "tools": [{ "type": "function", "name": "search", "parameters": schema, "strict": true }] });
    let mistral = openai.clone();
    [
        ("openai-chat", openai),
        ("openai-responses", responses),
        ("anthropic-messages", anthropic),
        ("ollama-chat", ollama),
        ("mistral-chat", mistral),
        ("gemini-generate", gemini),
        ("bedrock-converse", bedrock),
    ]
}

/// What is changed in a body, and how the fault is told.
const WRONG: [(&str, &str, &str, &str); 10] = [
    ("openai-chat", "/messages/2/tool_call_id", "null", "messages[2].tool_call_id: Input should be a valid string"),
    ("openai-chat", "/tools/0/function/colour", "1", "tools[0].function.colour: Extra inputs are not permitted"),
    ("openai-chat", "/temperature", "\"0.2\"", "temperature: Input should be a valid number"),
    ("openai-responses", "/max_tokens", "9", "max_tokens: Extra inputs are not permitted"),
    ("anthropic-messages", "/max_tokens", "null", "max_tokens: Input should be a valid integer"),
    (
        "anthropic-messages",
        "/messages/2/content/0/id",
        "1",
        "messages[2].content[0].id: Extra inputs are not permitted",
    ),
    ("ollama-chat", "/messages/0/tool_call_id", "\"x\"", "messages[0].tool_call_id: Extra inputs are not permitted"),
    ("mistral-chat", "/stream_options", "{}", "stream_options: Extra inputs are not permitted"),
    (
        "gemini-generate",
        "/generationConfig/max_tokens",
        "9",
        "generationConfig.max_tokens: Extra inputs are not permitted",
    ),
    ("bedrock-converse", "/inferenceConfig/max_tokens", "9", "Unknown parameter in inferenceConfig: \"max_tokens\""),
];

fn write(root: &TempDir, kind: &str, name: &str, body: &Value) {
    let folder = root.path().join(kind);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(format!("{name}.json")), body.to_string()).unwrap();
}

fn address(root: &TempDir) -> &str {
    root.path().to_str().unwrap()
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn a_right_body_of_each_kind_is_taken() {
    let root = TempDir::new().unwrap();
    for (kind, body) in right() {
        write(&root, kind, "right", &body);
    }
    run_python("request_bodies.py", address(&root)).await.ok().says(&["0 faults in 7 bodies"]);
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn a_wrong_member_is_named_with_its_file() {
    let (root, right) = (TempDir::new().unwrap(), right());
    for ((kind, place, value, _), number) in WRONG.iter().zip(0..) {
        let mut body = right.iter().find(|(own, _)| own == kind).unwrap().1.clone();
        let (parent, member) = place.rsplit_once('/').unwrap();
        body.pointer_mut(parent).unwrap()[member] = serde_json::from_str(value).unwrap();
        write(&root, kind, &format!("wrong-{number}"), &body);
    }
    let told = run_python("request_bodies.py", address(&root)).await;
    assert!(!told.succeeded, "{told}");
    for ((kind, _, _, words), number) in WRONG.iter().zip(0..) {
        let file = format!("{kind}/wrong-{number}.json: ");
        let line = told.stdout.lines().find(|line| line.starts_with(&file));
        assert!(line.is_some_and(|line| line.contains(words)), "{file}{words}\n{told}");
    }
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn nothing_to_check_is_no_success() {
    let root = TempDir::new().unwrap();
    assert!(!run_python("request_bodies.py", address(&root)).await.succeeded);
    write(&root, "no-such-kind", "body", &json!({}));
    let told = run_python("request_bodies.py", address(&root)).await;
    assert!(!told.succeeded && told.stdout.contains("no such kind of request"), "{told}");
}
