//! Providers as the binary makes them, and requests to them.

use crate::stub::Stub;
use serde_json::{Map, Value, json};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;
use trellis_domain::config::PromptReply;
use trellis_domain::parts::Piece;
use trellis_domain::record::Name;
use trellis_domain::{SessionId, Workspace};
use trellis_models::{
    CallSettings, Choice, LastSent, ModelReply, ModelRequest, ModelSettings, Provider, ProviderError, choose,
};
use trellis_orchestrator::permits::Requester;
use trellis_orchestrator::ports::{CallLabels, RealWorld};
use trellis_patterns::react::IterationNames;

pub(crate) const KEY: &str = "sk-test-0123456789";

/// Patience that a test has.
pub(crate) fn hurried() -> CallSettings {
    CallSettings {
        connect_timeout: Duration::from_secs(5),
        first_token_timeout: Duration::from_millis(400),
        between_tokens_timeout: Duration::from_millis(400),
        ..CallSettings::default()
    }
}

pub(crate) fn patient() -> CallSettings {
    let long = Duration::from_secs(20);
    CallSettings { first_token_timeout: long, between_tokens_timeout: long, ..hurried() }
}

/// The provider of that name at this address, as the environment would make it.
pub(crate) fn provider(name: &str, base: &str, settings: CallSettings) -> Arc<dyn Provider> {
    let base = base.to_owned();
    let environment = move |variable: &str| match variable {
        "OPENAI_BASE_URL" => Some(format!("{base}/v1")),
        "ANTHROPIC_BASE_URL" | "OLLAMA_HOST" => Some(base.clone()),
        "OPENAI_API_KEY" | "ANTHROPIC_API_KEY" | "OLLAMA_API_KEY" => Some(KEY.to_owned()),
        _ => None,
    };
    let choices = choose(&[format!("{name}/m")], &ModelSettings::default(), &environment).unwrap();
    let [Choice::Remote(choice)] = choices.as_slice() else { panic!("{choices:?}") };
    choice.clone().connect(settings, Arc::new(RealWorld)).unwrap()
}

/// All three, at the same address.
pub(crate) fn each_provider(stub: &Stub, settings: &CallSettings) -> [Arc<dyn Provider>; 3] {
    ["openai", "anthropic", "ollama"].map(|name| provider(name, &stub.base, settings.clone()))
}

pub(crate) fn request(expected: PromptReply) -> ModelRequest {
    ModelRequest {
        system: "Be kind.".into(),
        user: "Why is moss green?".into(),
        prompt: "pattern-select".to_owned(),
        variables: Map::new(),
        expected,
        turns: Vec::new(),
        tools: None,
        labels: Some(CallLabels {
            run: SessionId::new("run-1").unwrap(),
            session: SessionId::new("session-2").unwrap(),
            step: Name::iteration(3),
            attempt: 1,
            task_type: None,
            model: None,
        }),
        drawn: Vec::new(),
        sent: LastSent::default(),
    }
}

/// A choice between two.
pub(crate) fn schema() -> Value {
    json!({
        "type": "object", "required": ["pattern"], "additionalProperties": false,
        "properties": { "pattern": { "type": "string", "enum": ["react", "plan"] } },
    })
}

pub(crate) fn held() -> ModelRequest {
    request(PromptReply::Json { schema: Some(schema()) })
}

/// A piece as the model wrote it.
pub(crate) fn written(piece: Piece<'_>) -> String {
    match piece {
        Piece::Text(text) => text.to_owned(),
        Piece::Call(piece) => piece.function.clone().unwrap_or_default() + &piece.arguments,
    }
}

/// Asks once; gives the pieces as they arrived, too.
pub(crate) async fn ask(
    provider: &dyn Provider,
    request: &ModelRequest,
) -> (Result<ModelReply, ProviderError>, Vec<String>) {
    let mut pieces = Vec::new();
    let caller = Requester { workspace: Workspace::default(), run: None };
    let _permit = match provider.capacity() {
        Some(capacity) => Some(capacity.enter(caller).await),
        None => None,
    };
    let result = provider
        .complete(request, &mut |piece| {
            pieces.push(written(piece));
            ControlFlow::Continue(())
        })
        .await;
    (result, pieces)
}

pub(crate) async fn text(provider: &dyn Provider) -> Result<ModelReply, ProviderError> {
    ask(provider, &request(PromptReply::Text)).await.0
}

/// The reason of a failure after which asking again may help.
pub(crate) fn transient(result: Result<ModelReply, ProviderError>) -> (String, Option<Duration>) {
    match result {
        Err(ProviderError::Transient { reason, retry_after } | ProviderError::Busy { reason, retry_after }) => {
            (reason, retry_after)
        }
        other => panic!("{other:?}"),
    }
}

pub(crate) fn permanent(result: Result<ModelReply, ProviderError>) -> String {
    match result {
        Err(ProviderError::Permanent { reason }) => reason,
        other => panic!("{other:?}"),
    }
}
