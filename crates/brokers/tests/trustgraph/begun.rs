//! What the original has begun and puts back on the queue goes on here where it stands.

use crate::Ours;
use crate::neighbours::{Neighbours, configure, ends, text};
use serde_json::{Value, json};
use std::sync::Arc;
use tempfile::TempDir;
use trellis_servers::{RabbitMq, RabbitMqOptions};

struct Scene {
    neighbours: Neighbours,
    ours: Ours,
    _server: RabbitMq,
    _notes: TempDir,
}

impl Scene {
    async fn start() -> Self {
        let server = RabbitMq::start(RabbitMqOptions::default());
        let (neighbours, notes) = (Neighbours::start(&server).await, TempDir::new().unwrap());
        configure(&neighbours).await;
        let ours = Ours::start(&server, &Arc::default(), notes.path()).await;
        Self { neighbours, ours, _server: server, _notes: notes }
    }

    /// The answer to a request with this history, and the session that gave it.
    async fn go_on(&self, session: &str, pattern: &str, step: &Value) -> (String, String) {
        let begun = json!({"question": "wind?", "session_id": session, "pattern": pattern, "history": [step],
            "streaming": true});
        let responses = self.neighbours.ask(&begun).await;
        let own = responses[0]["session_id"].as_str().unwrap().to_owned();
        assert!(own != session && responses.iter().all(|response| response["session_id"] == own.as_str()));
        assert_eq!(ends(&responses), 1);
        (text(&responses, "answer"), own)
    }

    /// The prompts that were asked for so far.
    fn prompts(&self) -> Vec<String> {
        let asked = self.neighbours.heard("prompt");
        asked.iter().map(|asked| asked["id"].as_str().unwrap().to_owned()).collect()
    }

    async fn until_stored(&self, session: &str, node: &str) {
        let node = format!("urn:trustgraph:agent:{session}/{node}");
        self.neighbours.until("triples", |stored| stored["metadata"]["id"] == node.as_str()).await;
    }

    async fn until_it_follows_from(&self, node: &str) {
        let node = format!("urn:trustgraph:agent:{node}");
        self.neighbours.until("triples", |stored| stored.to_string().contains(&node)).await;
    }
}

/// A step of the history with a plan, as the original writes it after its first step.
fn executed(depends_on: &Value) -> Value {
    let plan = json!([
        {"goal": "find", "tool_hint": "", "depends_on": [], "status": "completed", "result": "Wind."},
        {"goal": "compare", "tool_hint": "", "depends_on": depends_on, "status": "pending", "result": ""},
    ]);
    json!({
        "thought": "Executing plan step", "action": "weather", "arguments": {"city": "Paris"}, "observation": "Wind.",
        "step_type": "execute", "plan": plan, "subagent_results": {},
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_half_done_plan_goes_on_with_the_step_that_is_left() {
    let scene = Scene::start().await;
    let (answer, session) = scene.go_on("planned", "plan-then-execute", &executed(&json!([0]))).await;
    assert_eq!(answer, "Planned: Wind. Rain.");
    assert_eq!(
        scene.prompts(),
        ["plan-step-execute", "plan-synthesise"],
        "neither the plan nor its first step is paid for"
    );
    let asked = scene.neighbours.heard("mcp-tool");
    assert_eq!(asked, [json!({"name": "get_weather", "parameters": r#"{"city":"Oslo"}"#})]);
    for node in ["plan", "step/0", "step/1", "synthesis"] {
        scene.until_stored(&session, node).await;
    }
    scene.until_it_follows_from("planned/step/0").await;
    scene.ours.stop().await;
}

/// The original does not look at what steps build on, so anything may stand there.
#[tokio::test(flavor = "multi_thread")]
async fn a_plan_that_nobody_can_bring_into_an_order_is_shown_to_whoever_answers() {
    let scene = Scene::start().await;
    let (answer, _) = scene.go_on("tangled", "plan-then-execute", &executed(&json!([7]))).await;
    assert!(answer.contains("compare"), "{answer}");
    assert_eq!(scene.prompts(), ["agent-react"]);
    assert!(scene.neighbours.heard("mcp-tool").is_empty());
    scene.until_it_follows_from("tangled/step/0").await;
    scene.ours.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn findings_that_were_joined_are_put_together_and_nobody_is_sent_out() {
    let scene = Scene::start().await;
    let joined = json!({
        "thought": "All subagents completed", "action": "aggregate", "arguments": {}, "plan": [],
        "observation": "{\"in Oslo?\": \"Snow.\", \"in Paris?\": \"Wind.\"}", "step_type": "synthesise",
        "subagent_results": {"in Oslo?": "Snow.", "in Paris?": "Wind."},
    });
    let (answer, session) = scene.go_on("supervised", "supervisor", &joined).await;
    assert_eq!(answer, "Found: Snow. Wind.");
    assert_eq!(scene.prompts(), ["supervisor-synthesise"]);
    for node in ["finding/0", "finding/1", "synthesis"] {
        scene.until_stored(&session, node).await;
    }
    scene.until_it_follows_from("supervised/decompose").await;
    scene.ours.stop().await;
}
