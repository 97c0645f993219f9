//! Which tools a plan's steps and a supervisor's subagents are shown.

use crate::promises::bench;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use trellis_domain::limits::SomeLimits;
use trellis_domain::record::Name;
use trellis_orchestrator::contract::play;
use trellis_orchestrator::contract::teams::{Played, question};
use trellis_orchestrator::ports::PromptCall;
use trellis_patterns::plan::PlanNames;

/// What prompts were told, by their question or goal.
#[derive(Debug, Clone, Default)]
struct Told(Arc<Mutex<BTreeMap<String, Seen>>>);

#[derive(Debug, Clone)]
struct Seen {
    tools: Vec<String>,
    context: String,
}

impl Told {
    fn hear(&self, of: &str, call: &PromptCall) {
        let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
        let tools = call.variables["tools"].as_array().unwrap().iter().map(name).collect();
        let context = call.variables["context"].as_str().unwrap_or_default().to_owned();
        let key = call.variables[of].as_str().unwrap().to_owned();
        self.0.lock().unwrap().insert(key, Seen { tools, context });
    }

    fn tools(&self, of: &str) -> Vec<String> {
        self.0.lock().unwrap()[of].tools.clone()
    }

    fn context(&self, of: &str) -> String {
        self.0.lock().unwrap()[of].context.clone()
    }
}

fn tool(name: &'static str, more: Value) -> (&'static str, &'static str, Value) {
    let mut item = json!({"type": "text-completion", "name": name, "description": "d"});
    item.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    ("tool", name, item)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_that_a_plans_tool_leads_to_holds_for_the_steps_that_rest_on_it() {
    let tools = [
        tool("open", json!({"state": "opened"})),
        tool("jam", json!({"state": "jammed"})),
        tool("read", json!({"applicable-states": ["opened"]})),
        tool("mend", json!({"applicable-states": ["jammed"]})),
    ];
    let told = Told::default();
    let heard = told.clone();
    let script = move |call: &PromptCall| {
        Ok(match call.id.as_str() {
            "plan-create" => json!({"steps": [
                {"goal": "open it", "tool_hint": "open"},
                {"goal": "apart"},
                {"goal": "rest on it", "depends_on": [0]},
                {"goal": "rest on both", "depends_on": [1, 2]},
                {"goal": "jam it", "depends_on": [0]},
                {"goal": "rest on the jam", "depends_on": [4]},
            ]})
            .to_string(),
            "plan-step-execute" => {
                heard.hear("goal", call);
                match call.variables["goal"].as_str().unwrap() {
                    "open it" => json!({"tool": "open", "arguments": {"question": "q"}}),
                    "jam it" => json!({"tool": "jam", "arguments": {"fail": true}}),
                    "rest on it" => json!({"tool": "read", "arguments": {"question": "q"}}),
                    _ => json!({"tool": "none", "answer": "known"}),
                }
                .to_string()
            }
            _ => return play::reply(call),
        })
    };
    let bench = bench(script, &tools).await;
    let run = bench.request(1, question(&json!({"plan": []}), "plan-then-execute"), SomeLimits::default()).await;
    bench.finish(std::slice::from_ref(&run), 1).await;
    let played = Played::of(&bench, run).await;
    played.keeps_the_promises();
    let (closed, opened) = (["jam", "open", "search"], ["jam", "open", "read", "search"]);
    assert_eq!(told.tools("open it"), closed);
    assert_eq!(told.tools("apart"), closed, "it does not rest on the step that opens");
    assert_eq!(told.tools("rest on it"), opened);
    assert_eq!(told.tools("rest on both"), opened, "through another step");
    assert_eq!(told.tools("rest on the jam"), opened, "a tool that fails leads nowhere");
    let state = |step: u32| {
        let result = played.records.iter().find(|record| record.header.name == Name::step_result(step)).unwrap();
        result.body.as_observed().unwrap().state.clone()
    };
    assert_eq!((state(0).as_deref(), state(2), state(4)), (Some("opened"), None, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_subagent_runs_with_its_own_pattern_its_own_tools_and_its_own_slice_of_context() {
    let tools = [tool("ledger", json!({"group": ["default", "money"]})), tool("vault", json!({"group": ["secret"]}))];
    let told = Told::default();
    let heard = told.clone();
    let script = move |call: &PromptCall| {
        Ok(match call.id.as_str() {
            "supervisor-decompose" => json!({"goals": [
                {"goal": "finances", "pattern": "react", "group": ["money"], "context": "Only the last year."},
                {"goal": "law", "pattern": "plan-then-execute", "context": "Only this country."},
                {"goal": "rumours", "group": ["secret"]},
            ]})
            .to_string(),
            "plan-create" => {
                heard.hear("question", call);
                json!({"steps": [{"goal": "look it up"}]}).to_string()
            }
            "agent-react" => {
                heard.hear("question", call);
                "Final Answer: known".to_owned()
            }
            _ => return play::reply(call),
        })
    };
    let bench = bench(script, &tools).await;
    let run = bench.request(1, question(&json!({"team": []}), "supervisor"), SomeLimits::default()).await;
    bench.finish(std::slice::from_ref(&run), 1).await;
    let played = Played::of(&bench, run.clone()).await;
    played.keeps_the_promises();
    assert_eq!(told.tools("finances"), ["ledger"]);
    assert_eq!(told.tools("law"), ["ledger", "search"], "inherited");
    assert_eq!(told.tools("rumours"), ["ledger", "search"], "never more than the supervisor's own");
    assert_eq!(told.context("finances"), "Only the last year.");
    assert_eq!(told.context("law"), "Only this country.");
    assert_eq!(told.context("rumours"), "");
    let routed: Vec<_> = (0..3)
        .map(|index| {
            let own = played.records.iter().filter(|record| record.header.session == run.child(1, index));
            own.into_iter().find_map(|record| record.body.as_routed()).unwrap().pattern.as_str()
        })
        .collect();
    assert_eq!(routed, ["react", "plan-then-execute", "react"]);
}
