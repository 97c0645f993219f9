//! How much a model can read: servers are asked for it, once, and need not know.

use crate::ask::{self, held, patient};
use crate::stub::{Act, Script, Seen, Stub, answer, stream};
use crate::{gemini, speech};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use trellis_domain::config::Settings;
use trellis_models::{
    CallSettings, Can, Connections, ContextSize, KeyPlace, ModelOptions, ModelSettings, Models, Provider,
    ProviderSettings, TemplatePrompter, examine,
};
use trellis_orchestrator::ports::{ModelWish, PromptNeed, Prompter, RealWorld, World};

const KEY: &str = "sk-sizes-0123456789";

/// The model `m` of a server of this kind.
fn model(kind: &str, stub: &Stub, options: ModelOptions) -> Arc<dyn Provider> {
    model_called(kind, stub, options, patient())
}

fn model_called(kind: &str, stub: &Stub, options: ModelOptions, usual: CallSettings) -> Arc<dyn Provider> {
    let version = match kind {
        "gemini" => "/v1beta",
        "ollama" => "",
        _ => "/v1",
    };
    let own = ProviderSettings {
        kind: Some(kind.to_owned()),
        address: Some(format!("{}{version}", stub.base)),
        key: Some(KeyPlace::Variable("WORK_KEY".to_owned())),
        ..ProviderSettings::default()
    };
    let settings = ModelSettings {
        usual,
        models: [("work/m".to_owned(), options)].into(),
        providers: [("work".to_owned(), own)].into(),
        ..ModelSettings::default()
    };
    let variables = |name: &str| (name == "WORK_KEY").then(|| KEY.to_owned());
    Connections::new(settings, variables, world()).named("work/m").unwrap()
}

fn world() -> Arc<dyn World> {
    Arc::new(RealWorld)
}

/// What each of them tells, and where.
fn description(path: &str) -> Option<Value> {
    Some(match path {
        "/api/show" => json!({ "model_info": { "llama.context_length": 1001 } }),
        "/props" => json!({ "default_generation_settings": { "n_ctx": 1002 } }),
        "/api/v0/models" => json!({ "data": [{ "id": "m", "max_context_length": 9, "loaded_context_length": 1003 }] }),
        "/v1/models" => json!({ "data": [{ "id": "m", "max_model_len": 1004, "context_length": 1005 }] }),
        "/info" => json!({ "max_total_tokens": 1006 }),
        "/v1beta/models/m" => json!({ "inputTokenLimit": 1007 }),
        _ => return None,
    })
}

/// A server that tells, and replies in each dialect.
fn telling(_: usize, seen: &Seen) -> Script {
    match description(&seen.path) {
        Some(description) => answer("200 OK", "", &description.to_string()),
        None => replying(seen),
    }
}

fn replying(seen: &Seen) -> Script {
    match seen.path.as_str() {
        "/api/chat" => stream(speech::reply("ollama", &["Moss"])),
        path if path.contains("enerateContent") => gemini::spoken("Moss"),
        _ => stream(speech::reply("openai", &["Moss"])),
    }
}

/// The paths that were asked.
fn paths(stub: &Stub) -> Vec<String> {
    stub.seen().into_iter().map(|seen| seen.path).collect()
}

fn about(stub: &Stub) -> usize {
    paths(stub).iter().filter(|path| description(path).is_some()).count()
}

#[tokio::test]
async fn each_known_server_is_asked_once() {
    for (kind, place, size) in [
        ("ollama", "/api/show", 1001),
        ("llamacpp", "/props", 1002),
        ("llamafile", "/props", 1002),
        ("lmstudio", "/api/v0/models", 1003),
        ("vllm", "/v1/models", 1004),
        ("openrouter", "/v1/models", 1005),
        ("tgi", "/info", 1006),
        ("gemini", "/v1beta/models/m", 1007),
    ] {
        let stub = Stub::described(telling).await;
        let model = model(kind, &stub, ModelOptions::default());
        assert_eq!(model.context_size().await, Some(ContextSize::Told(size)), "{kind}");
        for _ in 0..2 {
            assert_eq!(ask::text(&*model).await.unwrap().text, "Moss", "{kind}");
        }
        assert_eq!(model.context_size().await, Some(ContextSize::Told(size)), "{kind}");
        let seen = stub.seen();
        assert_eq!((seen[0].path.as_str(), seen.len(), about(&stub)), (place, 3, 1), "{kind}");
        let sent = if kind == "ollama" { json!({ "model": "m" }).to_string() } else { String::new() };
        assert_eq!(String::from_utf8_lossy(&seen[0].bytes), sent, "{kind}");
        assert!(seen[0].headers.values().any(|value| value.contains(KEY)), "{kind}: its key opens this door, too");
    }
}

#[tokio::test]
async fn a_size_that_is_set_counts_and_nobody_is_asked() {
    let stub = Stub::described(telling).await;
    let options = ModelOptions { context_tokens: Some(77_000), ..ModelOptions::default() };
    let model = model("vllm", &stub, options);
    ask::text(&*model).await.unwrap();
    assert_eq!((model.context_size().await, about(&stub)), (Some(ContextSize::Set(77_000)), 0));
}

#[tokio::test]
async fn servers_of_which_nothing_is_known_are_not_asked() {
    let stub = Stub::described(telling).await;
    for kind in ["openai", "mistral"] {
        let model = model(kind, &stub, ModelOptions::default());
        ask::text(&*model).await.unwrap();
        assert_eq!(model.context_size().await, None);
    }
    assert_eq!(paths(&stub), ["/v1/chat/completions", "/v1/chat/completions"]);
}

#[tokio::test]
async fn calls_at_the_same_time_share_one_answer() {
    let stub = Stub::described(telling).await;
    let model = model("vllm", &stub, ModelOptions::default());
    let (first, second, third) = tokio::join!(ask::text(&*model), ask::text(&*model), ask::text(&*model));
    assert!(first.is_ok() && second.is_ok() && third.is_ok());
    assert_eq!((about(&stub), stub.seen().len()), (1, 4));
}

/// Lets time pass while nobody is talking.
async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

#[tokio::test]
async fn a_server_that_cannot_tell_is_no_failure_and_is_asked_again_later() {
    for nothing in [
        answer("404 Not Found", "", "{\"data\": [{ \"id\": \"m\", \"max_model_len\": 5 }]}"),
        answer("200 OK", "", "<html>"),
        answer("200 OK", "", "{\"data\": [{ \"id\": \"other\", \"max_model_len\": 5 }]}"),
        Vec::new(),
    ] {
        let stub = Stub::described(
            move |_, seen| {
                if description(&seen.path).is_some() { nothing.clone() } else { replying(seen) }
            },
        )
        .await;
        let model = model("vllm", &stub, ModelOptions::default());
        for asked in [1, 1, 2] {
            assert_eq!(ask::text(&*model).await.unwrap().text, "Moss");
            assert_eq!((model.context_size().await, about(&stub)), (None, asked));
            if stub.seen().len() > 2 {
                pass(Duration::from_mins(6)).await;
            }
        }
    }
}

#[tokio::test]
async fn a_server_that_does_not_answer_delays_the_first_call_by_seconds_only() {
    let silent = |_: usize, seen: &Seen| {
        if description(&seen.path).is_some() { vec![Act::Hang] } else { replying(seen) }
    };
    let stub = Stub::described(silent).await;
    let settings = CallSettings { connect_timeout: Duration::from_mins(1), ..patient() };
    let model = model_called("vllm", &stub, ModelOptions::default(), settings);
    let began = Instant::now();
    assert_eq!(ask::text(&*model).await.unwrap().text, "Moss");
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    assert_eq!((model.context_size().await, about(&stub)), (None, 1), "and it is not asked again at once");
}

#[tokio::test]
async fn a_size_is_asked_for_again_after_an_hour_and_holds_until_another_is_told() {
    let told = |size: u64| answer("200 OK", "", &json!({ "data": [{ "id": "m", "max_model_len": size }] }).to_string());
    let stub = Stub::described(move |place, seen| match (description(&seen.path), place) {
        (None, _) => replying(seen),
        (Some(_), 0) => told(4096),
        (Some(_), 2) => answer("500 Internal Server Error", "", "{}"),
        (Some(_), _) => told(8192),
    })
    .await;
    let model = model("vllm", &stub, ModelOptions::default());
    for size in [4096, 4096, 8192] {
        ask::text(&*model).await.unwrap();
        assert_eq!(model.context_size().await, Some(ContextSize::Told(size)));
        pass(Duration::from_mins(61)).await;
    }
    assert_eq!(about(&stub), 3);
}

#[tokio::test]
async fn the_examination_says_how_much_a_model_can_read_and_who_says_so() {
    let says = async |kind: &str, options: ModelOptions| {
        let stub = Stub::described(telling).await;
        let examined = examine(&*model(kind, &stub, options)).await;
        let context = examined.findings.into_iter().find(|finding| finding.what == "context").unwrap();
        (context.can, context.says)
    };
    let set = ModelOptions { context_tokens: Some(77), ..ModelOptions::default() };
    assert_eq!(says("tgi", ModelOptions::default()).await, (Can::Yes, "1006 tokens, as its server says".to_owned()));
    assert_eq!(says("tgi", set).await, (Can::Yes, "77 tokens, as it is set".to_owned()));
    let (can, words) = says("openai", ModelOptions::default()).await;
    assert!(can == Can::Partly && words.contains("set context-tokens"), "{words}");
}

#[tokio::test]
async fn the_room_for_material_is_known_before_anything_is_asked() {
    let stub = Stub::described(telling).await;
    let models = Models::new(model("lmstudio", &stub, ModelOptions::default()));
    let prompter = TemplatePrompter::with_models(models.or(model("tgi", &stub, ModelOptions::default())), world());
    let settings = Settings::take(1, []).0;
    let need = PromptNeed { settings: &settings, id: "agent-react", wish: ModelWish::default() };
    assert_eq!(prompter.room(need).await, Some(1003 * 3 / 2), "of the one that can read least, half");
    assert_eq!(paths(&stub), ["/api/v0/models", "/info"]);
}

#[tokio::test]
async fn a_prompt_that_its_server_would_cut_is_measured_against_what_it_told() {
    let stub = Stub::described(telling).await;
    let model = model("ollama", &stub, ModelOptions::default());
    let mut long = held();
    long.user = "moss ".repeat(2000).into();
    let error = ask::ask(&*model, &long).await.0.unwrap_err().to_string();
    assert!(error.contains("1001"), "{error}");
    assert_eq!(paths(&stub), ["/api/show"]);
}
