//! Chats and responses as server-sent events.

use super::{CHAT, RESPONSES, careful, chat, events, response, waiting, with};
use crate::api::server::Api;
use crate::house::Setup;
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::sync::Arc;
use tokio::io::AsyncReadExt;
use trellis_orchestrator::contract::play;
use trellis_orchestrator::memory::scripted::ScriptedPrompter;
use trellis_orchestrator::ports::{BoxFuture, PromptCall, PromptError, PromptReply, Prompter, ReplySink};

fn streamed(body: Value) -> Value {
    with(body, "stream", json!(true))
}

fn text_of(events: &[(String, Value)]) -> String {
    let pieces = events.iter().filter_map(|(_, data)| data["choices"][0]["delta"]["content"].as_str());
    pieces.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chat_streams_its_role_its_text_its_end_and_its_tokens() {
    let api = Api::open().await;
    let body = with(
        streamed(chat(&json!({"tools": 1, "answer": "so it is"}))),
        "stream_options",
        json!({"include_usage": true}),
    );
    let reply = api.post(CHAT, "", &body).await;
    let run = reply.header("x-trellis-run").unwrap();
    let events = events(&reply);
    let (first, last) = (&events[0].1, &events[events.len() - 1].1);
    assert_eq!((&first["choices"][0]["delta"]["role"], last), (&json!("assistant"), &json!("[DONE]")));
    assert_eq!(text_of(&events), "so it is");
    let finish = &events[events.len() - 3].1;
    assert_eq!((&finish["choices"][0]["finish_reason"], &finish["trellis"]["run_id"]), (&json!("stop"), &json!(run)));
    let usage = &events[events.len() - 2].1;
    let recorded = api.get(&format!("/api/v1/runs/{run}")).await.json();
    assert_eq!((&usage["choices"], &usage["usage"]["prompt_tokens"]), (&json!([]), &recorded["in_token"]));
    let chunks = events.iter().filter(|(_, data)| data.is_object());
    assert!(chunks.clone().all(|(_, chunk)| chunk["object"] == "chat.completion.chunk" && chunk["id"] == first["id"]));
    let without = super::events(&api.post(CHAT, "", &streamed(chat(&json!({"answer": "so"})))).await);
    assert!(without.iter().all(|(_, chunk)| chunk.get("usage").is_none()), "nobody asked for it");
}

/// A model that breaks off in the middle of an answer and begins again with another.
#[derive(Debug)]
struct Fickle(ScriptedPrompter);

struct Twice<'s>(&'s mut dyn ReplySink);

impl ReplySink for Twice<'_> {
    fn text(&mut self, text: &str) -> ControlFlow<()> {
        self.0.text(text)
    }

    fn restart(&mut self) {
        self.0.restart();
    }
}

impl Prompter for Fickle {
    fn ask<'a>(
        &'a self,
        call: PromptCall,
        sink: &'a mut dyn ReplySink,
    ) -> BoxFuture<'a, Result<PromptReply, PromptError>> {
        Box::pin(async move {
            let mut sink = Twice(sink);
            assert!(sink.text("Thought: hm\nFinal Answer: something that is wrong").is_continue());
            // Whoever follows has seen it by now.
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            sink.restart();
            self.0.ask(call, &mut sink).await
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn text_of_a_model_that_began_again_never_reaches_the_caller() {
    let model = Arc::new(Fickle(ScriptedPrompter::new(play::reply)));
    let api = Api::with(Setup { model, ..Setup::default() }).await;
    let scene = json!({"answer": "what is right"});
    assert_eq!(text_of(&events(&api.post(CHAT, "", &streamed(chat(&scene))).await)), "what is right");
    let told = events(&api.post(RESPONSES, "", &streamed(response(&scene))).await);
    let deltas = told.iter().filter(|(name, _)| name == "response.output_text.delta");
    assert_eq!(deltas.map(|(_, event)| event["delta"].as_str().unwrap()).collect::<String>(), "what is right");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_answer_comes_in_pieces_that_make_it_up() {
    let words: Vec<_> = (0..50_000).map(|n| format!("{n:06}ñ€😀")).collect();
    let long = words.join(" ");
    let answer = long.clone();
    let model = ScriptedPrompter::new(move |_| Ok(format!("Thought: hm\nFinal Answer: {long}")));
    let api = Api::with(Setup { model: Arc::new(model), ..Setup::default() }).await;
    let events = events(&api.post(CHAT, "", &streamed(chat(&json!({})))).await);
    assert!(text_of(&events) == answer && events.len() > 6, "{}", events.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_of_a_run_without_an_answer_ends_with_the_error() {
    let api = Api::open().await;
    let told = events(&api.post(CHAT, "", &streamed(chat(&json!({"fail": true})))).await);
    let error = &told.last().unwrap().1["error"];
    assert_eq!((&error["code"], told.len()), (&json!("run_failed"), 2));
    let told = events(&api.post(RESPONSES, "", &streamed(response(&json!({"fail": true})))).await);
    let (name, last) = told.last().unwrap();
    assert_eq!((name.as_str(), &last["response"]["status"]), ("response.failed", &json!("failed")));
    assert!(last["response"]["error"]["message"].as_str().unwrap().contains("the model is dead"));
}

/// The names of all events of a response that is answered in one piece.
const ANSWERED: [&str; 9] = [
    "response.created",
    "response.in_progress",
    "response.output_item.added",
    "response.content_part.added",
    "response.output_text.delta",
    "response.output_text.done",
    "response.content_part.done",
    "response.output_item.done",
    "response.completed",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_response_streams_typed_events_which_can_be_taken_up_again_anywhere() {
    let api = Api::open().await;
    let reply = api.post(RESPONSES, "", &streamed(response(&json!({"tools": 1, "answer": "so"})))).await;
    let told = events(&reply);
    assert_eq!(told.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ANSWERED);
    for (number, (name, event)) in told.iter().enumerate() {
        assert_eq!((&event["type"], &event["sequence_number"]), (&json!(name), &json!(number)));
    }
    assert_eq!(
        (&told[0].1["response"]["status"], &told[0].1["response"]["output"]),
        (&json!("in_progress"), &json!([]))
    );
    let item = &told[7].1["item"];
    assert_eq!((&item["content"][0]["text"], &item["id"]), (&json!("so"), &told[4].1["item_id"]));
    let whole = api.get(&format!("/v1/responses/{}", told[0].1["response"]["id"].as_str().unwrap())).await.json();
    assert_eq!(told[8].1["response"], whole);
    let path = format!("/v1/responses/{}?stream=true", whole["id"].as_str().unwrap());
    let numbers =
        |told: &[(String, Value)]| told.iter().map(|(_, event)| event["sequence_number"].clone()).collect::<Vec<_>>();
    assert_eq!(events(&api.get(&path).await)[2..], told[2..]);
    for after in 0..told.len() {
        let rest = events(&api.get(&format!("{path}&starting_after={after}")).await);
        assert_eq!(numbers(&rest), numbers(&told[after + 1..]), "after {after}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_stays_open_while_a_person_is_asked() {
    let api = careful().await;
    let body = streamed(chat(&json!({"tools": 1, "answer": "so"}))).to_string();
    let mut stream = api.house.request("POST", CHAT, "", body.as_bytes()).await;
    let mut heard = String::new();
    while !heard.contains(": run ") {
        let mut bytes = vec![0; 4096];
        let count = stream.read(&mut bytes).await.unwrap();
        assert!(count > 0, "{heard}");
        heard.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
    let run = heard.lines().find_map(|line| line.strip_prefix("x-trellis-run: ")).unwrap().to_owned();
    assert!(heard.contains(&format!(": run {run} waits for a person")), "{heard}");
    let decided = api.post(&format!("/api/v1/runs/{run}/decide"), "", &json!({"choice": "approve"})).await;
    assert_eq!(decided.status, 200);
    let mut rest = String::new();
    stream.read_to_string(&mut rest).await.unwrap();
    assert!(rest.contains("\"content\":\"so\"") && rest.contains("data: [DONE]"), "{rest}");
}

#[tokio::test]
async fn a_stream_tells_that_the_server_stops_and_the_run_goes_on() {
    let api = Api::with(waiting()).await;
    let body = streamed(chat(&json!({"answer": "so"}))).to_string();
    let mut stream = api.house.request("POST", CHAT, "", body.as_bytes()).await;
    let mut heard = String::new();
    while !heard.contains("assistant") {
        let mut bytes = vec![0; 4096];
        let count = stream.read(&mut bytes).await.unwrap();
        heard.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
    api.say_closing();
    stream.read_to_string(&mut heard).await.unwrap();
    assert!(heard.contains("run_goes_on") && heard.contains("GET /v1/responses/resp_"), "{heard}");
    assert!(!heard.contains("[DONE]"), "{heard}");
}
