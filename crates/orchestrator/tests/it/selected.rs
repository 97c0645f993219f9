//! What a request chooses out of the configured tools and models: it narrows, for all of its run, and never widens.

use crate::promises::bench;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use trellis_domain::decision::DecisionKind;
use trellis_domain::limits::SomeLimits;
use trellis_domain::message::AgentRequest;
use trellis_domain::{RequestId, RunId, Scope, Selection};
use trellis_orchestrator::accept::UnknownNames;
use trellis_orchestrator::contract::play;
use trellis_orchestrator::contract::runs::Bench;
use trellis_orchestrator::contract::teams::{Played, question};
use trellis_orchestrator::ports::PromptCall;
use trellis_orchestrator::{AcceptError, Question};

fn tool(name: &'static str, group: &str) -> (&'static str, &'static str, Value) {
    ("tool", name, json!({"type": "text-completion", "name": name, "description": "d", "group": [group]}))
}

fn tools(names: &[&str]) -> Selection {
    Selection { tools: Some(names.iter().map(|name| (*name).into()).collect()), model: None }
}

async fn accept(bench: &Bench, request: AgentRequest, selection: Selection) -> Result<RunId, AcceptError> {
    let question = Question {
        scope: Scope::default(),
        request_id: RequestId::new("request").unwrap(),
        request,
        limits: SomeLimits::default(),
        names: UnknownNames::Refuse,
        selection,
        by: None,
    };
    Ok(bench.runs().accept(question).await?.run)
}

/// The tools that a prompt offers, and the model that it is meant for.
type Prompted = (BTreeSet<String>, Option<String>);

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_team_is_offered_nothing_else_and_asks_no_other_model() {
    let seen: Arc<Mutex<Vec<Prompted>>> = Arc::default();
    let heard = Arc::clone(&seen);
    let script = move |call: &PromptCall| {
        let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
        let offered = call.variables.get("tools").and_then(Value::as_array).into_iter().flatten().map(name).collect();
        heard.lock().unwrap().push((offered, call.labels.as_ref().and_then(|labels| labels.model.clone())));
        Ok(match call.id.as_str() {
            "supervisor-decompose" => {
                json!({"goals": [{"goal": "a", "pattern": "react"}, {"goal": "b", "pattern": "plan-then-execute"}]})
                    .to_string()
            }
            "plan-create" => json!({"steps": [{"goal": "look it up"}]}).to_string(),
            "plan-step-execute" => json!({"tool": "none", "answer": "known"}).to_string(),
            "agent-react" if call.variables["history"].as_array().is_none_or(Vec::is_empty) => {
                "Thought: t\nAction: ledger\nArgs: {\"question\": \"q\"}".to_owned()
            }
            "agent-react" => "Final Answer: known".to_owned(),
            _ => return play::reply(call),
        })
    };
    let bench = bench(script, &[tool("ledger", "default"), tool("vault", "secret"), tool("atlas", "default")]).await;
    let selection = Selection { model: Some("scripted".to_owned()), ..tools(&["ledger"]) };
    let run = accept(&bench, question(&json!({"team": []}), "supervisor"), selection.clone()).await.unwrap();
    bench.finish(std::slice::from_ref(&run), 1).await;
    let played = Played::of(&bench, run.clone()).await;
    played.keeps_the_promises();
    assert_eq!(played.replayed(), [] as [String; 0]);
    for (offered, model) in seen.lock().unwrap().iter() {
        assert!(offered.iter().all(|name| name == "ledger"), "{offered:?}");
        assert_eq!(model.as_deref(), Some("scripted"));
    }
    let accepted = played.records.iter().filter_map(|record| record.body.as_accepted());
    assert_eq!(accepted.map(|accepted| &accepted.selection).collect::<Vec<_>>(), [&selection; 3]);
    let replied = played.records.iter().filter_map(|record| record.body.as_replied());
    let sets = replied.flat_map(|replied| &replied.decision).filter(|decision| decision.kind == DecisionKind::Tool);
    let reasons: BTreeSet<_> =
        sets.flat_map(|set| &set.excluded).map(|out| format!("{}: {}", out.name, out.reason)).collect();
    assert!(reasons.contains("atlas: not asked for") && reasons.contains("search: not asked for"), "{reasons:?}");
    assert!(reasons.contains("vault: group: tool is in [secret], asked for [default]"), "{reasons:?}");
}

#[tokio::test]
async fn what_cannot_be_chosen_is_refused_with_what_can() {
    let bench = bench(play::reply, &[tool("ledger", "default"), tool("vault", "secret")]).await;
    let scene = || question(&json!({"answer": "so"}), "react");
    let refusal = async |selection: Selection| accept(&bench, scene(), selection).await.unwrap_err().to_string();
    assert_eq!(refusal(tools(&["legder"])).await, "there is no tool `legder`; choose from ledger, search, vault");
    let outside = refusal(tools(&["ledger", "vault"])).await;
    assert!(outside.contains("`vault` is in the groups secret") && outside.contains("`group`"), "{outside}");
    let model = Selection { tools: None, model: Some("openai/other".to_owned()) };
    assert_eq!(refusal(model).await, "no model `openai/other` is configured; choose one of scripted");
    assert!(refusal(tools(&["x"; 101])).await.contains("at most 100"));
    let with_group = AgentRequest { group: Some(vec!["*".to_owned()]), ..scene() };
    accept(&bench, with_group, tools(&["vault"])).await.unwrap();
}

#[tokio::test]
async fn another_selection_is_another_request() {
    let bench = bench(play::reply, &[tool("ledger", "default")]).await;
    let scene = || question(&json!({"answer": "so"}), "react");
    let run = accept(&bench, scene(), tools(&["ledger"])).await.unwrap();
    assert_eq!(accept(&bench, scene(), tools(&["ledger"])).await.unwrap(), run);
    let other = accept(&bench, scene(), tools(&[])).await.unwrap_err();
    assert!(matches!(other, AcceptError::OtherRequest { .. }), "{other}");
}
