//! Questions, what comes of them, and what is told of them afterwards.

use super::{
    HEADERS, call, careful, newest, newest_headers, question, refusal, speak, use_tool, waiting, with_progress,
};
use crate::house::House;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

fn valid(house_tools: &[Value], name: &str, value: &Value) {
    let tool = house_tools.iter().find(|tool| tool["name"] == name).unwrap();
    let schema = jsonschema::validator_for(&tool["outputSchema"]).unwrap();
    let faults: Vec<_> = schema.iter_errors(value).map(|fault| fault.to_string()).collect();
    assert!(faults.is_empty(), "{name}: {faults:?}: {value}");
}

async fn tools(house: &House) -> Vec<Value> {
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    speak(house, "", &list).await.1[0]["result"]["tools"].as_array().unwrap().clone()
}

#[tokio::test]
async fn an_answer_comes_with_its_run_and_everything_about_it_can_be_read() {
    let house = House::open().await;
    let tools = tools(&house).await;
    let asked = use_tool(&house, "ask", &question(&json!({"tools": 1, "answer": "so"}))).await;
    let value = &asked["structuredContent"];
    valid(&tools, "ask", value);
    assert_eq!(
        (&value["answer"], &value["state"], &value["reason"]),
        (&json!("so"), &json!("answered"), &json!("final-answer"))
    );
    let run = value["run_id"].as_str().unwrap();
    let text = asked["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("so") && text.contains(run), "{text}");
    let by = house.http("GET", &format!("/api/v1/runs/{run}"), "", b"").await.1;
    assert_eq!(by["asked_by"], json!({"surface": "mcp"}));

    let explained = use_tool(&house, "explain_run", &json!({"run_id": run, "full": true})).await;
    valid(&tools, "explain_run", &explained["structuredContent"]);
    let told = explained["content"][0]["text"].as_str().unwrap();
    assert!(told.contains(run) && told.ends_with("whole"), "{told}");

    let decided = use_tool(&house, "list_decisions", &json!({"run_id": run})).await;
    valid(&tools, "list_decisions", &decided["structuredContent"]);
    let decisions = decided["structuredContent"]["decisions"].as_array().unwrap();
    let tool = decisions.iter().find(|decision| decision["decision"] == "tool").unwrap();
    assert_eq!(tool["chosen"], json!(["search"]));
    assert!(decided["content"][0]["text"].as_str().unwrap().contains("tool: search, out of"), "{decided}");

    let listed = use_tool(&house, "list_runs", &json!({"state": "answered"})).await;
    valid(&tools, "list_runs", &listed["structuredContent"]);
    assert_eq!(listed["structuredContent"]["runs"][0]["run_id"], run);
    house.shut().await;
}

#[tokio::test]
async fn steps_are_told_to_whoever_wants_to_know_them() {
    let house = House::open().await;
    let message = with_progress(call("ask", &question(&json!({"tools": 1, "answer": "so"}))));
    let (_, messages) = speak(&house, "", &message).await;
    let (last, steps) = messages.split_last().unwrap();
    assert_eq!(last["result"]["structuredContent"]["answer"], "so");
    let told: Vec<_> = steps.iter().map(|step| &step["params"]).collect();
    assert!(told.iter().all(|step| step["progressToken"] == "p1"), "{told:?}");
    let numbers: Vec<_> = told.iter().map(|step| step["progress"].as_f64().unwrap()).collect();
    assert!(numbers.len() > 3 && numbers.windows(2).all(|pair| pair[0] < pair[1]), "{numbers:?}");
    let words: Vec<_> = told.iter().map(|step| step["message"].as_str().unwrap()).collect();
    assert!(words[0].ends_with("has begun") && words.iter().any(|words| words.contains("calls search")), "{words:?}");
    assert_eq!(words.last(), Some(&"has ended: answered"));
    house.shut().await;
}

#[tokio::test]
async fn a_run_that_takes_longer_goes_on_and_is_ended_only_by_name() {
    let house = House::with(waiting()).await;
    let mut arguments = question(&json!({}));
    arguments["wait"] = json!(0);
    let asked = use_tool(&house, "ask", &arguments).await;
    let value = &asked["structuredContent"];
    assert_eq!((&asked["isError"], &value["ended"], &value["state"]), (&json!(false), &json!(false), &json!("queued")));
    assert_eq!(value["verified"], Value::Null);
    let run = json!({"run_id": value["run_id"], "wait": 0});
    assert_eq!(use_tool(&house, "wait_for_run", &run).await["structuredContent"]["state"], "queued");
    let named = json!({"run_id": value["run_id"]});
    assert_eq!(use_tool(&house, "cancel_run", &named).await["structuredContent"]["state"], "cancelled");
    assert!(refusal(&house, "wait_for_run", &run).await.contains("was cancelled"));
    house.shut().await;
}

/// Each call holds the gateway as long as it is served.
#[tokio::test]
async fn nobody_waits_for_a_caller_who_has_left() {
    let house = House::with(waiting()).await;
    let asked = use_tool(&house, "ask", &json!({"question": "?", "pattern": "react", "wait": 0})).await;
    let waits = call("wait_for_run", &json!({"run_id": asked["structuredContent"]["run_id"], "wait": 600}));
    let newer = newest(waits.clone(), &json!({}));
    for (message, headers) in [(waits, String::new()), (newer.clone(), newest_headers(&newer))] {
        let held = || Arc::strong_count(&house.gateway);
        let before = held();
        let text = message.to_string();
        let stream = house.request("POST", "/mcp", &format!("{HEADERS}{headers}"), text.as_bytes()).await;
        within(|| held() > before + 1).await;
        drop(stream);
        within(|| held() <= before).await;
    }
    house.shut().await;
}

/// Far less than the call would wait.
async fn within(is_so: impl Fn() -> bool) {
    let so = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), so).await.expect("not so after 30 s");
}

#[tokio::test]
async fn a_question_to_a_person_is_told_and_can_be_answered_elsewhere() {
    let house = careful().await;
    let asked = use_tool(&house, "ask", &question(&json!({"tools": 1, "answer": "so"}))).await;
    let value = &asked["structuredContent"];
    assert_eq!((&value["state"], &value["waiting_for"][0]["tool"]), (&json!("waiting"), &json!("search")));
    let run = value["run_id"].as_str().unwrap();
    assert!(asked["content"][0]["text"].as_str().unwrap().contains("trellis run decide"), "{asked}");
    let (status, _) = house.post(&format!("/api/v1/runs/{run}/decide"), &json!({"choice": "approve"})).await;
    assert_eq!(status, 200);
    let done = use_tool(&house, "wait_for_run", &json!({"run_id": run})).await;
    assert_eq!(done["structuredContent"]["answer"], "so");
    house.shut().await;
}

#[tokio::test]
async fn what_is_wrong_is_told_where_a_model_reads_it() {
    let house = House::with(waiting()).await;
    for (tool, arguments, words) in [
        ("ask", json!({}), "`question` is missing"),
        ("ask", json!({"question": 1}), "must be a text, found a number"),
        ("ask", json!({"question": "?", "patern": "react"}), "has no member `patern`"),
        ("ask", json!({"question": "?", "pattern": "freestyle"}), "freestyle"),
        ("ask", json!({"question": "?", "wait": 601}), "from 0 to 600"),
        ("ask", json!({"question": "?", "limits": {"max-iterations": 0}}), "max-iterations"),
        ("ask", json!({"question": "?", "limits": {"nonsense": 1}}), "nonsense"),
        ("explain_run", json!({"run_id": "nobody"}), "there is no run `nobody`"),
        ("list_decisions", json!({}), "`run_id` is missing"),
        ("list_runs", json!({"limit": 101}), "from 1 to 100"),
        ("list_runs", json!({"state": "odd"}), "must be one of queued"),
        ("search_knowledge", json!({}), "give `query`"),
        ("search_knowledge", json!({"query": "?", "collection": "a/b"}), "a/b"),
    ] {
        let said = refusal(&house, tool, &arguments).await;
        assert!(said.contains(words), "{tool} {arguments}: {said}");
    }
    let (_, unknown) = speak(&house, "", &call("nonsense", &json!({}))).await;
    assert_eq!((&unknown[0]["error"]["code"], &unknown[0]["result"]), (&json!(-32602), &Value::Null));
    house.shut().await;
}

#[tokio::test]
async fn a_run_without_an_answer_is_an_error_of_the_tool() {
    let house = House::open().await;
    let said = refusal(&house, "ask", &question(&json!({"fail": true}))).await;
    assert!(said.contains("ended without an answer") && said.contains("the model is dead"), "{said}");
    house.shut().await;
}

#[tokio::test]
async fn what_was_loaded_about_a_thing_is_found() {
    let house = House::with(waiting()).await;
    let rdf = b"<urn:a> <urn:p> \"one\" . <urn:b> <urn:p> <urn:a> . <urn:c> <urn:p> <urn:d> .";
    let path = "/api/v1/collections/default/knowledge?format=turtle";
    assert_eq!(house.http("POST", path, "", rdf).await.0, 200);
    let found = use_tool(&house, "search_knowledge", &json!({"about": "urn:a", "query": "one"})).await;
    valid(&tools(&house).await, "search_knowledge", &found["structuredContent"]);
    let statements = found["structuredContent"]["statements"].as_array().unwrap();
    let subjects: Vec<_> = statements.iter().map(|statement| statement["subject"].as_str().unwrap()).collect();
    assert_eq!(subjects, ["<urn:a>", "<urn:b>"]);
    assert_eq!(found["structuredContent"]["notes"], json!(["No documents are searched on this server."]));
    house.shut().await;
}
