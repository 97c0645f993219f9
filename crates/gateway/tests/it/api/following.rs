//! `GET /api/v1/runs/{id}/events`: nothing is lost, nothing durable comes twice.

use super::server::{Api, Told, durable};
use super::{agent, ask, team};
use crate::house::{Setup, memory};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::Semaphore;
use trellis_domain::record::Record;
use trellis_orchestrator::contract::play;
use trellis_orchestrator::events::RunEvent;
use trellis_orchestrator::hub::Item;
use trellis_orchestrator::memory::scripted::ScriptedPrompter;
use trellis_orchestrator::ports::{BoxFuture, PromptCall, PromptError, PromptReply, Prompter, ReplySink};

fn resume(seq: u64) -> String {
    format!("Last-Event-ID: {seq}\r\n")
}

#[tokio::test]
async fn from_any_event_on_the_rest_is_the_same() {
    let api = Api::open().await;
    for body in [agent("a"), team()] {
        let run = api.finish(&body).await;
        let path = format!("/api/v1/runs/{run}/events");
        let whole = api.events(&path, "").await.rest().await;
        let expected: Vec<_> =
            api.house.bench.records(&run).await.into_iter().map(|record| told(&run, record)).collect();
        assert_eq!(whole, expected, "a finished run is told in durable events alone");
        let last = whole.len() as u64;
        for seq in 0..last {
            let rest = api.events(&path, &resume(seq)).await.rest().await;
            let by_parameter = api.events(&format!("{path}?after={seq}"), "").await.rest().await;
            let cut = usize::try_from(seq).unwrap();
            assert_eq!((&rest, &by_parameter), (&whole[cut..].to_vec(), &rest), "after {seq}");
        }
        assert_eq!(api.call("GET", &path, &resume(last), "").await.status, 204, "nothing more will come");
        let header_first = api.events(&format!("{path}?after=1"), &resume(last - 1)).await.rest().await;
        assert_eq!(header_first.len(), 1, "the header is newer than the address");
        for (query, header) in [
            ("", resume(last + 1)),
            ("", "Last-Event-ID: x\r\n".to_owned()),
            ("", resume_text("-1")),
            ("", resume_text("")),
            ("?after=x", String::new()),
            ("?after=", String::new()),
            ("?format=xml", String::new()),
            ("?after=99999", String::new()),
            ("?since=1", String::new()),
        ] {
            let (status, message) = api.call("GET", &format!("{path}{query}"), &header, "").await.refusal();
            assert_eq!(status, 400, "{query} {header}: {message}");
        }
    }
}

fn resume_text(text: &str) -> String {
    format!("Last-Event-ID: {text}\r\n")
}

fn told(run: &trellis_domain::RunId, record: Arc<Record>) -> Told {
    let id = Some(record.header.seq);
    let data = json!(RunEvent::of(run, &Item::Record(record)));
    Told { id, event: data["type"].as_str().unwrap().to_owned(), data }
}

#[tokio::test]
async fn records_can_be_followed_as_they_are_stored() {
    let api = Api::open().await;
    let run = api.finish(&team()).await;
    let told = api.events(&format!("/api/v1/runs/{run}/events?format=records"), "").await.rest().await;
    assert!(told.iter().all(|told| told.event == "record"));
    let read: Vec<Arc<Record>> = told.iter().map(|told| serde_json::from_value(told.data.clone()).unwrap()).collect();
    assert_eq!(read, api.house.bench.records(&run).await);
}

/// A model that stops in the middle of each reply until it is let go on.
#[derive(Debug)]
struct Halting {
    model: ScriptedPrompter,
    go_on: Semaphore,
}

impl Halting {
    fn new() -> Arc<Self> {
        Arc::new(Self { model: ScriptedPrompter::new(play::reply), go_on: Semaphore::new(0) })
    }
}

struct Half<'a> {
    sink: &'a mut dyn ReplySink,
    kept: String,
}

impl ReplySink for Half<'_> {
    fn text(&mut self, text: &str) -> std::ops::ControlFlow<()> {
        let (first, second) = text.split_at(text.len() / 2);
        second.clone_into(&mut self.kept);
        self.sink.text(first)
    }

    fn restart(&mut self) {
        self.sink.restart();
    }
}

impl Prompter for Halting {
    fn ask<'a>(
        &'a self,
        call: PromptCall,
        sink: &'a mut dyn ReplySink,
    ) -> BoxFuture<'a, Result<PromptReply, PromptError>> {
        Box::pin(async move {
            let mut half = Half { sink, kept: String::new() };
            let reply = self.model.ask(call, &mut half).await?;
            self.go_on.acquire().await.expect("the test goes on").forget();
            assert!(half.sink.text(&half.kept).is_continue());
            Ok(reply)
        })
    }
}

/// What a client knows, by the rules of the document.
#[derive(Default)]
struct Client {
    seen: u64,
    durable: Vec<Value>,
    previews: BTreeMap<(String, String), String>,
}

impl Client {
    fn connected(&mut self) {
        self.previews.clear();
    }

    fn hear(&mut self, told: &Told) {
        let name = |member: &str| told.data[member].as_str().unwrap_or_default().to_owned();
        let session = name("session_id");
        match told.id {
            None => {
                let preview = self.previews.entry((session, name("message_id"))).or_default();
                preview.push_str(told.data["content"].as_str().unwrap());
            }
            Some(seq) => {
                assert_eq!(seq, self.seen + 1, "no gap, nothing twice");
                self.seen = seq;
                self.durable.push(told.data.clone());
                if ["step.completed", "agent.completed", "run.completed", "run.failed"].contains(&told.event.as_str()) {
                    self.previews.retain(|(of, _), _| *of != session);
                }
            }
        }
    }

    fn preview(&self) -> String {
        self.previews.values().cloned().collect::<Vec<_>>().join("|")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_a_disconnect_cuts_in_the_middle_is_shown_from_its_start_and_then_comes_whole() {
    let model = Halting::new();
    let api = Api::with(Setup { model: Arc::clone(&model) as _, ..Setup::default() }).await;
    let answer = "a rather long answer, which takes its time to be written down";
    let run = api.begin(&ask(&json!({"answer": answer}), "react")).await;
    let path = format!("/api/v1/runs/{run}/events");
    let mut client = Client::default();
    let mut shown = Vec::new();
    for _ in 0..3 {
        client.connected();
        let mut events = api.events(&path, &resume(client.seen)).await;
        while client.preview().is_empty() || !client.preview().contains("a rather") {
            client.hear(&events.next().await.unwrap());
        }
        shown.push(client.preview());
    }
    assert!(shown.iter().all(|preview| *preview == shown[0]), "each connection shows the same: {shown:?}");
    client.connected();
    let mut events = api.events(&path, &resume(client.seen)).await;
    model.go_on.add_permits(1);
    while let Some(told) = events.next().await {
        client.hear(&told);
    }
    assert!(client.previews.is_empty(), "nothing is left that no event completed");
    let reply = client.durable.iter().find(|event| event["kind"] == "answer").unwrap();
    assert_eq!((&reply["content"], &reply["thought"]), (&json!(answer), &json!("enough")));
}

#[tokio::test(flavor = "multi_thread")]
async fn wherever_a_live_stream_is_cut_what_was_heard_and_the_rest_make_the_whole() {
    for cut in 0.. {
        let api = Api::open().await;
        let run = api.begin(&team()).await;
        let path = format!("/api/v1/runs/{run}/events");
        let mut client = Client::default();
        let mut events = api.events(&path, "").await;
        for _ in 0..cut {
            let Some(told) = events.next().await else { break };
            client.hear(&told);
        }
        drop(events);
        client.connected();
        let whole = api.house.bench.records(&run).await;
        let ended = whole.iter().any(|record| record.header.session == run && record.body.as_ended().is_some());
        if ended && client.seen == whole.len() as u64 {
            assert!(cut > 20, "the run is long enough to be cut: {cut}");
            return;
        }
        for told in api.events(&path, &resume(client.seen)).await.rest().await {
            client.hear(&told);
        }
        let whole = api.house.bench.records(&run).await;
        let whole: Vec<_> = whole.iter().map(|record| told(&run, Arc::clone(record)).data).collect();
        assert_eq!(client.durable, whole, "cut after {cut}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_when_the_server_stops_and_goes_on_with_the_next_one() {
    let (store, model) = (memory(), Halting::new());
    let first = Api::with(Setup { store: store.clone(), model: Arc::clone(&model) as _, ..Setup::default() }).await;
    let run = first.begin(&ask(&json!({"tools": 2, "answer": "so"}), "react")).await;
    let path = format!("/api/v1/runs/{run}/events");
    let mut client = Client::default();
    let mut events = first.events(&path, "").await;
    model.go_on.add_permits(1);
    // Into the second thought.
    while client.seen < 4 || client.preview().is_empty() {
        client.hear(&events.next().await.unwrap());
    }
    let shutting = tokio::spawn(first.house.shut());
    while let Some(told) = events.next().await {
        client.hear(&told);
    }
    shutting.await.unwrap();
    let second = Api::with(Setup { store, ..Setup::default() }).await;
    client.connected();
    for told in second.events(&path, &resume(client.seen)).await.rest().await {
        client.hear(&told);
    }
    let whole = second.house.bench.records(&run).await;
    let whole: Vec<_> = whole.iter().map(|record| told(&run, Arc::clone(record)).data).collect();
    assert_eq!(client.durable, whole);
    assert_eq!(client.durable.last().unwrap()["answer"], "so");
}

#[tokio::test]
async fn a_stopping_server_ends_its_streams_begins_none_and_takes_no_question() {
    let api = Api::with(Setup { at_work: false, lingers: true, ..Setup::default() }).await;
    let run = api.begin(&agent("a")).await;
    let path = format!("/api/v1/runs/{run}/events");
    let mut events = api.events(&path, "").await;
    assert_eq!(events.next().await.unwrap().event, "run.started");
    api.say_closing();
    while events.next().await.is_some() {}
    for reply in [api.get(&path).await, api.post("/api/v1/runs", "", &agent("b")).await] {
        assert_eq!((reply.status, &reply.json()["error"]["type"]), (503, &json!("stopping")));
    }
    assert_eq!(api.get(&format!("/api/v1/runs/{run}")).await.status, 200, "what is there can be read to the last");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_who_does_not_read_holds_up_nobody_and_misses_nothing() {
    let words: Vec<_> = (0..80_000).map(|n| format!("{n:010}")).collect();
    let long = words.join(" ");
    let script = move |call: &PromptCall| {
        if call.id == "agent-react" { Ok(format!("Thought: {long}\nFinal Answer: {long}")) } else { play::reply(call) }
    };
    let mut model = ScriptedPrompter::new(script);
    model.piece = 7;
    let api = Api::with(Setup { model: Arc::new(model), ..Setup::default() }).await;
    let limits = json!({"max-reply-bytes": 1 << 22});
    let run = api.begin(&json!({"question": "tell", "pattern": "react", "limits": limits})).await;
    let slow = api.events(&format!("/api/v1/runs/{run}/events"), "").await;
    // Somebody else hears the end while the slow one has not read a byte.
    let quick = api.events(&format!("/api/v1/runs/{run}/events"), "").await.rest().await;
    assert_eq!(quick.last().unwrap().event, "run.completed");
    let heard = slow.rest().await;
    assert_eq!(durable(&heard), durable(&quick));
    let chunks = heard.iter().filter(|told| told.event == "chunk").count();
    assert!(chunks < 100_000, "pieces are gathered: {chunks}");
    assert_eq!(heard.last().unwrap().data["answer"].as_str().unwrap().len(), 80_000 * 11 - 1, "whole");
}
