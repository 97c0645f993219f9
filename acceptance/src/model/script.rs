//! What the scripted model says. It is a pure function of the request.
//!
//! The words of a question direct the play: one that speaks of a team is given to a supervisor, one that speaks of a
//! plan is planned, one with a critique, one to pass on or to debate gets the pattern for it, everything else is worked on
//! step by step. A tool whose name stands in the question is used;
//! `refuse` in it makes the server answer with an error, one that wants to be kept waiting is, and one that speaks of
//! losing the line loses it once.

use super::seen::{Scene, Tool};
use serde_json::{Map, Value, json};

/// A question with these words is not answered for a long time.
pub(crate) const SILENCE: &str = "keep me waiting";

/// The answer to a question with these words breaks off the first time.
pub(crate) const BREAK: &str = "lose the line";

/// The tool that is used when the question names none.
const USUAL_TOOL: &str = "search-notes";
/// The function that ends a dialog, where tools are functions.
const FINAL_ANSWER: &str = "final_answer";
/// The argument in which a function asks for the reason of its call.
const THOUGHT: &str = "thought";

/// What the model says.
#[derive(Debug)]
pub(crate) enum Reply {
    Text(String),
    Call { tool: String, arguments: Value },
}

/// None if the question asks to be refused.
pub(crate) fn reply(scene: &Scene<'_>) -> Option<Reply> {
    let question = scene.question();
    if question.contains("refuse") {
        return None;
    }
    let json = |value: Value| Reply::Text(value.to_string());
    Some(match scene.prompt {
        "probe" if scene.schema().is_some() => json(json!({ "colour": "red" })),
        "route" => json(json!({
            "rationale": "The script takes the general one.",
            "signals": pattern(question)["signals"],
            "route": {
                "to_do": "do or decide something else", "task_type": "general",
                "how": pattern(question)["how"], "pattern": pattern(question)["pattern"],
            },
        })),
        "task-type-classify" => json(json!({
            "to_do": "do or decide something else", "task_type": "general",
            "rationale": "The script takes the general one.",
        })),
        "pattern-select" => json(pattern(question)),
        "agent-react" | "reflexion-act" => step(scene),
        "reflexion-critique" => json(json!({ "sound": true, "problem": "", "advice": "The script says: answer now." })),
        "dispatch-choose" => json(json!({
            "choice": USUAL_TOOL, "arguments": { "query": question }, "question": null, "reason": "The notes have it.",
        })),
        "debate-stances" => json(json!({ "stances": [
            { "stance": "yes", "brief": "Says yes." }, { "stance": "no", "brief": "Says no." },
        ] })),
        "schema-selection" => json(json!(["cities"])),
        "graphql-generation" => json(json!({
            "query": "{ cities(where: {people: {gt: 1000000}}) { name people } }", "confidence": 0.9,
        })),
        "diagnose-structured-data" => {
            let mapping = |name: &str| json!({ "source_field": name, "target_field": name, "transforms": [] });
            json(json!({
                "format": { "type": "csv", "encoding": "utf-8", "options": { "delimiter": ",", "has_header": true } },
                "mappings": [mapping("id"), mapping("name"), mapping("people")],
                "output": { "schema_name": "cities", "options": { "confidence": 0.9 } },
            }))
        }
        "debate-moderate" => json(json!({ "decision": "answer", "reason": "Both have answered." })),
        // The names of a question are its words with a large letter.
        "extract-concepts" => {
            let words = question.split_whitespace().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
            let names = words.skip(1).filter(|word| word.starts_with(char::is_uppercase));
            Reply::Text(names.collect::<Vec<_>>().join("\n"))
        }
        "kg-edge-scoring" => {
            json(json!({ "edges": [{ "id": "e1", "score": 9, "reason": "The script takes the first." }] }))
        }
        "debate-judge" => Reply::Text(format!(
            "The judge answers \"{question}\" [finding 2].\n\n## Agreement\n\n- Ada lived.\n\n## Dissent\n\n- How long.\n\n\
             ## Confidence\n\n- [finding 2] confidence: high (scripted)"
        )),
        "plan-create" => json(json!({ "steps": [
            { "goal": format!("Search the notes for: {question}"), "tool_hint": USUAL_TOOL, "depends_on": [] },
            { "goal": "Weigh what the notes say", "tool_hint": "", "depends_on": [0] },
        ] })),
        "plan-step-execute" => json(plan_step(scene)),
        "plan-revise" => json(json!({ "decision": "keep", "reason": "The script keeps plans.", "steps": [] })),
        "supervisor-decompose" => {
            json(json!({ "goals": [goal("the first half", question), goal("the second half", question)] }))
        }
        "supervisor-review" => json(json!({ "decision": "answer", "reason": "Both halves are there.", "goals": [] })),
        "plan-synthesise" => Reply::Text(format!("The plan answers \"{question}\" [step 0], weighed [step 1].")),
        "supervisor-synthesise" => Reply::Text(format!(
            "Both halves answer \"{question}\" [finding 0] [finding 1].\n\n## Confidence\n\n\
             - [finding 0] confidence: high (scripted)\n- [finding 1] confidence: medium (scripted)"
        )),
        _ => match scene.schema() {
            Some(schema) => json(smallest(schema)),
            None => Reply::Text(format!("Scripted reply to: {}", scene.text.trim())),
        },
    })
}

fn pattern(question: &str) -> Value {
    // The stock client names only three patterns: the router has to find the others.
    let own = [("critique", "reflexion"), ("pass on", "dispatch"), ("debate", "debate")];
    let own = own.into_iter().find(|(word, _)| question.contains(word));
    let (name, parts) = if let Some((_, name)) = own {
        (name, 1)
    } else if question.contains("team") {
        ("supervisor", 2)
    } else if question.contains("plan") {
        ("plan-then-execute", 1)
    } else {
        ("react", 1)
    };
    let signals = json!({ "complexity": "low", "independent_dimensions": parts, "urgency": "normal" });
    // As the configuration that every workspace begins with describes it.
    let how = match name {
        "supervisor" => "work on several separate parts at the same time",
        "plan-then-execute" => "do steps in a known order, each with the result of the one before",
        "reflexion" => "check every step critically because mistakes are costly",
        "dispatch" => "hand it over to one tool or person",
        "debate" => "weigh arguments for and against",
        _ => "look around and decide on the way what comes next",
    };
    json!({ "how": how, "pattern": name, "signals": signals, "rationale": format!("The words of the question lead to {name}.") })
}

fn goal(part: &str, question: &str) -> Value {
    // The word that would split the goal again is left out.
    let question = question.replace("team", "group");
    json!({ "goal": format!("Find {part} of: {question}"), "pattern": "react", "group": null, "context": "scripted" })
}

/// A tool once, then the answer: as calls where tools are functions, else in words.
fn step(scene: &Scene<'_>) -> Reply {
    let question = scene.question();
    if let Some(tool) = chosen(scene).filter(|_| !scene.has_observation()) {
        let thought = format!("I look it up with {} first.", tool.name);
        if scene.calls_functions() {
            return tool.call(&thought, question);
        }
        let arguments = tool.filled(question);
        return Reply::Text(format!("Thought: {thought}\nAction: {}\nArgs: {arguments}", tool.name));
    }
    let (thought, answer) = ("What I saw is enough.", format!("The script answers: {question}"));
    let end = scene.tools().into_iter().find(|tool| tool.name == FINAL_ANSWER);
    end.map_or_else(
        || Reply::Text(format!("Thought: {thought}\nFinal Answer: {answer}")),
        |function| function.call(thought, &answer),
    )
}

impl Tool {
    /// A call of the function; it may ask for a thought besides.
    fn call(&self, thought: &str, words: &str) -> Reply {
        let mut arguments = self.filled(words);
        if let Some(member) = arguments.get_mut(THOUGHT) {
            *member = json!(thought);
        }
        Reply::Call { tool: self.name.clone(), arguments }
    }
}

/// The offered tool that the question names, else the usual one.
fn chosen(scene: &Scene<'_>) -> Option<Tool> {
    let offered = scene.tools();
    let named = offered.iter().find(|tool| scene.question().contains(&tool.name));
    named.or_else(|| offered.iter().find(|tool| tool.name == USUAL_TOOL)).cloned()
}

fn plan_step(scene: &Scene<'_>) -> Value {
    let tool = chosen(scene).filter(|_| scene.goal().starts_with("Search"));
    match tool {
        Some(tool) => {
            let arguments = tool.filled(scene.goal());
            json!({ "tool": tool.name, "arguments": arguments, "answer": null, "surprising": false })
        }
        None => {
            json!({ "tool": "none", "arguments": {}, "answer": "The notes of step 0 suffice.", "surprising": false })
        }
    }
}

/// The smallest value that a schema allows, as far as schemas of prompts go.
fn smallest(schema: &Value) -> Value {
    if let Some(first) = schema["enum"].as_array().and_then(|options| options.first()) {
        return first.clone();
    }
    match schema["type"].as_str() {
        Some("object") => {
            let members = schema["properties"].as_object().into_iter().flatten();
            members.map(|(name, member)| (name.clone(), smallest(member))).collect::<Map<_, _>>().into()
        }
        Some("array") => json!([smallest(&schema["items"])]),
        Some("integer" | "number") => json!(1),
        Some("boolean") => json!(true),
        _ => json!("scripted"),
    }
}
