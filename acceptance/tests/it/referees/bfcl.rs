//! The Berkeley Function Calling Leaderboard: its functions as tools, its calls as calls of a model, also with mistakes in
//! them. How calls are read out of text is tested in `crates/patterns`.

use acceptance::referees::{Call, Listed, ListedTool, all_is_wanted, function_name, lines};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Every so many functions are in the sample.
const SAMPLE_EVERY: usize = 80;
/// So many tools are offered at once, and so many calls made in one run.
const TOOLS_AT_ONCE: usize = 40;
const CALLS_AT_ONCE: usize = 40;
/// So many questions that no function helps with.
const QUESTIONS: usize = 5;
const QUESTIONS_OF_ALL: usize = 100;

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn tool(function: &Value, schema: &str) -> ListedTool {
    ListedTool {
        name: text(&function["name"]),
        description: text(&function["description"]),
        schema: function[schema].clone(),
        answer: None,
    }
}

/// All functions, or a sample of them.
fn functions() -> Vec<Value> {
    let every = if all_is_wanted() { 1 } else { SAMPLE_EVERY };
    lines("functions.jsonl").into_iter().step_by(every).collect()
}

/// The tools of a folder, with why they cannot be called if they cannot.
async fn listed(tools: &[ListedTool]) -> BTreeMap<String, Option<String>> {
    let folder = Listed::open(tools).await;
    let told = folder.trellis(&["tools", "list", "--output", "json"]).await.ok().json();
    let told = told["tools"].as_array().cloned().unwrap_or_default();
    let on_servers = told.iter().filter(|tool| tool["type"] == "mcp-tool");
    on_servers.map(|tool| (text(&tool["name"]), tool["why_not"].as_str().map(str::to_owned))).collect()
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn functions_are_tools_or_it_is_said_why_not() {
    let functions = functions();
    let tools: Vec<_> = functions.iter().map(|function| tool(function, "schema")).collect();
    let taken = listed(&tools).await;
    assert_eq!(taken.len(), functions.len());
    assert_eq!(taken.iter().find(|(_, why_not)| why_not.is_some()), None, "all of these are JSON Schema");
    // As they are written there, some schemas are none.
    let tools: Vec<_> = functions.iter().map(|function| tool(function, "original")).collect();
    let taken = listed(&tools).await;
    assert_eq!(taken.len(), functions.len());
    for function in &functions {
        let Some(why_not) = &taken[function["name"].as_str().unwrap()] else { continue };
        let arguments = function["original"]["properties"].as_object().unwrap();
        let is_named =
            arguments.keys().any(|name| why_not.contains(&format!("the argument `{name}` cannot be used: ")));
        assert!(is_named && function["original_valid"] == false, "{function}: {why_not}");
    }
    println!("{} functions, {} of them refused as written", taken.len(), taken.values().flatten().count());
}

/// The calls of some functions, as somebody else judged them: whether they are right, and which argument is not.
struct Judged {
    call: Call,
    is_right: bool,
    names: Option<String>,
}

fn judged(call: &Value) -> Judged {
    let arguments = call["arguments"].as_object().cloned().unwrap_or_default();
    let call_made = Call { tool: text(&call["function"]), arguments };
    Judged { call: call_made, is_right: call["right"] == true, names: call["names"].as_str().map(str::to_owned) }
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn right_calls_are_made_and_wrong_ones_are_refused_by_the_name_of_what_is_wrong() {
    let mut calls: BTreeMap<String, Vec<Judged>> = BTreeMap::new();
    for call in lines("calls.jsonl").iter().map(judged) {
        calls.entry(call.call.tool.clone()).or_default().push(call);
    }
    let called = lines("functions.jsonl").into_iter().filter(|one| calls.contains_key(&text(&one["name"])));
    let every = if all_is_wanted() { 1 } else { SAMPLE_EVERY };
    let called: Vec<_> = called.step_by(every).collect();
    let (mut right, mut wrong) = (0, 0);
    for functions in called.chunks(TOOLS_AT_ONCE) {
        let tools: Vec<_> = functions.iter().map(|function| tool(function, "schema")).collect();
        let folder = Listed::open(&tools).await;
        let all: Vec<_> = tools.iter().flat_map(|tool| &calls[&tool.name]).collect();
        for some in all.chunks(CALLS_AT_ONCE) {
            let made: Vec<_> = some.iter().map(|one| one.call.clone()).collect();
            let results = folder.play("Do what is asked for.", &made, "It is done.").await.results;
            for one in some {
                let name = function_name(&one.call.tool);
                let result = results.iter().find(|(call, _)| call.tool == name && call.arguments == one.call.arguments);
                let (_, shown) = result.unwrap_or_else(|| panic!("{:?} was not made", one.call));
                let is_made = shown.contains(&format!("made: {}", one.call.tool));
                match &one.names {
                    Some(argument) => {
                        let is_refused = !is_made && shown.contains(&format!("`{argument}`"));
                        assert!(is_refused, "{:?} has a wrong `{argument}`: {shown}", one.call);
                        wrong += 1;
                    }
                    // What is neither right nor known to be wrong is the benchmark's own mistake.
                    None if one.is_right => {
                        assert!(is_made, "{:?} is right: {shown}", one.call);
                        right += 1;
                    }
                    None => {}
                }
            }
        }
    }
    println!("{right} right calls were made, {wrong} wrong ones refused");
    assert!(right > 0 && wrong > 0);
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn a_question_that_no_function_helps_with_is_answered_without_any() {
    let questions = lines("irrelevant.jsonl");
    let wanted = if all_is_wanted() { QUESTIONS_OF_ALL } else { QUESTIONS };
    let questions: Vec<_> = questions.iter().step_by(questions.len() / wanted).take(wanted).collect();
    let names = |question: &Value| question["offered"].as_array().cloned().unwrap_or_default();
    let offered: BTreeSet<_> = questions.iter().flat_map(|question| names(question)).map(|name| text(&name)).collect();
    let functions = lines("functions.jsonl");
    let functions = functions.iter().filter(|function| offered.contains(function["name"].as_str().unwrap()));
    let folder = Listed::open(&functions.map(|function| tool(function, "schema")).collect::<Vec<_>>()).await;
    for question in questions {
        let played = folder.play(&text(&question["question"]), &[], "No tool helps with that.").await;
        assert!(played.results.is_empty() && played.requests.len() == 1, "{question}: {played:?}");
        let shown = folder.trellis(&["run", "show", "last", "--output", "json"]).await.ok().json();
        assert_eq!(shown["usage"]["tool_calls"], 0, "{question}: {shown}");
    }
}
