//! Questions that runs wait for: forms for clients that can show them, words for others.

use super::{call, careful, newest_headers, question, refusal, speak, use_tool, with_progress};
use crate::house::{House, Setup};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use trellis_domain::config::StoredItem;
use trellis_domain::{Caller, Workspace};
use trellis_gateway::{Access, Identity, Reach, Token, serve_streams};

fn asks() -> Value {
    call("ask", &question(&json!({"tools": 1, "answer": "so"})))
}

/// A message of a client of the newest version that can show forms.
fn with_forms(message: &Value, extensions: &Value) -> Value {
    let mut message = super::newest(message.clone(), extensions);
    message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]["elicitation"] = json!({"form": {}});
    message
}

async fn say(house: &House, headers: &str, message: &Value, extensions: &Value) -> Value {
    let message = with_forms(message, extensions);
    let (_, mut messages) = speak(house, &format!("{headers}{}", newest_headers(&message)), &message).await;
    messages.pop().unwrap()
}

/// The same call again, with the answer to the only form.
fn again(asked: &Value, answer: &Value) -> Value {
    let asked = &asked["result"];
    let key = asked["inputRequests"].as_object().unwrap().keys().next().unwrap();
    let mut message = asks();
    message["params"]["inputResponses"] = json!({ key: answer });
    message["params"]["requestState"] = asked["requestState"].clone();
    message
}

async fn state_of(house: &House, run: &Value) -> Value {
    house.http("GET", &format!("/api/v1/runs/{}", run.as_str().unwrap()), "", b"").await.1
}

/// The decision on record.
async fn decision(house: &House, run: &Value) -> Value {
    let (_, records) = house.http("GET", &format!("/api/v1/runs/{}/records", run.as_str().unwrap()), "", b"").await;
    let records = records["records"].as_array().unwrap_or_else(|| panic!("{records}"));
    let mut settled = records.iter().filter(|record| record.to_string().contains("park/1/decision"));
    settled.next().unwrap_or_else(|| panic!("{records:?}")).clone()
}

#[tokio::test]
async fn a_form_asks_what_the_run_asks_and_its_answer_is_the_decision() {
    let house = careful().await;
    let asked = say(&house, "", &asks(), &json!({})).await;
    let result = &asked["result"];
    assert_eq!(result["resultType"], "input_required", "{asked}");
    let form = result["inputRequests"].as_object().unwrap().values().next().unwrap();
    assert_eq!((&form["method"], &form["params"]["mode"]), (&json!("elicitation/create"), &json!("form")));
    let schema = &form["params"]["requestedSchema"];
    assert_eq!(schema["properties"]["choice"]["enum"], json!(["approve", "deny"]));
    assert_eq!(schema["required"], json!(["choice"]));
    let fields: Vec<_> = schema["properties"].as_object().unwrap().keys().collect();
    assert_eq!(fields.len(), 3, "{schema}");
    let told = form["params"]["message"].as_str().unwrap();
    let run = &result["requestState"];
    assert!(told.contains("> May `search` be called") && told.contains(run.as_str().unwrap()), "{told}");

    let answer = json!({"action": "accept", "content": {"choice": "approve", "reason": "as agreed", "arguments": ""}});
    let done = say(&house, "", &again(&asked, &answer), &json!({})).await;
    let value = &done["result"]["structuredContent"];
    assert_eq!((&value["answer"], &value["verified"], &value["run_id"]), (&json!("so"), &json!(true), run), "{done}");
    let decided = decision(&house, run).await.to_string();
    assert!(decided.contains("approve") && decided.contains("as agreed") && decided.contains("mcp"), "{decided}");
    // The answer counts once: the same call brings the same run.
    let same = say(&house, "", &again(&asked, &answer), &json!({})).await;
    assert_eq!(same["result"]["structuredContent"]["run_id"], *run, "{same}");
    house.shut().await;
}

#[tokio::test]
async fn whoever_declines_denies_and_whoever_closes_the_form_has_said_nothing() {
    let house = careful().await;
    let asked = say(&house, "", &asks(), &json!({})).await;
    let closed = say(&house, "", &again(&asked, &json!({"action": "cancel"})), &json!({})).await;
    let value = &closed["result"]["structuredContent"];
    assert_eq!((&value["state"], &value["waiting_for"][0]["options"][0]), (&json!("waiting"), &json!("approve")));
    let wrong = json!({"action": "accept", "content": {"choice": "perhaps"}});
    let refused = say(&house, "", &again(&asked, &wrong), &json!({})).await;
    let text = refused["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("`perhaps` is not one of the options") && text.contains("still waits"), "{text}");
    assert_eq!(refused["result"]["isError"], true);
    let declined = say(&house, "", &again(&asked, &json!({"action": "decline"})), &json!({})).await;
    assert_eq!(declined["result"]["structuredContent"]["state"], "answered", "{declined}");
    let decided = decision(&house, &asked["result"]["requestState"]).await.to_string();
    assert!(decided.contains("deny"), "{decided}");
    house.shut().await;
}

#[tokio::test]
async fn answers_without_the_run_that_asked_begin_nothing() {
    let house = careful().await;
    let asked = say(&house, "", &asks(), &json!({})).await;
    let mut message = again(&asked, &json!({"action": "accept", "content": {"choice": "approve"}}));
    message["params"]["requestState"] = json!("nobody");
    let unknown = say(&house, "", &message, &json!({})).await;
    assert!(unknown["result"]["content"][0]["text"].as_str().unwrap().contains("no run `nobody`"), "{unknown}");
    message["params"].as_object_mut().unwrap().remove("requestState");
    let lost = say(&house, "", &message, &json!({})).await;
    assert!(lost["result"]["content"][0]["text"].as_str().unwrap().contains("requestState"), "{lost}");
    let listed = use_tool(&house, "list_runs", &json!({})).await;
    assert_eq!(listed["structuredContent"]["runs"].as_array().unwrap().len(), 1);
    house.shut().await;
}

#[tokio::test]
async fn a_client_without_forms_is_told_in_words_and_passes_the_answer_on() {
    let house = careful().await;
    let asked = use_tool(&house, "ask", &question(&json!({"tools": 1, "answer": "so"}))).await;
    let run = &asked["structuredContent"]["run_id"];
    let text = asked["content"][0]["text"].as_str().unwrap();
    let how = format!("trellis run decide {}", run.as_str().unwrap());
    for words in ["> May `search` be called", "approve, deny", &how, "the tool decide"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let wrong = refusal(&house, "decide", &json!({"run_id": run, "choice": "perhaps"})).await;
    assert!(wrong.contains("choose one of approve, deny"), "{wrong}");
    let decided =
        use_tool(&house, "decide", &json!({"run_id": run, "choice": "approve", "reason": "she said so"})).await;
    assert_eq!(decided["structuredContent"]["park"], "park/1", "{decided}");
    let done = use_tool(&house, "wait_for_run", &json!({"run_id": run})).await;
    assert_eq!(done["structuredContent"]["answer"], "so");
    let on_record = decision(&house, run).await.to_string();
    assert!(on_record.contains("she said so") && on_record.contains("mcp"), "{on_record}");
    let late = refusal(&house, "decide", &json!({"run_id": run, "choice": "deny"})).await;
    assert!(late.contains("ended"), "{late}");
    house.shut().await;
}

/// A form is not shown to somebody who may not answer, and `decide` does not let them.
#[tokio::test]
async fn a_question_for_somebody_else_is_not_asked_and_cannot_be_decided() {
    let user = |name: &str| Identity::user(name, [Workspace::default()]);
    let access = Access::Tokens(vec![(Token::new("s3cret"), user("alice")), (Token::new("other"), user("bob"))]);
    let house = House::with(Setup { access, ..Setup::default() }).await;
    let mut tool = json!({"type": "text-completion", "name": "search", "description": "finds"});
    (tool["requires-approval"], tool["approvers"]) = (json!(true), json!(["alice"]));
    let item = StoredItem { kind: "tool".to_owned(), key: "search".to_owned(), value: tool.to_string() };
    let config = &house.bench.orchestrator.ports.config;
    config.put(&Workspace::default(), vec![item], Caller::program()).await.unwrap();
    let (alice, bob) = ("Authorization: Bearer s3cret\r\n", "Authorization: Bearer other\r\n");
    let told = say(&house, bob, &asks(), &json!({})).await;
    let run = &told["result"]["structuredContent"]["run_id"];
    assert_eq!(told["result"]["structuredContent"]["state"], "waiting", "{told}");
    let decide = call("decide", &json!({"run_id": run, "choice": "approve"}));
    let refused = speak(&house, bob, &decide).await.1;
    assert!(
        refused[0]["result"]["content"][0]["text"].as_str().unwrap().contains("for alice to decide"),
        "{refused:?}"
    );
    let waits = call("wait_for_run", &json!({"run_id": run}));
    assert_eq!(say(&house, alice, &waits, &json!({})).await["result"]["resultType"], "input_required");
    assert_eq!(speak(&house, alice, &decide).await.1[0]["result"]["isError"], false);
    house.shut().await;
}

#[tokio::test]
async fn a_task_asks_for_input_and_goes_on_with_it() {
    let (house, tasks) = (careful().await, json!({"io.modelcontextprotocol/tasks": {}}));
    let begun = say(&house, "", &asks(), &tasks).await;
    let id = begun["result"]["taskId"].clone();
    let of_task = |method: &str| json!({"jsonrpc": "2.0", "id": 2, "method": method, "params": {"taskId": id}});
    // Somebody who waits elsewhere hears when it is asked.
    use_tool(&house, "wait_for_run", &json!({"run_id": id})).await;
    let waits = say(&house, "", &of_task("tasks/get"), &tasks).await["result"].clone();
    assert_eq!(waits["status"], "input_required", "{waits}");
    let without = super::newest(of_task("tasks/get"), &tasks);
    let (_, without) = speak(&house, &newest_headers(&without), &without).await;
    let without = &without[0]["result"];
    assert_eq!((&without["status"], &without["inputRequests"]), (&json!("working"), &Value::Null), "{without}");
    assert!(without["statusMessage"].as_str().unwrap().contains("trellis run decide"), "{without}");

    let key = waits["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let mut update = of_task("tasks/update");
    let answer = json!({"action": "accept", "content": {"choice": "approve"}});
    update["params"]["inputResponses"] = json!({ key: answer });
    assert!(say(&house, "", &update, &tasks).await["result"].is_object());
    use_tool(&house, "wait_for_run", &json!({"run_id": id})).await;
    let done = say(&house, "", &of_task("tasks/get"), &tasks).await["result"].clone();
    assert_eq!(done["result"]["structuredContent"]["answer"], "so", "{done}");
    house.shut().await;
}

/// A client that has started the program.
struct Started {
    lines: tokio::io::Lines<BufReader<ReadHalf<DuplexStream>>>,
    output: WriteHalf<DuplexStream>,
}

impl Started {
    async fn start(house: &House) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let gateway = Arc::clone(&house.gateway);
        tokio::spawn(async move {
            let (input, output) = tokio::io::split(theirs);
            let identity = Identity { name: None, reach: Reach::All };
            let workspace = Workspace::default();
            Box::pin(serve_streams(gateway, &identity, workspace.as_str(), input, output)).await.unwrap();
        });
        let (input, output) = tokio::io::split(ours);
        let mut started = Self { lines: BufReader::new(input).lines(), output };
        let client = json!({"name": "test", "version": "1"});
        let can = json!({"elicitation": {}});
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": can, "clientInfo": client});
        started.write(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})).await;
        started.read().await;
        started.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        started
    }

    async fn write(&mut self, message: &Value) {
        self.output.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn read(&mut self) -> Value {
        serde_json::from_str(&self.lines.next_line().await.unwrap().unwrap()).unwrap()
    }

    async fn answer(&mut self, asked: &Value, result: &Value) -> Value {
        assert_eq!(asked["method"], "elicitation/create", "{asked}");
        self.write(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": result})).await;
        self.read().await
    }
}

#[tokio::test]
async fn an_older_client_that_started_the_program_is_asked_while_its_call_waits() {
    let house = careful().await;
    let mut client = Started::start(&house).await;
    for (result, state) in [
        (json!({"action": "accept", "content": {"choice": "approve"}}), "answered"),
        (json!({"action": "decline"}), "answered"),
        (json!({"action": "cancel"}), "waiting"),
    ] {
        client.write(&asks()).await;
        let asked = client.read().await;
        let done = client.answer(&asked, &result).await;
        assert_eq!(done["result"]["structuredContent"]["state"], state, "{done}");
    }
    house.shut().await;
}

#[tokio::test]
async fn a_form_is_taken_back_when_somebody_else_has_answered() {
    let house = careful().await;
    let mut client = Started::start(&house).await;
    client.write(&asks()).await;
    let asked = client.read().await;
    let runs = use_tool(&house, "list_runs", &json!({})).await;
    let run = &runs["structuredContent"]["runs"][0]["run_id"];
    assert_eq!(state_of(&house, run).await["state"], "waiting");
    use_tool(&house, "decide", &json!({"run_id": run, "choice": "approve"})).await;
    let taken_back = client.read().await;
    assert_eq!(taken_back["method"], "notifications/cancelled", "{taken_back}");
    assert_eq!(taken_back["params"]["requestId"], asked["id"]);
    assert_eq!(client.read().await["result"]["structuredContent"]["answer"], "so");
    house.shut().await;
}

/// The protocol has numbers that grow, whatever the call waits for in between.
#[tokio::test]
async fn progress_goes_on_behind_an_answer() {
    let house = careful().await;
    let mut client = Started::start(&house).await;
    client.write(&with_progress(asks())).await;
    let mut told = Vec::new();
    let done = loop {
        let message = client.read().await;
        match message["method"].as_str() {
            Some("notifications/progress") => told.push(message["params"]["progress"].as_f64().unwrap()),
            Some("elicitation/create") => {
                let result = json!({"action": "accept", "content": {"choice": "approve"}});
                client.write(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result})).await;
            }
            _ => break message,
        }
    };
    assert_eq!(done["result"]["structuredContent"]["state"], "answered", "{done}");
    assert!(told.len() > 3 && told.is_sorted_by(|one, next| one < next), "{told:?}");
    house.shut().await;
}
