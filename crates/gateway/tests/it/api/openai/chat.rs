//! Chats without a stream.

use super::{CHAT, careful, chat, listening, message, waiting, with};
use crate::api::server::Api;
use serde_json::{Value, json};
use trellis_orchestrator::accept::TOLD_BYTES;

#[tokio::test(flavor = "multi_thread")]
async fn a_chat_is_a_run_and_its_answer_the_reply() {
    let api = Api::open().await;
    let reply = api.post(CHAT, "", &chat(&json!({"tools": 1, "answer": "so"}))).await;
    let said = reply.json();
    let choice = &said["choices"][0];
    assert_eq!(
        (reply.status, &choice["message"]["content"], &choice["finish_reason"]),
        (200, &json!("so"), &json!("stop"))
    );
    let run = reply.header("x-trellis-run").unwrap();
    assert_eq!((said["id"].as_str(), reply.header("x-request-id")), (Some(&*format!("chatcmpl-{run}")), Some(run)));
    assert_eq!((&said["model"], &said["trellis"]["run_id"]), (&json!("trellis/react"), &json!(run)));
    assert_eq!((&said["trellis"]["state"], &said["trellis"]["partial"]), (&json!("answered"), &json!(false)));
    let recorded = api.get(&format!("/api/v1/runs/{run}")).await.json();
    assert_eq!((&recorded["answer"], &recorded["asked_by"]["surface"]), (&json!("so"), &json!("openai")));
    assert_eq!(said["usage"]["prompt_tokens"], recorded["in_token"]);
    assert_eq!(said["usage"]["completion_tokens"], recorded["out_token"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_said_before_is_told_to_the_model_and_on_record() {
    let (api, contexts) = listening().await;
    let scene = json!({"answer": "so"}).to_string();
    let parts = json!([{"type": "text", "text": "When"}, {"type": "text", "text": "?"}]);
    let messages = json!([
        message("system", "Be brief."), message("user", "Who?"), message("assistant", "Ada."),
        {"role": "user", "content": parts}, message("assistant", "1843."), message("user", &scene),
    ]);
    let reply = api.post(CHAT, "", &json!({"model": "trellis/react", "messages": messages})).await;
    assert_eq!(reply.json()["choices"][0]["message"]["content"], "so");
    let told =
        "Be brief.\n\nEarlier in this conversation:\n\nQuestion: Who?\nAnswer: Ada.\n\nQuestion: When?\nAnswer: 1843.";
    assert_eq!(*contexts.lock().unwrap(), [told]);
    let run = reply.header("x-trellis-run").unwrap();
    let records = api.get(&format!("/api/v1/runs/{run}/records")).await.json();
    let accepted = &records["records"][0]["body"];
    assert_eq!((&accepted["question"], &accepted["framing"]), (&json!(scene), &json!("Be brief.")));
    assert_eq!(accepted["earlier"][0], json!({"question": "Who?", "answer": "Ada."}));
    assert_eq!(api.get(&format!("/api/v1/runs/{run}/graph")).await.status, 200, "there is no run to link to");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chat_that_became_too_long_loses_its_beginning_and_says_so() {
    let api = Api::open().await;
    let long = "x".repeat(TOLD_BYTES / 2 + 1);
    let messages = json!([
        message("user", &long),
        message("assistant", "ok"),
        message("user", &long),
        message("assistant", "ok"),
        message("user", &json!({"answer": "so"}).to_string()),
    ]);
    let said = api.post(CHAT, "", &json!({"model": "trellis/react", "messages": messages})).await.json();
    assert_eq!(
        (&said["choices"][0]["message"]["content"], &said["trellis"]["exchanges_left_out"]),
        (&json!("so"), &json!(1))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_is_told_as_the_reason_for_finishing() {
    let api = Api::open().await;
    let reply = api.post(CHAT, "", &chat(&json!({"tools": 99}))).await;
    let said = reply.json();
    assert_eq!((reply.status, &said["choices"][0]["finish_reason"]), (200, &json!("length")));
    let about = &said["trellis"];
    assert_eq!(
        (&about["state"], &about["reason"], &about["partial"]),
        (&json!("limit"), &json!("max-iterations"), &json!(true))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_without_an_answer_is_an_error_that_names_it_and_is_not_sent_again() {
    let api = Api::open().await;
    let reply = api.post(CHAT, "", &chat(&json!({"fail": true}))).await;
    let (error, run) = (reply.json()["error"].clone(), reply.header("x-trellis-run").unwrap());
    assert_eq!((reply.status, &error["code"], &error["type"]), (500, &json!("run_failed"), &json!("server_error")));
    assert_eq!(reply.header("x-should-retry"), Some("false"));
    let message = error["message"].as_str().unwrap();
    assert!(message.contains(run) && message.contains("the model is dead"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_waits_for_a_person_is_an_error_that_says_how_to_go_on() {
    let api = careful().await;
    let reply = api.post(CHAT, "", &chat(&json!({"tools": 1, "answer": "so"}))).await;
    let (error, run) = (reply.json()["error"].clone(), reply.header("x-trellis-run").unwrap());
    assert_eq!(
        (reply.status, &error["code"], reply.header("x-should-retry")),
        (409, &json!("run_waits"), Some("false"))
    );
    let message = error["message"].as_str().unwrap();
    assert!(message.contains(&format!("/api/v1/runs/{run}/decide")), "{message}");
    let waits = api.get(&format!("/v1/responses/resp_{run}")).await.json();
    assert_eq!((&waits["status"], &waits["trellis"]["state"]), (&json!("in_progress"), &json!("waiting")));
    assert_eq!(waits["trellis"]["waiting_for"][0]["tool"], "search");
}

#[tokio::test]
async fn a_run_that_takes_longer_than_its_caller_waits_goes_on() {
    let api = Api::with(waiting()).await;
    let reply = api.post(CHAT, "x-stainless-read-timeout: 0.2\r\n", &chat(&json!({"answer": "so"}))).await;
    assert_eq!((reply.status, &reply.json()["error"]["code"]), (504, &json!("run_goes_on")));
    assert_eq!(reply.header("x-should-retry"), Some("false"), "else the package asks again, for another run");
    let run = reply.header("x-trellis-run").unwrap();
    assert_eq!(api.get(&format!("/v1/responses/resp_{run}")).await.json()["status"], "queued");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_chat_under_the_same_key_is_one_run() {
    let api = Api::open().await;
    let key = "Idempotency-Key: once\r\n";
    let body = chat(&json!({"answer": "so"}));
    let (first, again) = (api.post(CHAT, key, &body).await, api.post(CHAT, key, &body).await);
    assert_eq!((first.status, again.status), (200, 200));
    assert_eq!(first.header("x-trellis-run"), again.header("x-trellis-run"));
    // The same question after something else is another request.
    let mut messages: Vec<Value> = vec![message("user", "Who?"), message("assistant", "Ada.")];
    messages.extend(body["messages"].as_array().unwrap().iter().cloned());
    let other = api.post(CHAT, key, &with(body, "messages", json!(messages))).await;
    assert_eq!((other.status, &other.json()["error"]["code"]), (409, &json!("conflict")));
}
