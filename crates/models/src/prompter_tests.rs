use super::*;
use crate::provider::{ModelRequest, OnPiece};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};
use trellis_domain::config::{PromptReply as Expected, Settings, StoredItem};
use trellis_domain::parts::{ChatTurn, ReplyPart};
use trellis_domain::record::PromptUse;
use trellis_domain::{Hash, Timestamp};
use trellis_orchestrator::ports::ReplyContent;

/// A world in which only sleeping and answering take time.
#[derive(Debug, Default)]
struct Slow(AtomicI64);

impl World for Slow {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::Relaxed) * 1000)
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'_, ()> {
        self.0.fetch_add(i64::try_from(duration.as_millis()).unwrap(), Ordering::Relaxed);
        Box::pin(std::future::ready(()))
    }

    fn fresh_id(&self) -> String {
        "id".to_owned()
    }
}

/// Answers from a list, each answer after 7 ms, and keeps what it was asked.
#[derive(Debug)]
struct Listed {
    answers: Mutex<VecDeque<Result<&'static str, ProviderError>>>,
    asked: Mutex<Vec<ModelRequest>>,
    world: Arc<Slow>,
}

impl Provider for Listed {
    fn name(&self) -> String {
        "listed".to_owned()
    }

    fn complete<'a>(
        &'a self,
        request: &'a ModelRequest,
        on_piece: &'a mut OnPiece<'_>,
    ) -> BoxFuture<'a, Result<ModelReply, ProviderError>> {
        self.world.0.fetch_add(7, Ordering::Relaxed);
        self.asked.lock().unwrap().push(request.clone());
        let answer = self.answers.lock().unwrap().pop_front().unwrap();
        let told = on_piece(Piece::Text(answer.as_ref().map_or("half a", |text| *text)));
        let reply = |text: &str| ModelReply {
            text: if told.is_break() { String::new() } else { text.to_owned() },
            model: "m".to_owned(),
            in_token: Some(3),
            out_token: None,
            ..ModelReply::default()
        };
        Box::pin(std::future::ready(answer.map(reply)))
    }
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

struct Bench {
    provider: Arc<Listed>,
    prompter: TemplatePrompter,
    heard: Heard,
}

impl Bench {
    fn new(answers: impl IntoIterator<Item = Result<&'static str, ProviderError>>) -> Self {
        let world = Arc::new(Slow::default());
        let answers = Mutex::new(answers.into_iter().collect());
        let provider = Arc::new(Listed { answers, asked: Mutex::default(), world: Arc::clone(&world) });
        let prompter = TemplatePrompter::new(Arc::clone(&provider) as Arc<dyn Provider>, world);
        Self { provider, prompter, heard: Heard::default() }
    }

    async fn ask(&mut self, id: &str, schema: Option<Value>) -> Result<PromptReply, PromptError> {
        let call = PromptCall {
            scope: trellis_domain::Scope::default(),
            settings: settings(),
            id: id.to_owned(),
            variables: json!({ "name": "Ada" }).as_object().cloned().unwrap(),
            schema,
            ..PromptCall::default()
        };
        self.prompter.ask(call, &mut self.heard).await
    }

    fn asked(&self) -> Vec<ModelRequest> {
        self.provider.asked.lock().unwrap().clone()
    }
}

fn settings() -> Arc<Settings> {
    let prompt = |key: &str, value: Value| StoredItem {
        kind: "prompt".to_owned(),
        key: key.to_owned(),
        value: value.to_string(),
    };
    let number = json!({ "type": "object", "required": ["n"], "properties": { "n": { "type": "integer" } } });
    let items = [
        prompt("system", json!("Be kind to {{ name }}.")),
        prompt("template.greet", json!({ "prompt": "Greet {{ name }}{{ missing.too }}." })),
        prompt("template.count", json!({ "prompt": "Count.", "response-type": "json", "schema": number })),
        prompt("template.lines", json!({ "prompt": "List.", "response-type": "jsonl", "schema": number })),
        prompt("template.broken", json!({ "prompt": "{% for x in y %}{% empty %}none{% endfor %}" })),
        prompt("template.odd", json!({ "prompt": "x", "response-type": "json", "schema": { "type": "moss" } })),
    ];
    Arc::new(Settings::take(1, items).0)
}

fn transient(retry_after: Option<Duration>) -> ProviderError {
    ProviderError::Transient { reason: "overloaded".to_owned(), retry_after }
}

#[tokio::test]
async fn a_prompt_is_rendered_sent_streamed_and_accounted_for() {
    let mut bench = Bench::new([Ok("Hello")]);
    let reply = bench.ask("greet", None).await.unwrap();
    let [request] = &bench.asked()[..] else { panic!("asked once") };
    assert_eq!((&*request.system.to_string(), &*request.user.to_string()), ("Be kind to Ada.", "Greet Ada."));
    assert_eq!(request.prompt, "greet");
    assert!(request.variables.is_empty(), "a provider that reads only the text is given only the text");
    assert_eq!((reply.raw.as_str(), reply.content, bench.heard.text.as_str()), ("Hello", ReplyContent::Text, "Hello"));
    assert_eq!((reply.model.as_deref(), reply.in_token, reply.out_token), (Some("m"), Some(3), None));
    let sent = Hash::of_parts([b"Be kind to Ada.".as_slice(), b"Greet Ada."]);
    let template = settings().prompts["greet"].hash;
    let said = reply.prompt.said;
    assert!(said.is_some());
    let (id, model) = ("greet".to_owned(), Some("listed".to_owned()));
    let (template, sent) = (Some(template), Some(sent));
    assert_eq!(reply.prompt, PromptUse { id, template, sent, said, model, ..PromptUse::default() });
}

#[tokio::test]
async fn a_transient_failure_is_tried_again_from_the_start() {
    let busy = transient(Some(Duration::from_secs(2)));
    let hasty = transient(Some(Duration::ZERO));
    let mut bench = Bench::new([Err(hasty), Err(busy), Ok("Hello")]);
    let reply = bench.ask("greet", None).await.unwrap();
    assert_eq!((bench.heard.text.as_str(), bench.heard.restarts), ("Hello", 2));
    let asked = Some(Box::new(reply.prompt.clone()));
    let model = Some("listed".to_owned());
    let failure = FailedAttempt { reason: "overloaded".to_owned(), ms: 7, too_long: false, model, asked };
    assert_eq!(reply.failures, [failure.clone(), failure], "each attempt can be reconstructed");
    assert_eq!(bench.provider.world.now(), Timestamp::from_micros((7 + 500 + 7 + 2000 + 7) * 1000));
}

/// The reason, and how often the provider was asked.
async fn failure(answers: impl IntoIterator<Item = Result<&'static str, ProviderError>>) -> (String, usize) {
    let mut bench = Bench::new(answers);
    match bench.ask("greet", None).await {
        Err(PromptError::Provider { reason, failures }) => {
            assert_eq!(failures.len(), bench.asked().len());
            (reason, failures.len())
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_cannot_be_mended_by_asking_again_fails() {
    let always = || std::iter::repeat_with(|| Err(transient(None))).take(9);
    assert_eq!(failure(always()).await, ("overloaded (asked 3 times)".to_owned(), 3));
    let wrong_key = ProviderError::Permanent { reason: "wrong key".to_owned() };
    assert_eq!(failure([Err(wrong_key)]).await, ("wrong key".to_owned(), 1));
    let tomorrow = transient(Some(Duration::from_hours(24)));
    assert_eq!(failure([Err(tomorrow)]).await, ("overloaded".to_owned(), 1));
}

#[tokio::test]
async fn a_busy_provider_is_waited_for_over_minutes() {
    let busy = |retry_after| Err(ProviderError::Busy { reason: "too many".to_owned(), retry_after });
    let mut bench = Bench::new(std::iter::repeat_with(|| busy(None)).take(7).chain([Ok("Hello")]));
    let reply = bench.ask("greet", None).await.unwrap();
    assert_eq!((reply.raw.as_str(), reply.failures.len()), ("Hello", 7));
    let waited = bench.provider.world.now().as_micros() / 1_000_000;
    assert!((123..=185).contains(&waited), "1, 2, 4, … 60 seconds, and up to half of it more: {waited}");
    let always = std::iter::repeat_with(|| busy(None)).take(20);
    assert_eq!(failure(always).await, ("too many (asked 8 times)".to_owned(), 8));
    let mut bench = Bench::new([busy(Some(Duration::from_secs(100))), Ok("Hello")]);
    bench.ask("greet", None).await.unwrap();
    assert!(bench.provider.world.now().as_micros() >= 100_000_000, "what the provider asks for");
}

/// Fails, and takes its time.
#[derive(Debug)]
struct Sluggish(Arc<Slow>);

impl Provider for Sluggish {
    fn name(&self) -> String {
        "sluggish".to_owned()
    }

    fn complete<'a>(
        &'a self,
        _: &'a ModelRequest,
        _: &'a mut OnPiece<'_>,
    ) -> BoxFuture<'a, Result<ModelReply, ProviderError>> {
        self.0.0.fetch_add(60_000, Ordering::Relaxed);
        Box::pin(std::future::ready(Err(transient(None))))
    }
}

/// Three times a minute would be longer than any call may take, and nobody would ask the second model.
#[tokio::test]
async fn a_slow_failure_is_not_repeated_where_another_model_is_there() {
    let mut bench = Bench::new([Ok("Hello")]);
    let world = Arc::clone(&bench.provider.world);
    let models = Models::new(Arc::new(Sluggish(Arc::clone(&world)))).or(Arc::clone(&bench.provider) as _);
    bench.prompter = TemplatePrompter::with_models(models, world);
    let reply = bench.ask("greet", None).await.unwrap();
    assert_eq!((reply.raw.as_str(), reply.ms, bench.heard.restarts), ("Hello", 7, 1));
    let told = reply.failures.iter().map(|failure| (failure.model.as_deref(), failure.reason.as_str(), failure.ms));
    assert_eq!(told.collect::<Vec<_>>(), [(Some("sluggish"), "overloaded", 60_000)]);
}

#[tokio::test]
async fn the_schema_of_the_call_replaces_that_of_the_template() {
    let mut bench = Bench::new([Ok("[1]"), Ok("[1]")]);
    let reply = bench.ask("count", None).await.unwrap();
    assert_eq!(reply.raw, "[1]", "what it cost and what it said is kept");
    let ReplyContent::Wrong { reason } = reply.content else { panic!("{:?}", reply.content) };
    assert!(reason.contains("is not of type \"object\""), "{reason}");
    let reply = bench.ask("count", Some(json!({ "type": "array" }))).await.unwrap();
    assert_eq!(reply.content, ReplyContent::List(vec![json!(1)]));
    assert_eq!(bench.asked()[1].expected, Expected::Json { schema: Some(json!({ "type": "array" })) });
}

#[tokio::test]
async fn lines_that_do_not_fit_are_skipped() {
    let mut bench = Bench::new([Ok("```\n{\"n\": 1}\n{\"n\": \"x\"}\nnot json\n\n{\"n\": 2}\n```")]);
    let reply = bench.ask("lines", None).await.unwrap();
    assert_eq!(reply.content, ReplyContent::List(vec![json!({ "n": 1 }), json!({ "n": 2 })]));
}

#[tokio::test]
async fn a_prompt_that_cannot_be_sent_is_named_before_anything_is_paid() {
    for (id, expected) in [
        ("none", "there is no prompt `none`; add the configuration item prompt/template.none"),
        (
            "broken",
            "the prompt `broken` cannot be rendered: line 1: there is no {% empty %}; write {% else %} instead; correct \
             prompt/template.broken",
        ),
        ("odd", "the prompt `odd` cannot be rendered: its schema is not a JSON schema: "),
    ] {
        let mut bench = Bench::new([]);
        let error = bench.ask(id, None).await.unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
        assert!(bench.asked().is_empty());
    }
}

/// A conversation in words: the question stands below each result, and what was said stays as it was.
#[tokio::test]
async fn what_comes_next_stands_below_each_result() {
    let item = StoredItem {
        kind: "prompt".to_owned(),
        key: "template.talk".to_owned(),
        value: r#"{"prompt": "{{ question }}", "conversation": true, "next": "Now: {{ question }}"}"#.to_owned(),
    };
    let call = |results: &[&str]| {
        let turn = |text: &&str| {
            let call = ReplyPart::Call { id: None, function: "look".to_owned(), arguments: "{}".into() };
            let result =
                ChatTurn::ToolResult { call: None, function: "look".to_owned(), text: (*text).into(), is_error: false };
            [ChatTurn::Assistant { parts: vec![call] }, result]
        };
        PromptCall {
            settings: Arc::new(Settings::take(1, [item.clone()]).0),
            id: "talk".to_owned(),
            variables: [("question".to_owned(), "Why?".into())].into_iter().collect(),
            turns: results.iter().flat_map(turn).collect(),
            ..PromptCall::default()
        }
    };
    let asked =
        |results: &[&str]| crate::asking::Asking::of_prompt(&crate::template::Templates::new(), call(results)).unwrap();
    let first = asked(&["a"]).request.turns;
    assert_eq!(first[1], ChatTurn::User { text: "Observation: a\n\nNow: Why?".into() });
    let both = asked(&["a", "b"]).request.turns;
    assert_eq!(both[..2], first[..]);
    assert_eq!(both.len(), 4);
}
