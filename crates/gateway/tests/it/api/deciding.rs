//! `POST /api/v1/runs/{id}/decide`.

use super::agent;
use super::server::Api;
use serde_json::json;
use trellis_domain::config::StoredItem;
use trellis_domain::{Caller, Workspace};
use trellis_orchestrator::contract::teams::Played;

/// A server whose tool is called only with somebody's approval.
async fn careful() -> Api {
    let api = Api::open().await;
    let tool = json!({"type": "text-completion", "name": "search", "description": "finds", "requires-approval": true});
    let item = StoredItem { kind: "tool".to_owned(), key: "search".to_owned(), value: tool.to_string() };
    let config = &api.house.bench.orchestrator.ports.config;
    config.put(&Workspace::default(), vec![item], Caller::program()).await.unwrap();
    api
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_waits_is_told_of_the_question_that_is_open() {
    let api = careful().await;
    let reply = api.post("/api/v1/runs?wait=30", "", &agent("a")).await;
    let run = &reply.json()["run"];
    assert_eq!((reply.status, &run["state"], &run["answer"]), (200, &json!("waiting"), &json!(null)));
    assert_eq!(run["waiting_for"][0]["tool"], "search");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_waits_for_an_answer_and_goes_on_with_it() {
    let api = careful().await;
    let run = api.begin(&agent("a")).await;
    let mut events = api.events(&format!("/api/v1/runs/{run}/events"), "").await;
    let asked = loop {
        let event = events.next().await.unwrap();
        if event.event == "decision.requested" {
            break event.data;
        }
    };
    assert_eq!((&asked["park"], &asked["options"]), (&json!("park/1"), &json!(["approve", "deny"])));
    let one = api.get(&format!("/api/v1/runs/{run}")).await.json();
    assert_eq!((&one["state"], &one["waiting_for"][0]["tool"]), (&json!("waiting"), &json!("search")));
    let listed = api.get("/api/v1/runs?state=waiting").await.json();
    assert_eq!(listed["runs"][0]["run_id"], run.as_str());
    let path = format!("/api/v1/runs/{run}/decide");
    for (wrong, says) in [
        (json!({}), "`choice` is missing"),
        (json!({"choice": "perhaps"}), "choose one of approve, deny"),
        (json!({"choice": "approve", "arguments": 1}), "must be an object"),
        (json!({"choice": "approve", "park": "park/1"}), "together"),
        (json!({"choice": "approve", "why": "so"}), "why"),
        (json!({"choice": "approve", "reason": "x".repeat(2 << 20)}), "at most 1048576 are allowed"),
    ] {
        let reply = api.post(&path, "", &wrong).await;
        assert_eq!(reply.status, 400, "{}", reply.body);
        assert!(reply.body.contains(says), "{}", reply.body);
    }
    let body = json!({"choice": "approve", "reason": "fine", "session_id": run.as_str(), "park": "park/1"});
    let decided = api.post(&path, "", &body).await;
    let expected = json!({"run_id": run.as_str(), "session_id": run.as_str(), "park": "park/1", "choice": "approve"});
    assert_eq!((decided.status, decided.json()), (200, expected));
    let rest = events.rest().await;
    let made = rest.iter().find(|event| event.event == "decision.made").unwrap();
    assert_eq!(made.data["option_sets"][0]["chosen"], json!(["approve"]));
    assert_eq!(rest.last().unwrap().event, "run.completed");
    assert_eq!(api.post(&path, "", &json!({"choice": "deny"})).await.status, 409);
    assert_eq!(api.post("/api/v1/runs/nobody/decide", "", &json!({"choice": "deny"})).await.status, 404);
    Played::of(&api.house.bench, run).await.keeps_the_promises();
}
