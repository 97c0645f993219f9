//! `POST /api/v1/runs/{id}/cancel`.

use super::server::Api;
use super::{agent, ask};
use crate::house::Setup;
use serde_json::json;
use trellis_orchestrator::contract::teams::Played;

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_models_hang_is_cancelled_and_its_followers_hear_of_it() {
    let api = Api::open().await;
    let scene = json!({"team": [[{"silent": true}, {"team": [[{"silent": true}]]}]]});
    let run = api.begin(&ask(&scene, "supervisor")).await;
    let mut events = api.events(&format!("/api/v1/runs/{run}/events"), "").await;
    let mut started = 0;
    while started < 3 {
        started += u32::from(events.next().await.unwrap().event == "agent.started");
    }
    let reply = api.post(&format!("/api/v1/runs/{run}/cancel"), "", &json!({})).await;
    assert_eq!((reply.status, reply.json()), (200, json!({"run_id": run.as_str(), "state": "cancelled"})));
    let last = events.rest().await.pop().unwrap();
    assert_eq!((last.event.as_str(), &last.data["state"]), ("run.failed", &json!("cancelled")));
    let again = api.post(&format!("/api/v1/runs/{run}/cancel"), "", &json!({})).await;
    assert_eq!((again.status, &again.json()["error"]["state"]), (409, &json!("cancelled")));
    Played::of(&api.house.bench, run).await.keeps_the_promises();
}

#[tokio::test]
async fn only_a_run_that_is_open_can_be_cancelled() {
    let api = Api::open().await;
    let run = api.finish(&agent("a")).await;
    let ended = api.post(&format!("/api/v1/runs/{run}/cancel"), "", &json!({})).await;
    assert_eq!((ended.status, &ended.json()["error"]["state"]), (409, &json!("answered")));
    assert_eq!(api.post("/api/v1/runs/nobody/cancel", "", &json!({})).await.status, 404);
    let waiting = Api::with(Setup { at_work: false, ..Setup::default() }).await;
    let run = waiting.begin(&agent("a")).await;
    assert_eq!(waiting.post(&format!("/api/v1/runs/{run}/cancel"), "", &json!({})).await.status, 200);
    assert_eq!(waiting.get(&format!("/api/v1/runs/{run}")).await.json()["state"], "cancelled");
}
