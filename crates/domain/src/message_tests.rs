//! Both dialects, byte for byte where the real thing was observed.

use crate::message::{AgentRequest, AgentResponse, AgentStep, ErrorInfo, PlanStep, StepStatus};
use crate::rdf::{Quad, Term, Triple};
use crate::{broker, gateway};
use serde_json::json;

fn explain() -> AgentResponse {
    AgentResponse {
        message_type: "explain".into(),
        explain_id: Some("urn:trustgraph:agent:S".into()),
        explain_graph: Some("urn:graph:retrieval".into()),
        explain_triples: vec![Quad {
            s: Term::iri("urn:trustgraph:agent:S"),
            p: Term::iri("https://trustgraph.ai/ns/query"),
            o: Term::literal("why?"),
            g: Some("urn:graph:retrieval".into()),
        }],
        ..AgentResponse::default()
    }
}

#[test]
fn a_response_lies_on_the_broker_as_observed() {
    let observed = r#"{"message_type":"explain","content":"","end_of_message":false,"end_of_dialog":false,"explain_id":"urn:trustgraph:agent:S","explain_graph":"urn:graph:retrieval","explain_triples":[{"s":{"type":"i","iri":"urn:trustgraph:agent:S","id":"","value":"","datatype":"","language":"","triple":null},"p":{"type":"i","iri":"https://trustgraph.ai/ns/query","id":"","value":"","datatype":"","language":"","triple":null},"o":{"type":"l","iri":"","id":"","value":"why?","datatype":"","language":"","triple":null},"g":"urn:graph:retrieval"}],"message_id":"","error":null,"in_token":null,"out_token":null,"model":null}"#;
    assert_eq!(json!(broker::response(&explain())).to_string(), observed);
    assert_eq!(serde_json::from_str::<AgentResponse>(observed).unwrap(), explain());
}

#[test]
fn the_gateway_forwards_it_as_observed() {
    let observed = r#"{"message_type":"explain","end_of_message":false,"end_of_dialog":false,"explain_id":"urn:trustgraph:agent:S","explain_graph":"urn:graph:retrieval","explain_triples":[{"s":{"t":"i","i":"urn:trustgraph:agent:S"},"p":{"t":"i","i":"https://trustgraph.ai/ns/query"},"o":{"t":"l","v":"why?"},"g":"urn:graph:retrieval"}]}"#;
    assert_eq!(gateway::response(&explain()).to_string(), observed);
    assert_eq!(serde_json::from_str::<AgentResponse>(observed).unwrap(), explain());
}

#[test]
fn the_next_request_lies_on_the_broker_as_observed() {
    let observed = r#"{"question":"why?","state":"undefined","group":null,"history":[{"thought":"...","action":"llm","arguments":{"question":"what?"},"observation":"LLM says hi","step_type":"","plan":[],"subagent_results":{}}],"collection":"default","streaming":true,"session_id":"S","conversation_id":"","pattern":"react","task_type":"general","framing":"","correlation_id":"","parent_session_id":"","subagent_goal":"","expected_siblings":0}"#;
    let request: AgentRequest = serde_json::from_str(observed).unwrap();
    assert_eq!(broker::request(&request).to_string(), observed);
}

#[test]
fn a_request_is_compact_on_the_gateway() {
    let request = AgentRequest { question: "why?".into(), streaming: true, ..AgentRequest::default() };
    assert_eq!(gateway::request(&request), json!({"question": "why?", "streaming": true}));
}

#[test]
fn nulls_are_read_anywhere() {
    let every_field = json!(AgentRequest::default());
    let nulls: serde_json::Map<_, _> =
        every_field.as_object().unwrap().keys().map(|name| (name.clone(), serde_json::Value::Null)).collect();
    assert_eq!(serde_json::from_value::<AgentRequest>(nulls.into()).unwrap(), AgentRequest::default());
    let response: AgentResponse = serde_json::from_value(json!({
        "message_type": null, "content": null, "end_of_message": null, "end_of_dialog": null, "explain_id": null,
        "explain_graph": null, "explain_triples": null, "message_id": null, "error": null, "in_token": null,
        "out_token": null, "model": null,
    }))
    .unwrap();
    assert_eq!(response, AgentResponse::default());
    let step: AgentStep = serde_json::from_value(json!({
        "thought": null, "action": null, "arguments": null, "observation": null, "step_type": null, "plan": null,
        "subagent_results": null, "user": "ignored",
    }))
    .unwrap();
    assert_eq!(step, AgentStep::default());
}

#[test]
fn older_and_neighbouring_names_are_read() {
    let response: AgentResponse = serde_json::from_value(json!({
        "chunk-type": "answer", "content": "x", "end-of-message": true, "end-of-dialog": true,
    }))
    .unwrap();
    assert_eq!((response.message_type.as_str(), response.end_of_dialog), ("answer", true));
    let response: AgentResponse = serde_json::from_value(json!({"chunk_type": "thought"})).unwrap();
    assert_eq!(response.message_type, "thought");
    let request: AgentRequest =
        serde_json::from_value(json!({"question": "q", "framing_prompt": "f", "group": "read-only", "user": "u"}))
            .unwrap();
    assert_eq!((request.framing.as_str(), request.group), ("f", Some(vec!["read-only".to_owned()])));
    let step: PlanStep = serde_json::from_value(json!({"goal": "g", "status": "complete"})).unwrap();
    assert_eq!(step.status, StepStatus::Completed);
    assert_eq!(json!(step.status), "completed");
    assert!(serde_json::from_value::<AgentRequest>(json!({})).is_err(), "a question is needed");
}

#[test]
fn arguments_that_are_no_texts_become_json_texts() {
    let step: AgentStep =
        serde_json::from_value(json!({"arguments": {"a": 3, "b": true, "c": null, "d": {"x": [1]}, "e": "t"}}))
            .unwrap();
    let texts: Vec<_> = step.arguments.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    assert_eq!(texts, [("a", "3"), ("b", "true"), ("c", ""), ("d", r#"{"x":[1]}"#), ("e", "t")]);
}

#[test]
fn every_kind_of_term_survives_both_dialects() {
    let quoted = Triple { s: Term::iri("urn:a"), p: Term::iri("urn:b"), o: Term::literal("c") };
    let terms = [
        Term::iri("urn:x"),
        Term::literal("text"),
        Term::Literal { value: "3".into(), datatype: "urn:int".into(), language: String::new() },
        Term::Literal { value: "drei".into(), datatype: String::new(), language: "de".into() },
        Term::Blank { id: "b0".into() },
        Term::Quoted { triple: Box::new(quoted) },
    ];
    for term in terms {
        assert_eq!(serde_json::from_value::<Term>(json!(term)).unwrap(), term, "gateway");
        assert_eq!(serde_json::from_value::<Term>(json!(broker::term(&term))).unwrap(), term, "broker");
        let quad = Quad { s: Term::iri("urn:s"), p: Term::iri("urn:p"), o: term, g: None };
        assert_eq!(serde_json::from_value::<Quad>(json!(broker::triple(&quad))).unwrap(), quad);
    }
    let default_graph =
        json!({"s": {"t": "i", "i": "a"}, "p": {"t": "i", "i": "b"}, "o": {"t": "l", "v": "c"}, "g": ""});
    assert_eq!(serde_json::from_value::<Quad>(default_graph).unwrap().g, None);
}

#[test]
fn an_error_has_type_and_message_and_no_code() {
    let error = ErrorInfo { kind: "agent-error".into(), message: "no".into() };
    let response = AgentResponse { error: Some(error), ..AgentResponse::default() };
    assert_eq!(json!(broker::response(&response))["error"], json!({"type": "agent-error", "message": "no"}));
}
