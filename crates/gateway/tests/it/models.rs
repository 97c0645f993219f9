//! Models without an agent around them.

use crate::house::{House, Setup};
use serde_json::{Value, json};
use std::sync::Arc;
use trellis_orchestrator::memory::scripted::ScriptedPrompter;
use trellis_orchestrator::orchestrator::Options;
use trellis_orchestrator::ports::{BoxFuture, PromptCall, PromptError, PromptReply, Prompter, ReplyContent, ReplySink};

const PROMPT: &str = "/api/v1/flow/default/service/prompt";
const COMPLETION: &str = "/api/v1/flow/default/service/text-completion";

async fn ask(house: &House, service: &str, request: Value) -> Vec<Value> {
    let mut socket = house.socket().await;
    socket.send(json!({"id": "1", "service": service, "flow": "default", "request": request})).await;
    socket.replies().await
}

#[tokio::test]
async fn a_prompt_is_answered_under_every_name_that_a_client_reads() {
    let house = House::open().await;
    let request = json!({"id": "question", "variables": {"question": "{}"}});
    let (status, reply) = house.post(PROMPT, &request).await;
    assert_eq!((status, &reply["text"], &reply["response"]), (200, &json!("a fact"), &json!("a fact")), "{reply}");
    assert_eq!((&reply["model"], &reply["end_of_stream"]), (&json!("scripted"), &json!(true)));
    let terms = json!({"id": "question", "terms": {"question": "\"{}\""}});
    assert_eq!(house.post(PROMPT, &terms).await.1["text"], "a fact", "terms are JSON texts");
    let whole = ask(&house, "prompt", request).await;
    assert_eq!((whole.len(), &whole[0]["response"]["text"]), (1, &json!("a fact")), "the first frame is the answer");
}

#[tokio::test]
async fn a_prompt_streams_while_it_is_written_and_ends_with_what_it_cost() {
    let house = House::open().await;
    let request = json!({"id": "question", "variables": {"question": "{}"}, "streaming": true});
    let replies = ask(&house, "prompt", request).await;
    let text: String = replies.iter().filter_map(|reply| reply["response"]["response"].as_str()).collect();
    assert_eq!(text, "a fact");
    let (last, before) = replies.split_last().unwrap();
    assert!(before.iter().all(|reply| reply["response"]["end_of_stream"] == false && reply["complete"] == false));
    assert_eq!((&last["response"]["end_of_stream"], &last["response"]["out_token"]), (&json!(true), &json!(2)));
}

#[tokio::test]
async fn a_text_is_completed_whole_and_streamed() {
    let house = House::open().await;
    let request = json!({"system": "", "prompt": "{}", "streaming": false});
    let (status, reply) = house.post(COMPLETION, &request).await;
    assert_eq!(status, 200);
    let whole = reply["response"].as_str().unwrap_or_else(|| panic!("{reply}")).to_owned();
    assert_eq!(whole, "a completion");
    let replies = ask(&house, "text-completion", json!({"prompt": "{}", "streaming": true})).await;
    let text: String = replies.iter().filter_map(|reply| reply["response"]["response"].as_str()).collect();
    assert_eq!(text, whole);
}

#[tokio::test]
async fn models_can_be_listed() {
    let house = House::open().await;
    let replies = ask(&house, "text-completion", json!({"operation": "list-models"})).await;
    assert!(replies[0]["response"]["models"].is_array(), "{replies:?}");
    let (status, _) = house.post(COMPLETION, &json!({"operation": "guess"})).await;
    assert_eq!(status, 400);
}

#[tokio::test]
async fn what_is_wrong_with_a_request_or_a_model_is_said() {
    let house = House::open().await;
    for (service, request, complaint) in [
        (PROMPT, json!({}), "`id` is missing"),
        (PROMPT, json!({"id": 3}), "`id` must be a text"),
        (PROMPT, json!({"id": "question", "variables": []}), "`variables` must be an object"),
        (PROMPT, json!({"id": "question", "terms": {"a": 1}}), "`a` must be a JSON text"),
        (PROMPT, json!({"id": "question", "terms": {"a": "{"}}), "`a` is not JSON"),
        (PROMPT, json!({"id": "question", "variables": {"question": "{\"fail\": true}"}}), "the model is dead"),
        (COMPLETION, json!({"prompt": ""}), "`prompt` is missing"),
        (COMPLETION, json!({"prompt": "x", "schema": []}), "`schema` must be an object"),
    ] {
        let (_, reply) = house.post(service, &request).await;
        let message = reply["error"]["message"].as_str().unwrap_or_else(|| panic!("{request}: {reply}"));
        assert!(message.contains(complaint), "{request}: {message}");
    }
    let failing = json!({"id": "question", "variables": {"question": "{\"fail\": true}"}, "streaming": true});
    let last = ask(&house, "prompt", failing).await.pop().unwrap();
    assert_eq!((&last["error"]["type"], &last["complete"]), (&json!("llm-error"), &json!(true)), "{last}");
}

#[tokio::test]
async fn a_reply_that_does_not_end_is_cut_off() {
    let model = ScriptedPrompter::new(|_| Ok("on and on ".repeat(1000)));
    let mut options = Options::default();
    options.limits.usual.max_reply_bytes = 5000;
    let house = House::with(Setup { model: Arc::new(model), options, ..Setup::default() }).await;
    for streaming in [false, true] {
        let last = ask(&house, "text-completion", json!({"prompt": "go", "streaming": streaming})).await.pop().unwrap();
        assert_eq!(last["error"]["message"], "the reply was longer than 5000 bytes", "{last}");
    }
}

/// A model whose replies never are what the prompt asks for.
#[derive(Debug)]
struct Wayward(ScriptedPrompter);

impl Prompter for Wayward {
    fn ask<'a>(
        &'a self,
        call: PromptCall,
        sink: &'a mut dyn ReplySink,
    ) -> BoxFuture<'a, Result<PromptReply, PromptError>> {
        Box::pin(async move {
            let reply = self.0.ask(call, sink).await?;
            Ok(PromptReply { content: ReplyContent::Wrong { reason: "no object".to_owned() }, ..reply })
        })
    }
}

#[tokio::test]
async fn a_reply_that_is_not_what_was_asked_for_is_an_error_however_it_is_read() {
    let model = Arc::new(Wayward(ScriptedPrompter::new(|_| Ok("hm".to_owned()))));
    let house = House::with(Setup { model, ..Setup::default() }).await;
    for streaming in [false, true] {
        let request = json!({"id": "question", "variables": {"question": "x"}, "streaming": streaming});
        let last = ask(&house, "prompt", request).await.pop().unwrap();
        assert_eq!(last["error"]["message"], "the reply is not what the prompt asks for: no object", "{last}");
    }
}
