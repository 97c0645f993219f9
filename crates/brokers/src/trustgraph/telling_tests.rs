use super::*;
use trellis_patterns::wire::{WireTurn, turn_of};

/// Byte for byte as the original writes it, which looks for its own correlation and goal in it.
#[test]
fn the_end_of_somebody_elses_subagent_is_told_as_the_original_tells_it() {
    let request = AgentRequest {
        question: "goal one".to_owned(),
        state: "searched".to_owned(),
        collection: "papers".to_owned(),
        session_id: "child".to_owned(),
        pattern: "react".to_owned(),
        task_type: "research".to_owned(),
        framing: "Cite.".to_owned(),
        correlation_id: "c".to_owned(),
        parent_session_id: "parent".to_owned(),
        subagent_goal: "goal one".to_owned(),
        expected_siblings: 2,
        ..AgentRequest::default()
    };
    let answered = AgentResponse { content: "42".to_owned(), ..AgentResponse::default() };
    let told = completion(&request, &answered);
    let written = r#"{"question":"goal one","state":"","group":null,"history":[{"thought":"Subagent completed","action":"complete","arguments":{},"observation":"42","step_type":"subagent-completion","plan":[],"subagent_results":{}}],"collection":"papers","streaming":false,"session_id":"child","conversation_id":"","pattern":"","task_type":"","framing":"","correlation_id":"c","parent_session_id":"parent","subagent_goal":"goal one","expected_siblings":2}"#;
    assert_eq!(dialect::request(&told).to_string(), written);
    let end = WireTurn::Completion { session: "child".to_owned(), correlation: "c".to_owned() };
    assert_eq!(turn_of(&told), end);

    let error = ErrorInfo { kind: "agent-error".to_owned(), message: "no model".to_owned() };
    let failed = completion(&request, &AgentResponse { error: Some(error), ..AgentResponse::default() });
    let step = &failed.history[0];
    assert_eq!((step.thought.as_str(), step.observation.as_str()), ("Subagent did not complete", "Error: no model"));
}
