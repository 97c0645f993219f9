use super::*;
use crate::broker;

fn request() -> AgentRequest {
    serde_json::from_value(json!({
        "question": "Why äöü?", "state": "s", "group": ["a", "b"], "collection": "c", "streaming": true,
        "session_id": "id", "conversation_id": "talk", "pattern": "react", "task_type": "t", "framing": "f",
        "correlation_id": "k", "parent_session_id": "p", "subagent_goal": "g", "expected_siblings": 3,
        "history": [{
            "thought": "hm", "action": "look", "arguments": { "b": "2", "a": "1" }, "observation": "seen",
            "step_type": "plan", "subagent_results": { "x": "y" },
            "plan": [{ "goal": "go", "tool_hint": "h", "depends_on": [0, 7], "status": "complete", "result": "r" }],
        }],
    }))
    .unwrap()
}

/// These bytes are a promise: what they hash to is in the records of everybody's runs.
#[test]
fn the_form_that_is_hashed_never_changes() {
    let short = AgentRequest { question: "hi".to_owned(), ..AgentRequest::default() };
    let mut expected = b"trellis-request-1\0\0\0\0\0\0\0\x02hi\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0".to_vec();
    expected.extend(b"\0\0\0\0\0\0\0\x07default\0");
    expected.extend([0; 9 * 8]);
    assert_eq!(canonical(&short), expected);
    assert_eq!(fingerprint(&short).to_string(), "0cfb0936830c5a95375df5011a014b2e5509a013d659de4d4ec59c004d370555");
    assert_eq!(fingerprint(&request()).to_string(), "06787f506e62a005706404e8d247c476e248a8cf0946eaad8efdaaa21658f4f9");
}

/// The form of version 0.1, as it was written by that version.
#[test]
fn the_earlier_form_never_changes_either() {
    let short = AgentRequest { question: "hi".to_owned(), ..AgentRequest::default() };
    assert_eq!(
        earlier_form(&short).to_string(),
        r#"{"question":"hi","state":"","group":null,"history":[],"collection":"default","streaming":false,"session_id":"","conversation_id":"","pattern":"","task_type":"","framing":"","correlation_id":"","parent_session_id":"","subagent_goal":"","expected_siblings":0}"#
    );
    assert_eq!(
        earlier_fingerprint(&request()).to_string(),
        "6b3443e867bacba27f06d8f73eee66b2082cc82789081d1d61bda2ca7193bba7"
    );
    // As long as messages are written as they were then.
    assert_eq!(earlier_form(&request()), broker::request(&request()));
}

#[test]
fn requests_that_differ_anywhere_have_different_fingerprints() {
    let plain = request();
    let mut others = Vec::new();
    let mut other = |change: &dyn Fn(&mut AgentRequest)| {
        let mut request = plain.clone();
        change(&mut request);
        others.push(fingerprint(&request));
    };
    other(&|_| {});
    other(&|r| r.question.push('!'));
    other(&|r| r.state = "Why äöü?s".to_owned());
    other(&|r| r.group = None);
    other(&|r| r.group = Some(Vec::new()));
    other(&|r| r.group = Some(vec!["ab".to_owned()]));
    other(&|r| r.history.clear());
    other(&|r| r.history[0].plan[0].depends_on = vec![0]);
    other(&|r| r.history[0].arguments.clear());
    other(&|r| r.streaming = false);
    other(&|r| r.framing.clear());
    other(&|r| r.expected_siblings = 0);
    let different: std::collections::BTreeSet<_> = others.iter().collect();
    assert_eq!(different.len(), others.len());
}

#[test]
fn each_part_has_its_largest_size_and_is_named_when_it_is_larger() {
    let long = |bytes: usize| "x".repeat(bytes);
    let refused = |change: &dyn Fn(&mut AgentRequest)| {
        let mut request = AgentRequest::default();
        change(&mut request);
        check_sizes(&request, 1_000).err().map(|refused| refused.to_string()).unwrap_or_default()
    };
    let expected = "`framing` has 65537 bytes; at most 65536 are allowed";
    assert_eq!(refused(&|r| r.framing = long((64 << 10) + 1)), expected);
    assert_eq!(refused(&|r| r.framing = long(64 << 10)), "");
    assert_eq!(refused(&|r| r.state = long(201)), "`state` has 201 bytes; at most 200 are allowed");
    assert_eq!(refused(&|r| r.pattern = long(201)), "`pattern` has 201 bytes; at most 200 are allowed");
    assert_eq!(refused(&|r| r.task_type = long(201)), "`task_type` has 201 bytes; at most 200 are allowed");
    assert_eq!(refused(&|r| r.correlation_id = long(201)), "`correlation_id` has 201 bytes; at most 200 are allowed");
    assert!(refused(&|r| r.parent_session_id = long(201)).starts_with("`parent_session_id` has 201 bytes"));
    assert!(refused(&|r| r.subagent_goal = long((64 << 10) + 1)).starts_with("`subagent_goal` has 65537 bytes"));
    let names = |count: usize| Some(vec!["g".to_owned(); count]);
    assert_eq!(refused(&|r| r.group = names(101)), "`group` has 101 names; at most 100 are allowed");
    assert!(refused(&|r| r.group = Some(vec![long(201)])).starts_with("the longest name in `group` has 201 bytes"));
    let steps = |count: usize| vec![AgentStep::default(); count];
    assert_eq!(refused(&|r| r.history = steps(201)), "`history` has 201 steps; at most 200 are allowed");
    let step = |change: &dyn Fn(&mut AgentStep)| {
        let mut step = AgentStep::default();
        change(&mut step);
        refused(&|r| r.history = vec![step.clone()])
    };
    let expected = "`history` has 1001 bytes; at most 1000 are allowed";
    assert_eq!(step(&|s| s.observation = long(1_001)), expected);
    assert_eq!(step(&|s| s.thought = long(1_001)), expected);
    assert_eq!(step(&|s| s.arguments = [("a".to_owned(), long(1_000))].into()), expected);
    assert_eq!(step(&|s| s.subagent_results = [("a".to_owned(), long(1_000))].into()), expected);
    let planned: PlanStep = serde_json::from_value(json!({ "result": long(1_001) })).unwrap();
    assert_eq!(step(&|s| s.plan = vec![planned.clone()]), expected);
}
