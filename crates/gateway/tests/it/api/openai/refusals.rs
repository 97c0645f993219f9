//! Requests that are not served, and why.

use super::{CHAT, RESPONSES, chat, message, response, waiting, with};
use crate::api::server::Api;
use serde_json::{Value, json};

#[tokio::test]
async fn a_wrong_request_is_refused_with_the_parameter_that_is_wrong() {
    let api = Api::with(waiting()).await;
    let chat = || chat(&json!({}));
    let said = |content: Value| with(chat(), "messages", json!([{"role": "user", "content": content}]));
    let image = json!([{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]);
    let audio = json!([{"type": "text", "text": "hear"}, {"type": "input_audio", "input_audio": {}}]);
    for (path, body, param, code) in [
        (CHAT, with(chat(), "model", Value::Null), "model", "invalid_value"),
        (CHAT, with(chat(), "messages", json!([])), "messages", "invalid_value"),
        (CHAT, with(chat(), "messages", json!("hello")), "messages", "invalid_value"),
        (CHAT, said(image), "messages[0].content[0]", "unsupported_parameter"),
        (CHAT, said(audio), "messages[0].content[1]", "unsupported_parameter"),
        (CHAT, with(chat(), "tools", json!([{"type": "function"}])), "tools", "unsupported_parameter"),
        (
            CHAT,
            with(chat(), "response_format", json!({"type": "json_schema"})),
            "response_format",
            "unsupported_parameter",
        ),
        (CHAT, with(chat(), "n", json!(2)), "n", "unsupported_parameter"),
        (CHAT, with(chat(), "stop", json!(["x"])), "stop", "unsupported_parameter"),
        (CHAT, with(chat(), "logprobs", json!(true)), "logprobs", "unsupported_parameter"),
        (CHAT, with(chat(), "stream", json!("yes")), "stream", "invalid_value"),
        (CHAT, with(chat(), "stream_options", json!(true)), "stream_options", "invalid_value"),
        (CHAT, with(chat(), "messages", json!([message("assistant", "a")])), "messages", "invalid_value"),
        (RESPONSES, with(response(&json!({})), "input", json!(7)), "input", "invalid_value"),
        (RESPONSES, with(response(&json!({})), "metadata", json!({"a": 1})), "metadata", "invalid_value"),
        (
            RESPONSES,
            with(response(&json!({})), "text", json!({"format": {"type": "json_object"}})),
            "text",
            "unsupported_parameter",
        ),
        (
            RESPONSES,
            with(response(&json!({})), "tools", json!([{"type": "web_search"}])),
            "tools",
            "unsupported_parameter",
        ),
    ] {
        let reply = api.post(path, "", &body).await;
        let error = &reply.json()["error"];
        assert_eq!(
            (reply.status, &error["param"], &error["code"]),
            (400, &json!(param), &json!(code)),
            "{body}: {error}"
        );
        assert_eq!(error["type"], "invalid_request_error");
    }
    for model in ["gpt-4o", "trellis/nonsense", "auto", "trellis/", ""] {
        let reply = api.post(CHAT, "", &with(chat(), "model", json!(model))).await;
        assert_eq!((reply.status, &reply.json()["error"]["code"]), (404, &json!("model_not_found")), "{model}");
    }
    assert_eq!(api.call("POST", CHAT, "", "{").await.status, 400);
    assert_eq!(api.call("POST", CHAT, "", "[]").await.status, 400);
    assert_eq!(api.post(CHAT, "", &with(chat(), "messages", json!([message("user", " ")]))).await.status, 400);
    let long = with(chat(), "messages", json!([message("user", &"x".repeat((1 << 20) + 1))]));
    assert_eq!(api.post(CHAT, "", &long).await.status, 413);
    let framed = json!([message("system", &"x".repeat(70_000)), message("user", "why?")]);
    assert_eq!(api.post(CHAT, "", &with(chat(), "messages", framed)).await.status, 413);
    assert_eq!(api.get("/api/v1/runs").await.json()["runs"], json!([]), "nothing of it was begun");
}

#[tokio::test]
async fn what_only_shapes_how_a_model_writes_is_taken() {
    let api = Api::with(waiting()).await;
    let usual = json!({
        "temperature": 0.2, "top_p": 1, "seed": 3, "max_tokens": 100, "max_completion_tokens": 100, "presence_penalty": 0,
        "frequency_penalty": 0, "logit_bias": {}, "user": "u", "store": false, "metadata": {"a": "b"},
        "reasoning_effort": "low", "parallel_tool_calls": true, "service_tier": "auto", "n": 1, "tools": [],
        "response_format": {"type": "text"}, "session_id": "x",
    });
    let mut body = chat(&json!({"answer": "so"}));
    body.as_object_mut().unwrap().extend(usual.as_object().unwrap().clone());
    let reply = api.post(CHAT, "x-stainless-timeout: 0.1\r\n", &body).await;
    assert_eq!(reply.status, 504, "it was accepted: {}", reply.body);
}
