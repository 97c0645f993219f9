//! A prompt is answered by the first model that can.

use crate::ask::{KEY, hurried, patient, provider};
use crate::speech;
use crate::stub::{Act, Script, Stub, answer, stream};
use serde_json::json;
use std::ops::ControlFlow;
use std::sync::Arc;
use trellis_domain::Scope;
use trellis_domain::config::{Settings, StoredItem};
use trellis_models::{Models, Rehearsal, TemplatePrompter};
use trellis_orchestrator::contract::prompter;
use trellis_orchestrator::ports::{
    Completion, PromptCall, PromptError, PromptReply, Prompter, RealWorld, ReplyContent, ReplySink,
};

fn settings() -> Arc<Settings> {
    let item = StoredItem {
        kind: "prompt".to_owned(),
        key: "template.question".to_owned(),
        value: json!({ "prompt": "Answer: {{ question }}" }).to_string(),
    };
    Arc::new(Settings::take(1, [item]).0)
}

#[derive(Debug, Default)]
struct Heard {
    text: String,
    restarts: u32,
}

impl ReplySink for Heard {
    fn text(&mut self, text: &str) -> ControlFlow<()> {
        self.text.push_str(text);
        ControlFlow::Continue(())
    }

    fn restart(&mut self) {
        self.text.clear();
        self.restarts += 1;
    }
}

async fn ask(prompter: &TemplatePrompter) -> (Result<PromptReply, PromptError>, Heard) {
    let call = PromptCall {
        scope: Scope::default(),
        settings: settings(),
        id: "question".to_owned(),
        variables: json!({ "question": "Why is moss green?" }).as_object().cloned().unwrap(),
        ..PromptCall::default()
    };
    let mut heard = Heard::default();
    (prompter.ask(call, &mut heard).await, heard)
}

fn busy() -> Script {
    answer("429 Too Many Requests", "retry-after: 0\r\n", "{\"error\": \"slow down\"}")
}

fn moss(name: &str) -> Script {
    stream(speech::reply(name, &["Mo", "ss"]))
}

#[tokio::test]
async fn every_provider_keeps_the_contract_of_prompters() {
    for name in ["openai", "anthropic", "ollama"] {
        let stub = Stub::always(moss(name)).await;
        let prompter = TemplatePrompter::new(provider(name, &stub.base, patient()), Arc::new(RealWorld));
        let variables = json!({ "question": "Why?" }).as_object().cloned().unwrap();
        prompter::suite(&prompter, settings(), "question", variables).await;
    }
}

#[tokio::test]
async fn a_busy_server_is_asked_again() {
    for name in ["openai", "anthropic", "ollama"] {
        let stub = Stub::each([busy(), busy(), moss(name)]).await;
        let prompter = TemplatePrompter::new(provider(name, &stub.base, patient()), Arc::new(RealWorld));
        let (reply, heard) = ask(&prompter).await;
        let reply = reply.unwrap();
        assert_eq!((reply.raw.as_str(), heard.text.as_str(), heard.restarts), ("Moss", "Moss", 2));
        assert_eq!(reply.model.as_deref(), Some(format!("{name}/m-2026").as_str()));
        let reasons: Vec<_> = reply.failures.iter().map(|failure| failure.reason.as_str()).collect();
        let reason = format!("{name} answered 429 Too Many Requests: slow down");
        assert_eq!(reasons, [reason.as_str(), reason.as_str()]);
    }
}

/// What a broken stream said is forgotten before the next attempt.
#[tokio::test]
async fn a_reply_that_broke_off_is_heard_once() {
    let mut half = moss("openai");
    half.truncate(4);
    let stub = Stub::each([half, moss("openai")]).await;
    let prompter = TemplatePrompter::new(provider("openai", &stub.base, patient()), Arc::new(RealWorld));
    let (reply, heard) = ask(&prompter).await;
    assert_eq!((reply.unwrap().raw.as_str(), heard.text.as_str(), heard.restarts), ("Moss", "Moss", 1));
}

/// Wrong key, unknown model, or no end of trouble: the next one is asked, and the record says who answered.
#[tokio::test]
async fn the_next_model_answers_where_the_first_cannot() {
    for (script, attempts) in [
        (answer("401 Unauthorized", "", "{\"error\": \"no\"}"), 1),
        (answer("429 Too Many Requests", "retry-after: 3600\r\n", ""), 1),
        (busy(), 3),
        (answer("200 OK", "", "<html>"), 1),
    ] {
        let (first, second) = (Stub::always(script).await, Stub::always(moss("ollama")).await);
        let models = Models::new(provider("openai", &first.base, patient()));
        let models = models.or(provider("ollama", &second.base, patient()));
        let (reply, heard) = ask(&TemplatePrompter::with_models(models, Arc::new(RealWorld))).await;
        let reply = reply.unwrap();
        assert_eq!((reply.raw.as_str(), reply.model.as_deref()), ("Moss", Some("ollama/m-2026")));
        assert_eq!((first.seen().len(), second.seen().len(), reply.failures.len()), (attempts, 1, attempts));
        assert_eq!(heard.restarts as usize, attempts, "whoever listens begins anew each time");
    }
}

#[tokio::test]
async fn a_model_that_hangs_is_followed_by_the_next() {
    let (first, second) = (Stub::always(vec![Act::Hang]).await, Stub::always(moss("anthropic")).await);
    let models = Models::new(provider("openai", &first.base, hurried()));
    let models = models.or(provider("anthropic", &second.base, patient()));
    let (reply, _) = ask(&TemplatePrompter::with_models(models, Arc::new(RealWorld))).await;
    assert_eq!(reply.unwrap().model.as_deref(), Some("anthropic/m-2026"));
}

#[tokio::test]
async fn where_none_answers_all_reasons_are_told() {
    let wrong = Stub::start(|_, seen| {
        let key = seen.headers.get("authorization").cloned().unwrap_or_default();
        answer("401 Unauthorized", "", &json!({ "error": format!("wrong: {key}") }).to_string())
    })
    .await;
    let models = Models::new(provider("openai", &wrong.base, patient()));
    let models = models.or(provider("ollama", &wrong.base, patient()));
    let prompter = TemplatePrompter::with_models(models, Arc::new(RealWorld));
    let Err(PromptError::Provider { reason, failures }) = ask(&prompter).await.0 else { panic!("nobody answers") };
    let expected = "openai answered 401 Unauthorized: wrong: Bearer [redacted]; then ollama answered 401 Unauthorized: \
        wrong: Bearer [redacted]";
    assert_eq!(reason, expected);
    assert!(failures.len() == 2 && !format!("{failures:?} {prompter:?}").contains(KEY));
}

fn completion(schema: Option<serde_json::Value>) -> Completion {
    Completion {
        scope: Scope::default(),
        settings: settings(),
        system: Some("Be kind.".to_owned()),
        prompt: "Why is {{ moss }} green?".to_owned(),
        json: schema.is_some(),
        schema,
    }
}

#[tokio::test]
async fn a_text_is_completed_as_it_stands_with_the_same_timeout() {
    let (busy, stub) = (Stub::always(busy()).await, Stub::always(moss("ollama")).await);
    let models = Models::new(provider("openai", &busy.base, patient()));
    let models = models.or(provider("ollama", &stub.base, patient()));
    let prompter = TemplatePrompter::with_models(models, Arc::new(RealWorld));
    assert_eq!(prompter.models(), ["openai/m", "ollama/m"]);
    let mut heard = Heard::default();
    let reply = prompter.complete(completion(None), &mut heard).await.unwrap();
    assert_eq!((reply.raw.as_str(), heard.text.as_str()), ("Moss", "Moss"));
    assert_eq!((reply.prompt.id.as_str(), reply.prompt.template, reply.failures.len()), (Completion::ID, None, 3));
    let seen = &stub.seen()[0];
    let messages = json!([
        { "role": "system", "content": "Be kind." }, { "role": "user", "content": "Why is {{ moss }} green?" },
    ]);
    assert_eq!(seen.body["messages"], messages);
    assert_eq!(seen.headers["x-trellis-prompt"], Completion::ID);
    assert!(!seen.headers.contains_key("x-trellis-run"), "a call outside of a run names none");
}

#[tokio::test]
async fn a_completion_is_held_to_its_schema() {
    let schema = crate::ask::schema();
    let said = "{\"pattern\": \"react\"}";
    let stub = Stub::always(stream(speech::held_reply("openai", &[said]))).await;
    let prompter = TemplatePrompter::new(provider("openai", &stub.base, patient()), Arc::new(RealWorld));
    let reply = prompter.complete(completion(Some(schema)), &mut Heard::default()).await.unwrap();
    assert_eq!(reply.content, ReplyContent::Object(json!({ "pattern": "react" })));
    assert!(reply.enforced);
    let rehearsal = TemplatePrompter::new(Arc::new(Rehearsal::instant()), Arc::new(RealWorld));
    let reply = rehearsal.complete(completion(None), &mut Heard::default()).await.unwrap();
    assert_eq!((reply.content, rehearsal.models()), (ReplyContent::Text, vec!["rehearsal".to_owned()]));
}
