use super::*;
use reqwest::header::{HeaderName, HeaderValue};
use serde_json::json;

fn failure(status: u16, body: &str) -> Failure {
    of_status("openai", StatusCode::from_u16(status).unwrap(), ErrorBody::read(body), Some(Duration::from_secs(3)))
}

#[test]
fn each_provider_says_in_its_own_place_what_is_wrong() {
    for (body, words) in [
        (json!({ "error": { "message": "no such model", "type": "x" } }).to_string(), "no such model"),
        (json!({ "type": "error", "error": { "type": "x", "message": "too long" } }).to_string(), "too long"),
        (json!({ "error": "model 'm' not found" }).to_string(), "model 'm' not found"),
        (json!({ "object": "error", "message": "bad", "code": 400 }).to_string(), "bad"),
        (json!({ "detail": "Not Found" }).to_string(), "Not Found"),
        (json!({ "detail": [{ "msg": "field required" }] }).to_string(), r#"[{"msg":"field required"}]"#),
        (
            json!({ "error": { "message": "Provider returned error", "metadata": { "raw": "overloaded" } } })
                .to_string(),
            "Provider returned error (overloaded)",
        ),
        ("<html><body>404".to_owned(), "a web page"),
        ("plain words".to_owned(), "plain words"),
    ] {
        let ProviderError::Permanent { reason } = failure(400, &body).error else { panic!("{body}") };
        assert_eq!(reason, format!("openai answered 400 Bad Request: {words}"));
    }
    let ProviderError::Permanent { reason } = failure(403, "").error else { panic!("403") };
    assert_eq!(reason, "openai answered 403 Forbidden");
}

#[test]
fn what_passes_is_asked_again() {
    let passes = |status: u16, body: &str| match failure(status, body).error {
        ProviderError::Transient { retry_after, .. } | ProviderError::Busy { retry_after, .. } => {
            assert_eq!(retry_after, Some(Duration::from_secs(3)));
            true
        }
        ProviderError::Permanent { .. } | ProviderError::TooLong { .. } | ProviderError::ToolsRefused { .. } => false,
    };
    for status in [408, 409, 425, 429, 500, 502, 503, 504, 520, 529] {
        assert!(passes(status, ""), "{status}");
    }
    for status in [300, 400, 401, 402, 403, 404, 405, 413, 422, 501] {
        assert!(!passes(status, ""), "{status}");
    }
    assert!(!passes(429, r#"{"error": {"code": "insufficient_quota", "message": "pay"}}"#), "waiting earns no money");
}

/// As the providers say it in their documentation or their source, each in its own form.
#[test]
fn a_prompt_that_is_too_long_is_recognised_and_is_no_refusal_of_its_form() {
    for (status, body) in [
        (
            400,
            json!({ "error": { "message": "This model's maximum context length is 8192 tokens. However, your messages \
            resulted in 9001 tokens (8990 in the messages, 11 in the functions). Please reduce the length of the messages \
            or functions.", "type": "invalid_request_error", "code": "context_length_exceeded" } }),
        ),
        (
            400,
            json!({ "type": "error", "error": { "type": "invalid_request_error",
            "message": "prompt is too long: 210311 tokens > 200000 maximum" } }),
        ),
        (
            400,
            json!({ "error": { "message": "input length and `max_tokens` exceed context limit: 198000 + 8192 > 200000" } }),
        ),
        (
            413,
            json!({ "type": "error", "error": { "type": "request_too_large", "message": "Request exceeds the maximum size" } }),
        ),
        (
            400,
            json!([{ "error": { "code": 400, "status": "INVALID_ARGUMENT",
            "message": "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)." } }]),
        ),
        (
            400,
            json!({ "error": { "code": 400, "type": "exceed_context_size_error",
            "message": "the request exceeds the available context size, try increasing it" } }),
        ),
        (500, json!({ "error": { "code": 500, "message": "the request exceeds the available context size" } })),
        (
            422,
            json!({ "error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 9000 \
            `inputs` tokens must be <= 4095", "error_type": "validation" }),
        ),
        (400, json!({ "message": "Input is too long for requested model." })),
    ] {
        let failure = failure(status, &body.to_string());
        assert!(matches!(failure.error, ProviderError::TooLong { .. }), "{body}: {:?}", failure.error);
        assert!(failure.refusal.is_none(), "{body}");
    }
    let fault = Fault::reported(&json!({ "type": "invalid_request_error", "message": "prompt is too long: 2 > 1" }));
    assert!(fault.too_long && !fault.passing);
    let other = failure(400, r#"{"error": {"message": "max_tokens is too large for this model"}}"#);
    assert!(matches!(other.error, ProviderError::Permanent { .. }), "{:?}", other.error);
}

#[test]
fn errors_inside_a_stream_are_told_apart() {
    for (error, passing) in [
        (json!("llama runner process has terminated"), true),
        (json!({ "type": "overloaded_error", "message": "Overloaded" }), true),
        (json!({ "type": "invalid_request_error", "message": "no" }), false),
        (json!({ "code": 429, "message": "slow down" }), true),
        (json!({ "code": "400", "message": "no" }), false),
        (json!({ "code": 502, "message": "bad gateway" }), true),
        (json!({ "code": "insufficient_quota", "message": "pay" }), false),
        (json!({ "message": "who knows" }), true),
        (json!({}), true),
    ] {
        assert_eq!(Fault::reported(&error).passing, passing, "{error}");
    }
}

#[test]
fn the_wish_to_be_left_alone_is_understood() {
    // 1994-11-06T08:49:37Z.
    let now = Timestamp::from_micros(784_111_777_000_000);
    for (name, value, expected) in [
        ("retry-after", "7", Some(7_000)),
        ("retry-after", " 1.5 ", Some(1_500)),
        ("retry-after-ms", "250", Some(250)),
        ("retry-after", "Sun, 06 Nov 1994 08:50:07 GMT", Some(30_000)),
        ("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT", Some(0)),
        ("retry-after", "-3", None),
        ("retry-after", "NaN", None),
        ("retry-after", "1e300", None),
        ("retry-after", "soon", None),
        ("x-other", "7", None),
    ] {
        let mut headers = HeaderMap::new();
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        assert_eq!(retry_after(&headers, now), expected.map(Duration::from_millis), "{name}: {value}");
    }
}

#[test]
fn a_refused_schema_is_recognised() {
    let about = |status: u16, words: &str| {
        is_about_the_schema(&Refusal { status: Some(status), words: words.to_owned(), parameter: None })
    };
    for words in [
        "'response_format' is not supported by this model",
        "Invalid schema for response_format 'x': 'additionalProperties' is required",
        "tools.0.custom.strict: Extra inputs are not permitted",
        "json: cannot unmarshal object into Go struct field ChatRequest.format of type string",
        "Failed to parse grammar",
        "No endpoints found that can handle the requested parameters.",
    ] {
        assert!(about(400, words), "{words}");
    }
    for words in ["maximum context length is 8192 tokens", "For more information see our pages", "unknown model"] {
        assert!(!about(400, words), "{words}");
    }
    assert!(about(500, "failed to compile grammar") && !about(500, "the tool server is down"));
}

#[test]
fn words_are_one_line_of_bounded_length() {
    assert_eq!(tidy(" a\r\n\tb\u{7}c  "), "a b c");
    assert_eq!(tidy(&"ä".repeat(600)).chars().count(), 501);
}
