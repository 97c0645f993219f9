use super::*;
use crate::remote::{Dialect, Hold, Refusal, Stop};
use serde_json::Map;
use trellis_domain::SessionId;
use trellis_domain::config::PromptReply;
use trellis_domain::record::Name;
use trellis_orchestrator::ports::CallLabels;

fn request(system: &str) -> ModelRequest {
    let session = SessionId::new("s").unwrap();
    ModelRequest {
        system: system.to_owned(),
        user: "Why?".to_owned(),
        prompt: "my prompt".to_owned(),
        variables: Map::new(),
        expected: PromptReply::Text,
        labels: Some(CallLabels { run: session.clone(), session, step: Name::iteration(1), attempt: 1 }),
    }
}

/// The text of some messages, and what was understood besides.
fn read(dialect: &impl Dialect, messages: &[Value]) -> (String, Understood) {
    let mut understood = Understood::default();
    let texts = messages.iter().map(|message| {
        let message = message.as_str().map_or_else(|| message.to_string(), str::to_owned);
        dialect.read(&message, &mut understood).unwrap().unwrap_or_default()
    });
    let text = texts.collect();
    (text, understood)
}

fn fault(dialect: &impl Dialect, message: &str) -> Fault {
    dialect.read(message, &mut Understood::default()).unwrap_err()
}

#[test]
fn openai_is_asked_in_its_words() {
    let dialect = OpenAi::at("https://api.openai.com/v1");
    let schema = json!({ "type": "object" });
    let body = dialect.body("m", &request("Be kind."), &Hold::Strict(schema.clone()));
    let messages = json!([{ "role": "system", "content": "Be kind." }, { "role": "user", "content": "Why?" }]);
    let format = json!({ "name": "my_prompt", "schema": schema, "strict": true });
    let expected = json!({
        "model": "m", "messages": messages, "stream": true, "stream_options": { "include_usage": true },
        "response_format": { "type": "json_schema", "json_schema": format },
    });
    assert_eq!(body, expected);
    let body = dialect.body("m", &request(""), &Hold::Guided(&schema));
    assert_eq!(body["response_format"]["json_schema"]["strict"], false);
    assert_eq!(body["messages"].as_array().unwrap().len(), 1);
    assert!(dialect.body("m", &request(""), &Hold::Free)["response_format"].is_null());
    let routed = OpenAi::at("https://openrouter.ai/api/v1").body("m", &request(""), &Hold::Guided(&schema));
    assert_eq!(routed["provider"], json!({ "require_parameters": true }));
}

#[test]
fn openai_counts_are_left_out_once_they_are_refused() {
    let dialect = OpenAi::default();
    let refusal = |words: &str| Refusal { status: Some(400), words: words.to_owned() };
    assert!(!dialect.leave_out(&refusal("no such model")));
    assert!(dialect.leave_out(&refusal("unknown field stream_options")));
    assert!(!dialect.leave_out(&refusal("unknown field stream_options")), "once is enough");
    assert!(dialect.body("m", &request(""), &Hold::Free)["stream_options"].is_null());
}

#[test]
fn openai_streams_are_read() {
    let (text, understood) = read(
        &OpenAi::default(),
        &[
            json!({ "model": "m-1", "choices": [{ "index": 0, "delta": { "role": "assistant", "content": "" } }] }),
            json!({ "choices": [{ "delta": { "reasoning_content": "hm" } }] }),
            json!({ "choices": [{ "index": 1, "delta": { "content": "other" } }] }),
            json!({ "choices": [{ "index": 0, "delta": { "content": "Mo" }, "finish_reason": null }] }),
            json!({ "choices": [{ "index": 0, "delta": { "content": "ss" }, "finish_reason": "stop" }] }),
            json!({ "id": "x", "choices": [], "usage": { "prompt_tokens": 5, "completion_tokens": 2 } }),
            json!("[DONE]"),
        ],
    );
    let expected = Understood {
        model: Some("m-1".to_owned()),
        in_token: Some(5),
        out_token: Some(2),
        stop: Some(Stop::Finished),
        over: true,
        ..Understood::default()
    };
    assert_eq!((text.as_str(), understood), ("Moss", expected));
}

#[test]
fn openai_replies_in_other_forms_are_read() {
    let whole = json!({
        "model": "m", "usage": { "prompt_tokens": 1 },
        "choices": [{ "message": { "role": "assistant", "content": "Moss" }, "finish_reason": "length" }],
    });
    let (text, understood) = read(&OpenAi::default(), &[whole]);
    assert_eq!((text.as_str(), understood.stop, understood.over), ("Moss", Some(Stop::Length), true));
    let parts = json!({ "choices": [{ "delta": { "content": [{ "type": "text", "text": "Moss" }] } }] });
    assert_eq!(read(&OpenAi::default(), &[parts]).0, "Moss");
    let refused = json!({ "choices": [{ "delta": { "refusal": "I will not." } }] });
    let (text, understood) = read(&OpenAi::default(), &[refused]);
    assert_eq!((text.as_str(), understood.unheld), ("I will not.", true));
    let (_, understood) = read(&OpenAi::default(), &[json!({ "status": "ok" })]);
    assert_eq!(understood.strange.as_deref(), Some(r#"{"status":"ok"}"#));
}

#[test]
fn openai_errors_are_read() {
    let fault = |message: Value| fault(&OpenAi::default(), &message.to_string());
    assert!(fault(json!({ "error": { "message": "Overloaded", "code": 503 } })).passing);
    assert!(!fault(json!({ "object": "error", "message": "too long", "code": 400 })).passing);
    assert!(fault(json!({ "choices": [{ "finish_reason": "error", "delta": {} }] })).passing);
    assert!(super::json_of("<html>").unwrap_err().words.ends_with("is not JSON: <html>"));
}

#[test]
fn anthropic_is_asked_in_its_words() {
    let dialect = Anthropic { max_tokens: 77 };
    let schema = json!({ "type": "object" });
    let body = dialect.body("m", &request("Be kind."), &Hold::Strict(schema.clone()));
    assert_eq!((&body["system"], &body["max_tokens"], &body["stream"]), (&json!("Be kind."), &json!(77), &json!(true)));
    assert_eq!(body["tool_choice"], json!({ "type": "tool", "name": "reply" }));
    assert_eq!((&body["tools"][0]["input_schema"], &body["tools"][0]["strict"]), (&schema, &json!(true)));
    let body = dialect.body("m", &request(""), &Hold::Guided(&schema));
    assert!(body["tools"][0]["strict"].is_null() && body["system"].is_null());
    assert!(dialect.body("m", &request(""), &Hold::Free)["tools"].is_null());
    assert!(dialect.can_show(&schema) && !dialect.can_show(&json!({ "type": "array" })));
}

#[test]
fn anthropic_streams_are_read() {
    let delta = |delta: Value| json!({ "type": "content_block_delta", "index": 0, "delta": delta });
    let start = json!({
        "type": "message_start",
        "message": { "model": "claude-1", "usage": {
            "input_tokens": 5, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 1, "output_tokens": 1,
        } },
    });
    let end = [
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" }, "usage": { "output_tokens": 9 } }),
        json!({ "type": "message_stop" }),
    ];
    let tool = [
        json!({ "type": "ping" }),
        json!({ "type": "content_block_start", "content_block": { "type": "tool_use", "input": {} } }),
        delta(json!({ "type": "input_json_delta", "partial_json": "" })),
        delta(json!({ "type": "input_json_delta", "partial_json": "{\"a\":" })),
        delta(json!({ "type": "input_json_delta", "partial_json": "1}" })),
    ];
    let (text, understood) = read(&Anthropic { max_tokens: 1 }, &[vec![start], tool.to_vec(), end.to_vec()].concat());
    let expected = Understood {
        model: Some("claude-1".to_owned()),
        in_token: Some(13),
        out_token: Some(9),
        stop: Some(Stop::Finished),
        over: true,
        ..Understood::default()
    };
    assert_eq!((text.as_str(), understood), ("{\"a\":1}", expected));
    let words = [
        delta(json!({ "type": "thinking_delta", "thinking": "hm" })),
        delta(json!({ "type": "text_delta", "text": "Moss" })),
    ];
    let (text, understood) = read(&Anthropic { max_tokens: 1 }, &words);
    assert_eq!((text.as_str(), understood.unheld), ("Moss", true));
}

#[test]
fn anthropic_replies_and_errors_are_read() {
    let whole = json!({
        "type": "message", "model": "c", "stop_reason": "max_tokens", "usage": { "input_tokens": 1, "output_tokens": 2 },
        "content": [{ "type": "thinking", "thinking": "hm" }, { "type": "tool_use", "input": { "a": 1 } }],
    });
    let (text, understood) = read(&Anthropic { max_tokens: 1 }, &[whole]);
    assert_eq!((text.as_str(), understood.stop, understood.unheld), ("{\"a\":1}", Some(Stop::Length), false));
    let error = json!({ "type": "error", "error": { "type": "overloaded_error", "message": "Overloaded" } });
    assert_eq!(fault(&Anthropic { max_tokens: 1 }, &error.to_string()).words, "Overloaded");
}

#[test]
fn ollama_is_asked_and_read() {
    let schema = json!({ "type": "object" });
    let body = Ollama.body("m", &request("Be kind."), &Hold::Guided(&schema));
    assert_eq!((&body["format"], body["messages"].as_array().unwrap().len()), (&schema, 2));
    assert!(Ollama.body("m", &request(""), &Hold::Free)["format"].is_null());
    let (text, understood) = read(
        &Ollama,
        &[
            json!({ "model": "m", "message": { "content": "", "thinking": "hm" }, "done": false }),
            json!({ "model": "m", "message": { "content": "Moss" }, "done": false }),
            json!({ "done": true, "done_reason": "length", "prompt_eval_count": 4, "eval_count": 6 }),
        ],
    );
    let expected = Understood {
        model: Some("m".to_owned()),
        in_token: Some(4),
        out_token: Some(6),
        stop: Some(Stop::Length),
        over: true,
        ..Understood::default()
    };
    assert_eq!((text.as_str(), understood), ("Moss", expected));
    assert_eq!(fault(&Ollama, r#"{"error": "out of memory"}"#).words, "out of memory");
}
