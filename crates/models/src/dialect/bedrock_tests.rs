use super::super::tests::{fault, pieces, read, request, thoughtful, two_functions};
use super::*;
use trellis_domain::usage::TokenDetails;

#[test]
fn it_is_asked_in_its_words() {
    let schema = json!({ "type": "object" });
    let strict = SchemaEnforcement::Strict(schema.clone());
    let body = Bedrock.body("m", &request("Be kind."), &strict, LeftOut::default());
    let format = json!({ "type": "json_schema",
        "structure": { "jsonSchema": { "name": "my_prompt", "schema": "{\"type\":\"object\"}" } } });
    let expected = json!({
        "messages": [{ "role": "user", "content": [{ "text": "Why?" }] }], "system": [{ "text": "Be kind." }],
        "outputConfig": { "textFormat": format },
    });
    assert_eq!(body, expected);
    let body = Bedrock.body("m", &request("Be kind."), &strict, LeftOut(FORMAT | SYSTEM));
    assert!(body["outputConfig"].is_null() && body["system"].is_null());
    assert_eq!(body["messages"][0]["content"][0]["text"], "Be kind.\n\nWhy?");
    assert_eq!(body["toolConfig"]["toolChoice"], json!({ "tool": { "name": "reply" } }));
    let tool = &body["toolConfig"]["tools"][0]["toolSpec"];
    assert_eq!((&tool["inputSchema"]["json"], &tool["strict"]), (&schema, &json!(true)));
    let body = Bedrock.body("m", &request(""), &SchemaEnforcement::Guided(&schema), LeftOut(FORCES));
    assert!(
        body["toolConfig"]["toolChoice"].is_null() && body["toolConfig"]["tools"][0]["toolSpec"]["strict"].is_null()
    );
    let set = Sampling { temperature: Some(0.5), top_p: Some(0.9), max_tokens: Some(300), ..Sampling::default() };
    let mut body = json!({});
    Bedrock.sample(&mut body, &set, LeftOut(TEMPERATURE));
    assert_eq!(body, json!({ "inferenceConfig": { "topP": 0.9, "maxTokens": 300 } }));
}

#[test]
fn it_is_said_to_hold_only_what_it_was_seen_to_hold() {
    let (text, call) = (Understood { unenforced: true, ..Understood::default() }, Understood::default());
    assert!(Bedrock.was_held(&text, LeftOut::default()), "whether it overlooks a schema shows in a probe");
    assert!(!Bedrock.was_held(&text, LeftOut(FORMAT)) && Bedrock.was_held(&call, LeftOut(FORMAT)));
}

#[test]
fn functions_are_offered_and_one_of_them_must_be_called() {
    let functions = two_functions();
    let offered = SchemaEnforcement::Functions { functions: &functions, strict: true };
    let body = Bedrock.body("m", &request(""), &offered, LeftOut::default());
    let [search, open, _] = body["toolConfig"]["tools"].as_array().unwrap().as_slice() else { panic!("{body}") };
    assert_eq!((&search["toolSpec"]["name"], &search["toolSpec"]["strict"]), (&json!("web_search"), &json!(true)));
    assert!(open["toolSpec"]["strict"].is_null());
    assert_eq!(body["toolConfig"]["toolChoice"], json!({ "any": {} }));
}

#[test]
fn a_conversation_goes_back_with_what_was_thought() {
    let request = thoughtful(&["bedrock:s1", "bedrock-redacted:d1", "anthropic:s2"]);
    let body = Bedrock.body("m", &request, &SchemaEnforcement::Free, LeftOut::default());
    let call = json!({ "toolUse": { "toolUseId": "c1", "name": "f", "input": {} } });
    let result = json!({ "toolUseId": "c1", "content": [{ "text": "r" }], "status": "success" });
    let expected = json!([
        { "role": "user", "content": [{ "text": "Why?" }] },
        { "role": "assistant", "content": [
            { "reasoningContent": { "reasoningText": { "text": "hm", "signature": "s1" } } },
            { "reasoningContent": { "redactedContent": "d1" } },
            call,
        ] },
        { "role": "user", "content": [{ "toolResult": result }] },
    ]);
    assert_eq!(body["messages"], expected);
    let body = Bedrock.body("m", &request, &SchemaEnforcement::Free, LeftOut(THOUGHTS));
    assert_eq!(body["messages"][1]["content"], json!([call]));
}

#[test]
fn models_that_keep_a_prefix_are_asked_to_where_they_can() {
    let point = json!({ "cachePoint": { "type": "default" } });
    let functions = two_functions();
    let offered = SchemaEnforcement::Functions { functions: &functions, strict: false };
    let conversation = ModelRequest { system: "Be kind.".into(), ..thoughtful(&[]) };
    let marked = |model: &str, request: &ModelRequest, left_out: LeftOut| {
        let body = Bedrock.body(model, request, &offered, left_out);
        let lists = [&body["system"], &body["toolConfig"]["tools"], &body["messages"][2]["content"]];
        let is_last = lists.map(|list| list.as_array().and_then(|list| list.last()) == Some(&point));
        assert_eq!(body.to_string().matches("cachePoint").count(), is_last.iter().filter(|last| **last).count());
        is_last
    };
    for (model, expected) in [
        ("eu.anthropic.claude-sonnet-4-5-20250929-v1:0", [true, true, true]),
        ("amazon.nova-pro-v1:0", [true, false, true]),
        ("anthropic.claude-3-haiku-20240307-v1:0", [false, false, false]),
        ("meta.llama3-3-70b-instruct-v1:0", [false, false, false]),
    ] {
        assert_eq!(marked(model, &conversation, LeftOut::default()), expected, "{model}");
        assert_eq!(marked(model, &conversation, LeftOut(CACHE)), [false; 3], "{model} has refused it");
        assert_eq!(marked(model, &request("Be kind."), LeftOut::default()), [false; 3], "{model}: nothing follows");
    }
}

fn delta(delta: Value) -> Value {
    json!({ "contentBlockDelta": { "contentBlockIndex": 1, "delta": delta } })
}

fn end(reason: &str) -> [Value; 2] {
    let usage = json!({ "inputTokens": 5, "cacheReadInputTokens": 7, "outputTokens": 2, "totalTokens": 14 });
    [json!({ "messageStop": { "stopReason": reason } }), json!({ "metadata": { "usage": usage, "metrics": {} } })]
}

#[test]
fn streams_are_read() {
    let begin = json!({ "messageStart": { "role": "assistant" } });
    let [stop, usage] = end("end_turn");
    let thought = delta(json!({ "reasoningContent": { "text": "hm" } }));
    let texts = ["Mo", "ss"].map(|text| delta(json!({ "text": text })));
    let stream = [vec![begin, thought], texts.to_vec(), vec![json!({ "contentBlockStop": {} }), stop, usage]].concat();
    let (text, understood) = read(&Bedrock, &stream);
    let expected = Understood {
        in_token: Some(12),
        out_token: Some(2),
        details: TokenDetails { cached: Some(7), ..TokenDetails::default() },
        stop: Some(Stop::Finished),
        over: true,
        unenforced: true,
        ..Understood::default()
    };
    assert_eq!((text.as_str(), understood), ("Moss", expected));
    assert_eq!(read(&Bedrock, &end("max_tokens")).1.stop, Some(Stop::Length));
    assert_eq!(read(&Bedrock, &end("guardrail_intervened")).1.stop, Some(Stop::Withheld));
    assert!(read(&Bedrock, &[json!({ "news": {} })]).1.unrecognised.is_some());
}

#[test]
fn calls_and_signatures_are_read() {
    let start = json!({ "toolUse": { "toolUseId": "c1", "name": "f" } });
    let start = json!({ "contentBlockStart": { "contentBlockIndex": 1, "start": start } });
    let begun = CallPiece { place: 1, id: Some("c1".into()), function: Some("f".into()), arguments: String::new() };
    assert_eq!(pieces(&Bedrock, &start), [begun]);
    let piece = CallPiece { place: 1, arguments: "{\"q".into(), ..CallPiece::default() };
    assert_eq!(pieces(&Bedrock, &delta(json!({ "toolUse": { "input": "{\"q" } }))), [piece]);
    let said = |thought: Value| {
        let message = delta(json!({ "reasoningContent": thought })).to_string();
        Bedrock.read(&message, &mut Understood::default()).unwrap()
    };
    assert_eq!(said(json!({ "signature": "s1" })), [Said::Signature("bedrock:s1".into())]);
    assert_eq!(said(json!({ "redactedContent": "ZA==" })), [Said::Signature("bedrock-redacted:ZA==".into())]);
}

#[test]
fn failures_are_read() {
    let failure = |kind: &str| fault(&Bedrock, &json!({ kind: { "message": "oh" } }).to_string());
    for kind in ["throttlingException", "modelStreamErrorException", "serviceUnavailableException", "error"] {
        assert_eq!((failure(kind).words.as_str(), failure(kind).passing), ("oh", true), "{kind}");
    }
    let refused = failure("validationException");
    assert_eq!((refused.passing, refused.status), (false, Some(400)));
    let broken = fault(&Bedrock, &json!({ "messageStop": { "stopReason": "malformed_tool_use" } }).to_string());
    assert_eq!(broken.words, "the reply ended with malformed_tool_use");
}
