use super::super::tests::{fault, pieces, read, request, thoughtful, two_functions};
use super::*;
use trellis_domain::usage::TokenDetails;

#[test]
fn it_is_asked_in_its_words() {
    let schema = json!({ "type": "object" });
    let body =
        Responses.body("m", &request("Be kind."), &SchemaEnforcement::Strict(schema.clone()), LeftOut::default());
    let expected = json!({
        "model": "m", "input": [{ "role": "user", "content": "Why?" }], "instructions": "Be kind.", "stream": true,
        "store": false, "include": ["reasoning.encrypted_content"],
        "text": { "format": { "type": "json_schema", "name": "my_prompt", "schema": schema, "strict": true } },
    });
    assert_eq!(body, expected);
    let body = Responses.body("m", &request(""), &SchemaEnforcement::Guided(&schema), LeftOut(THOUGHTS));
    assert_eq!(body["text"]["format"]["strict"], false);
    assert!(body["include"].is_null() && body["instructions"].is_null());
    let set = Sampling {
        temperature: Some(0.5),
        max_tokens: Some(300),
        reasoning_effort: Some("low".into()),
        ..Sampling::default()
    };
    let mut body = json!({});
    Responses.sample(&mut body, &set, LeftOut::default());
    assert_eq!(body, json!({ "temperature": 0.5, "max_output_tokens": 300, "reasoning": { "effort": "low" } }));
}

#[test]
fn functions_are_offered_flat_and_say_whether_they_are_strict() {
    let functions = two_functions();
    let offered = SchemaEnforcement::Functions { functions: &functions, strict: true };
    let body = Responses.body("m", &request(""), &offered, LeftOut::default());
    let [search, open, answer] = body["tools"].as_array().unwrap().as_slice() else { panic!("{body}") };
    assert_eq!((&search["type"], &search["name"]), (&json!("function"), &json!("web_search")));
    assert_eq!(search["parameters"]["required"], json!(["thought", "q"]));
    assert_eq!((&search["strict"], &open["strict"]), (&json!(true), &json!(false)), "the usual is strict");
    assert_eq!(answer["name"], "final_answer");
    assert_eq!((&body["tool_choice"], &body["parallel_tool_calls"]), (&json!("required"), &json!(false)));
    let body = Responses.body("m", &request(""), &offered, LeftOut(FORCES | ONE_CALL));
    assert!(body["tool_choice"].is_null() && body["parallel_tool_calls"].is_null());
}

#[test]
fn a_conversation_is_a_list_of_items_with_what_was_thought() {
    let mut request = thoughtful(&["openai:rs_1:abc", "openai:rs_2:def", "anthropic:s1"]);
    request.turns.insert(0, ChatTurn::User { text: "Listed.".into() });
    request.turns.push(ChatTurn::Assistant { parts: vec![ReplyPart::Text { text: "Well.".into() }] });
    let body = Responses.body("m", &request, &SchemaEnforcement::Free, LeftOut::default());
    let expected = json!([
        { "role": "user", "content": "Why?\n\nListed." },
        { "type": "reasoning", "id": "rs_1", "summary": [{ "type": "summary_text", "text": "hm" }],
          "encrypted_content": "abc" },
        { "type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "def" },
        { "type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}" },
        { "type": "function_call_output", "call_id": "c1", "output": "r" },
        { "role": "assistant", "content": "Well." },
    ]);
    assert_eq!(body["input"], expected);
    let body = Responses.body("m", &request, &SchemaEnforcement::Free, LeftOut(THOUGHTS));
    assert_eq!(body["input"][1]["type"], "function_call");
}

fn done(status: &str, more: Value) -> Value {
    let usage = json!({ "input_tokens": 9, "input_tokens_details": { "cached_tokens": 4 }, "output_tokens": 7,
        "output_tokens_details": { "reasoning_tokens": 5 }, "total_tokens": 16 });
    let mut response = json!({ "object": "response", "model": "m-1", "status": status, "usage": usage, "output": [] });
    for (name, value) in more.as_object().unwrap() {
        response[name] = value.clone();
    }
    json!({ "type": format!("response.{status}"), "response": response })
}

#[test]
fn streams_are_read() {
    let event = |kind: &str, delta: &str| json!({ "type": kind, "output_index": 1, "delta": delta });
    let (text, understood) = read(
        &Responses,
        &[
            json!({ "type": "response.created", "response": { "model": "m-1" } }),
            event("response.reasoning_summary_text.delta", "hm"),
            event("response.output_text.delta", "Mo"),
            event("response.output_text.delta", "ss"),
            json!({ "type": "response.output_text.done", "text": "Moss" }),
            done("completed", json!({})),
        ],
    );
    let expected = Understood {
        model: Some("m-1".to_owned()),
        in_token: Some(9),
        out_token: Some(7),
        details: TokenDetails { cached: Some(4), reasoning: Some(5), ..TokenDetails::default() },
        stop: Some(Stop::Finished),
        over: true,
        ..Understood::default()
    };
    assert_eq!((text.as_str(), understood), ("Moss", expected));
    let (text, understood) = read(&Responses, &[event("response.refusal.delta", "I will not.")]);
    assert_eq!((text.as_str(), understood.unenforced), ("I will not.", true));
    let stop = |message: Value| read(&Responses, &[message]).1.stop;
    let incomplete = |reason: &str| stop(done("incomplete", json!({ "incomplete_details": { "reason": reason } })));
    assert_eq!(incomplete("max_output_tokens"), Some(Stop::Length));
    assert_eq!(incomplete("content_filter"), Some(Stop::Withheld));
    assert_eq!(stop(done("completed", json!({ "output": [{ "type": "function_call" }] }))), Some(Stop::Calls));
    assert!(read(&Responses, &[json!({ "status": "ok" })]).1.unrecognised.is_some());
}

#[test]
fn calls_and_thoughts_are_read() {
    let item = json!({ "type": "function_call", "id": "fc", "call_id": "c1", "name": "f", "arguments": "" });
    let added = json!({ "type": "response.output_item.added", "output_index": 2, "item": item });
    let begun = CallPiece { place: 2, id: Some("c1".into()), function: Some("f".into()), arguments: String::new() };
    assert_eq!(pieces(&Responses, &added), [begun]);
    let delta = json!({ "type": "response.function_call_arguments.delta", "output_index": 2, "delta": "{\"q" });
    let piece = CallPiece { place: 2, arguments: "{\"q".into(), ..CallPiece::default() };
    assert_eq!(pieces(&Responses, &delta), [piece]);
    let thought = json!({ "type": "reasoning", "id": "rs_1", "summary": [{ "type": "summary_text", "text": "hm" }],
        "encrypted_content": "abc" });
    let finished = json!({ "type": "response.output_item.done", "item": thought });
    let said = Responses.read(&finished.to_string(), &mut Understood::default()).unwrap();
    assert_eq!(said, [Said::Signature("openai:rs_1:abc".to_owned())], "its summary came before");
    let begun = json!({ "type": "response.output_item.added", "item": thought });
    assert_eq!(Responses.read(&begun.to_string(), &mut Understood::default()).unwrap(), []);
}

#[test]
fn a_reply_that_is_not_streamed_is_read() {
    let output = json!([
        { "type": "reasoning", "id": "rs_1", "summary": [{ "type": "summary_text", "text": "hm" }],
          "encrypted_content": "abc" },
        { "type": "message", "content": [{ "type": "output_text", "text": "Look." }] },
        { "type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}" },
    ]);
    let whole = done("completed", json!({ "output": output }))["response"].clone();
    let mut understood = Understood::default();
    let said = Responses.read(&whole.to_string(), &mut understood).unwrap();
    let call = CallPiece { place: 2, id: Some("c1".into()), function: Some("f".into()), arguments: "{}".into() };
    let expected = [
        Said::Thought("hm".into()),
        Said::Signature("openai:rs_1:abc".into()),
        Said::Text("Look.".into()),
        Said::Call(call),
    ];
    assert_eq!((said.as_slice(), understood.stop, understood.over), (&expected[..], Some(Stop::Calls), true));
}

#[test]
fn errors_are_read() {
    let failed = |code: &str| done("failed", json!({ "error": { "code": code, "message": "oh" } })).to_string();
    let error = fault(&Responses, &failed("server_error"));
    assert_eq!((error.words.as_str(), error.passing), ("oh", true));
    assert!(!fault(&Responses, &failed("invalid_prompt")).passing);
    let event = json!({ "type": "error", "code": "context_length_exceeded", "message": "long", "param": "input" });
    let error = fault(&Responses, &event.to_string());
    assert!(error.too_long && error.parameter.as_deref() == Some("input"));
    let nested = json!({ "type": "error", "error": { "type": "invalid_request_error", "message": "no" } });
    assert!(!fault(&Responses, &nested.to_string()).passing);
}
