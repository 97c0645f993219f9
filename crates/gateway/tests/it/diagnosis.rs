//! What a piece of a file is, and how it becomes rows.

use crate::house::{House, Setup};
use serde_json::{Value, json};
use std::sync::Arc;
use trellis_orchestrator::memory::scripted::ScriptedPrompter;

const SERVICE: &str = "/api/v1/flow/default/service/structured-diag";
const CITIES: &str = "id;Name\n1;Oslo\n";

/// A model that knows what is meant by a town.
async fn house() -> House {
    let model = ScriptedPrompter::new(|call| match call.id.as_str() {
        "diagnose-structured-data" => {
            let mappings = json!([
                {"source_field": "town", "target_field": "name"}, {"source_field": "colour", "target_field": "name"},
            ]);
            Ok(json!({"mappings": mappings}).to_string())
        }
        "schema-selection" => Ok(json!(["people", "cities"]).to_string()),
        other => Err(format!("nobody asks for {other}")),
    });
    House::with(Setup { model: Arc::new(model), ..Setup::default() }).await
}

async fn put_schema(house: &House, key: &str, fields: &[&str]) {
    let fields: Vec<_> = fields.iter().map(|name| json!({"name": name, "type": "string"})).collect();
    let value = json!({"name": key, "fields": fields}).to_string();
    let put = json!({"operation": "put", "values": [{"type": "schema", "key": key, "value": value}]});
    assert!(house.post("/api/v1/config", &put).await.1.get("error").is_none());
}

async fn ask(house: &House, operation: &str, sample: &str, more: Value) -> Value {
    let mut request = json!({"operation": operation, "sample": sample});
    request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    house.post(SERVICE, &request).await.1
}

#[tokio::test]
async fn columns_with_the_names_of_fields_need_no_model() {
    let house = House::open().await;
    put_schema(&house, "cities", &["id", "name"]).await;
    let found = ask(&house, "diagnose", CITIES, json!({})).await;
    assert_eq!((&found["detected-type"], &found["operation"]), (&json!("csv"), &json!("diagnose")), "{found}");
    assert_eq!(found["metadata"]["schema_name"], "cities");
    assert_eq!(found["descriptor"]["format"]["options"], json!({"delimiter": ";", "has_header": true}));
    assert_eq!(found["descriptor"]["mappings"][1]["source_field"], "Name");
    let kind = ask(&house, "detect-type", "[{\"id\": 1}]", json!({})).await;
    assert_eq!((&kind["detected-type"], &kind["confidence"]), (&json!("json"), &json!(0.9)));
}

#[tokio::test]
async fn a_model_says_what_names_do_not_and_only_what_is_there() {
    let house = house().await;
    put_schema(&house, "cities", &["id", "name"]).await;
    put_schema(&house, "people", &["id", "age"]).await;
    let named = json!({"type": "csv", "schema-name": "cities"});
    let found = ask(&house, "generate-descriptor", "id,town\n1,Oslo\n", named).await;
    let mappings = found["descriptor"]["mappings"].as_array().unwrap();
    let pairs: Vec<_> = mappings.iter().map(|one| (&one["source_field"], &one["target_field"])).collect();
    assert_eq!(pairs, [(&json!("id"), &json!("id")), (&json!("town"), &json!("name"))], "{found}");
    let matches = ask(&house, "schema-selection", "id,town\n", json!({})).await;
    assert_eq!(matches["schema-matches"], json!(["people", "cities"]));
    let clear = ask(&house, "schema-selection", "id,age\n", json!({})).await;
    assert_eq!(clear["schema-matches"], json!(["people"]), "all fields are there");
}

#[tokio::test]
async fn what_cannot_be_diagnosed_is_told_in_words() {
    let house = House::open().await;
    let message = |reply: Value| reply["error"]["message"].as_str().unwrap_or_default().to_owned();
    assert!(message(ask(&house, "diagnose", CITIES, json!({})).await).contains("no schema is configured"));
    put_schema(&house, "cities", &["id", "name"]).await;
    let other = json!({"type": "csv", "schema-name": "towns"});
    assert!(message(ask(&house, "generate-descriptor", CITIES, other).await).contains("no schema `towns`"));
    let parquet = json!({"type": "parquet", "schema-name": "cities"});
    assert!(message(ask(&house, "generate-descriptor", CITIES, parquet).await).contains("csv, json or xml"));
    assert!(message(ask(&house, "detect-type", &"x".repeat(300 << 10), json!({})).await).contains("256 KiB"));
}
