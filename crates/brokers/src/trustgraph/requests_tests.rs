use super::*;
use serde_json::json;

fn request(value: serde_json::Value) -> AgentRequest {
    serde_json::from_value(value).unwrap()
}

#[test]
fn a_question_is_taken_as_it_is() {
    let asked = request(json!({"question": "why?", "session_id": "", "streaming": true}));
    let taken = taken(asked.clone());
    assert_eq!(taken, Taken { request: asked, follows: None, subagent: None });
}

#[test]
fn what_others_have_begun_goes_on_under_a_name_of_its_own() {
    let step = json!({"thought": "t", "action": "llm", "arguments": {"question": "q"}, "observation": "o"});
    let begun = json!({"question": "why?", "session_id": "s-1", "pattern": "react", "history": [step]});
    let first = taken(request(begun.clone()));
    assert_ne!(first.request.session_id, "s-1");
    assert_eq!(first.request.history.len(), 1);
    assert_eq!(first.follows.as_deref(), Some("urn:trustgraph:agent:s-1/i1/observation"));
    // The same whenever the message comes again.
    assert_eq!(first, taken(request(begun)));
}

#[test]
fn a_subagent_of_somebody_else_answers_to_whoever_sent_it() {
    let sent = request(json!({
        "question": "goal one", "session_id": "child", "correlation_id": "c", "parent_session_id": "parent",
        "subagent_goal": "goal one", "expected_siblings": 2, "streaming": true,
    }));
    let taken = taken(sent.clone());
    assert_eq!(taken.subagent, Some(sent));
    assert_eq!((taken.request.session_id.as_str(), taken.request.streaming), ("child", false));
    assert_eq!(taken.request.correlation_id, "");
    assert_eq!(taken.follows.as_deref(), Some("urn:trustgraph:agent:parent/decompose"));
}

#[test]
fn findings_of_others_are_told_to_whoever_answers() {
    let step = json!({
        "thought": "All subagents completed", "action": "aggregate", "step_type": "synthesise",
        "observation": "{\"a\": \"1\"}", "subagent_results": {"a": "1", "b": "2"},
    });
    let joined = json!({"question": "why?", "session_id": "p", "pattern": "supervisor", "history": [step]});
    let taken = taken(request(joined));
    assert_eq!(taken.request.pattern, "react");
    let observed: Vec<_> = taken.request.history.iter().map(|step| step.observation.as_str()).collect();
    assert_eq!(observed, ["1", "2"]);
}
