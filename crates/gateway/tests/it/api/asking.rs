//! `POST /api/v1/runs`.

use super::server::Api;
use super::{agent, ask};
use crate::house::Setup;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use trellis_domain::limits::SomeLimits;
use trellis_gateway::{Access, Identity, Token};
use trellis_orchestrator::orchestrator::Options;

fn waiting() -> Setup {
    Setup { at_work: false, ..Setup::default() }
}

#[tokio::test]
async fn a_question_is_accepted_and_its_links_lead_on() {
    let api = Api::open().await;
    let reply = api.post("/api/v1/runs", "", &agent("so")).await;
    assert_eq!(reply.status, 202);
    let begun = reply.json();
    let run = begun["run_id"].as_str().unwrap();
    assert_eq!((reply.header("location"), &begun["attached"]), (begun["links"]["self"].as_str(), &json!(false)));
    let events = begun["links"]["events"].as_str().unwrap();
    let last = api.events(events, "").await.rest().await.pop().unwrap();
    assert_eq!((last.event.as_str(), &last.data["answer"]), ("run.completed", &json!("so")));
    for link in ["self", "records", "trace", "graph"] {
        let reply = api.get(begun["links"][link].as_str().unwrap()).await;
        assert_eq!(reply.status, 200, "{link}");
        assert!(reply.body.contains(run), "{link}");
    }
    let ended = api.post(begun["links"]["cancel"].as_str().unwrap(), "", &json!({})).await;
    assert_eq!(ended.status, 409);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_waits_gets_the_answer_with_the_reply() {
    let api = Api::open().await;
    let key = "Idempotency-Key: waits\r\n";
    let reply = api.post("/api/v1/runs?wait=30", key, &agent("so")).await;
    let begun = reply.json();
    assert_eq!((reply.status, &begun["run"]["answer"], &begun["attached"]), (200, &json!("so"), &json!(false)));
    assert_eq!(begun["run"], api.get(begun["links"]["self"].as_str().unwrap()).await.json());
    let again = api.post("/api/v1/runs?wait=30", key, &agent("so")).await.json();
    assert_eq!((&again["attached"], &again["run"]["answer"]), (&json!(true), &json!("so")));
    let at_once = api.post("/api/v1/runs?wait=0", "", &agent("so")).await;
    assert_eq!((at_once.status, &at_once.json()["run"]), (202, &Value::Null));
    for (wrong, says) in [("601", "at most 600"), ("soon", "whole number"), ("-1", "whole number")] {
        let (status, message) = api.post(&format!("/api/v1/runs?wait={wrong}"), "", &agent("so")).await.refusal();
        assert!(status == 400 && message.contains(says), "{message}");
    }
}

/// Nobody is at work: the run is there all the same.
#[tokio::test]
async fn a_run_that_takes_longer_than_its_caller_waits_goes_on() {
    let api = Api::with(waiting()).await;
    let reply = api.post("/api/v1/runs?wait=1", "", &agent("so")).await;
    assert_eq!((reply.status, &reply.json()["run"]), (202, &Value::Null));
    let run = api.get(reply.json()["links"]["self"].as_str().unwrap()).await.json();
    assert_eq!(run["answer"], Value::Null);
}

/// All that may be held of large requests would be taken, if a question were held for as long as its caller waits.
#[tokio::test]
async fn callers_that_wait_with_large_questions_leave_room_for_others() {
    let api = Api::with(waiting()).await;
    let mut waiting = Vec::new();
    for n in 0..80 {
        let question = json!({"question": "a".repeat(900 << 10), "pattern": "react", "session_id": format!("s{n}")});
        let body = question.to_string();
        waiting.push(api.house.request("POST", "/api/v1/runs?wait=600", "", body.as_bytes()).await);
        let begun = async {
            while api.get(&format!("/api/v1/runs/s{n}")).await.status != 200 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(std::time::Duration::from_secs(30), begun).await.expect("the question is taken");
    }
}

#[tokio::test]
async fn every_member_of_a_request_is_recorded() {
    let api = Api::with(waiting()).await;
    let body = json!({
        "question": "why?", "pattern": "react", "task_type": "general", "group": ["default"], "state": "s",
        "collection": "c", "conversation_id": "v", "session_id": "mine", "framing": "briefly", "streaming": false,
        "history": [{"thought": "t", "action": "a", "arguments": {"x": "1"}, "observation": "o", "step_type": "react"}],
        "limits": {"max-iterations": 3, "run-timeout-ms": 18_446_744_073_709_551_615_u64},
    });
    let run = api.begin(&body).await;
    let records = api.get(&format!("/api/v1/runs/{run}/records")).await.json();
    let accepted = &records["records"][0]["body"];
    assert_eq!((run.as_str(), &accepted["question"]), ("mine", &json!("why?")));
    for name in ["pattern", "task_type", "group", "state", "collection", "framing", "streaming", "limits"] {
        assert_eq!(accepted[name], body[name], "{name}");
    }
    assert_eq!(accepted["conversation"], "v");
    for name in ["thought", "action", "arguments", "observation", "step_type"] {
        assert_eq!(accepted["history"][0][name], body["history"][0][name], "{name}");
    }
    let plain = api.begin(&json!({"question": "why?", "group": null, "limits": null})).await;
    let records = api.get(&format!("/api/v1/runs/{plain}/records")).await.json();
    let accepted = &records["records"][0]["body"];
    assert_eq!((&accepted["streaming"], &accepted["group"]), (&json!(true), &Value::Null));
}

#[tokio::test]
async fn a_wrong_request_is_told_what_is_wrong_with_it() {
    let api = Api::with(waiting()).await;
    let with = |name: &str, value: Value| {
        let mut body = json!({"question": "why?"});
        body[name] = value;
        body
    };
    let wrong = [
        (json!({}), "`question` is missing"),
        (json!([1]), "the body must be a JSON object"),
        (with("question", json!(" \n")), "the question is empty"),
        (with("question", json!("")), "the question is empty"),
        (with("question", json!(7)), "`question` must be a text, found a number"),
        (with("pattern", json!([])), "`pattern` must be a text, found a list"),
        (with("pattern", json!("freestyle")), "freestyle"),
        (with("task_type", json!(true)), "`task_type` must be a text"),
        (with("task_type", json!("nonsense")), "nonsense"),
        (with("group", json!("default")), "`group` must be a list"),
        (with("group", json!([1])), "`group` must be a list of texts"),
        (with("group", json!(["nobody"])), "nobody"),
        (with("state", json!({})), "`state` must be a text"),
        (with("collection", json!(1)), "`collection` must be a text"),
        (with("collection", json!("a/b")), "the collection"),
        (with("conversation_id", json!("a b")), "the conversation id"),
        (with("conversation_id", json!(1)), "`conversation_id` must be a text"),
        (with("session_id", json!("a/b")), "the session id"),
        (with("session_id", json!([])), "`session_id` must be a text"),
        (with("framing", json!(0)), "`framing` must be a text"),
        (with("streaming", json!("yes")), "`streaming` must be true or false"),
        (with("history", json!({})), "`history` must be a list"),
        (with("history", json!(["x"])), "`history` must be a list of objects"),
        (with("history", json!([{"thought": 1}])), "`thought` must be a text"),
        (with("history", json!([{"mood": "x"}])), "no member `mood`"),
        (with("history", json!([{"arguments": {"n": 1}}])), "the argument `n`"),
        (with("limits", json!([])), "`limits` must be an object"),
        (with("limits", json!({"max-iterations": "3"})), "the limit `max-iterations`"),
        (with("limits", json!({"max-iterations": -1})), "the limit `max-iterations`"),
        (with("limits", json!({"max-iterations": 4_294_967_296_u64})), "the limit `max-iterations`"),
        (with("limits", json!({"max-rounds": 0})), "the limit `max-rounds` is 0"),
        (with("limits", json!({"patience": 3})), "unknown field `patience`"),
        (with("patern", json!("react")), "no member `patern`; it may have question, pattern"),
    ];
    for (body, expected) in wrong {
        let reply = api.post("/api/v1/runs", "", &body).await;
        let (status, message) = reply.refusal();
        assert_eq!((status, message.contains(expected)), (400, true), "{body}: {message}");
    }
    let (status, message) = api.call("POST", "/api/v1/runs", "", "{").await.refusal();
    assert_eq!(status, 400);
    assert!(message.starts_with("the body is not JSON: ") && message.ends_with("line 1 column 1"), "{message}");
    let (status, message) = api.post("/api/v1/runs?workspce=x", "", &agent("a")).await.refusal();
    assert_eq!((status, message.contains("unknown field `workspce`")), (400, true), "{message}");
    let long = ask(&json!("x".repeat(1 << 20)), "");
    let (status, message) = api.post("/api/v1/runs", "", &long).await.refusal();
    assert_eq!((status, message.contains("at most 1048576")), (413, true), "{message}");
    assert_eq!(api.get("/api/v1/runs").await.json()["runs"], json!([]), "nothing of it was begun");
}

#[tokio::test]
async fn the_limits_in_the_document_are_those_that_exist() {
    let api = Api::with(waiting()).await;
    let told = api.document()["components"]["schemas"]["RunLimits"]["properties"].as_object().unwrap();
    let limits = serde_json::to_value(SomeLimits::built_in_maximum()).unwrap();
    let names = |limits: &serde_json::Map<String, Value>| limits.keys().cloned().collect::<BTreeSet<_>>();
    assert_eq!(names(told), names(limits.as_object().unwrap()));
    let run = api.begin(&json!({"question": "why?", "limits": limits})).await;
    let records = api.get(&format!("/api/v1/runs/{run}/records")).await.json();
    assert_eq!(records["records"][0]["body"]["limits"], limits);
}

#[tokio::test]
async fn a_request_that_is_sent_again_gets_its_run() {
    let api = Api::with(waiting()).await;
    let key = "Idempotency-Key: once-1\r\n";
    let first = api.post("/api/v1/runs", key, &agent("a")).await;
    let again = api.post("/api/v1/runs", "Idempotency-Key: \"once-1\"\r\n", &agent("a")).await;
    assert_eq!((first.status, again.status), (202, 200));
    assert_eq!((&again.json()["run_id"], &again.json()["attached"]), (&first.json()["run_id"], &json!(true)));
    let mut limited = agent("a");
    limited["limits"] = json!({"max-rounds": 1});
    for other in [agent("b"), limited] {
        let (status, message) = api.post("/api/v1/runs", key, &other).await.refusal();
        assert_eq!((status, message.contains(first.json()["run_id"].as_str().unwrap())), (409, true), "{message}");
    }
    let keyless = api.post("/api/v1/runs", "", &agent("a")).await;
    assert_eq!(keyless.status, 202, "without a key, each request is a run of its own");
    assert_ne!(keyless.json()["run_id"], first.json()["run_id"]);
    let mut named = agent("a");
    named["session_id"] = json!("mine");
    for (header, body) in [(key, &named), ("Idempotency-Key: a/b\r\n", &agent("a")), ("Idempotency-Key: \r\n", &named)]
    {
        assert_eq!(api.post("/api/v1/runs", header, body).await.status, 400, "{header}");
    }
    let named_first = api.post("/api/v1/runs", "", &named).await;
    let named_again = api.post("/api/v1/runs", "", &named).await;
    assert_eq!((named_first.status, named_again.status), (202, 200));
    assert_eq!(api.get("/api/v1/runs").await.json()["runs"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn the_same_request_sent_many_times_at_once_is_one_run() {
    let api = Api::with(waiting()).await;
    let body = agent("a");
    let replies =
        futures_util::future::join_all((0..8).map(|_| api.post("/api/v1/runs", "Idempotency-Key: k\r\n", &body)));
    let replies = replies.await;
    let runs: std::collections::BTreeSet<_> = replies.iter().map(|reply| reply.json()["run_id"].to_string()).collect();
    let new = replies.iter().filter(|reply| reply.status == 202).count();
    assert_eq!((runs.len(), new), (1, 1));
}

#[tokio::test]
async fn too_many_open_runs_are_refused() {
    let options = Options { max_open_runs: 1, ..Options::default() };
    let api = Api::with(Setup { options, ..waiting() }).await;
    api.begin(&agent("a")).await;
    let full = api.post("/api/v1/runs", "", &agent("b")).await;
    assert_eq!((full.status, &full.json()["error"]["type"]), (429, &json!("too-many-runs")));
    assert_eq!(full.header("retry-after"), Some("5"));
}

#[tokio::test]
async fn whoever_has_no_token_or_comes_from_elsewhere_stays_outside() {
    let alice = Identity::user("alice", []);
    let access = Access::Tokens(vec![(Token::new("s3cret"), alice)]);
    let api = Api::with(Setup { access, ..waiting() }).await;
    for headers in ["", "Authorization: Bearer wrong\r\n", "Authorization: s3cret\r\n"] {
        let reply = api.call("GET", "/api/v1/runs", headers, "").await;
        assert_eq!((reply.status, reply.header("www-authenticate")), (401, Some("Bearer")));
    }
    let token = "Authorization: Bearer s3cret\r\n";
    assert_eq!(api.call("GET", "/api/v1/runs", token, "").await.status, 200);
    let nowhere = api.call("GET", "/api/v1/runs?workspace=nowhere", token, "").await;
    assert_eq!((nowhere.status, &nowhere.json()["error"]["type"]), (403, &json!("forbidden")));
    let evil = api.call("GET", "/api/v1/runs", &format!("{token}Origin: https://evil.example\r\n"), "").await;
    assert_eq!((evil.status, &evil.json()["error"]["type"]), (403, &json!("forbidden")));
}
