//! What a model of Anthropic's thought goes back to it, unchanged, with what came of its call.

use crate::ask::{KEY, ask, patient, provider};
use crate::configured::{ARGUMENTS, FUNCTION, called, gone_on_with};
use crate::stub::{Script, Stub, answer, stream};
use crate::tools::offering;
use serde_json::{Value, json};
use trellis_domain::parts::ReplyPart;

fn events(events: &[Value]) -> Script {
    let event = |value: &Value| format!("event: {}\ndata: {value}\n\n", value["type"].as_str().unwrap());
    stream(events.iter().map(event))
}

/// Two thoughts, one of which nobody may read, and a call.
fn thoughtful_call(thought: &str) -> Script {
    let start =
        |index: u64, block: Value| json!({ "type": "content_block_start", "index": index, "content_block": block });
    let delta = |index: u64, delta: Value| json!({ "type": "content_block_delta", "index": index, "delta": delta });
    events(&[
        json!({ "type": "message_start", "message": { "model": "claude", "usage": { "input_tokens": 1 } } }),
        start(0, json!({ "type": "thinking", "thinking": "", "signature": "" })),
        delta(0, json!({ "type": "thinking_delta", "thinking": thought })),
        delta(0, json!({ "type": "signature_delta", "signature": "EqQB" })),
        json!({ "type": "content_block_stop", "index": 0 }),
        start(1, json!({ "type": "redacted_thinking", "data": "EmwK" })),
        start(2, json!({ "type": "tool_use", "id": "toolu_1", "name": FUNCTION, "input": {} })),
        delta(2, json!({ "type": "input_json_delta", "partial_json": ARGUMENTS })),
        json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" }, "usage": { "output_tokens": 9 } }),
        json!({ "type": "message_stop" }),
    ])
}

#[tokio::test]
async fn thoughts_go_back_as_they_were_signed() {
    let stub = Stub::always(thoughtful_call("Hm.")).await;
    let provider = provider("anthropic", &stub.base, patient());
    let reply = ask(&*provider, &offering()).await.0.unwrap();
    assert_eq!(called(&reply).0, FUNCTION);
    ask(&*provider, &gone_on_with(&reply)).await.0.unwrap();
    let content = &stub.seen()[1].body["messages"][1]["content"];
    let expected = json!([
        { "type": "thinking", "thinking": "Hm.", "signature": "EqQB" },
        { "type": "redacted_thinking", "data": "EmwK" },
        { "type": "tool_use", "id": "toolu_1", "name": FUNCTION, "input": serde_json::from_str::<Value>(ARGUMENTS).unwrap() },
    ]);
    assert_eq!(content, &expected);
}

/// In Anthropic's words: a signature of somewhere else is not taken.
#[tokio::test]
async fn thoughts_that_are_refused_are_left_out() {
    let invalid = json!({ "type": "error", "error": { "type": "invalid_request_error",
        "message": "messages.1.content.0: Invalid `signature` in `thinking` block" } });
    let stub = Stub::start(move |_, seen| {
        let thinks = seen.body["messages"].to_string().contains("EqQB");
        if thinks { answer("400 Bad Request", "", &invalid.to_string()) } else { thoughtful_call("Hm.") }
    })
    .await;
    let provider = provider("anthropic", &stub.base, patient());
    let reply = ask(&*provider, &offering()).await.0.unwrap();
    ask(&*provider, &gone_on_with(&reply)).await.0.unwrap();
    assert_eq!(stub.seen().len(), 3);
    assert_eq!(stub.seen()[2].body["messages"][1]["content"][0]["type"], "tool_use");
}

/// What was changed is not what was signed.
#[tokio::test]
async fn a_thought_that_held_a_key_loses_its_signature() {
    let stub = Stub::always(thoughtful_call(&format!("The key is {KEY}."))).await;
    let reply = ask(&*provider("anthropic", &stub.base, patient()), &offering()).await.0.unwrap();
    let ReplyPart::Thought { text, signature } = &reply.parts[0] else { panic!("{reply:?}") };
    assert_eq!((text.text(), signature), ("The key is [redacted].", &None));
}
