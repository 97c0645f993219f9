//! A model's mistake is an event, not an error: every prompt, every kind of wrong reply.

use crate::memory;
use serde_json::{Value, json};
use trellis_domain::config::StoredItem;
use trellis_domain::limits::SomeLimits;
use trellis_domain::{Caller, Timestamp, Workspace};
use trellis_orchestrator::contract::play;
use trellis_orchestrator::contract::runs::Bench;
use trellis_orchestrator::contract::teams::{Played, agent, question};
use trellis_orchestrator::memory::scripted::{ScriptedPrompter, ScriptedTools};
use trellis_orchestrator::ports::all_due_turns;

/// What a model may write instead of what it was asked for. None: it does not answer at all.
fn wrong_replies() -> Vec<(&'static str, Option<String>)> {
    let text = |text: &str| Some(text.to_owned());
    let many = |entry: Value| Some(json!({"steps": vec![entry.clone(); 400], "goals": vec![entry; 400]}).to_string());
    vec![
        ("nothing", text("")),
        ("white space", text(" \n\t ")),
        ("prose", text("I am sorry, but I would rather talk about the weather.")),
        ("null", text("null")),
        ("a number", text("42")),
        ("a truth value", text("true")),
        ("a text", text("\"supervisor, I think\"")),
        ("an empty list", text("[]")),
        ("an empty object", text("{}")),
        ("a list of numbers", text("[1, 2, 3]")),
        (
            "wrong types",
            text(r#"{"steps": "first", "goals": 7, "tool": [], "decision": {}, "pattern": 3, "task_type": null}"#),
        ),
        (
            "wrong members",
            text(r#"{"steps": [null, 4, {"goal": 9}], "goals": [null, {"goal": ""}], "arguments": "none"}"#),
        ),
        (
            "unknown names",
            text(
                r#"{"task_type": "magic", "pattern": "magic", "tool": "magic", "decision": "magic", "arguments": {},
            "goals": [{"goal": "g", "pattern": "magic", "group": ["magic"]}], "steps": [{"goal": "s", "tool_hint": "magic", "depends_on": [99]}]}"#,
            ),
        ),
        ("an unknown tool", text("Thought: hm\nAction: magic\nArgs: {}")),
        ("arguments that are no object", text("Thought: hm\nAction: search\nArgs: [1, 2")),
        ("a circle", text(r#"{"steps": [{"goal": "a", "depends_on": [1]}, {"goal": "b", "depends_on": [0]}]}"#)),
        ("too many", many(json!({"goal": "{\"answer\": \"x\"}", "depends_on": []}))),
        ("100 KB of text", Some("x".repeat(100 << 10))),
        ("100 KB of brackets", Some("[{\"goal\":".repeat(11_000))),
        ("deep nesting", Some("[".repeat(5_000) + &"]".repeat(5_000))),
        ("a fence without end", text("```json\n{\"steps\": [")),
        ("a dead provider", None),
    ]
}

/// The prompts, each with a scene in which it is asked.
fn prompts() -> Vec<(&'static str, Value, &'static str)> {
    let team = json!({"team": [[agent("a"), agent("b")]]});
    let plan =
        json!({"plan": [{"say": "zero", "tool": true, "fail": true}, {"say": "one"}], "revisions": [[{"say": "two"}]]});
    vec![
        ("task-type-classify", agent("a"), ""),
        ("pattern-select", agent("a"), ""),
        ("agent-react", agent("a"), "react"),
        ("plan-create", plan.clone(), "plan-then-execute"),
        ("plan-step-execute", plan.clone(), "plan-then-execute"),
        ("plan-revise", plan.clone(), "plan-then-execute"),
        ("plan-synthesise", plan, "plan-then-execute"),
        ("supervisor-decompose", team.clone(), "supervisor"),
        ("supervisor-review", team.clone(), "supervisor"),
        ("supervisor-synthesise", team, "supervisor"),
    ]
}

async fn configure(bench: &Bench) {
    let item = |kind: &str, key: &str, value: Value| StoredItem {
        kind: kind.to_owned(),
        key: key.to_owned(),
        value: value.to_string(),
    };
    let pattern = |name: &str| item("agent-pattern", name, json!({"name": name}));
    let items = vec![
        pattern("react"),
        pattern("plan-then-execute"),
        pattern("supervisor"),
        item("agent-task-type", "general", json!({"name": "general"})),
        item("agent-task-type", "research", json!({"name": "research", "valid_patterns": ["react", "supervisor"]})),
    ];
    bench.orchestrator.ports.config.put(&Workspace::default(), items, Caller::program()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn every_wrong_reply_to_every_prompt_ends_in_an_answer_or_a_clear_end() {
    for (prompt, scene, pattern) in prompts() {
        for (kind, reply) in wrong_replies() {
            let wrong = reply.clone();
            let prompter = ScriptedPrompter::new(move |call| match &wrong {
                Some(reply) if call.id == prompt => Ok(reply.clone()),
                None if call.id == prompt => Err("connection refused".to_owned()),
                Some(_) | None => play::reply(call),
            });
            let bench = Bench::with_tools(memory(), prompter, ScriptedTools::new(play::result)).await;
            configure(&bench).await;
            let limits = SomeLimits { max_iterations: Some(4), ..SomeLimits::default() };
            let run = bench.request(1, question(&scene, pattern), limits).await;
            bench.finish(std::slice::from_ref(&run), 1).await;
            let played = Played::of(&bench, run).await;
            played.keeps_the_promises();
            let end = played.end();
            let says_something =
                !played.answer().is_empty() || end.error.as_ref().is_some_and(|error| !error.is_empty());
            assert!(says_something, "{prompt} answered with {kind}: {end:?}");
            assert!(end.reason.is_answer() || end.error.is_some(), "{prompt} answered with {kind}: {end:?}");
            let later = Timestamp::from_micros(i64::MAX);
            let open = all_due_turns(&*bench.orchestrator.ports.journal, later).await.unwrap();
            assert!(open.is_empty(), "{prompt} answered with {kind} leaves {open:?}");
        }
    }
}
