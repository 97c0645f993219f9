//! Lists, single runs, records, traces and graphs.

use super::server::Api;
use super::{agent, ask, team};
use crate::house::Setup;
use serde_json::{Value, json};
use std::sync::Arc;
use trellis_domain::config::StoredItem;
use trellis_domain::record::Record;
use trellis_domain::{Caller, Workspace};
use trellis_orchestrator::ports::{RealWorld, World};
use trellis_orchestrator::summary::RunTrace;
use trellis_patterns::project;
use trellis_provenance::{Format, export};

fn ids(page: &Value) -> Vec<String> {
    page["runs"].as_array().unwrap().iter().map(|run| run["run_id"].as_str().unwrap().to_owned()).collect()
}

async fn list(api: &Api, query: &str) -> Vec<String> {
    ids(&api.get(&format!("/api/v1/runs{query}")).await.json())
}

#[tokio::test]
async fn runs_are_listed_newest_first_filtered_and_in_pages() {
    let api = Api::open().await;
    for (id, body) in [("aa1", agent("one")), ("aa2", team()), ("ab3", ask(&json!({"fail": true}), "react"))] {
        let mut body = body;
        body["session_id"] = json!(id);
        body["conversation_id"] = json!(format!("talk-{id}"));
        api.finish(&body).await;
    }
    assert_eq!(list(&api, "").await, ["ab3", "aa2", "aa1"]);
    assert_eq!(list(&api, "?state=failed").await, ["ab3"]);
    assert_eq!(list(&api, "?pattern=supervisor").await, ["aa2"]);
    assert_eq!(list(&api, "?conversation=talk-aa1").await, ["aa1"]);
    assert_eq!(list(&api, "?search=ONE").await, ["aa1"]);
    assert_eq!(list(&api, "?since=1h&state=failed").await, ["ab3"]);
    let listed = api.get("/api/v1/runs?prefix=aa2").await.json()["runs"][0].clone();
    let (began, task_type) = (listed["started"].as_str().unwrap(), listed["task_type"].as_str().unwrap());
    assert_eq!(list(&api, &format!("?since={began}")).await, ["ab3", "aa2"], "from that very moment on");
    assert_eq!(list(&api, &format!("?task_type={task_type}&pattern=supervisor")).await, ["aa2"]);
    assert_eq!(list(&api, "?task_type=nobody-has-it").await, [""; 0]);
    assert_eq!(list(&api, "?since=2999-01-01").await, [""; 0]);
    assert_eq!(list(&api, "?prefix=aa&since=2999-01-01").await, [""; 0]);
    assert_eq!(list(&api, "?prefix=aa").await, ["aa1", "aa2"], "sorted by id");
    assert_eq!(list(&api, "?prefix=aa&state=answered").await, ["aa1"]);
    assert_eq!(list(&api, "?prefix=a&state=failed&limit=1").await, ["ab3"], "the limit is for what fits");
    assert_eq!(list(&api, "?prefix=x").await, [""; 0]);
    assert_eq!(
        list(&api, "?state=failed&pattern=&task_type=&since=&conversation=&search=&limit=&cursor=").await,
        ["ab3"]
    );
    let first = api.get("/api/v1/runs?limit=2").await.json();
    let second = api.get(&format!("/api/v1/runs?limit=2&cursor={}", first["next"].as_str().unwrap())).await.json();
    assert_eq!((ids(&first).concat(), ids(&second).concat()), ("ab3aa2".to_owned(), "aa1".to_owned()));
    assert_eq!(second["next"], Value::Null);
    for wrong in [
        "?limit=0",
        "?limit=501",
        "?limit=x",
        "?limit=-1",
        "?state=done",
        "?since=yesterday",
        "?since=2026-02-30",
        "?conversation=a%20b",
        "?cursor=nobody",
        "?cursor=a/b",
        "?prefix=a&cursor=aa1",
        "?limit=1&limit=2",
        "?lmit=1",
        "?state=%FF",
    ] {
        let reply = api.get(&format!("/api/v1/runs{wrong}")).await;
        assert_eq!(reply.status, 400, "{wrong}: {}", reply.body);
    }
}

#[tokio::test]
async fn a_run_whose_first_call_is_out_is_running() {
    let api = Api::open().await;
    let run = api.begin(&ask(&json!({"silent": true}), "react")).await;
    let path = format!("/api/v1/runs/{run}");
    while api.get(&path).await.json()["state"] == "queued" {
        tokio::task::yield_now().await;
    }
    assert_eq!(api.get(&path).await.json()["state"], "running");
    for (query, found) in [("?state=running", true), ("?state=queued", false), ("?state=running&prefix=", true)] {
        assert_eq!(list(&api, query).await, if found { vec![run.to_string()] } else { Vec::new() }, "{query}");
    }
    let idle = Api::with(Setup { at_work: false, ..Setup::default() }).await;
    let run = idle.begin(&ask(&json!({"silent": true}), "react")).await;
    assert_eq!(idle.get(&format!("/api/v1/runs/{run}")).await.json()["state"], "queued");
}

#[tokio::test]
async fn a_run_tells_its_answer_and_an_open_one_that_it_has_none() {
    let api = Api::open().await;
    let run = api.finish(&team()).await;
    let whole = api.get(&format!("/api/v1/runs/{run}")).await.json();
    assert_eq!((&whole["state"], &whole["reason"]), (&json!("answered-partial"), &json!("subagents-partial")));
    assert_eq!((&whole["missing"], &whole["error"]), (&json!([2]), &Value::Null));
    assert!(whole["answer"].as_str().unwrap().contains("[finding 1] b"));
    let records = api.house.bench.records(&run).await;
    assert_eq!(whole["seq"], json!(records.len()));
    let waiting = Api::with(Setup { at_work: false, ..Setup::default() }).await;
    let long = "why ".repeat(100);
    let open = waiting.begin(&json!({"question": long})).await;
    let whole = waiting.get(&format!("/api/v1/runs/{open}")).await.json();
    assert_eq!((&whole["state"], &whole["answer"], &whole["reason"]), (&json!("queued"), &Value::Null, &Value::Null));
    assert_eq!(whole["question"], json!(long), "whole");
    let listed = waiting.get("/api/v1/runs").await.json();
    assert_eq!((&listed["runs"][0]["question_truncated"], whole.get("question_truncated")), (&json!(true), None));
}

#[tokio::test]
async fn only_whole_ids_of_runs_of_the_workspace_are_found() {
    let api = Api::open().await;
    let item = StoredItem { kind: "note".into(), key: "k".into(), value: "{}".into() };
    let other = Workspace::new("other").unwrap();
    api.house.bench.orchestrator.ports.config.put(&other, vec![item], Caller::program()).await.unwrap();
    let run = api.finish(&team()).await;
    let child = run.child(1, 0);
    let prefix = &run.as_str()[..8];
    for end in ["", "/events", "/records", "/trace", "/graph"] {
        let paths = [
            format!("/api/v1/runs/{run}{end}?workspace=other"),
            format!("/api/v1/runs/{child}{end}"),
            format!("/api/v1/runs/{prefix}{end}"),
            format!("/api/v1/runs/a%2Fb{end}"),
            format!("/api/v1/runs/%FF{end}"),
        ];
        for path in paths {
            let reply = api.get(&path).await;
            assert_eq!((reply.status, &reply.json()["error"]["type"]), (404, &json!("not-found")), "{path}");
        }
    }
    assert_eq!(list(&api, "?workspace=other").await, [""; 0]);
    assert_eq!(list(&api, "?workspace=other&prefix=").await, [""; 0]);
}

#[tokio::test]
async fn records_come_in_pages_and_are_what_is_stored() {
    let api = Api::open().await;
    // Too large to lie in a record: they lie beside it.
    let run = api.finish(&agent(&"long ".repeat(10_000))).await;
    let stored = api.house.bench.records(&run).await;
    for limit in [1, 2, 1000] {
        let (mut after, mut read) = (json!(0), Vec::new());
        while !after.is_null() {
            let page = api.get(&format!("/api/v1/runs/{run}/records?limit={limit}&after={after}")).await.json();
            let records: Vec<Arc<Record>> = serde_json::from_value(page["records"].clone()).unwrap();
            assert!(records.len() <= limit);
            read.extend(records);
            after = page["next"].clone();
        }
        assert_eq!(read, stored);
    }
    let beyond = api.get(&format!("/api/v1/runs/{run}/records?after=99")).await.json();
    assert_eq!(beyond, json!({"records": [], "next": null}));
    for wrong in ["?after=-1", "?after=x", "?limit=0", "?limit=1001", "?until=3"] {
        assert_eq!(api.get(&format!("/api/v1/runs/{run}/records{wrong}")).await.status, 400, "{wrong}");
    }
}

#[tokio::test]
async fn trace_and_graph_say_what_the_records_say() {
    let api = Api::open().await;
    let run = api.finish(&team()).await;
    let records = api.house.bench.records(&run).await;
    let trace = api.get(&format!("/api/v1/runs/{run}/trace")).await.json();
    let expected = RunTrace::new(&api.house.bench.summary(&run).await, &records, RealWorld.now());
    assert_eq!(trace, json!(expected));
    assert_eq!(trace["sessions"].as_array().unwrap().len(), 7, "the root, its four agents and two below");
    let quads = project(&records);
    let syntaxes = [
        ("", "text/turtle", Format::Turtle),
        ("Accept: application/ld+json\r\n", "application/ld+json", Format::JsonLd),
        ("Accept: application/n-quads\r\n", "application/n-quads", Format::NQuads),
    ];
    for (accept, kind, format) in syntaxes {
        let reply = api.call("GET", &format!("/api/v1/runs/{run}/graph"), accept, "").await;
        assert_eq!((reply.status, reply.header("content-type")), (200, Some(kind)));
        assert_eq!(reply.body, export(&quads, format).unwrap());
    }
    let page = api.call("GET", &format!("/api/v1/runs/{run}/graph"), "Accept: text/html\r\n", "").await;
    let (status, message) = page.refusal();
    assert_eq!(
        (status, message.as_str()),
        (406, "the graph can be had as text/turtle, application/ld+json, application/n-quads")
    );
}

#[tokio::test]
async fn the_configuration_is_told_as_it_was_at_a_version() {
    let api = Api::open().await;
    let put = async |value: &str| {
        let item = json!({"type": "agent", "key": "additional-context", "value": value});
        let body = json!({"items": [item]});
        api.post("/api/v1/configuration", "", &body).await.json()["version"].as_u64().unwrap()
    };
    let (first, second) = (put("Be brief.").await, put("Be long.").await);
    let at = async |query: &str| {
        let all = api.get(&format!("/api/v1/configuration{query}")).await.json();
        let items = all["items"].as_array().unwrap().clone();
        let item = items.into_iter().find(|item| item["key"] == "additional-context");
        (all["version"].as_u64().unwrap(), item.map(|item| item["value"].clone()))
    };
    assert_eq!(at(&format!("?at={first}")).await, (first, Some(json!("Be brief."))));
    assert_eq!(at(&format!("?at={second}")).await, (second, Some(json!("Be long."))));
    assert_eq!(at("").await, at(&format!("?at={second}")).await);
    assert_eq!(at("?at=0").await, (0, None));
    for wrong in ["-1", "x", &(second + 1).to_string()] {
        let reply = api.get(&format!("/api/v1/configuration?at={wrong}")).await;
        assert_eq!(reply.status, 400, "{wrong}: {}", reply.body);
    }
}
