//! Runs as tasks, for clients that say that they can hold one.

use super::{call, newest, newest_headers, question, speak, waiting};
use crate::house::House;
use serde_json::{Value, json};

async fn say(house: &House, message: Value) -> Value {
    let message = newest(message, &json!({"io.modelcontextprotocol/tasks": {}}));
    let (_, mut messages) = speak(house, &newest_headers(&message), &message).await;
    messages.pop().unwrap()
}

async fn of_task(house: &House, method: &str, id: &Value) -> Value {
    say(house, json!({"jsonrpc": "2.0", "id": 2, "method": method, "params": {"taskId": id}})).await
}

#[tokio::test]
async fn a_task_is_its_run_and_has_its_result() {
    let house = House::open().await;
    let begun = say(&house, call("ask", &question(&json!({"tools": 1, "answer": "so"})))).await;
    let task = &begun["result"];
    assert_eq!((&task["resultType"], &task["status"]), (&json!("task"), &json!("working")), "{begun}");
    let run = task["taskId"].as_str().unwrap();
    // Somebody waits for it elsewhere.
    let (status, _) = house.http("GET", &format!("/api/v1/runs/{run}/events"), "", b"").await;
    assert_eq!(status, 200);
    let done = of_task(&house, "tasks/get", &task["taskId"]).await;
    let done = &done["result"];
    assert_eq!(
        (&done["status"], &done["result"]["structuredContent"]["answer"]),
        (&json!("completed"), &json!("so")),
        "{done}"
    );
    house.shut().await;
}

#[tokio::test]
async fn a_task_that_is_cancelled_ends_its_run() {
    let house = House::with(waiting()).await;
    let begun = say(&house, call("ask", &question(&json!({})))).await;
    let id = begun["result"]["taskId"].clone();
    assert_eq!(of_task(&house, "tasks/get", &id).await["result"]["status"], "working");
    assert!(of_task(&house, "tasks/cancel", &id).await["result"].is_object());
    assert_eq!(of_task(&house, "tasks/get", &id).await["result"]["status"], "cancelled");
    let run = house.http("GET", &format!("/api/v1/runs/{}", id.as_str().unwrap()), "", b"").await.1;
    assert_eq!((&run["state"], &run["cancelled_by"]), (&json!("cancelled"), &json!({"surface": "mcp"})));
    let missing = of_task(&house, "tasks/get", &json!("nobody")).await;
    assert_eq!(missing["error"]["code"], -32602);
    house.shut().await;
}
