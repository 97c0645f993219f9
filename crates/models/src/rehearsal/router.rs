//! The rehearsal as a router: which task type and which pattern. It chooses only what is offered.

use super::given::Given;
use super::scenario::{Scenario, wants_steps};
use serde_json::{Value, json};

const SUPERVISOR: &str = "supervisor";
const PLAN: &str = "plan-then-execute";
pub(super) const REACT: &str = "react";

/// A choice, and the words that explain it.
struct Choice {
    name: &'static str,
    why: &'static str,
}

/// The reply to `route`: both choices, the pattern out of those that the task type allows.
pub(super) fn route(given: Given<'_>) -> Value {
    let question = given.question();
    let kind = kind_of_task(question);
    let (task_type, why) = taken(kind.name, kind.why, &given.names("task_types"), "general");
    let allowed = given.all("task_types").find(|option| option.text("name") == task_type);
    let allowed = allowed.map(|option| option.texts("patterns")).unwrap_or_default();
    let shape = shape_of(question);
    let (pattern, rationale) = taken(shape.choice.name, shape.choice.why, &allowed, REACT);
    let mut route = json!({ "task_type": task_type, "pattern": pattern });
    describe(given, &mut route);
    json!({ "route": route, "signals": signals(&shape, question), "rationale": format!("{rationale} {why}") })
}

/// The reply to `task-type-classify`.
pub(super) fn task_type(given: Given<'_>) -> Value {
    let Choice { name, why } = kind_of_task(given.question());
    let (name, rationale) = taken(name, why, &given.names("task_types"), "general");
    let mut reply = json!({ "task_type": name, "rationale": rationale });
    describe(given, &mut reply);
    reply
}

fn kind_of_task(question: &str) -> Choice {
    let lower = question.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    match Scenario::of(question) {
        Scenario::Comparison { .. }
        | Scenario::PartnerRisk { .. }
        | Scenario::Dimension { .. }
        | Scenario::Weighing { .. } => {
            Choice { name: "risk-assessment", why: "the question is about the risk of a company" }
        }
        Scenario::Trace { .. } => Choice {
            name: "research",
            why: "the question is how something came about, which has to be pieced together",
        },
        Scenario::Register { .. } | Scenario::Source { .. } | Scenario::Other => {
            if says(&["summar", "condense", "shorten"]) {
                Choice { name: "summarisation", why: "something is to be made shorter" }
            } else if says(&["risk assessment", "due diligence"]) {
                Choice { name: "risk-assessment", why: "the question asks for an assessment of risks by name" }
            } else if says(&["research", "investigat", "look into", "find out", "trace"]) {
                Choice { name: "research", why: "the question asks for an investigation" }
            } else {
                Choice { name: "general", why: "no word of the question points to a special task" }
            }
        }
    }
}

/// The reply to `pattern-select`.
pub(super) fn pattern(given: Given<'_>) -> Value {
    let question = given.question();
    let shape = shape_of(question);
    let (name, rationale) = taken(shape.choice.name, shape.choice.why, &given.names("patterns"), REACT);
    let mut reply = json!({ "pattern": name, "signals": signals(&shape, question), "rationale": rationale });
    describe(given, &mut reply);
    reply
}

/// Adds the descriptions of what was chosen, where they are asked for.
fn describe(given: Given<'_>, reply: &mut Value) {
    if given.value("by_description") != Some(&Value::Bool(true)) {
        return;
    }
    for (member, chosen, offered) in [("to_do", "task_type", "task_types"), ("how", "pattern", "patterns")] {
        let named = |option: &Given<'_>| reply[chosen] == option.text("name");
        if let Some(option) = given.all(offered).find(named) {
            reply[member] = option.text("description").into();
        }
    }
}

fn signals(shape: &Shape, question: &str) -> Value {
    let Shape { complexity, parts, .. } = shape;
    json!({ "complexity": complexity, "independent_dimensions": parts, "urgency": urgency_of(question) })
}

/// What the choice of a pattern rests on.
struct Shape {
    choice: Choice,
    complexity: &'static str,
    parts: usize,
}

fn shape_of(question: &str) -> Shape {
    let lower = question.to_lowercase();
    let shape = |name, complexity, parts, why| Shape { choice: Choice { name, why }, complexity, parts };
    match Scenario::of(question) {
        Scenario::PartnerRisk { .. } => {
            let why = "the task has four independent investigative dimensions, well-suited to parallel decomposition";
            shape(SUPERVISOR, "high", 4, why)
        }
        Scenario::Comparison { companies } => {
            let why = "the companies and the register can be looked at without each other, at the same time";
            shape(SUPERVISOR, "high", companies.len() + 1, why)
        }
        Scenario::Trace { .. } => {
            let why = "the steps can be named in advance, and the later ones build on the earlier ones";
            shape(PLAN, "medium", 2, why)
        }
        Scenario::Dimension { .. }
        | Scenario::Weighing { .. }
        | Scenario::Register { .. }
        | Scenario::Source { .. }
        | Scenario::Other => {
            let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
            if says(&["in parallel", "from several angles", "independently"]) {
                shape(SUPERVISOR, "medium", 2, "the question asks for parts that are worked on side by side")
            } else if wants_steps(question) || says(&["make a plan"]) {
                shape(PLAN, "medium", 1, "the question asks for one step after the other")
            } else {
                shape(REACT, "low", 1, "the question is one piece, and what comes next depends on what is found")
            }
        }
    }
}

fn urgency_of(question: &str) -> &'static str {
    let lower = question.to_lowercase();
    let hurried = ["urgent", "immediately", "as soon as possible"].iter().any(|words| lower.contains(words));
    if hurried { "high" } else { "normal" }
}

/// The wanted name if it is offered, else the usual one, else the first; and the words that say so.
fn taken(wanted: &'static str, why: &str, offered: &[&str], usual: &'static str) -> (String, String) {
    let name = chosen(wanted, offered, usual).unwrap_or(usual).to_owned();
    let rationale = if name == wanted {
        format!("Scripted choice: {why}.")
    } else {
        format!("Scripted choice: `{wanted}` would fit, because {why}, but it is not offered.")
    };
    (name, rationale)
}

/// One of the offered names; None if nothing is offered.
pub(super) fn chosen<'a>(wanted: &str, offered: &[&'a str], usual: &str) -> Option<&'a str> {
    let find = |name: &str| offered.iter().find(|option| **option == name);
    find(wanted).or_else(|| find(usual)).or(offered.first()).copied()
}
