//! The figures that stock commands ask for.

use crate::house::{House, Setup};
use serde_json::{Value, json};
use trellis_domain::Workspace;
use trellis_gateway::{Access, Identity, Token};

async fn figures(house: &House, query: &str) -> Value {
    let query = query.replace('"', "%22").replace('{', "%7B").replace('}', "%7D");
    let (status, reply) = house.http("GET", &format!("/api/metrics/query?query={query}"), "", b"").await;
    assert_eq!((status, &reply["status"]), (200, &json!("success")), "{reply}");
    reply["data"]["result"].clone()
}

fn processors(result: &Value) -> Vec<&str> {
    result.as_array().unwrap().iter().map(|sample| sample["metric"]["processor"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn services_are_processors_of_every_flow_that_there_is() {
    let house = House::open().await;
    let all = figures(&house, "processor_info").await;
    assert!(processors(&all).len() >= 15, "the stock check wants as many");
    assert!(processors(&all).contains(&"librarian") && all[0]["value"][1] == "1", "{all}");
    let running = figures(&house, r#"consumer_state{consumer_state="running",flow="default"}"#).await;
    assert!(processors(&running).contains(&"agent"));
    assert_eq!(figures(&house, r#"consumer_state{flow="second"}"#).await, json!([]));
    let start =
        json!({"operation": "start-flow", "flow-id": "second", "blueprint-name": "trellis", "description": "d"});
    house.post("/api/v1/flow", &start).await;
    assert!(processors(&figures(&house, r#"consumer_state{flow="second"}"#).await).contains(&"agent"));
    assert_eq!(figures(&house, "nobody_counts_this").await, json!([]));
}

#[tokio::test]
async fn tokens_are_counted_from_the_start_on() {
    let house = House::open().await;
    let count = async |name: &str| figures(&house, name).await[0]["value"][1].as_str().unwrap().to_owned();
    assert_eq!(count("input_tokens_total").await, "0");
    let prompt = json!({"id": "question", "variables": {"question": "{}"}});
    house.post("/api/v1/flow/default/service/prompt", &prompt).await;
    house.post("/api/v1/flow/default/service/text-completion", &json!({"prompt": "{}"})).await;
    assert_eq!(count("input_tokens_total").await, "14", "seven of each call");
    assert_eq!(count("output_tokens_total").await, "4", "a fact, a completion");
}

#[tokio::test]
async fn more_than_a_name_is_refused_and_so_is_whoever_sees_not_all() {
    let house = House::open().await;
    let (status, refused) = house.http("GET", "/api/metrics/query?query=rate(x)", "", b"").await;
    assert_eq!((status, &refused["errorType"]), (400, &json!("bad_data")));
    assert_eq!(house.http("GET", "/api/metrics/query", "", b"").await.0, 400);
    let alice = Identity::user("alice", [Workspace::new("alice").unwrap()]);
    let access = Access::Tokens(vec![(Token::new("s3cret"), alice)]);
    let guarded = House::with(Setup { access, ..Setup::default() }).await;
    let ask =
        async |headers: &str| guarded.http("GET", "/api/metrics/query?query=processor_info", headers, b"").await.0;
    assert_eq!((ask("").await, ask("Authorization: Bearer s3cret\r\n").await), (401, 403));
}
