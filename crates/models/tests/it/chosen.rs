//! Which model a prompt goes to, where configuration names some.

use crate::ask::{KEY, patient};
use crate::speech;
use crate::stub::{Act, Stub, stream};
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;
use trellis_domain::SessionId;
use trellis_domain::config::{Settings, StoredItem};
use trellis_domain::record::Name;
use trellis_models::{CallSettings, Connections, ModelSettings, Models, Rehearsal, TemplatePrompter};
use trellis_orchestrator::ports::{
    CallLabels, Completion, PromptCall, PromptError, PromptReply, Prompter, RealWorld, ReplySink,
};
use trellis_patterns::react::IterationNames;

struct Unheard;

impl ReplySink for Unheard {
    fn text(&mut self, _: &str) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn restart(&mut self) {}
}

/// Prompts and a task type, each with the models that it names.
fn settings(workspace: Value, prompt: Value, task_type: Value) -> Arc<Settings> {
    let item = |kind: &str, key: &str, value: Value| StoredItem {
        kind: kind.to_owned(),
        key: key.to_owned(),
        value: value.to_string(),
    };
    let items = [
        item("agent", "model", workspace),
        item("prompt", "template.question", json!({ "prompt": "Why?", "model": prompt })),
        item("agent-task-type", "research", json!({ "model": task_type })),
    ];
    let settings = Settings::take(1, items).0;
    assert_eq!(settings.problems, []);
    Arc::new(settings)
}

/// Names in place of nothing.
const NONE: Value = Value::Null;

fn call(settings: Arc<Settings>) -> PromptCall {
    let session = SessionId::new("s").unwrap();
    let (step, task_type) = (Name::iteration(1), Some("research".into()));
    let labels = CallLabels { run: session.clone(), session, step, attempt: 1, task_type, model: None };
    PromptCall { settings, id: "question".to_owned(), labels: Some(labels), ..PromptCall::default() }
}

/// Knows how to reach one server that is Ollama's, and has no key for anybody else.
fn connections(stub: &Stub, usual: CallSettings) -> Arc<Connections> {
    let base = stub.base.clone();
    let environment = move |name: &str| match name {
        "OLLAMA_HOST" => Some(base.clone()),
        "OLLAMA_API_KEY" => Some(KEY.to_owned()),
        _ => None,
    };
    let settings = ModelSettings { usual, ..ModelSettings::default() };
    Arc::new(Connections::new(settings, environment, Arc::new(RealWorld)))
}

async fn ask(prompter: &TemplatePrompter, settings: Arc<Settings>) -> Result<PromptReply, PromptError> {
    prompter.ask(call(settings), &mut Unheard).await
}

/// The names that the server was asked under.
fn asked(stub: &Stub) -> Vec<Value> {
    stub.seen().iter().map(|seen| seen.body["model"].clone()).collect()
}

async fn server() -> Stub {
    Stub::always(stream(speech::reply("ollama", &["Moss"]))).await
}

#[tokio::test]
async fn the_most_specific_place_that_names_a_model_counts() {
    let stub = server().await;
    let connections = connections(&stub, patient());
    let by_environment = Models::new(Arc::new(Rehearsal::instant())).connecting(Arc::clone(&connections));
    let by_operator = Models::new(connections.named("ollama/flag").unwrap()).named().connecting(connections);
    let [by_environment, by_operator] =
        [by_environment, by_operator].map(|models| TemplatePrompter::with_models(models, Arc::new(RealWorld)));
    let (workspace, prompt, task_type) = (json!("ollama/workspace"), json!(["ollama/prompt"]), json!("ollama/task"));
    let all = settings(workspace.clone(), prompt, task_type.clone());
    ask(&by_operator, all).await.unwrap();
    ask(&by_operator, settings(workspace.clone(), NONE, task_type)).await.unwrap();
    ask(&by_operator, settings(workspace.clone(), NONE, NONE)).await.unwrap();
    ask(&by_environment, settings(workspace.clone(), NONE, NONE)).await.unwrap();
    assert_eq!(asked(&stub), ["prompt", "task", "flag", "workspace"]);
    let rehearsed = ask(&by_environment, settings(NONE, NONE, NONE)).await.unwrap();
    assert_eq!(rehearsed.model.as_deref(), Some("rehearsal"), "what the environment knows comes last");
    let settings = settings(workspace, NONE, NONE);
    let completion = Completion { settings, prompt: "Why?".to_owned(), ..Completion::default() };
    by_environment.complete(completion, &mut Unheard).await.unwrap();
    assert_eq!(asked(&stub).last(), Some(&json!("workspace")), "texts without a template follow the workspace, too");
}

#[tokio::test]
async fn the_caller_of_a_run_chooses_out_of_the_models_that_are_configured() {
    let stub = server().await;
    let connections = connections(&stub, patient());
    let by_operator =
        Models::new(connections.named("ollama/flag").unwrap()).or(connections.named("ollama/next").unwrap());
    let prompter =
        TemplatePrompter::with_models(by_operator.clone().connecting(connections.clone()), Arc::new(RealWorld));
    let settings = settings(json!("ollama/workspace"), json!(["ollama/prompt"]), json!("ollama/task"));
    assert_eq!(
        prompter.choosable(&settings),
        ["ollama/flag", "ollama/next", "ollama/workspace", "ollama/prompt", "ollama/task"]
    );
    for name in ["ollama/next", "ollama/workspace"] {
        let mut call = call(Arc::clone(&settings));
        call.labels.as_mut().unwrap().model = Some(name.to_owned());
        prompter.ask(call, &mut Unheard).await.unwrap();
    }
    assert_eq!(asked(&stub), ["next", "workspace"], "nothing more specific counts against it");
    let named = TemplatePrompter::with_models(by_operator.named().connecting(connections), Arc::new(RealWorld));
    assert!(!named.choosable(&settings).contains(&"ollama/workspace".to_owned()), "the operator's count before it");
}

#[tokio::test]
async fn a_model_that_cannot_be_connected_is_on_record_and_the_next_one_answers() {
    let stub = server().await;
    let models = Models::new(Arc::new(Rehearsal::instant())).connecting(connections(&stub, patient()));
    let prompter = TemplatePrompter::with_models(models, Arc::new(RealWorld));
    let reply = ask(&prompter, settings(NONE, json!(["anthropic/x", "moss/y", "ollama/z"]), NONE)).await.unwrap();
    assert_eq!(reply.raw, "Moss");
    let reasons: Vec<_> = reply.failures.iter().map(|attempt| attempt.reason.as_str()).collect();
    assert_eq!(reasons[0], "anthropic/x cannot be asked: anthropic needs a key; set ANTHROPIC_API_KEY");
    assert!(reasons[1].starts_with("moss/y cannot be asked: there is no provider `moss`"), "{reasons:?}");
    assert_eq!((reasons.len(), asked(&stub)), (2, vec![json!("z")]));
}

/// A prompt that is meant for one model does not leak to another.
#[tokio::test]
async fn a_prompt_goes_to_nobody_that_its_list_does_not_name() {
    let stub = server().await;
    let models = Models::new(Arc::new(Rehearsal::instant())).connecting(connections(&stub, patient()));
    let prompter = TemplatePrompter::with_models(models, Arc::new(RealWorld));
    let error = ask(&prompter, settings(json!("ollama/z"), json!("anthropic/x"), NONE)).await.unwrap_err();
    let PromptError::Provider { reason, failures } = error else { panic!("{error}") };
    assert_eq!((failures.len(), asked(&stub).len()), (1, 0));
    assert!(reason.contains("set ANTHROPIC_API_KEY"), "{reason}");
}

#[tokio::test]
async fn models_are_connected_once_and_share_the_room_of_their_provider() {
    let stub = Stub::always(
        [vec![Act::Pause(Duration::from_millis(50))], stream(speech::reply("ollama", &["Moss"]))].concat(),
    )
    .await;
    let connections = connections(&stub, CallSettings { concurrency: 1, ..patient() });
    let (a, again) = (connections.named("ollama/a").unwrap(), connections.named("ollama/a").unwrap());
    assert!(Arc::ptr_eq(&a, &again));
    let b = connections.named("ollama/b").unwrap();
    let (a, b) = (a.capacity().unwrap(), b.capacity().unwrap());
    assert!(Arc::ptr_eq(a, b));
    let permit = a.try_enter().unwrap();
    assert!(b.try_enter().is_none(), "there is room for one");
    drop(permit);
    assert!(b.try_enter().is_some());
}
