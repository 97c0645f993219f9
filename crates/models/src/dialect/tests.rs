use super::*;
use crate::functions::tests::offered;
use crate::provider::LastSent;
use crate::remote::{
    CACHE, COUNTS, Dialect, EFFORT, FORCES, FORMAT, LIMIT, ONE_CALL, SYSTEM, Said, SchemaEnforcement, Stop, THOUGHTS,
};
use serde_json::Map;
use trellis_domain::config::PromptReply;
use trellis_domain::parts::CallPiece;
use trellis_domain::usage::TokenDetails;

pub(super) fn request(system: &str) -> ModelRequest {
    ModelRequest {
        system: system.into(),
        user: "Why?".into(),
        prompt: "my prompt".to_owned(),
        variables: Map::new(),
        expected: PromptReply::Text,
        turns: Vec::new(),
        tools: None,
        labels: None,
        drawn: Vec::new(),
        sent: LastSent::default(),
    }
}

/// The dialect as a known service speaks it.
fn at(service: &str) -> OpenAi {
    OpenAi { quirks: crate::services::named(service).unwrap().quirks }
}

/// The text of some messages, and what was understood besides.
pub(super) fn read(dialect: &impl Dialect, messages: &[Value]) -> (String, Understood) {
    let mut understood = Understood::default();
    let texts = messages.iter().map(|message| {
        let message = message.as_str().map_or_else(|| message.to_string(), str::to_owned);
        let said = dialect.read(&message, &mut understood).unwrap();
        said.into_iter().map(|said| match said {
            Said::Text(text) | Said::Refusal(text) => text,
            Said::Thought(_) | Said::Signature(_) => String::new(),
            Said::Call(piece) => piece.arguments,
        })
    });
    let text = texts.flatten().collect();
    (text, understood)
}

pub(super) fn fault(dialect: &impl Dialect, message: &str) -> Fault {
    dialect.read(message, &mut Understood::default()).unwrap_err()
}

#[test]
fn openai_is_asked_in_its_words() {
    let dialect = at("openai");
    let schema = json!({ "type": "object" });
    let body = dialect.body("m", &request("Be kind."), &SchemaEnforcement::Strict(schema.clone()), LeftOut::default());
    let messages = json!([{ "role": "system", "content": "Be kind." }, { "role": "user", "content": "Why?" }]);
    let format = json!({ "name": "my_prompt", "schema": schema, "strict": true });
    let expected = json!({
        "model": "m", "messages": messages, "stream": true, "stream_options": { "include_usage": true },
        "response_format": { "type": "json_schema", "json_schema": format },
    });
    assert_eq!(body, expected);
    let body = dialect.body("m", &request(""), &SchemaEnforcement::Guided(&schema), LeftOut::default());
    assert_eq!(body["response_format"]["json_schema"]["strict"], false);
    assert_eq!(body["messages"].as_array().unwrap().len(), 1);
    assert!(dialect.body("m", &request(""), &SchemaEnforcement::Free, LeftOut::default())["response_format"].is_null());
    let routed = at("openrouter").body("m", &request(""), &SchemaEnforcement::Guided(&schema), LeftOut::default());
    assert_eq!(routed["provider"], json!({ "require_parameters": true }));
}

#[test]
fn a_model_without_a_system_role_gets_everything_in_one_message() {
    let dialect = OpenAi::default();
    let request = request("Be kind.");
    assert_eq!(
        dialect.body("m", &request, &SchemaEnforcement::Free, LeftOut::default())["messages"][0]["role"],
        "system"
    );
    let expected = json!([{ "role": "user", "content": format!("Be kind.\n\n{}", request.user) }]);
    assert_eq!(dialect.body("m", &request, &SchemaEnforcement::Free, LeftOut(SYSTEM))["messages"], expected);
}

#[test]
fn what_openai_models_refuse_is_left_out_or_said_in_another_way() {
    let (here, there) = (OpenAi::default(), at("openai"));
    let body = here.body("m", &request(""), &SchemaEnforcement::Free, LeftOut(COUNTS));
    assert!(body["stream_options"].is_null());
    let set = Sampling { temperature: Some(0.5), top_p: Some(0.9), max_tokens: Some(300), ..Sampling::default() };
    let sampled = |dialect: &OpenAi, left_out: u16| {
        let mut body = json!({});
        dialect.sample(&mut body, &set, LeftOut(left_out));
        body
    };
    assert_eq!(sampled(&here, TEMPERATURE), json!({ "top_p": 0.9, "max_tokens": 300 }));
    assert_eq!(sampled(&here, TEMPERATURE | TOP_P | LIMIT), json!({ "max_completion_tokens": 300 }));
    assert_eq!(sampled(&there, TEMPERATURE | TOP_P | LIMIT), json!({ "max_tokens": 300 }));
    let functions = two_functions();
    let offered = SchemaEnforcement::Functions { functions: &functions, strict: true };
    assert!(there.body("m", &request(""), &offered, LeftOut::default())["reasoning_effort"].is_null());
    assert_eq!(there.body("m", &request(""), &offered, LeftOut(EFFORT))["reasoning_effort"], "none");
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
    assert_eq!((text.as_str(), understood.unenforced), ("I will not.", true));
    let (_, understood) = read(&OpenAi::default(), &[json!({ "status": "ok" })]);
    assert_eq!(understood.unrecognised.as_deref(), Some(r#"{"status":"ok"}"#));
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
    let dialect = Anthropic { max_tokens: None };
    let schema = json!({ "type": "object" });
    let strict = SchemaEnforcement::Strict(schema.clone());
    let body = dialect.body("m", &request("Be kind."), &strict, LeftOut::default());
    assert_eq!(body["output_config"], json!({ "format": { "type": "json_schema", "schema": schema } }));
    assert!(body["tools"].is_null() && body["messages"][0]["content"].is_string());
    let body = dialect.body("m", &request("Be kind."), &strict, LeftOut(FORMAT));
    assert!(body["output_config"].is_null());
    assert_eq!(
        (&body["system"], &body["max_tokens"], &body["stream"]),
        (&json!("Be kind."), &json!(8192), &json!(true))
    );
    assert_eq!(body["tool_choice"], json!({ "type": "tool", "name": "reply" }));
    assert_eq!((&body["tools"][0]["input_schema"], &body["tools"][0]["strict"]), (&schema, &json!(true)));
    let body = dialect.body("m", &request(""), &SchemaEnforcement::Guided(&schema), LeftOut::default());
    assert!(body["tools"][0]["strict"].is_null() && body["system"].is_null());
    assert!(dialect.body("m", &request(""), &SchemaEnforcement::Free, LeftOut::default())["tools"].is_null());
    assert!(dialect.can_show(&schema) && !dialect.can_show(&json!({ "type": "array" })));
}

#[test]
fn anthropic_is_said_to_hold_only_what_it_was_seen_to_hold() {
    let dialect = Anthropic { max_tokens: None };
    let (text, call) = (Understood { unenforced: true, ..Understood::default() }, Understood::default());
    assert!(
        dialect.was_held(&text, LeftOut::default()),
        "whether it overlooks a schema for the reply shows in a probe"
    );
    assert!(!dialect.was_held(&text, LeftOut(FORMAT)) && dialect.was_held(&call, LeftOut(FORMAT)));
    assert!(!dialect.was_held(&call, LeftOut(FORMAT | FORCES)), "nothing made it call the tool");
}

#[test]
fn anthropic_is_asked_to_keep_what_it_computed_for_a_conversation() {
    let dialect = Anthropic { max_tokens: None };
    let mut request = request("");
    request.turns = vec![
        ChatTurn::Assistant { parts: vec![ReplyPart::Text { text: "one".into() }] },
        ChatTurn::User { text: "two".into() },
    ];
    let body = dialect.body("m", &request, &SchemaEnforcement::Free, LeftOut::default());
    let marked = json!([{ "type": "text", "text": "two", "cache_control": { "type": "ephemeral" } }]);
    assert_eq!(body["messages"][2]["content"], marked);
    assert_eq!(body.to_string().matches("cache_control").count(), 1);
    let body = dialect.body("m", &request, &SchemaEnforcement::Free, LeftOut(CACHE));
    assert!(!body.to_string().contains("cache_control"));
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
    let (text, understood) =
        read(&Anthropic { max_tokens: None }, &[vec![start], tool.to_vec(), end.to_vec()].concat());
    let expected = Understood {
        model: Some("claude-1".to_owned()),
        in_token: Some(13),
        out_token: Some(9),
        details: TokenDetails { cached: Some(7), cache_written: Some(1), ..TokenDetails::default() },
        stop: Some(Stop::Calls),
        over: true,
        ..Understood::default()
    };
    assert_eq!((text.as_str(), understood), ("{\"a\":1}", expected));
    let words = [
        delta(json!({ "type": "thinking_delta", "thinking": "hm" })),
        delta(json!({ "type": "text_delta", "text": "Moss" })),
    ];
    let (text, understood) = read(&Anthropic { max_tokens: None }, &words);
    assert_eq!((text.as_str(), understood.unenforced), ("Moss", true));
}

#[test]
fn anthropic_replies_and_errors_are_read() {
    let whole = json!({
        "type": "message", "model": "c", "stop_reason": "max_tokens", "usage": { "input_tokens": 1, "output_tokens": 2 },
        "content": [{ "type": "thinking", "thinking": "hm" }, { "type": "tool_use", "input": { "a": 1 } }],
    });
    let (text, understood) = read(&Anthropic { max_tokens: None }, &[whole]);
    assert_eq!((text.as_str(), understood.stop, understood.unenforced), ("{\"a\":1}", Some(Stop::Length), false));
    let error = json!({ "type": "error", "error": { "type": "overloaded_error", "message": "Overloaded" } });
    assert_eq!(fault(&Anthropic { max_tokens: None }, &error.to_string()).words, "Overloaded");
}

#[test]
fn ollama_is_asked_and_read() {
    let schema = json!({ "type": "object" });
    let body =
        Ollama::default().body("m", &request("Be kind."), &SchemaEnforcement::Guided(&schema), LeftOut::default());
    assert_eq!((&body["format"], body["messages"].as_array().unwrap().len()), (&schema, 2));
    assert!(
        Ollama::default().body("m", &request(""), &SchemaEnforcement::Free, LeftOut::default())["format"].is_null()
    );
    let (text, understood) = read(
        &Ollama::default(),
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
    assert_eq!(fault(&Ollama::default(), r#"{"error": "out of memory"}"#).words, "out of memory");
}

pub(super) fn two_functions() -> Functions {
    Functions::of(&[offered("web search", &[("q", "string")]), offered("open", &[("x", "object")])])
}

#[test]
fn functions_are_offered_in_each_providers_words() {
    let functions = two_functions();
    let (strict, loose) = (
        SchemaEnforcement::Functions { functions: &functions, strict: true },
        SchemaEnforcement::Functions { functions: &functions, strict: false },
    );
    let openai = OpenAi::default();
    let body = openai.body("m", &request(""), &strict, LeftOut::default());
    let [search, open, answer] = body["tools"].as_array().unwrap().as_slice() else { panic!("{body}") };
    assert_eq!((&search["type"], &search["function"]["name"]), (&json!("function"), &json!("web_search")));
    assert_eq!(search["function"]["parameters"]["required"], json!(["thought", "q"]));
    assert_eq!((&search["function"]["strict"], &open["function"]["strict"]), (&json!(true), &Value::Null));
    assert_eq!(answer["function"]["name"], "final_answer");
    assert_eq!((&body["tool_choice"], &body["parallel_tool_calls"]), (&json!("required"), &json!(false)));
    assert!(openai.body("m", &request(""), &loose, LeftOut::default())["tools"][0]["function"]["strict"].is_null());
    let anthropic = Anthropic { max_tokens: None };
    let one = anthropic.body("m", &request(""), &strict, LeftOut::default());
    assert_eq!(one["tool_choice"], json!({ "type": "any", "disable_parallel_tool_use": true }));
    let body = anthropic.body("m", &request(""), &strict, LeftOut(ONE_CALL));
    let [search, open, _] = body["tools"].as_array().unwrap().as_slice() else { panic!("{body}") };
    assert_eq!(
        (&search["name"], &search["strict"], &open["strict"]),
        (&json!("web_search"), &json!(true), &Value::Null)
    );
    assert_eq!(search["input_schema"]["properties"]["q"]["type"], "string");
    assert_eq!(body["tool_choice"], json!({ "type": "any" }));
    let body = Ollama::default().body("m", &request(""), &loose, LeftOut::default());
    assert_eq!(body["tools"][0]["function"]["name"], "web_search");
    assert!(!Ollama::default().enforces_functions() && openai.enforces_functions() && anthropic.enforces_functions());
}

#[test]
fn what_forces_a_call_is_left_out_once_it_is_refused() {
    let functions = two_functions();
    let loose = SchemaEnforcement::Functions { functions: &functions, strict: false };
    let body = OpenAi::default().body("m", &request(""), &loose, LeftOut(FORCES | ONE_CALL));
    assert!(body["tool_choice"].is_null() && body["parallel_tool_calls"].is_null() && body["tools"].is_array());
    let body = Anthropic { max_tokens: None }.body("m", &request(""), &loose, LeftOut(FORCES | ONE_CALL));
    assert_eq!(body["tool_choice"], json!({ "type": "auto" }));
}

#[test]
fn only_what_is_set_is_said_about_how_words_are_drawn() {
    let set = Sampling { temperature: Some(0.5), top_p: Some(0.9), max_tokens: Some(300), ..Sampling::default() };
    let sampled = |dialect: &dyn Fn(&mut Value, &Sampling), sampling: &Sampling| {
        let mut body = json!({});
        dialect(&mut body, sampling);
        body
    };
    let original = at("openai");
    let other = OpenAi::default();
    let anthropic = Anthropic { max_tokens: Some(77) };
    let nothing = Sampling::default();
    assert_eq!(sampled(&|body, set| original.sample(body, set, LeftOut::default()), &nothing), json!({}));
    assert_eq!(sampled(&|body, set| Ollama::default().sample(body, set, LeftOut::default()), &nothing), json!({}));
    let limit = |name: &str, most: u32| json!({ "temperature": 0.5, "top_p": 0.9, name: most });
    assert_eq!(
        sampled(&|body, set| original.sample(body, set, LeftOut::default()), &set),
        limit("max_completion_tokens", 300)
    );
    assert_eq!(sampled(&|body, set| other.sample(body, set, LeftOut::default()), &set), limit("max_tokens", 300));
    assert_eq!(sampled(&|body, set| anthropic.sample(body, set, LeftOut::default()), &set), limit("max_tokens", 77));
    assert_eq!(
        sampled(&|body, set| Ollama::default().sample(body, set, LeftOut::default()), &set),
        json!({ "options": limit("num_predict", 300) })
    );
}

/// The pieces of calls that a message brings.
pub(super) fn pieces(dialect: &impl Dialect, message: &Value) -> Vec<CallPiece> {
    let said = dialect.read(&message.to_string(), &mut Understood::default()).unwrap();
    said.into_iter()
        .map(|said| match said {
            Said::Call(piece) => piece,
            Said::Text(text) | Said::Thought(text) | Said::Signature(text) | Said::Refusal(text) => panic!("{text}"),
        })
        .collect()
}

#[test]
fn calls_are_read_in_each_providers_words() {
    let piece = |place, id: Option<&str>, function: Option<&str>, arguments: &str| CallPiece {
        place,
        id: id.map(str::to_owned),
        function: function.map(str::to_owned),
        arguments: arguments.to_owned(),
    };
    let openai = OpenAi::default();
    let calls = json!([
        { "index": 0, "id": "a", "function": { "name": "f", "arguments": "{\"q" } },
        { "index": 1, "id": "b", "function": { "name": "g", "arguments": "" } },
    ]);
    let delta = json!({ "id": "c", "choices": [{ "index": 0, "delta": { "content": null, "tool_calls": calls } }] });
    let expected = [piece(0, Some("a"), Some("f"), "{\"q"), piece(1, Some("b"), Some("g"), "")];
    assert_eq!(pieces(&openai, &delta), expected);
    let message = json!({ "tool_calls": [{ "id": "a", "function": { "name": "f", "arguments": "{}" } }] });
    let whole = json!({ "id": "c", "choices": [{ "message": message, "finish_reason": "tool_calls" }] });
    assert_eq!(pieces(&openai, &whole), [piece(0, Some("a"), Some("f"), "{}")]);
    let anthropic = Anthropic { max_tokens: None };
    let block = json!({ "type": "tool_use", "id": "t", "name": "f", "input": {} });
    let start = json!({ "type": "content_block_start", "index": 1, "content_block": block });
    assert_eq!(pieces(&anthropic, &start), [piece(1, Some("t"), Some("f"), "")]);
    let delta = json!({ "type": "input_json_delta", "partial_json": "{\"q" });
    let delta = json!({ "type": "content_block_delta", "index": 1, "delta": delta });
    assert_eq!(pieces(&anthropic, &delta), [piece(1, None, None, "{\"q")]);
    let call = json!({ "function": { "name": "f", "arguments": { "q": 1 } } });
    let line = json!({ "message": { "content": "", "tool_calls": [call, call] }, "done": false });
    assert_eq!(
        pieces(&Ollama::default(), &line),
        [piece(1, None, Some("f"), "{\"q\":1}"), piece(2, None, Some("f"), "{\"q\":1}")]
    );
}

#[test]
fn halves_of_characters_do_not_spoil_a_message() {
    let message = r#"{"a": "Hi \ud83d", "b": "\ude00 there \\ud83d \ud83d\ude00 \u00e9", "c": "\ud83d\n"}"#;
    let expected = json!({ "a": "Hi \u{fffd}", "b": "\u{fffd} there \\ud83d 😀 é", "c": "\u{fffd}\n" });
    assert_eq!(json_of(message), Ok(expected));
    for rubbish in ["{\"a\": \"\\ud83d", "\\", "\\u", "\\ud8", "\\ud83d\\ö"] {
        assert!(json_of(rubbish).is_err(), "{rubbish}");
    }
}

#[test]
fn ollama_gets_room_for_the_prompt_and_the_reply() {
    let ollama = Ollama::default();
    let fitted = |ollama: &Ollama, bytes: usize, most: u64, size: Option<u64>| {
        let mut body = json!({ "prompt": "x".repeat(bytes), "options": { "num_predict": most } });
        ollama.fit(&mut body, size).map(|()| body["options"].clone())
    };
    let options = |room: u64, most: u64| Ok(json!({ "num_ctx": room, "num_predict": most }));
    assert_eq!(fitted(&ollama, 300, 100, Some(131_072)), options(4096, 100));
    assert_eq!(fitted(&ollama, 30_000, 100, Some(131_072)), options(16_384, 100));
    assert_eq!(fitted(&ollama, 300, 100, Some(131_072)), options(16_384, 100), "the model is not loaded anew");
    assert_eq!(fitted(&Ollama::default(), 30_000, 100, None), options(16_384, 100));
    let small = fitted(&Ollama::default(), 3_000, 4096, Some(2048)).unwrap();
    assert_eq!(small["num_ctx"], 2048);
    let most = small["num_predict"].as_u64().unwrap();
    assert!((900..1040).contains(&most), "what is left for the reply: {most}");
    let refused = fitted(&ollama, 30_000, 4096, Some(8192)).unwrap_err();
    assert!(refused.contains("and the context size of the model is 8192"), "{refused}");
}

#[test]
fn ollama_is_told_how_long_to_keep_a_model_and_whether_it_thinks() {
    let set = Sampling { keep_alive: Some(json!("30m")), think: Some(json!(false)), ..Sampling::default() };
    let mut body = json!({});
    Ollama::default().sample(&mut body, &set, LeftOut::default());
    assert_eq!(body, json!({ "keep_alive": "30m", "think": false }));
}

#[test]
fn an_effort_is_said_in_each_providers_words_and_left_out_once_refused() {
    let set = Sampling { reasoning_effort: Some("low".to_owned()), ..Sampling::default() };
    let sampled = |dialect: &dyn Fn(&mut Value)| {
        let mut body = json!({});
        dialect(&mut body);
        body
    };
    let openai = OpenAi::default();
    assert_eq!(sampled(&|body| openai.sample(body, &set, LeftOut::default())), json!({ "reasoning_effort": "low" }));
    assert_eq!(sampled(&|body| openai.sample(body, &set, LeftOut(EFFORT))), json!({}));
    let anthropic = Anthropic { max_tokens: None };
    let effort = json!({ "output_config": { "effort": "low" } });
    assert_eq!(sampled(&|body| anthropic.sample(body, &set, LeftOut::default())), effort);
    assert_eq!(sampled(&|body| anthropic.sample(body, &set, LeftOut(FORMAT))), json!({}));
}

#[test]
fn json_is_asked_for_where_the_prompt_speaks_of_it() {
    let dialect = OpenAi::default();
    let body = dialect.body("m", &request("Reply with JSON."), &SchemaEnforcement::Json, LeftOut::default());
    assert_eq!(body["response_format"], json!({ "type": "json_object" }));
    assert!(dialect.has_json_mode(&request("Reply with JSON.")) && !dialect.has_json_mode(&request("Be kind.")));
    assert!(at("deepseek").has_json_mode(&request("Reply with JSON.")), "it knows JSON, and no schema");
}

#[test]
fn quirks_are_heeded() {
    let functions = two_functions();
    let offered = SchemaEnforcement::Functions { functions: &functions, strict: true };
    let body = at("mistral").body("m", &request(""), &offered, LeftOut(at("mistral").lacks()));
    assert_eq!((&body["tool_choice"], &body["stream_options"]), (&json!("any"), &Value::Null));
    let body = at("gemini").body("m", &request(""), &offered, LeftOut(at("gemini").lacks()));
    assert_eq!((&body["tool_choice"], &body["parallel_tool_calls"]), (&json!("required"), &Value::Null));
    assert!(!at("deepseek").can_show(&json!({ "type": "object" })) && !at("deepseek").enforces_functions());
    let mut called = request("");
    called.turns = vec![ChatTurn::ToolResult {
        call: Some("c1".to_owned()),
        function: "open".to_owned(),
        text: "done".into(),
        is_error: false,
    }];
    let results = |dialect: OpenAi| {
        let body = dialect.body("m", &called, &SchemaEnforcement::Free, LeftOut::default());
        body["messages"].as_array().unwrap().last().unwrap()["name"].clone()
    };
    assert_eq!((results(at("gemini")), results(OpenAi::default())), (json!("open"), Value::Null));
}

#[test]
fn anthropic_gets_back_what_it_thought_as_it_signed_it() {
    let dialect = Anthropic { max_tokens: None };
    let block = |block: Value| json!({ "type": "content_block_start", "index": 0, "content_block": block });
    let delta = |delta: Value| json!({ "type": "content_block_delta", "index": 0, "delta": delta });
    let mut understood = Understood::default();
    let messages = [
        block(json!({ "type": "thinking", "thinking": "", "signature": "" })),
        delta(json!({ "type": "thinking_delta", "thinking": "hm" })),
        delta(json!({ "type": "signature_delta", "signature": "s1" })),
        block(json!({ "type": "redacted_thinking", "data": "d1" })),
    ];
    let said: Vec<_> =
        messages.iter().flat_map(|message| dialect.read(&message.to_string(), &mut understood).unwrap()).collect();
    let signature = |text: &str| Said::Signature(text.to_owned());
    let expected = [Said::Thought("hm".to_owned()), signature("anthropic:s1"), signature("anthropic-redacted:d1")];
    assert_eq!(said, expected);
    let whole = json!({ "type": "message", "content": [{ "type": "thinking", "thinking": "hm", "signature": "s1" }] });
    assert_eq!(dialect.read(&whole.to_string(), &mut understood).unwrap(), expected[..2]);
    let request = thoughtful(&["anthropic:s1", "anthropic-redacted:d1", "openai:rs:x"]);
    let body = dialect.body("m", &request, &SchemaEnforcement::Free, LeftOut(CACHE));
    let call = json!({ "type": "tool_use", "id": "c1", "name": "f", "input": {} });
    let replayed = json!([
        { "type": "thinking", "thinking": "hm", "signature": "s1" },
        { "type": "redacted_thinking", "data": "d1" },
        call,
    ]);
    assert_eq!(body["messages"][1]["content"], replayed);
    let body = dialect.body("m", &request, &SchemaEnforcement::Free, LeftOut(CACHE | THOUGHTS));
    assert_eq!(body["messages"][1]["content"], json!([call]));
}

/// A conversation in which the model thought this, each thought signed, and called something. A thought that is not
/// signed goes back to nobody.
pub(super) fn thoughtful(signatures: &[&str]) -> ModelRequest {
    let thought = |text: &str, signature: Option<&str>| ReplyPart::Thought {
        text: text.into(),
        signature: signature.map(Into::into),
    };
    let texts = ["hm", "", "other"];
    let signed = signatures.iter().zip(texts).map(|(signature, text)| thought(text, Some(signature)));
    let call = ReplyPart::Call { id: Some("c1".to_owned()), function: "f".to_owned(), arguments: "{}".into() };
    let parts = std::iter::once(thought("unsigned", None)).chain(signed).chain([call]).collect();
    let result = ChatTurn::ToolResult {
        call: Some("c1".to_owned()),
        function: "f".to_owned(),
        text: "r".into(),
        is_error: false,
    };
    ModelRequest { turns: vec![ChatTurn::Assistant { parts }, result], ..request("") }
}
