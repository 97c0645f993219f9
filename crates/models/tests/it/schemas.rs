//! Schemas: enforced where the provider can, and never claimed where it did not.

use crate::ask::{ask, held, patient, provider, request, schema};
use crate::speech;
use crate::stub::{Script, Seen, Stub, answer, stream};
use crate::tools::offering;
use serde_json::{Value, json};
use trellis_domain::Hash;
use trellis_domain::config::PromptReply;
use trellis_models::{CallSettings, ModelRequest, Sampling};

const CHOICE: [&str; 2] = ["{\"pattern\": ", "\"react\"}"];

/// How strongly the reply to a request was to be held.
fn hold(seen: &Seen) -> &'static str {
    let strict = |value: &Value| if *value == true { "strict" } else { "guided" };
    let body = &seen.body;
    if body["response_format"]["type"] == "json_object" {
        return "json";
    }
    if body["response_format"].is_object() {
        return strict(&body["response_format"]["json_schema"]["strict"]);
    }
    if body["tools"].is_array() {
        assert_eq!(body["tool_choice"], json!({ "type": "tool", "name": "reply" }));
        return strict(&body["tools"][0]["strict"]);
    }
    if body["output_config"]["format"]["schema"].is_object() {
        return "output";
    }
    if body["format"].is_object() { "format" } else { "free" }
}

fn refusal(words: &str) -> Script {
    answer("400 Bad Request", "", &json!({ "error": { "message": words } }).to_string())
}

fn holds(stub: &Stub) -> Vec<&'static str> {
    stub.seen().iter().map(hold).collect()
}

#[tokio::test]
async fn a_schema_that_the_provider_takes_is_enforced() {
    for (name, expected) in
        [("openai", vec!["strict"]), ("anthropic", vec!["output", "strict"]), ("ollama", vec!["format"])]
    {
        let taken = stream(speech::held_reply(name, &CHOICE));
        let older = refusal("output_config: Extra inputs are not permitted");
        let stub = Stub::start(move |_, seen| if hold(seen) == "output" { older.clone() } else { taken.clone() }).await;
        let (reply, pieces) = ask(&*provider(name, &stub.base, patient()), &held()).await;
        let reply = reply.unwrap();
        assert_eq!((reply.text.as_str(), reply.enforced), (CHOICE.concat().as_str(), true), "{name}");
        assert_eq!((pieces, holds(&stub)), (CHOICE.map(str::to_owned).to_vec(), expected));
        let body = stub.seen().last().unwrap().body.clone();
        let sent =
            [&body["response_format"]["json_schema"]["schema"], &body["tools"][0]["input_schema"], &body["format"]];
        assert_eq!(sent.into_iter().find(|sent| !sent.is_null()), Some(&schema()));
    }
}

/// Anthropic's current models refuse a tool that must be called, and take a schema for the reply.
#[tokio::test]
async fn a_schema_of_the_reply_itself_is_taken_and_enforced() {
    let stub = Stub::always(stream(speech::reply("anthropic", &CHOICE))).await;
    let reply = ask(&*provider("anthropic", &stub.base, patient()), &held()).await.0.unwrap();
    assert_eq!((reply.text.as_str(), reply.enforced), (CHOICE.concat().as_str(), true));
    assert_eq!(stub.seen()[0].body["output_config"]["format"]["schema"], schema());
}

/// A server may take a schema and overlook it; a good model keeps to it by chance.
#[tokio::test]
async fn a_model_that_was_not_seen_to_obey_is_not_on_record_as_held() {
    for (name, overlooks) in [("openai", true), ("anthropic", true), ("ollama", true), ("openai", false)] {
        let stub = Stub::probed(move |_, seen| {
            let is_probe = seen.headers["x-trellis-prompt"] == "probe";
            let colour = if overlooks { "{\"colour\": \"blue\"}" } else { "{\"colour\": \"green\"}" };
            if is_probe { stream(speech::reply(name, &[colour])) } else { stream(speech::reply(name, &CHOICE)) }
        })
        .await;
        let provider = provider(name, &stub.base, patient());
        for _ in 0..2 {
            let reply = ask(&*provider, &held()).await.0.unwrap();
            assert_eq!(reply.enforced, !overlooks, "{name}");
            let probe = reply.probe.expect("it is on record why");
            let asked = &stub.seen()[1];
            assert_eq!((probe.sent, probe.obeyed), (Hash::of(&asked.bytes), !overlooks));
            assert!(probe.reply.contains(if overlooks { "blue" } else { "green" }), "{probe:?}");
        }
        assert_eq!(stub.seen().len(), 3, "a model is probed once");
    }
}

#[tokio::test]
async fn functions_have_a_probe_of_their_own() {
    for (arguments, obeys) in
        [("{\"thought\": \"\", \"number\": \"blue\"}", false), ("{\"thought\": \"\", \"number\": 1}", true)]
    {
        let stub = Stub::probed(move |_, seen| {
            let is_probe = seen.headers["x-trellis-prompt"] == "probe";
            let called = ("web_search", "{\"thought\": \"why not\", \"question\": \"moss\"}");
            let (function, arguments) = if is_probe { ("pick", arguments) } else { called };
            stream(speech::call("openai", function, &[arguments]))
        })
        .await;
        let reply = ask(&*provider("openai", &stub.base, patient()), &offering()).await.0.unwrap();
        assert_eq!((reply.enforced, reply.probe.map(|probe| probe.obeyed)), (obeys, Some(obeys)));
    }
}

#[tokio::test]
async fn a_probe_can_be_turned_off_and_nothing_is_claimed_then() {
    let stub = Stub::probed(|_, _| stream(speech::reply("openai", &CHOICE))).await;
    let settings = CallSettings { probe: false, ..patient() };
    let reply = ask(&*provider("openai", &stub.base, settings), &held()).await.0.unwrap();
    assert_eq!((reply.enforced, reply.probe, stub.seen().len()), (false, None, 1));
}

/// The server knows no schemas at all: it is asked without, and from then on at once without.
#[tokio::test]
async fn a_server_without_schemas_is_asked_without() {
    for (name, words, tried) in [
        ("openai", "'response_format' is not supported", vec!["strict", "guided", "free"]),
        ("anthropic", "tools: not available for this model", vec!["output", "guided", "free"]),
        ("ollama", "json: cannot unmarshal object into field .format", vec!["format", "format", "free"]),
    ] {
        let plain = stream(speech::reply(name, &CHOICE));
        let stub = Stub::start(move |_, seen| if hold(seen) == "free" { plain.clone() } else { refusal(words) }).await;
        let provider = provider(name, &stub.base, patient());
        for _ in 0..2 {
            let reply = ask(&*provider, &held()).await.0.unwrap();
            assert_eq!((reply.text.as_str(), reply.enforced), (CHOICE.concat().as_str(), false), "{name}");
        }
        assert_eq!(holds(&stub), [tried, vec!["free"]].concat());
    }
}

/// Between a schema and nothing: the server sees to it that it is JSON, and nothing more is claimed.
#[tokio::test]
async fn a_server_that_knows_json_and_no_schemas_is_asked_for_json() {
    let plain = stream(speech::reply("openai", &CHOICE));
    let stub = Stub::start(move |_, seen| match hold(seen) {
        "json" | "free" => plain.clone(),
        _ => refusal("response_format of type json_schema is not supported"),
    })
    .await;
    let provider = provider("openai", &stub.base, patient());
    let spoken = ModelRequest { user: "Choose. Reply with JSON.".into(), ..held() };
    for request in [&spoken, &spoken, &held()] {
        let reply = ask(&*provider, request).await.0.unwrap();
        assert_eq!((reply.text.as_str(), reply.enforced), (CHOICE.concat().as_str(), false));
    }
    let expected = ["strict", "guided", "json", "json", "free"];
    assert_eq!(holds(&stub), expected, "not where the prompt does not speak of JSON: vendors refuse it then");
    let why = provider.refused_before(&spoken, false).unwrap();
    assert_eq!(why, "response_format of type json_schema is not supported");
}

#[tokio::test]
async fn a_server_that_knows_no_json_either_is_asked_without() {
    let plain = stream(speech::reply("openai", &CHOICE));
    let no = || refusal("'response_format' is not supported");
    let stub = Stub::start(move |_, seen| if hold(seen) == "free" { plain.clone() } else { no() }).await;
    let provider = provider("openai", &stub.base, patient());
    let spoken = ModelRequest { user: "Choose. Reply with JSON.".into(), ..held() };
    for _ in 0..2 {
        assert!(!ask(&*provider, &spoken).await.0.unwrap().enforced);
    }
    assert_eq!(holds(&stub), ["strict", "guided", "json", "free", "free"]);
}

/// Older models know forced tools but not strict ones.
#[tokio::test]
async fn a_forced_tool_that_is_not_strict_is_no_enforcement() {
    let taken = stream(speech::held_reply("anthropic", &CHOICE));
    let stub = Stub::start(move |_, seen| match hold(seen) {
        "output" => refusal("output_config: Extra inputs are not permitted"),
        "strict" => refusal("tools.0.custom.strict: Extra inputs are not permitted"),
        _ => taken.clone(),
    })
    .await;
    let reply = ask(&*provider("anthropic", &stub.base, patient()), &held()).await.0.unwrap();
    assert_eq!((reply.text.as_str(), reply.enforced), (CHOICE.concat().as_str(), false));
    assert_eq!(holds(&stub), ["output", "strict", "guided"]);
}

/// One odd schema does not spoil the others.
#[tokio::test]
async fn a_refused_schema_of_one_prompt_leaves_the_others_alone() {
    let taken = stream(speech::held_reply("openai", &CHOICE));
    let stub = Stub::start(move |_, seen| {
        let odd = seen.headers["x-trellis-prompt"] == "odd" && hold(seen) == "strict";
        if odd { refusal("Invalid schema for response_format") } else { taken.clone() }
    })
    .await;
    let provider = provider("openai", &stub.base, patient());
    let mut odd = held();
    odd.prompt = "odd".to_owned();
    let mut enforced = Vec::new();
    for request in [&held(), &odd, &odd, &held()] {
        enforced.push(ask(&*provider, request).await.0.unwrap().enforced);
    }
    assert_eq!(enforced, [true, false, false, true]);
    assert_eq!(holds(&stub), ["strict", "strict", "guided", "guided", "strict"]);
}

#[tokio::test]
async fn a_refusal_inside_the_stream_counts_too() {
    let taken = stream(speech::reply("openai", &CHOICE));
    let error = json!({ "error": { "message": "invalid json_schema", "code": 400 } });
    let refused = stream([format!("data: {error}\n\n")]);
    let stub = Stub::start(move |_, seen| if hold(seen) == "free" { taken.clone() } else { refused.clone() }).await;
    let reply = ask(&*provider("openai", &stub.base, patient()), &held()).await.0.unwrap();
    assert!(!reply.enforced && holds(&stub).len() == 3);
}

/// Another mistake is not blamed on the schema for long.
#[tokio::test]
async fn what_fails_without_a_schema_too_is_an_error() {
    let stub = Stub::always(refusal("the format of the messages is wrong")).await;
    let provider = provider("openai", &stub.base, patient());
    for _ in 0..2 {
        let reason = crate::ask::permanent(ask(&*provider, &held()).await.0);
        assert_eq!(reason, "openai answered 400 Bad Request: the format of the messages is wrong");
    }
    assert_eq!(holds(&stub).len(), 6, "nothing was learnt from it");
}

/// What cannot be said strictly is shown, and not claimed.
#[tokio::test]
async fn a_schema_that_cannot_be_strict_is_a_hint() {
    let open = json!({ "type": "object", "properties": { "arguments": { "type": "object" } } });
    for (name, expected) in [("openai", "guided"), ("anthropic", "guided"), ("ollama", "format")] {
        let stub = Stub::always(stream(speech::held_reply(name, &["{}"]))).await;
        let request = request(PromptReply::Json { schema: Some(open.clone()) });
        let reply = ask(&*provider(name, &stub.base, patient()), &request).await.0.unwrap();
        assert_eq!((reply.enforced, holds(&stub)), (false, vec![expected]));
    }
}

#[tokio::test]
async fn lines_and_text_are_not_held() {
    let stub = Stub::always(stream(speech::reply("openai", &["x"]))).await;
    let provider = provider("openai", &stub.base, patient());
    for expected in [PromptReply::JsonLines { schema: Some(schema()) }, PromptReply::Json { schema: None }] {
        assert!(!ask(&*provider, &request(expected)).await.0.unwrap().enforced);
    }
    assert_eq!(holds(&stub), ["free", "free"]);
}

/// A model that refuses writes outside of every schema.
#[tokio::test]
async fn a_refusal_of_the_model_is_not_enforced() {
    let refused = json!({ "choices": [{ "delta": { "refusal": "I will not." }, "finish_reason": "stop" }] });
    let stub = Stub::always(stream([format!("data: {refused}\n\ndata: [DONE]\n\n")])).await;
    let reply = ask(&*provider("openai", &stub.base, patient()), &held()).await.0.unwrap();
    assert_eq!((reply.text.as_str(), reply.enforced), ("I will not.", false));
    let stub = Stub::always(stream(speech::reply("anthropic", &["I will not."]))).await;
    let reply = ask(&*provider("anthropic", &stub.base, patient()), &held()).await.0.unwrap();
    assert_eq!((reply.text.as_str(), reply.enforced), ("I will not.", false));
}

#[tokio::test]
async fn a_server_that_cannot_count_is_asked_without_counting() {
    let taken = stream(speech::held_reply("openai", &CHOICE));
    let stub = Stub::start(move |_, seen| {
        if seen.body["stream_options"].is_null() { taken.clone() } else { refusal("unknown field: stream_options") }
    })
    .await;
    let provider = provider("openai", &stub.base, patient());
    for _ in 0..2 {
        assert!(ask(&*provider, &held()).await.0.unwrap().enforced);
    }
    assert_eq!(stub.seen().len(), 3, "it is refused once");
}

/// What the vendors document as refused by their reasoning models: each is left out, and asked again at once.
#[tokio::test]
async fn parameters_that_a_model_refuses_are_left_out_one_by_one_and_stay_so() {
    let refused = |name: &'static str, message: &str| {
        let error =
            json!({ "message": message, "type": "invalid_request_error", "param": name, "code": "unsupported_value" });
        answer("400 Bad Request", "", &json!({ "error": error }).to_string())
    };
    let taken = stream(speech::reply("openai", &["Moss."]));
    let stub = Stub::start(move |_, seen| {
        let has = |name: &str| !seen.body[name].is_null();
        match () {
            () if has("temperature") => {
                refused("temperature", "Unsupported value: 'temperature' does not support 0.0.")
            }
            () if has("top_p") => refused("top_p", "Unsupported parameter: 'top_p' is not supported with this model."),
            () if has("max_tokens") => {
                refused("max_tokens", "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
            }
            () => taken.clone(),
        }
    })
    .await;
    let sampling = Sampling { temperature: Some(0.0), top_p: Some(0.5), max_tokens: Some(100), ..Sampling::default() };
    let provider = provider("openai", &stub.base, CallSettings { sampling, ..patient() });
    for _ in 0..2 {
        let reply = ask(&*provider, &request(PromptReply::Text)).await.0.unwrap();
        assert_eq!(reply.text, "Moss.");
    }
    assert_eq!(stub.seen().len(), 5, "three refusals, then none");
    let last = &stub.seen()[4].body;
    assert_eq!((&last["temperature"], &last["max_completion_tokens"]), (&Value::Null, &json!(100)));
}
