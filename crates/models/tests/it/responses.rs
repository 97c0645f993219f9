//! OpenAI's Responses over a real connection.

use crate::ask::{KEY, ask, held, permanent, transient};
use crate::configured::{ARGUMENTS, FUNCTION, called, connected, gone_on_with};
use crate::stub::{Script, Stub, answer, stream};
use crate::tools::offering;
use serde_json::{Value, json};
use std::sync::Arc;
use trellis_domain::parts::{ReplyPart, StopReason};
use trellis_models::{CallSettings, DialectKind, KeyPlace, Provider, ProviderSettings};

fn provider(stub: &Stub) -> Arc<dyn Provider> {
    let own = ProviderSettings {
        dialect: Some(DialectKind::Responses),
        address: Some(format!("{}/v1", stub.base)),
        key: Some(KeyPlace::Variable("OPENAI_API_KEY".to_owned())),
        ..ProviderSettings::default()
    };
    connected("openai/gpt-5", own, &[("OPENAI_API_KEY", KEY)])
}

fn events(events: &[Value]) -> Vec<String> {
    let event = |value: &Value| format!("event: {}\ndata: {value}\n\n", value["type"].as_str().unwrap());
    events.iter().map(event).collect()
}

fn completed(output: Value) -> Value {
    let usage = json!({ "input_tokens": 11, "output_tokens": 4 });
    json!({ "type": "response.completed", "response": { "object": "response", "status": "completed",
        "model": "gpt-5-2025", "output": output, "usage": usage } })
}

/// A thought, of which a summary is shown, and a call.
pub(crate) fn thoughtful_call(function: &str, arguments: &str) -> Script {
    let (half, rest) = arguments.split_at(20);
    let call = json!({ "type": "function_call", "id": "fc_1", "call_id": "call_1", "name": function, "arguments": "" });
    let piece =
        |text: &str| json!({ "type": "response.function_call_arguments.delta", "output_index": 1, "delta": text });
    let thought = json!({ "type": "reasoning", "id": "rs_1", "summary": [{ "type": "summary_text", "text": "Hm." }],
        "encrypted_content": "gAAAA" });
    stream(events(&[
        json!({ "type": "response.created", "response": { "model": "gpt-5-2025" } }),
        json!({ "type": "response.output_item.added", "output_index": 0, "item": { "type": "reasoning", "id": "rs_1" } }),
        json!({ "type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "Hm." }),
        json!({ "type": "response.output_item.done", "output_index": 0, "item": thought }),
        json!({ "type": "response.output_item.added", "output_index": 1, "item": call }),
        piece(half),
        piece(rest),
        completed(json!([thought, call])),
    ]))
}

#[tokio::test]
async fn what_a_model_thought_before_a_call_goes_back_with_what_came_of_it() {
    let stub = Stub::always(thoughtful_call(FUNCTION, ARGUMENTS)).await;
    let provider = provider(&stub);
    let (reply, pieces) = ask(&*provider, &offering()).await;
    let reply = reply.unwrap();
    assert_eq!(called(&reply), (FUNCTION, serde_json::from_str(ARGUMENTS).unwrap()));
    assert_eq!(pieces.concat(), format!("{FUNCTION}{ARGUMENTS}"), "thoughts are not listened to");
    assert_eq!((reply.model.as_str(), reply.in_token, reply.out_token), ("openai/gpt-5-2025", Some(11), Some(4)));
    assert_eq!((reply.stop, reply.enforced), (Some(StopReason::Calls), true));
    assert!(matches!(&reply.parts[0], ReplyPart::Thought { signature: Some(_), .. }), "{:?}", reply.parts);
    ask(&*provider, &gone_on_with(&reply)).await.0.unwrap();
    let [first, second] = &stub.seen()[..] else { panic!("two requests") };
    assert_eq!(first.path, "/v1/responses");
    assert_eq!(first.headers["authorization"], format!("Bearer {KEY}"));
    assert_eq!((&first.body["store"], &first.body["tool_choice"]), (&json!(false), &json!("required")));
    let expected = json!([
        { "type": "reasoning", "id": "rs_1", "summary": [{ "type": "summary_text", "text": "Hm." }],
          "encrypted_content": "gAAAA" },
        { "type": "function_call", "call_id": "call_1", "name": FUNCTION, "arguments": ARGUMENTS },
        { "type": "function_call_output", "call_id": "call_1", "output": "Moss." },
    ]);
    let input = second.body["input"].as_array().unwrap();
    assert_eq!((&json!(input[1..]), &input[0]), (&expected, &first.body["input"][0]), "the beginning stays as it was");
}

/// In the words in which OpenAI refuses what a model without thoughts, or another model, cannot take.
#[tokio::test]
async fn thoughts_that_are_refused_are_left_out() {
    let refusal = |param: Value, message: &str| json!({ "error": { "message": message, "type": "invalid_request_error", "param": param, "code": null } });
    let not_verified = "The encrypted content gAAAA could not be verified. Reason: it could not be decrypted.";
    let stub = Stub::start(move |_, seen| {
        let thinks = seen.body["input"].to_string().contains("encrypted_content");
        match (thinks, seen.body["include"].is_null()) {
            (true, _) => answer("400 Bad Request", "", &refusal(Value::Null, not_verified).to_string()),
            (false, true) => stream(events(&[completed(json!([])), completed(json!([]))])),
            (false, false) => thoughtful_call(FUNCTION, ARGUMENTS),
        }
    })
    .await;
    let provider = provider(&stub);
    let first = ask(&*provider, &offering()).await.0.unwrap();
    let (second, _) = ask(&*provider, &gone_on_with(&first)).await;
    assert_eq!(transient(second).0, "openai said nothing", "it was taken without them");
    assert_eq!(stub.seen().len(), 3);
    assert_eq!(stub.seen()[2].body["input"][1]["type"], "function_call");
}

#[tokio::test]
async fn a_reply_under_a_schema_is_held_to_it_and_errors_say_what_was_wrong() {
    let text = |text: &str| json!({ "type": "response.output_text.delta", "output_index": 0, "delta": text });
    let stub = Stub::each([
        stream(events(&[text("{\"pattern\": \""), text("react\"}"), completed(json!([]))])),
        stream(events(&[json!({ "type": "response.failed", "response": { "status": "failed",
            "error": { "code": "server_error", "message": "The model failed." } } })])),
        answer(
            "400 Bad Request",
            "",
            &json!({ "error": { "message": "Unknown model", "type": "invalid_request_error",
            "param": "model", "code": "model_not_found" } })
            .to_string(),
        ),
    ])
    .await;
    let provider = provider(&stub);
    let reply = ask(&*provider, &held()).await.0.unwrap();
    assert_eq!(reply.text, "{\"pattern\": \"react\"}");
    assert_eq!(stub.seen()[0].body["text"]["format"]["strict"], true);
    assert_eq!(transient(ask(&*provider, &held()).await.0).0, "openai failed: The model failed.");
    assert_eq!(permanent(ask(&*provider, &held()).await.0), "openai answered 400 Bad Request: Unknown model");
}

/// The settings choose; otherwise the name does, at OpenAI's own address.
#[test]
fn reasoning_models_are_spoken_to_in_this_dialect() {
    use trellis_models::{Choice, ModelSettings, choose};
    let environment = |name: &str| (name == "OPENAI_API_KEY").then(|| KEY.to_owned());
    let path = |wish: &str, settings: &ModelSettings| {
        let choices = choose(&[wish.to_owned()], settings, &environment).unwrap();
        let [Choice::Remote(choice)] = choices.as_slice() else { panic!("{choices:?}") };
        choice.dialect()
    };
    let usual = ModelSettings { usual: CallSettings::default(), ..ModelSettings::default() };
    for (model, dialect) in [
        ("openai/gpt-5-mini", DialectKind::Responses),
        ("openai/gpt-5.1", DialectKind::Responses),
        ("openai/o3", DialectKind::Responses),
        ("openai/o4-mini", DialectKind::Responses),
        ("openai/gpt-4.1-mini", DialectKind::OpenAi),
        ("openai/gpt-4o", DialectKind::OpenAi),
        ("openai/gpt-5-chat-latest", DialectKind::OpenAi),
    ] {
        assert_eq!(path(model, &usual), dialect, "{model}");
    }
    let chosen = |dialect, address: Option<&str>| {
        let own = ProviderSettings { dialect, address: address.map(str::to_owned), ..ProviderSettings::default() };
        ModelSettings { providers: [("openai".to_owned(), own)].into(), ..ModelSettings::default() }
    };
    assert_eq!(path("openai/o3", &chosen(Some(DialectKind::OpenAi), None)), DialectKind::OpenAi);
    assert_eq!(path("openai/gpt-4.1", &chosen(Some(DialectKind::Responses), None)), DialectKind::Responses);
    let elsewhere = chosen(None, Some("http://localhost:4000/v1"));
    assert_eq!(path("openai/o3", &elsewhere), DialectKind::OpenAi, "compatible servers speak the older one");
}
