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
fn findings_of_others_are_put_together_by_whoever_answers() {
    let step = json!({
        "thought": "All subagents completed", "action": "aggregate", "step_type": "synthesise",
        "observation": "{\"a\": \"1\"}", "subagent_results": {"a": "1", "b": "2"},
    });
    let joined =
        |pattern: &str| request(json!({"question": "why?", "session_id": "p", "pattern": pattern, "history": [step]}));
    for pattern in ["supervisor", ""] {
        let asked = joined(pattern);
        let Taken { request, follows, .. } = taken(asked.clone());
        assert_eq!((request.pattern.as_str(), &request.history), ("supervisor", &asked.history));
        assert_eq!(follows.as_deref(), Some("urn:trustgraph:agent:p/decompose"));
    }
    // Who else would join them is not known: they are shown as steps.
    let shown = taken(joined("debate")).request;
    assert_eq!(shown.pattern, "react");
    let observed: Vec<_> = shown.history.iter().map(|step| step.observation.as_str()).collect();
    assert_eq!(observed, ["1", "2"]);
}

#[test]
fn a_join_whose_findings_are_elsewhere_is_answered_with_what_is_there() {
    let step = json!({"action": "aggregate", "observation": "{\"correlation_id\": \"c\"}", "step_type": "synthesise"});
    let joined = request(json!({"question": "why?", "session_id": "p", "pattern": "supervisor", "history": [step]}));
    let taken = taken(joined.clone());
    assert_eq!((taken.request.pattern.as_str(), &taken.request.history), ("react", &joined.history));
}

/// A plan as the original puts it back on the queue, with the steps that it has taken.
fn planned(taken: usize) -> AgentRequest {
    let plan = |taken: usize| {
        let step = |(n, goal): (usize, &str)| {
            let (status, result) =
                if n < taken { ("completed", format!("found {n}")) } else { ("pending", String::new()) };
            json!({"goal": goal, "tool_hint": "", "depends_on": [], "status": status, "result": result})
        };
        ["find", "compare"].into_iter().enumerate().map(step).collect::<Vec<_>>()
    };
    let first = json!({
        "thought": "Created plan with 2 steps", "action": "plan", "arguments": {}, "observation": "[]",
        "step_type": "plan", "plan": plan(0),
    });
    let executed = |n: usize| {
        json!({
            "thought": "Executing plan step", "action": "search", "arguments": {"question": "x"},
            "observation": format!("found {n}"), "step_type": "execute", "plan": plan(n + 1),
        })
    };
    let history: Vec<_> = std::iter::once(first).chain((0..taken).map(executed)).collect();
    request(json!({
        "question": "why?", "session_id": "p", "pattern": "plan-then-execute", "task_type": "research",
        "framing": "Cite.", "state": "undefined", "history": history,
    }))
}

/// The same with a plan that nobody can bring into an order.
fn tangled(taken: usize) -> AgentRequest {
    let mut begun = planned(taken);
    begun.history.iter_mut().for_each(|step| step.plan[1].depends_on = vec![7]);
    begun
}

#[test]
fn a_plan_goes_on_where_it_stands() {
    for (steps, node) in [(0, "plan"), (1, "step/0"), (2, "step/1")] {
        let begun = planned(steps);
        let Taken { request, follows, .. } = taken(begun.clone());
        assert_eq!((request.pattern.as_str(), &request.history), ("plan-then-execute", &begun.history));
        assert_eq!(follows, Some(format!("urn:trustgraph:agent:p/{node}")));
        // All else is as it was.
        assert_eq!(
            (request.task_type.as_str(), request.framing.as_str(), request.state.as_str()),
            ("research", "Cite.", "undefined")
        );
    }
    let unnamed = AgentRequest { pattern: String::new(), ..planned(1) };
    assert_eq!(taken(unnamed).request.pattern, "plan-then-execute");
}

#[test]
fn no_step_is_taken_twice_of_a_plan_that_cannot_go_on_where_it_stands() {
    let left = "Steps of the plan that were not taken yet:\n- compare";
    let all = "All steps of the plan were taken.";
    for (steps, observed, node) in
        [(1, vec!["found 0", left], "step/0"), (2, vec!["found 0", "found 1", all], "step/1")]
    {
        let Taken { request, follows, .. } = taken(tangled(steps));
        assert_eq!(request.pattern, "react");
        let shown: Vec<_> = request.history.iter().map(|step| step.observation.as_str()).collect();
        assert_eq!(shown, observed);
        assert_eq!(request.history[0].arguments["goal"], "find");
        assert_eq!(follows, Some(format!("urn:trustgraph:agent:p/{node}")));
    }
    // Nor of one that another pattern has to do with.
    let other = AgentRequest { pattern: "debate".to_owned(), ..planned(1) };
    assert_eq!(taken(other).request.pattern, "react");
}

#[test]
fn a_plan_that_was_only_made_and_cannot_be_used_is_made_again() {
    let made = tangled(0);
    let Taken { request, follows, .. } = taken(made.clone());
    assert_eq!((&request.pattern, &request.history), (&made.pattern, &made.history));
    assert_eq!(follows.as_deref(), Some("urn:trustgraph:agent:p/plan"));
}

#[test]
fn what_was_done_before_a_plan_is_still_known() {
    let mut begun = tangled(1);
    begun.history.insert(0, AgentStep { observation: "known".to_owned(), ..AgentStep::default() });
    let shown: Vec<_> = taken(begun).request.history.into_iter().map(|step| step.observation).collect();
    assert_eq!(shown[..2], ["known", "found 0"]);
}

/// A subagent of somebody else that goes on still answers to whoever sent it.
#[test]
fn a_plan_of_a_subagent_ends_where_it_belongs() {
    let sent = AgentRequest {
        correlation_id: "c".to_owned(),
        parent_session_id: "parent".to_owned(),
        expected_siblings: 2,
        ..planned(1)
    };
    let taken = taken(sent.clone());
    assert_eq!(taken.subagent, Some(AgentRequest { history: Vec::new(), ..sent }));
    assert_eq!((taken.request.pattern.as_str(), taken.request.correlation_id.as_str()), ("plan-then-execute", ""));
}

#[test]
fn a_join_without_findings_goes_on_with_its_steps() {
    let step = json!({"thought": "t", "action": "aggregate", "observation": "{}", "step_type": "synthesise"});
    let joined = json!({"question": "why?", "session_id": "p", "pattern": "supervisor", "history": [step]});
    let taken = taken(request(joined));
    assert_eq!((taken.request.pattern.as_str(), taken.request.history.len()), ("supervisor", 1));
    assert_eq!(taken.follows.as_deref(), Some("urn:trustgraph:agent:p/i1/observation"));
}
