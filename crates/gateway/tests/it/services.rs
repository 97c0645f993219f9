//! Configuration, flows and users, over REST and over the socket alike.

use crate::house::House;
use serde_json::{Value, json};

async fn config(house: &House, request: Value) -> Value {
    let (status, reply) = house.post("/api/v1/config", &request).await;
    assert_eq!(status, 200, "{reply}");
    reply
}

#[tokio::test]
async fn configuration_is_put_got_listed_and_deleted() {
    let house = House::open().await;
    let greeting = json!({"type": "note", "key": "a", "value": "hello"});
    let done = json!({"version": 0, "values": [], "directory": [], "config": {}});
    assert_eq!(config(&house, json!({"operation": "put", "values": [greeting]})).await, done);
    let keys = json!([{"type": "note", "key": "zz"}, {"type": "note", "key": "a"}]);
    let got = config(&house, json!({"operation": "get", "keys": keys, "values": null, "type": null})).await;
    let missing = json!({"type": "note", "key": "zz", "value": null});
    assert_eq!(got["values"], json!([missing, greeting]), "in the order asked, null where there is nothing");
    assert_eq!(config(&house, json!({"operation": "list", "type": "note"})).await["directory"], json!(["a"]));
    assert_eq!(config(&house, json!({"operation": "getvalues", "type": "note"})).await["values"], json!([greeting]));
    let all = config(&house, json!({"operation": "config"})).await;
    assert_eq!((&all["config"]["note"], &all["version"]), (&json!({"a": "hello"}), &json!(2)));
    let elsewhere = config(&house, json!({"operation": "getvalues-all-ws", "type": "note"})).await;
    assert_eq!(elsewhere["values"][0]["workspace"], "default");
    config(&house, json!({"operation": "delete", "keys": [{"type": "note", "key": "a"}]})).await;
    assert_eq!(config(&house, json!({"operation": "list", "type": "note"})).await["directory"], json!([]));
}

#[tokio::test]
async fn an_invalid_item_is_refused_with_the_reason_and_nothing_is_written() {
    let house = House::open().await;
    let values = json!([
        {"type": "note", "key": "a", "value": "fine"},
        {"type": "tool", "key": "t", "value": "{\"type\": \"telepathy\", \"name\": \"t\"}"},
    ]);
    let reply = config(&house, json!({"operation": "put", "values": values})).await;
    assert_eq!(reply["error"]["type"], "config-error");
    assert!(reply["error"]["message"].as_str().unwrap().contains("telepathy"), "{reply}");
    assert_eq!(config(&house, json!({"operation": "list", "type": "note"})).await["directory"], json!([]));
}

#[tokio::test]
async fn a_tool_put_while_the_server_runs_is_offered_to_the_next_dialog() {
    let house = House::open().await;
    let tool = json!({"type": "text-completion", "name": "oracle", "description": "knows"}).to_string();
    config(&house, json!({"operation": "put", "values": [{"type": "tool", "key": "o", "value": tool}]})).await;
    let mut socket = house.socket().await;
    socket.ask("1", &json!({"tools": 1}), false).await;
    let offered = serde_json::to_string(&socket.replies().await).unwrap();
    assert!(offered.contains("\"oracle\""), "the option set of the first step names it");
}

#[tokio::test]
async fn operations_that_do_not_exist_have_the_status_of_the_original() {
    let house = House::open().await;
    for kind in ["config", "flow"] {
        let path = format!("/api/v1/{kind}");
        assert_eq!(house.post(&path, &json!({})).await, (400, json!({"error": "missing operation"})));
        assert_eq!(house.post(&path, &json!({"operation": "x"})).await, (400, json!({"error": "unknown operation"})));
    }
    assert_eq!(house.post("/api/v1/nothing", &json!({})).await, (404, json!({"error": "unknown kind"})));
    let (status, reply) = house.post("/api/v1/flow/default/service/nothing", &json!({})).await;
    assert_eq!((status, reply), (404, json!({"error": "unknown kind"})));
}

#[tokio::test]
async fn the_default_flow_is_there_and_others_can_be_started_and_stopped() {
    let house = House::open().await;
    let flow = async |request: Value| house.post("/api/v1/flow", &request).await.1;
    assert_eq!(flow(json!({"operation": "list-flows"})).await["flow-ids"], json!(["default"]));
    let record = flow(json!({"operation": "get-flow", "flow-id": "default"})).await;
    let record: Value = serde_json::from_str(record["flow"].as_str().unwrap()).unwrap();
    assert_eq!(record["blueprint-name"], "trellis");
    let start = json!({"operation": "start-flow", "flow-id": "mine", "blueprint-name": "trellis", "description": "d"});
    assert_eq!(flow(start.clone()).await["error"], Value::Null);
    assert_eq!(flow(json!({"operation": "list-flows"})).await["flow-ids"], json!(["default", "mine"]));
    assert!(flow(start).await["error"]["message"].as_str().unwrap().contains("running already"));
    let ask = json!({"question": json!({"answer": "from mine"}).to_string()});
    assert_eq!(house.post("/api/v1/flow/mine/service/agent", &ask).await.1["answer"], "from mine");
    flow(json!({"operation": "stop-flow", "flow-id": "mine"})).await;
    let (status, reply) = house.post("/api/v1/flow/mine/service/agent", &ask).await;
    assert_eq!((status, &reply["error"]["message"]), (200, &json!("Invalid flow default/mine")));
    assert!(flow(json!({"operation": "stop-flow", "flow-id": "default"})).await["error"]["message"].is_string());
}

#[tokio::test]
async fn blueprints_can_be_kept_under_both_of_their_names() {
    let house = House::open().await;
    let flow = async |request: Value| house.post("/api/v1/flow", &request).await.1;
    let put = json!({"operation": "put-class", "class-name": "mine", "class-definition": "{\"description\": \"d\"}"});
    flow(put).await;
    let names = flow(json!({"operation": "list-blueprints"})).await;
    assert_eq!(
        (&names["blueprint-names"], &names["class-names"]),
        (&json!(["trellis", "mine"]), &json!(["trellis", "mine"]))
    );
    let got = flow(json!({"operation": "get-blueprint", "blueprint-name": "mine"})).await;
    assert_eq!(got["blueprint-definition"], "{\"description\": \"d\"}");
    let wrong = json!({"operation": "put-blueprint", "blueprint-name": "x", "blueprint-definition": "[]"});
    assert!(flow(wrong).await["error"]["message"].as_str().unwrap().contains("JSON text of an object"));
}

#[tokio::test]
async fn a_workspace_is_unknown_until_it_is_made() {
    let house = House::open().await;
    let list = json!({"operation": "list", "type": "tool", "workspace": "acme"});
    assert_eq!(house.post("/api/v1/config", &list).await, (404, json!({"error": "workspace not found"})));
    let mut socket = house.socket().await;
    socket.send(json!({"id": "1", "workspace": "acme", "service": "config", "request": list})).await;
    assert_eq!(socket.next().await["error"]["type"], "workspace-not-found");
    let make = json!({"operation": "create-workspace", "workspace_record": {"id": "acme", "name": "Acme"}});
    assert_eq!(house.post("/api/v1/iam", &make).await.1["workspace"]["id"], "acme");
    assert_eq!(house.post("/api/v1/config", &list).await.0, 200);
    let all = house.post("/api/v1/iam", &json!({"operation": "list-workspaces"})).await.1;
    assert_eq!(all["workspaces"].as_array().map(Vec::len), Some(2), "{all}");
}

#[tokio::test]
async fn a_service_that_this_server_lacks_says_so_in_every_shape() {
    let house = House::open().await;
    let (status, reply) = house.post("/api/v1/flow/default/service/graph-embeddings", &json!({"query": "x"})).await;
    assert_eq!((status, &reply["error"]["type"]), (200, &json!("gateway-error")));
    let mut socket = house.socket().await;
    socket.send(json!({"id": "1", "service": "graph-embeddings", "flow": "default", "request": {"query": "x"}})).await;
    let told = socket.next().await;
    assert_eq!(told["error"]["message"], "the service `graph-embeddings` is not available on this server");
    assert_eq!(told["complete"], true);
}

#[tokio::test]
async fn our_own_configuration_tells_versions_and_history() {
    let house = House::open().await;
    let root = "/api/v1/configuration";
    let item = |value: &str| json!({"items": [{"type": "note", "key": "a/b", "value": value}]});
    let (status, first) = house.post(root, &item("one")).await;
    let (_, second) = house.post(root, &item("two")).await;
    assert_eq!((status, second["version"].as_u64()), (200, first["version"].as_u64().map(|version| version + 1)));
    let (_, all) = house.http("GET", root, "", b"").await;
    assert_eq!(all["version"], second["version"]);
    assert!(all["items"].as_array().unwrap().contains(&json!({"type": "note", "key": "a/b", "value": "two"})), "{all}");

    let (status, deleted) = house.http("DELETE", &format!("{root}/note/a%2Fb"), "", b"").await;
    assert_eq!(status, 200, "{deleted}");
    let (_, history) = house.http("GET", &format!("{root}/note/a%2Fb/history"), "", b"").await;
    let told: Vec<_> = history["versions"].as_array().unwrap().iter().map(|change| &change["value"]).collect();
    assert_eq!(told, [&json!("one"), &json!("two"), &Value::Null]);
    assert_eq!(history["versions"][2]["deleted"], true);
}

#[tokio::test]
async fn our_own_configuration_refuses_what_is_wrong_and_writes_nothing() {
    let house = House::open().await;
    let root = "/api/v1/configuration";
    let (_, before) = house.http("GET", root, "", b"").await;
    let tool = json!({"type": "tool", "key": "t", "value": "{\"type\": \"telepathy\", \"name\": \"t\"}"});
    let cases = [
        (json!({"items": [{"type": "note", "key": "a", "value": "fine"}, tool]}), 422, "telepathy"),
        (json!({"items": [{"type": "note", "key": "a"}]}), 400, "note/a"),
        (json!({"items": []}), 400, "nothing to write"),
    ];
    for (body, expected, word) in cases {
        let (status, reply) = house.post(root, &body).await;
        assert_eq!(status, expected, "{reply}");
        assert!(reply["error"]["message"].as_str().unwrap().contains(word), "{reply}");
    }
    for (method, path) in [("DELETE", "note/zz"), ("GET", "note/zz/history")] {
        let (status, reply) = house.http(method, &format!("{root}/{path}"), "", b"").await;
        assert_eq!((status, &reply["error"]["type"]), (404, &json!("no-item")), "{reply}");
    }
    assert_eq!(house.http("GET", root, "", b"").await.1, before);
}

#[tokio::test]
async fn a_configuration_that_is_written_again_changes_nothing_that_says_the_same() {
    let house = House::open().await;
    let item = |key: &str, value: &str| json!({"type": "note", "key": key, "value": value});
    let put = async |values: Value| house.post("/api/v1/config", &json!({"operation": "put", "values": values})).await;
    put(json!([item("a", r#"{"x":1,"y":[2]}"#), item("b", "plain")])).await;
    put(json!([item("a", r#"{"y": [2], "x": 1}"#), item("b", "other"), item("c", "3")])).await;
    let (_, reply) = house.post("/api/v1/config", &json!({"operation": "config"})).await;
    let expected = json!({"a": r#"{"x":1,"y":[2]}"#, "b": "other", "c": "3"});
    assert_eq!(reply["config"]["note"], expected);
}
