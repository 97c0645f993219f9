//! Providers that the operator named, and services that are known.

use crate::ask::{self, held, patient};
use crate::speech;
use crate::stub::{Stub, answer, head, send, stream};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use trellis_models::{
    Connections, DialectKind, KeyPlace, ModelOptions, ModelSettings, Prices, Provider, ProviderError, ProviderSettings,
    RateLimit,
};
use trellis_orchestrator::ports::RealWorld;

const KEY: &str = "sk-work-0123456789";

/// A model of a provider that has this stub's address.
fn model(name: &str, stub: &Stub, own: ProviderSettings, options: ModelOptions) -> Arc<dyn Provider> {
    let (provider, _) = name.split_once('/').unwrap();
    let address = own.address.clone().unwrap_or_else(|| format!("{}/v1", stub.base));
    let own = ProviderSettings { address: Some(address), ..own };
    let settings = ModelSettings {
        usual: patient(),
        models: [(name.to_owned(), options)].into_iter().collect(),
        providers: [(provider.to_owned(), own)].into_iter().collect(),
        ..ModelSettings::default()
    };
    let variables = |name: &str| (name == "WORK_KEY").then(|| KEY.to_owned());
    Connections::new(settings, variables, Arc::new(RealWorld)).named(name).unwrap()
}

fn work() -> ProviderSettings {
    ProviderSettings {
        dialect: Some(DialectKind::OpenAi),
        key: Some(KeyPlace::Variable("WORK_KEY".to_owned())),
        ..ProviderSettings::default()
    }
}

fn members(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap()
}

#[tokio::test]
async fn a_named_provider_is_asked_as_its_settings_say() {
    let stub = Stub::always(stream(speech::reply("openai", &["Moss"]))).await;
    let own = ProviderSettings {
        headers: [("x-team".to_owned(), "moss".to_owned())].into_iter().collect(),
        body: members(json!({ "service_tier": "flex", "stream_options": { "include_obfuscation": false } })),
        ..work()
    };
    let options = ModelOptions {
        temperature: Some(0.5),
        max_tokens: Some(77),
        reasoning_effort: Some("low".to_owned()),
        ..ModelOptions::default()
    };
    let reply = ask::text(&*model("work/gpt-x", &stub, own, options)).await.unwrap();
    assert_eq!((reply.text.as_str(), reply.model.as_str()), ("Moss", "work/m-2026"));
    let seen = &stub.seen()[0];
    assert_eq!((seen.path.as_str(), seen.headers["x-team"].as_str()), ("/v1/chat/completions", "moss"));
    assert_eq!(seen.headers["authorization"], format!("Bearer {KEY}"));
    let body = &seen.body;
    assert_eq!((&body["service_tier"], &body["temperature"]), (&json!("flex"), &json!(0.5)));
    assert_eq!((&body["max_tokens"], &body["reasoning_effort"]), (&json!(77), &json!("low")));
    assert_eq!(
        body["stream_options"],
        json!({ "include_usage": true, "include_obfuscation": false }),
        "objects are merged"
    );
}

#[tokio::test]
async fn azure_is_asked_at_its_deployments() {
    let stub = Stub::always(stream(speech::reply("openai", &["Moss"]))).await;
    let azure = |address: &str| ProviderSettings {
        kind: Some("azure".to_owned()),
        address: Some(format!("{}{address}", stub.base)),
        dialect: None,
        ..work()
    };
    for address in ["", "/openai/v1"] {
        let reply = ask::text(&*model("azure/my-4o", &stub, azure(address), ModelOptions::default())).await.unwrap();
        assert_eq!(reply.text, "Moss");
    }
    let seen = stub.seen();
    let paths: Vec<_> = seen.iter().map(|seen| seen.path.as_str()).collect();
    let old = "/openai/deployments/my-4o/chat/completions?api-version=2024-10-21";
    assert_eq!(paths, [old, "/openai/v1/chat/completions"]);
    assert!(seen.iter().all(|seen| seen.headers["api-key"] == KEY && !seen.headers.contains_key("authorization")));
    assert_eq!(seen[0].body["max_completion_tokens"], 16_384);
}

#[tokio::test]
async fn details_of_usage_their_cost_and_the_id_of_the_request_are_told() {
    let usage = json!({ "prompt_tokens": 1000, "completion_tokens": 100,
        "prompt_tokens_details": { "cached_tokens": 400 },
        "completion_tokens_details": { "reasoning_tokens": 60, "audio_tokens": 0 } });
    let chunk = json!({ "id": "c", "model": "m", "usage": usage,
        "choices": [{ "index": 0, "delta": { "content": "Moss" }, "finish_reason": "stop" }] });
    let script = vec![head("200 OK", "x-request-id: req-7\r\n"), send(format!("data: {chunk}\n\ndata: [DONE]\n\n"))];
    let stub = Stub::always(script).await;
    let prices = Prices { input: 2.0, cached_input: Some(0.5), output: 8.0 };
    let options = ModelOptions { prices: Some(prices), ..ModelOptions::default() };
    let reply = ask::text(&*model("work/m", &stub, work(), options)).await.unwrap();
    assert_eq!((reply.details.cached, reply.details.reasoning, reply.details.audio), (Some(400), Some(60), Some(0)));
    assert_eq!(reply.details.cost_micros, Some(1200 + 200 + 800));
    assert_eq!(reply.response.unwrap().request_id.as_deref(), Some("req-7"));
}

#[tokio::test]
async fn a_prompt_that_ollama_would_cut_is_not_sent() {
    let stub = Stub::always(stream(speech::reply("ollama", &["Moss"]))).await;
    let own = ProviderSettings {
        kind: Some("ollama".to_owned()),
        address: Some(stub.base.clone()),
        ..ProviderSettings::default()
    };
    let model = model("ollama/m", &stub, own, ModelOptions::default());
    assert_eq!(ask::text(&*model).await.unwrap().text, "Moss");
    assert_eq!(stub.seen()[0].body["options"], json!({ "num_ctx": 8192, "num_predict": 4096 }), "/api/show says 8192");
    let mut long = held();
    long.user = "moss ".repeat(8000).into();
    let error = ask::ask(&*model, &long).await.0.unwrap_err();
    assert!(matches!(&error, ProviderError::TooLong { reason } if reason.contains("8192")), "{error:?}");
    assert_eq!(stub.seen().len(), 1);
}

#[tokio::test]
async fn errors_in_lists_are_read() {
    let error = json!([{ "error": { "code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT" } }]);
    let stub = Stub::always(answer("400 Bad Request", "", &error.to_string())).await;
    let error = ask::text(&*model("gemini/g", &stub, work(), ModelOptions::default())).await.unwrap_err();
    assert_eq!(error.to_string(), "gemini answered 400 Bad Request: API key not valid.");
}

#[tokio::test(start_paused = true)]
async fn calls_wait_for_their_turn() {
    let stub = Stub::always(stream(speech::reply("openai", &["Moss"]))).await;
    let rate_limit = RateLimit { requests_per_minute: Some(1), tokens_per_minute: None };
    let model = model("work/m", &stub, ProviderSettings { rate_limit, ..work() }, ModelOptions::default());
    let began = tokio::time::Instant::now();
    let request = held();
    model.turn(&request).await;
    assert_eq!(began.elapsed().as_secs(), 0);
    model.turn(&request).await;
    assert_eq!(began.elapsed().as_secs(), 60);
}
