use super::*;
use crate::provider::{ModelReply, ModelRequest, OnPiece, Provider, ProviderError};
use crate::{Models, TemplatePrompter};
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use trellis_domain::config::{Settings, StoredItem};
use trellis_domain::record::{Body, FORMAT, Header, PromptUse, Reading, Record, Replied};
use trellis_domain::usage::TokenDetails;
use trellis_domain::{Flow, SessionId, Timestamp, Workspace};
use trellis_orchestrator::ports::{CallLabels, RealWorld, ReplyContent};

/// Says how often it was asked.
#[derive(Debug, Default)]
struct Counting(AtomicUsize);

impl Provider for Counting {
    fn name(&self) -> String {
        "test/counting".to_owned()
    }

    fn complete<'a>(
        &'a self,
        _: &'a ModelRequest,
        _: &'a mut OnPiece<'_>,
    ) -> BoxFuture<'a, Result<ModelReply, ProviderError>> {
        let text = format!("reply {}", self.0.fetch_add(1, Ordering::Relaxed));
        let details = TokenDetails { cost_micros: Some(7), ..TokenDetails::default() };
        let reply = ModelReply { text, model: "answered".to_owned(), details, ..ModelReply::default() };
        Box::pin(std::future::ready(Ok(reply)))
    }
}

#[derive(Debug, Default)]
struct Heard(String);

impl ReplySink for Heard {
    fn text(&mut self, text: &str) -> ControlFlow<()> {
        self.0.push_str(text);
        ControlFlow::Continue(())
    }

    fn restart(&mut self) {}
}

fn run(id: &str) -> RunId {
    RunId::new(id).unwrap()
}

fn call(of: &str, question: &str, template: &str, schema: Option<Value>) -> PromptCall {
    let value = json!({ "prompt": template, "response-type": if schema.is_some() { "json" } else { "text" } });
    let item = StoredItem { kind: "prompt".to_owned(), key: "template.greet".to_owned(), value: value.to_string() };
    let (run, session) = (run(of), SessionId::new(of).unwrap());
    let step = Name::new("i1");
    PromptCall {
        settings: Arc::new(Settings::take(1, [item]).0),
        id: "greet".to_owned(),
        variables: [("question".to_owned(), json!(question))].into_iter().collect(),
        schema,
        labels: Some(CallLabels { run, session, step, attempt: 1, task_type: None, model: None }),
        ..PromptCall::default()
    }
}

const TEMPLATE: &str = "Asked: {{ question }}";

fn record(of: &str, reply: PromptReply) -> Arc<Record> {
    let header = Header {
        format: FORMAT,
        workspace: Workspace::default(),
        flow: Flow::default(),
        run: run(of),
        session: SessionId::new(of).unwrap(),
        name: Name::new("i1"),
        seq: 1,
        version: 1,
        causes: Vec::new(),
        parents: Vec::new(),
        content: Hash::ZERO,
        config: Hash::ZERO,
        attempt: 1,
        late: false,
        trace: None,
        time: Timestamp::from_micros(1),
    };
    let replied = Replied {
        prompt: reply.prompt,
        raw: reply.raw.into(),
        parts: reply.parts,
        stop: reply.stop,
        thought: None,
        reading: Reading::decided("read"),
        decision: Vec::new(),
        model: reply.model,
        in_token: reply.in_token,
        out_token: reply.out_token,
        ms: 5,
        citations: Vec::new(),
        failures: reply.failures,
        incomplete: None,
        enforced: false,
        repairs: vec!["a bracket was missing".to_owned(), crate::thinking::UNMARKED.to_owned()],
        heard: 0,
    };
    Arc::new(Record { header, body: Body::from(replied) })
}

/// The replies to these questions, each asked in a run of its own.
async fn recorded(asked: &[(&str, &str)]) -> RecordedReplies {
    let prompter = TemplatePrompter::with_models(Models::new(Arc::new(Counting::default())), Arc::new(RealWorld));
    let mut runs = Vec::new();
    for (of, question) in asked {
        let reply = prompter.ask(call(of, question, TEMPLATE, None), &mut Heard::default()).await.unwrap();
        runs.push(RecordedRun::of(&[record(of, reply)]).unwrap());
    }
    RecordedReplies::new(runs)
}

async fn said_to(replies: &RecordedReplies, of: &str, question: &str) -> Option<String> {
    let reply = replies.ask(call(of, question, TEMPLATE, None), &mut Heard::default()).await;
    reply.ok().map(|reply| reply.raw)
}

#[tokio::test]
async fn the_same_question_gets_the_recorded_replies_in_their_order_and_each_of_them_once() {
    let replies = recorded(&[("a", "why?"), ("b", "why?"), ("c", "how?")]).await;
    assert_eq!(replies.models(), ["test/counting"]);
    assert_eq!(said_to(&replies, "x", "why?").await.as_deref(), Some("reply 0"));
    assert_eq!(said_to(&replies, "y", "why?").await.as_deref(), Some("reply 1"));
    assert_eq!(said_to(&replies, "z", "why?").await, None, "there are no more");
    assert_eq!(said_to(&replies, "z", "how?").await.as_deref(), Some("reply 2"));
    let missed = NotRecorded { prompt: "greet".to_owned(), step: Name::new("i1") };
    assert_eq!((replies.take_missed(&run("z")), replies.take_missed(&run("x"))), (vec![missed], Vec::new()));
}

#[tokio::test]
async fn a_run_stays_with_the_recorded_run_that_it_began_with() {
    let replies = recorded(&[("a", "how?"), ("b", "first?"), ("b", "how?")]).await;
    assert_eq!(said_to(&replies, "x", "first?").await.as_deref(), Some("reply 1"));
    assert_eq!(said_to(&replies, "x", "how?").await.as_deref(), Some("reply 2"), "and not that of the older run");
}

#[tokio::test]
async fn a_reply_is_read_and_recorded_anew() {
    let replies = recorded(&[("a", "why?")]).await;
    let mut heard = Heard::default();
    let reply = replies.ask(call("x", "why?", TEMPLATE, None), &mut heard).await.unwrap();
    assert_eq!((heard.0.as_str(), reply.content), ("reply 0", ReplyContent::Text));
    assert_eq!(reply.model.as_deref(), Some("answered"));
    assert_eq!(reply.repairs, [crate::thinking::UNMARKED], "what the reader put right is found by the reader of today");
    let PromptUse { said, parameters, model, details, .. } = reply.prompt;
    assert_eq!((said, model.as_deref()), (None, Some("test/counting")), "it is no recording itself");
    assert_eq!(parameters["replayed"], "a");
    assert_eq!(details.cost_micros, Some(7), "it cost something when it was recorded");
}

#[tokio::test]
async fn whatever_is_said_differently_is_another_question() {
    for (template, schema) in [("Asked now: {{ question }}", None), (TEMPLATE, Some(json!({ "type": "object" })))] {
        let replies = recorded(&[("a", "why?")]).await;
        let reply = replies.ask(call("x", "why?", template, schema), &mut Heard::default()).await;
        let error = reply.unwrap_err().to_string();
        assert!(error.contains("no reply is recorded to what the prompt `greet` says now"), "{error}");
    }
    let replies = recorded(&[("a", "why?")]).await;
    let other = "{% set unseen = 1 %}Asked: {{ question }}";
    assert!(
        replies.ask(call("x", "why?", other, None), &mut Heard::default()).await.is_ok(),
        "another template that says the same asks the same"
    );
}
