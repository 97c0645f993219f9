//! Decisions inside of options, over REST and the socket.

use crate::house::{House, Setup};
use serde_json::{Value, json};
use std::sync::Arc;
use trellis_orchestrator::memory::scripted::ScriptedPrompter;

const SERVICE: &str = "/api/v1/flow/default/service/decision-scoring";

/// A model that chooses the same whatever the options are.
async fn house(choice: &'static str) -> House {
    let model = ScriptedPrompter::new(move |call| {
        assert_eq!(call.id, "decision-scoring");
        assert!(call.variables["state"].as_str().unwrap().contains("overcharged"), "{:?}", call.variables);
        assert!(call.schema.is_some(), "nothing but the options can be said");
        Ok(json!({"q1": {"reason": "money", "choice": choice, "points": {"o1": 10, "o2": 30}}}).to_string())
    });
    House::with(Setup { model: Arc::new(model), ..Setup::default() }).await
}

fn request() -> Value {
    let questions = json!({"team": {"type": "choice", "options": ["sales", "billing"]}});
    json!({"state": {"message": "I was overcharged"}, "questions": questions})
}

#[tokio::test]
async fn a_choice_is_made_inside_of_the_options_over_both_surfaces() {
    let house = house("billing").await;
    let (status, reply) = house.post(SERVICE, &request()).await;
    let probabilities = json!({"sales": 0.25, "billing": 0.75});
    let team = json!({
        "type": "choice", "choice": "billing", "probabilities": probabilities, "confidence": 0.75, "reason": "money",
    });
    assert_eq!((status, &reply["answers"]), (200, &json!({"team": team})), "{reply}");
    assert_eq!((&reply["model"], &reply["enforcement"]), (&json!("scripted"), &json!("validated")));
    let mut socket = house.socket().await;
    socket.send(json!({"id": "1", "service": "decision-scoring", "flow": "default", "request": request()})).await;
    let replies = socket.replies().await;
    assert_eq!((replies.len(), &replies[0]["response"]), (1, &reply), "the first frame is the answer");
}

#[tokio::test]
async fn what_is_outside_of_the_options_is_an_error_and_never_an_answer() {
    let house = house("legal").await;
    let (_, reply) = house.post(SERVICE, &request()).await;
    assert_eq!(reply["error"]["type"], "llm-error", "{reply}");
    assert!(reply["error"]["message"].as_str().unwrap().contains("sales, billing"), "{reply}");
    assert!(reply.get("answers").is_none());
}

#[tokio::test]
async fn a_question_that_cannot_be_decided_is_refused_before_a_model_is_asked() {
    let house = House::open().await;
    for (request, words) in [
        (json!({}), "`questions`"),
        (json!({"questions": []}), "`questions`"),
        (json!({"questions": {"team": {"options": ["one"]}}}), "at least two"),
        (json!({"questions": {"a": {"type": "noul"}}, "state": "x".repeat(300 << 10)}), "256 KiB"),
    ] {
        let (_, reply) = house.post(SERVICE, &request).await;
        assert_eq!(reply["error"]["type"], "request-error", "{reply}");
        assert!(reply["error"]["message"].as_str().unwrap().contains(words), "{reply}");
    }
}
