//! Bedrock over a real connection, in frames.

use crate::ask::{ask, held, permanent, transient};
use crate::configured::{ARGUMENTS, FUNCTION, called, connected, gone_on_with};
use crate::stub::{Act, Script, Seen, Stub, answer, head, send};
use crate::tools::offering;
use serde_json::{Value, json};
use std::sync::Arc;
use trellis_domain::parts::{ReplyPart, StopReason};
use trellis_models::{Provider, ProviderSettings};

const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
const KEYS: [(&str, &str); 4] = [
    ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"),
    ("AWS_SECRET_ACCESS_KEY", SECRET),
    ("AWS_SESSION_TOKEN", "session-token-0123"),
    ("AWS_REGION", "eu-central-1"),
];
const MODEL: &str = "bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0";

fn provider(stub: &Stub, variables: &[(&str, &str)]) -> Arc<dyn Provider> {
    let own = ProviderSettings { address: Some(stub.base.clone()), ..ProviderSettings::default() };
    connected(MODEL, own, variables)
}

/// The checksum of frames, bit by bit.
fn checksum(bytes: &[u8]) -> [u8; 4] {
    let bit = |sum: u32| if sum & 1 == 1 { (sum >> 1) ^ 0xedb8_8320 } else { sum >> 1 };
    let sum = bytes.iter().fold(!0, |sum: u32, byte| (0..8).fold(sum ^ u32::from(*byte), |sum, _| bit(sum)));
    (!sum).to_be_bytes()
}

fn frame(kind: &str, name: &str, payload: &Value) -> Vec<u8> {
    let mut headers = Vec::new();
    for (name, value) in [(kind, name), (":content-type", "application/json")] {
        headers.push(u8::try_from(name.len()).unwrap());
        headers.extend(name.bytes());
        headers.push(7);
        headers.extend(u16::try_from(value.len()).unwrap().to_be_bytes());
        headers.extend(value.bytes());
    }
    let payload = payload.to_string();
    let length = |length: usize| u32::try_from(length).unwrap().to_be_bytes();
    let mut frame = [length(16 + headers.len() + payload.len()), length(headers.len())].concat();
    frame.extend(checksum(&frame));
    frame.extend(headers);
    frame.extend(payload.bytes());
    frame.extend(checksum(&frame));
    frame
}

/// A stream of these events. Each frame is cut in the middle: nothing says that it comes at once.
fn events(events: &[(&str, Value)]) -> Script {
    let frames = events.iter().map(|(name, payload)| frame(":event-type", name, payload));
    let halves = frames.flat_map(|frame| {
        let (first, second) = frame.split_at(frame.len() / 2);
        [send(first), send(second)]
    });
    let begin = head("200 OK", "content-type: application/vnd.amazon.eventstream\r\n");
    std::iter::once(begin).chain(halves).collect()
}

fn delta(place: u64, delta: Value) -> (&'static str, Value) {
    ("contentBlockDelta", json!({ "contentBlockIndex": place, "delta": delta }))
}

fn end(reason: &str) -> [(&'static str, Value); 2] {
    let usage = json!({ "inputTokens": 11, "outputTokens": 4, "totalTokens": 15 });
    [
        ("messageStop", json!({ "stopReason": reason })),
        ("metadata", json!({ "usage": usage, "metrics": { "latencyMs": 1 } })),
    ]
}

pub(crate) fn thoughtful_call(function: &str, arguments: &str) -> Script {
    let (half, rest) = arguments.split_at(20);
    let start = json!({ "toolUse": { "toolUseId": "tooluse_1", "name": function } });
    let mut all = vec![
        ("messageStart", json!({ "role": "assistant" })),
        delta(0, json!({ "reasoningContent": { "text": "Hm." } })),
        delta(0, json!({ "reasoningContent": { "signature": "sig" } })),
        ("contentBlockStop", json!({ "contentBlockIndex": 0 })),
        ("contentBlockStart", json!({ "contentBlockIndex": 1, "start": start })),
        delta(1, json!({ "toolUse": { "input": half } })),
        delta(1, json!({ "toolUse": { "input": rest } })),
    ];
    all.extend(end("tool_use"));
    events(&all)
}

#[tokio::test]
async fn a_signed_request_is_answered_in_frames_and_thoughts_go_back() {
    let stub = Stub::always(thoughtful_call(FUNCTION, ARGUMENTS)).await;
    let provider = provider(&stub, &KEYS);
    let (reply, pieces) = ask(&*provider, &offering()).await;
    let reply = reply.unwrap();
    assert_eq!(called(&reply), (FUNCTION, serde_json::from_str(ARGUMENTS).unwrap()));
    assert_eq!(pieces.concat(), format!("{FUNCTION}{ARGUMENTS}"));
    assert_eq!((reply.model.as_str(), reply.in_token, reply.out_token), (MODEL, Some(11), Some(4)));
    assert_eq!((reply.stop, reply.enforced), (Some(StopReason::Calls), true));
    let thought = ReplyPart::Thought { text: "Hm.".into(), signature: Some("bedrock:sig".into()) };
    assert_eq!(reply.parts[0], thought);
    ask(&*provider, &gone_on_with(&reply)).await.0.unwrap();
    let [first, second] = &stub.seen()[..] else { panic!("two requests") };
    assert_eq!(first.path, "/model/anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse-stream");
    let signature = &first.headers["authorization"];
    assert!(signature.starts_with("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/"), "{signature}");
    assert!(signature.contains(
        "/eu-central-1/bedrock/aws4_request, SignedHeaders=content-type;host;x-amz-date;x-amz-security-token, "
    ));
    assert_eq!(first.headers["x-amz-security-token"], "session-token-0123");
    assert!(first.headers["x-amz-date"].ends_with('Z') && !signature.contains(SECRET));
    assert_eq!(first.body["toolConfig"]["toolChoice"], json!({ "any": {} }));
    let thought = json!({ "reasoningContent": { "reasoningText": { "text": "Hm.", "signature": "sig" } } });
    assert_eq!(second.body["messages"][1]["content"][0], thought);
    assert_eq!(second.body["messages"][2]["content"][0]["toolResult"]["toolUseId"], "tooluse_1");
    let point = json!({ "cachePoint": { "type": "default" } });
    assert_eq!(second.body["messages"][2]["content"].as_array().unwrap().last(), Some(&point));
}

#[tokio::test]
async fn a_key_for_bedrock_needs_no_signature() {
    let stub = Stub::always(thoughtful_call(FUNCTION, ARGUMENTS)).await;
    let provider = provider(&stub, &[("AWS_BEARER_TOKEN_BEDROCK", "bedrock-key-0123"), ("AWS_REGION", "eu-central-1")]);
    ask(&*provider, &offering()).await.0.unwrap();
    assert_eq!(stub.seen()[0].headers["authorization"], "Bearer bedrock-key-0123");
}

/// In Bedrock's words. What a model of it cannot do is done in another way.
#[tokio::test]
async fn what_a_model_refuses_is_said_in_another_way() {
    let stub = Stub::start(|_, seen: &Seen| {
        let refuse = |message: &str| answer("400 Bad Request", "", &json!({ "message": message }).to_string());
        match (seen.body["outputConfig"].is_null(), seen.body["toolConfig"]["toolChoice"].is_null()) {
            (false, _) => refuse("This model doesn't support the outputConfig field. Remove outputConfig and try again."),
            (true, false) => refuse("This model doesn't support the toolConfig.toolChoice.tool field. Remove toolConfig.toolChoice.tool and try again."),
            (true, true) => {
                let start = json!({ "toolUse": { "toolUseId": "t", "name": "reply" } });
                let mut all = vec![
                    ("contentBlockStart", json!({ "contentBlockIndex": 0, "start": start })),
                    delta(0, json!({ "toolUse": { "input": "{\"pattern\":\"react\"}" } })),
                ];
                all.extend(end("tool_use"));
                events(&all)
            }
        }
    })
    .await;
    let reply = ask(&*provider(&stub, &KEYS), &held()).await.0.unwrap();
    assert_eq!((reply.text.as_str(), reply.enforced), ("{\"pattern\":\"react\"}", false));
    assert_eq!(stub.seen().len(), 3);
}

#[tokio::test]
async fn a_model_that_does_not_keep_a_prefix_is_not_asked_to_again() {
    let stub = Stub::start(|_, seen: &Seen| {
        if seen.body.to_string().contains("cachePoint") {
            let message = "Malformed input request: #/toolConfig/tools/2: extraneous key [cachePoint] is not permitted";
            return answer("400 Bad Request", "", &json!({ "message": message }).to_string());
        }
        thoughtful_call(FUNCTION, ARGUMENTS)
    })
    .await;
    let provider = provider(&stub, &KEYS);
    for _ in 0..2 {
        let reply = ask(&*provider, &offering()).await.0.unwrap();
        assert_eq!(called(&reply).0, FUNCTION);
    }
    let asked = stub.seen().iter().filter(|seen| seen.body.to_string().contains("cachePoint")).count();
    assert_eq!(asked, 1, "a refusal is paid for once");
}

#[tokio::test]
async fn failures_in_and_before_the_stream_say_what_was_wrong() {
    let exception = |kind: &str, message: &str| {
        let frame = frame(":exception-type", kind, &json!({ "message": message }));
        vec![head("200 OK", ""), send(frame)]
    };
    let text = frame(":event-type", "contentBlockDelta", &delta(0, json!({ "text": "Mo" })).1);
    let mut damaged = text.clone();
    damaged[30] ^= 1;
    let cut = |bytes: &[u8]| vec![head("200 OK", ""), Act::Send(bytes.to_vec())];
    let stub = Stub::each([
        exception("throttlingException", "Too many requests."),
        exception("validationException", "The model is not there."),
        answer("403 Forbidden", "", &json!({ "message": "The security token is invalid." }).to_string()),
        answer("400 Bad Request", "", &json!({ "message": "Input is too long for requested model." }).to_string()),
        cut(&damaged),
        cut(&text[..40]),
        cut(&text),
    ])
    .await;
    let provider = provider(&stub, &KEYS);
    assert_eq!(transient(ask(&*provider, &offering()).await.0).0, "bedrock failed: Too many requests.");
    assert_eq!(permanent(ask(&*provider, &offering()).await.0), "bedrock failed: The model is not there.");
    let refused = permanent(ask(&*provider, &offering()).await.0);
    assert_eq!(refused, "bedrock answered 403 Forbidden: The security token is invalid.");
    let long = ask(&*provider, &offering()).await.0.unwrap_err();
    assert!(matches!(long, trellis_models::ProviderError::TooLong { .. }), "{long:?}");
    for reason in
        ["sent a frame that is damaged", "broke off in the middle of a frame", "broke off in the middle of the reply"]
    {
        assert_eq!(transient(ask(&*provider, &offering()).await.0).0, format!("bedrock {reason}"));
    }
}
