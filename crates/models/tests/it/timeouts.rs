//! How long a call is waited for, and what ends it.

use crate::ask::{patient, provider};
use crate::speech;
use crate::stub::{Act, Script, Stub, answer, head, send, stream};
use serde_json::json;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};
use trellis_domain::Hash;
use trellis_domain::config::{Settings, StoredItem};
use trellis_domain::record::FailedAttempt;
use trellis_models::{CallSettings, TemplatePrompter};
use trellis_orchestrator::ports::{PromptCall, PromptError, PromptReply, Prompter, RealWorld, ReplySink};

const LONG: Duration = Duration::from_secs(20);

#[derive(Default)]
struct Heard {
    begun: Arc<Notify>,
    failures: Vec<FailedAttempt>,
}

impl ReplySink for Heard {
    fn text(&mut self, _: &str) -> ControlFlow<()> {
        self.begun.notify_one();
        ControlFlow::Continue(())
    }

    fn restart(&mut self) {}

    fn failed(&mut self, attempt: &FailedAttempt) {
        self.failures.push(attempt.clone());
    }
}

fn call(timeout: Option<Duration>) -> PromptCall {
    let value = json!({ "prompt": "Why?" }).to_string();
    let item = StoredItem { kind: "prompt".to_owned(), key: "template.q".to_owned(), value };
    let settings = Arc::new(Settings::take(1, [item]).0);
    PromptCall { settings, id: "q".to_owned(), timeout, ..PromptCall::default() }
}

async fn ask(prompter: &TemplatePrompter, timeout: Duration) -> Result<PromptReply, PromptError> {
    prompter.ask(call(Some(timeout)), &mut Heard::default()).await
}

fn prompter(stub: &Stub, settings: CallSettings) -> TemplatePrompter {
    TemplatePrompter::new(provider("openai", &stub.base, settings), Arc::new(RealWorld))
}

fn slowly(pause: Duration) -> Script {
    [vec![Act::Pause(pause)], stream(speech::reply("openai", &["Moss"]))].concat()
}

/// A reply that begins and never ends.
fn endless() -> Script {
    let begun = speech::reply("openai", &["Mo"]).into_iter().take(3).map(send);
    std::iter::once(head("200 OK", "")).chain(begun).chain([Act::Hang]).collect()
}

#[tokio::test]
async fn waiting_for_a_turn_does_not_count() {
    let pause = Duration::from_millis(400);
    let stub = Stub::always(slowly(pause)).await;
    let prompter = Arc::new(prompter(&stub, CallSettings { concurrency: 1, ..patient() }));
    let started = Instant::now();
    let calls: Vec<_> = (0..3)
        .map(|_| {
            let prompter = Arc::clone(&prompter);
            tokio::spawn(async move { ask(&prompter, pause * 5 / 2).await })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap().raw, "Moss");
    }
    assert!(started.elapsed() >= pause * 3, "they were made one after the other");
}

#[tokio::test]
async fn a_call_that_takes_too_long_tells_what_was_tried() {
    let busy = answer("503 Service Unavailable", "retry-after: 0\r\n", "");
    let stub = Stub::each([busy, endless()]).await;
    let error = ask(&prompter(&stub, patient()), Duration::from_millis(1500)).await.unwrap_err();
    let PromptError::Provider { reason, failures } = error else { panic!("{error}") };
    assert_eq!(reason, "the model took longer than 1.5 s");
    let [busy, endless] = &failures[..] else { panic!("{failures:?}") };
    assert!(busy.reason.contains("503") && endless.reason == "the time for the call was over", "{failures:?}");
    let asked = endless.asked.as_ref().expect("it was sent");
    assert_eq!(asked.sent, Some(Hash::of(&stub.seen().last().unwrap().bytes)), "also what was never answered");
}

#[tokio::test]
async fn a_long_pause_does_not_outlast_the_call() {
    let stub = Stub::always(answer("429 Too Many Requests", "retry-after: 20\r\n", "")).await;
    let asked = timeout(LONG / 2, ask(&prompter(&stub, patient()), Duration::from_millis(300))).await;
    assert!(asked.expect("it ends long before the pause").unwrap_err().to_string().contains("answered 429"));
}

#[tokio::test]
async fn a_reply_has_to_be_done_in_a_time_of_its_own() {
    let stub = Stub::always(endless()).await;
    let settings = CallSettings { total_timeout: Duration::from_millis(300), ..patient() };
    let error = prompter(&stub, settings).ask(call(None), &mut Heard::default()).await.unwrap_err();
    assert_eq!(error.to_string(), "the model did not answer: openai was not done after 0.3 s");
}

/// Whoever stops a call knows by then what had failed, and the server sees it end at once.
#[tokio::test]
async fn a_call_that_is_dropped_closes_its_connection_and_has_told_what_failed() {
    let busy = answer("503 Service Unavailable", "retry-after: 0\r\n", "");
    let stub = Stub::each([busy, endless()]).await;
    let prompter = prompter(&stub, patient());
    let mut heard = Heard::default();
    let begun = Arc::clone(&heard.begun);
    tokio::select! {
        reply = prompter.ask(call(None), &mut heard) => panic!("{reply:?}"),
        () = begun.notified() => {}
    }
    assert_eq!(heard.failures.len(), 1);
    let closed = async {
        while stub.left() == 0 {
            tokio::task::yield_now().await;
        }
    };
    timeout(LONG, closed).await.expect("the connection is closed while the prompter lives");
    drop(prompter);
}
