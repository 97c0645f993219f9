//! What is on record of a call: enough to make it again.

use crate::ask::{KEY, patient, provider};
use crate::speech;
use crate::stub::{Stub, answer, stream};
use serde_json::json;
use std::ops::ControlFlow;
use std::sync::Arc;
use trellis_domain::Hash;
use trellis_domain::config::{Settings, StoredItem};
use trellis_models::{CallSettings, Sampling, TemplatePrompter};
use trellis_orchestrator::ports::{PromptCall, PromptReply, Prompter, RealWorld, ReplySink};

struct Unheard;

impl ReplySink for Unheard {
    fn text(&mut self, _: &str) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn restart(&mut self) {}
}

async fn ask(name: &str, stub: &Stub, settings: CallSettings, question: &str) -> PromptReply {
    let schema = json!({ "type": "object", "properties": { "x": { "enum": vec!["a-long-name"; 40] } } });
    let template = json!({ "prompt": "Answer: {{ question }}", "response-type": "json", "schema": schema });
    let value = template.to_string();
    let item = StoredItem { kind: "prompt".to_owned(), key: "template.question".to_owned(), value };
    let call = PromptCall {
        settings: Arc::new(Settings::take(1, [item]).0),
        id: "question".to_owned(),
        variables: json!({ "question": question }).as_object().cloned().unwrap(),
        ..PromptCall::default()
    };
    let prompter = TemplatePrompter::new(provider(name, &stub.base, settings), Arc::new(RealWorld));
    prompter.ask(call, &mut Unheard).await.unwrap()
}

fn sampled() -> CallSettings {
    let sampling = Sampling { temperature: Some(0.25), top_p: None, max_tokens: Some(99), ..Sampling::default() };
    CallSettings { sampling, ..patient() }
}

#[tokio::test]
async fn the_hash_of_the_bytes_and_everything_besides_the_texts_is_on_record() {
    for name in ["openai", "anthropic", "ollama"] {
        let stub = Stub::always(stream(speech::held_reply(name, &["{}"]))).await;
        let reply = ask(name, &stub, sampled(), "Why?").await;
        let seen = stub.seen().pop().unwrap();
        assert_eq!(reply.prompt.sent, Some(Hash::of(&seen.bytes)), "{name}");
        assert_eq!(reply.prompt.request, None, "nobody asked to keep it");
        let mut parameters = reply.prompt.parameters;
        let address = parameters.remove("address").unwrap();
        assert_eq!(address, format!("{}{}", stub.base, seen.path));
        assert!(!parameters.contains_key("messages") && parameters["model"] == "m", "{parameters:?}");
        for (member, value) in seen.body.as_object().unwrap().iter().filter(|(member, _)| *member != "messages") {
            let written = value.to_string();
            let by_hash = json!({ "sha256": Hash::of(&written) });
            let expected = if written.len() > 256 { &by_hash } else { value };
            assert_eq!(&parameters[member], expected, "{name}: {member}");
        }
        let drawn = if name == "ollama" { &parameters["options"]["temperature"] } else { &parameters["temperature"] };
        assert_eq!(drawn, &json!(0.25));
    }
}

/// The form that was taken is the one on record.
#[tokio::test]
async fn a_form_that_was_refused_is_not_what_was_sent() {
    let taken = stream(speech::reply("openai", &["{}"]));
    let refused = answer("400 Bad Request", "", "{\"error\": \"no response_format\"}");
    let stub = Stub::each([refused.clone(), refused, taken]).await;
    let reply = ask("openai", &stub, patient(), "Why?").await;
    assert_eq!(reply.prompt.sent, Some(Hash::of(&stub.seen().last().unwrap().bytes)));
    assert!(!reply.prompt.parameters.contains_key("response_format"));
}

#[tokio::test]
async fn requests_are_kept_without_keys_if_that_is_wanted() {
    let stub = Stub::always(stream(speech::reply("openai", &["{}"]))).await;
    let settings = CallSettings { keep_requests: true, ..sampled() };
    let kept = ask("openai", &stub, settings.clone(), "Why?").await.prompt.request.unwrap();
    assert_eq!(kept.text().as_bytes(), stub.seen()[0].bytes);
    let with_key = ask("openai", &stub, settings, &format!("Is {KEY} a key?")).await.prompt.request.unwrap();
    assert!(!with_key.text().contains(KEY) && with_key.text().contains("Is [redacted] a key?"), "{}", with_key.text());
}
