//! A model that plays what its question says. The question is a small JSON tree, and so is each goal made from it, so
//! one script plays teams of any shape and depth:
//!
//! - `{"tools": 2, "answer": "…"}`: an agent that calls a tool twice and answers
//! - `{"tools": 4, "at_once": 2}`: the same with two calls in each reply
//! - `{"agents": [goal, …]}`: one that calls the tool `colleague` with each goal in turn; with `"at_once": 2`, two at a time
//! - `{"tools": 2, "unsound": true}` under `reflexion`: the same, and each call is found wanting
//! - `{"to": "agent:react", "ask": goal}` under `dispatch`: the goal goes to that agent; without them, to a tool
//! - `{"sides": ["a", "b"], "rounds": 3}` under `debate`: these sides, for so many rounds
//! - `{"fail": true}`, `{"silent": true}`: one whose model is dead, or says nothing for ever
//! - `{"team": [[goal, …], [goal, …]]}`: a supervisor with these goals in its first and second round
//! - `{"plan": [step, …], "revisions": [[step, …]]}`: a plan; a step is `{"needs": [0], "tool": true, "fail": true,
//!   "surprise": true}`, or `{"agent": goal}` for one that calls `colleague`

use crate::memory::scripted::{SILENT, Scripted};
use crate::ports::{PromptCall, ToolCall};
use serde_json::{Map, Value, json};
use trellis_domain::parts::ReplyPart;
use trellis_domain::record::Body;

/// The reply to any prompt, in calls where the question says so.
pub fn reply_or_call(call: &PromptCall) -> Result<Scripted, String> {
    let text = call.variables.get("question").and_then(Value::as_str).unwrap_or_default();
    let scene: Value = serde_json::from_str(text).unwrap_or_default();
    let done = call.variables.get("history").and_then(Value::as_array).map_or(0, Vec::len) as u64;
    let colleagues = scene["agents"].as_array().map_or(0, Vec::len) as u64;
    let all = scene["tools"].as_u64().unwrap_or(0).max(colleagues);
    let due = all.saturating_sub(done).min(scene["at_once"].as_u64().unwrap_or(0));
    if due == 0 || call.tools.is_none() {
        return reply(call).map(Scripted::from);
    }
    let part = |number: u64| {
        let goal = usize::try_from(number).ok().and_then(|number| scene["agents"].get(number));
        let function = if goal.is_some() { "colleague" } else { "search" };
        let question = goal.map_or_else(|| number.to_string(), Value::to_string);
        ReplyPart::Call {
            id: Some(format!("call-{number}")),
            function: function.to_owned(),
            arguments: json!({"thought": format!("step {number}"), "question": question}).to_string().into(),
        }
    };
    Ok(Scripted::Parts((done..done + due).map(part).collect()))
}

/// The reply to any prompt, in words.
pub fn reply(call: &PromptCall) -> Result<String, String> {
    say(&call.id, &call.variables)
}

/// The reply to a prompt with these variables.
pub fn say(prompt: &str, variables: &Map<String, Value>) -> Result<String, String> {
    let variable = |name: &str| variables.get(name).cloned().unwrap_or_default();
    let node = |text: &Value| -> Value { serde_json::from_str(text.as_str().unwrap_or_default()).unwrap_or_default() };
    let scene = node(&variable("question"));
    if scene["fail"] == true {
        return Err("the model is dead".to_owned());
    }
    if scene["silent"] == true {
        return Err(SILENT.to_owned());
    }
    let said = match prompt {
        "question" => return Ok("a fact".to_owned()),
        "text-completion" => return Ok("a completion".to_owned()),
        "agent-react" | "reflexion-act" => return Ok(react(&scene, &variable("history"))),
        "dispatch-choose" => dispatch(&scene),
        "debate-stances" => {
            json!({"stances": scene["sides"].as_array().into_iter().flatten().map(|side| json!({"stance": side})).collect::<Vec<_>>()})
        }
        "debate-moderate" => {
            let more = scene["rounds"].as_u64() > variable("round").as_u64();
            json!({"decision": if more { "again" } else { "answer" }, "reason": "as it says"})
        }
        "debate-judge" => {
            let said = synthesis("finding", &variable("statements"), &variable("missing"));
            return Ok(format!("{said}\n\n## Agreement\n\n- all\n\n## Dissent\n\n- none"));
        }
        "reflexion-critique" => json!({"sound": scene["unsound"] != true, "problem": "it is thin", "advice": "go on"}),
        "task-type-classify" => json!({"task_type": scene["task_type"], "rationale": "it says so"}),
        "pattern-select" => {
            json!({"pattern": pattern_of(&scene), "rationale": "it fits", "signals": {"urgency": "low"}})
        }
        "supervisor-decompose" => json!({"goals": goals(&scene["team"][0])}),
        "supervisor-review" => review(&scene, &variable("round")),
        "plan-create" => json!({"steps": steps(&scene["plan"])}),
        "plan-step-execute" => step(&node(&variable("goal"))),
        "plan-revise" => revision(&scene, &variable("next_index")),
        "supervisor-synthesise" => return Ok(synthesis("finding", &variable("results"), &variable("missing"))),
        "plan-synthesise" => return Ok(synthesis("step", &variable("steps"), &variable("missing"))),
        other => return Err(format!("the play has no prompt `{other}`")),
    };
    Ok(said.to_string())
}

/// A question that was accepted, for filling a store.
pub fn accepted(question: &str) -> Body {
    super::accepted(question)
}

/// The result of any tool: what it was asked, or its failure.
pub fn result(call: &ToolCall) -> Result<String, String> {
    match call.arguments.get("fail") {
        Some(Value::Bool(true)) => Err("the tool is broken".to_owned()),
        _ => Ok(format!("fact {}", call.arguments.get("question").unwrap_or(&Value::Null))),
    }
}

fn react(scene: &Value, history: &Value) -> String {
    let done = history.as_array().map_or(0, Vec::len) as u64;
    if let Some(goal) = usize::try_from(done).ok().and_then(|done| scene["agents"].get(done)) {
        let arguments = json!({"question": goal.to_string()});
        return format!("Thought: step {done}\nAction: colleague\nArgs: {arguments}");
    }
    if done < scene["tools"].as_u64().unwrap_or(0) {
        return format!("Thought: step {done}\nAction: search\nArgs: {{\"question\": \"{done}\"}}");
    }
    format!("Thought: enough\nFinal Answer: {}", scene["answer"].as_str().unwrap_or("done"))
}

fn dispatch(scene: &Value) -> Value {
    match scene["to"].as_str() {
        Some(agent) => {
            json!({"choice": agent, "arguments": {}, "question": scene["ask"].to_string(), "reason": "it fits"})
        }
        None => json!({"choice": "search", "arguments": {"question": "all"}, "question": null, "reason": "one fact"}),
    }
}

fn pattern_of(scene: &Value) -> &'static str {
    match () {
        () if scene["team"].is_array() => "supervisor",
        () if scene["plan"].is_array() => "plan-then-execute",
        () => "react",
    }
}

fn goals(round: &Value) -> Vec<Value> {
    let goal = |goal: &Value| json!({"goal": goal.to_string(), "pattern": pattern_of(goal), "context": "a part"});
    round.as_array().into_iter().flatten().map(goal).collect()
}

fn review(scene: &Value, round: &Value) -> Value {
    let next = usize::try_from(round.as_u64().unwrap_or(0)).unwrap_or(usize::MAX);
    let more = &scene["team"][next];
    if more.is_null() {
        return json!({"decision": "answer", "reason": "enough is known"});
    }
    json!({"decision": "again", "reason": "something is open", "goals": goals(more)})
}

fn steps(plan: &Value) -> Vec<Value> {
    let step = |step: &Value| json!({"goal": step.to_string(), "tool_hint": "search", "depends_on": step["needs"]});
    plan.as_array().into_iter().flatten().map(step).collect()
}

fn step(step: &Value) -> Value {
    let surprising = step["surprise"] == true;
    if step["agent"].is_object() {
        let arguments = json!({"question": step["agent"].to_string()});
        return json!({"tool": "colleague", "arguments": arguments, "surprising": surprising});
    }
    if step["tool"] == true {
        let arguments = json!({"question": step["say"], "fail": step["fail"] == true});
        return json!({"tool": "search", "arguments": arguments, "surprising": surprising});
    }
    json!({"tool": "none", "answer": format!("known {}", step["say"]), "surprising": surprising})
}

fn revision(scene: &Value, next: &Value) -> Value {
    let already = scene["plan"].as_array().map_or(0, Vec::len) as u64;
    let mut used = already;
    for steps_again in scene["revisions"].as_array().into_iter().flatten() {
        if next.as_u64() == Some(used) {
            return json!({"decision": "revise", "reason": "it failed", "steps": steps(steps_again)});
        }
        used += steps_again.as_array().map_or(0, Vec::len) as u64;
    }
    json!({"decision": "keep", "reason": "it does not matter"})
}

/// Names everything it was given, so that an answer shows what it rests on.
fn synthesis(word: &str, results: &Value, missing: &Value) -> String {
    let line = |result: &Value| {
        let text = result["result"].as_str().unwrap_or_default().replace('\n', " ");
        format!("[{word} {}] {text} (confidence: high)\n", result["index"])
    };
    let lost = |lost: &Value| format!("missing {word} {}: {}\n", lost["index"], lost["reason"].as_str().unwrap_or(""));
    let lines = results.as_array().into_iter().flatten().map(line);
    lines.chain(missing.as_array().into_iter().flatten().map(lost)).collect::<String>().trim_end().to_owned()
}
