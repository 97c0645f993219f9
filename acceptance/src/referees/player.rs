//! A model that makes the calls that somebody else has written down, one after the other, and then answers.

use crate::model::{MODEL, Play, Reply, Scene, ScriptedModel};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The function that ends a dialog.
const FINAL_ANSWER: &str = "final_answer";
/// The argument in which a function asks for the reason of its call.
pub(super) const THOUGHT: &str = "thought";

/// A call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    pub tool: String,
    pub arguments: Map<String, Value>,
}

/// The model, what it plays, and every request for a step that it has seen.
#[derive(Debug)]
pub struct Player {
    model: ScriptedModel,
    part: Arc<Mutex<Part>>,
}

#[derive(Debug, Default)]
struct Part {
    calls: Vec<Call>,
    answer: String,
    requests: Vec<Value>,
    others: Vec<(String, Value)>,
}

impl Player {
    pub async fn start() -> Self {
        let part = Arc::<Mutex<Part>>::default();
        let played = Arc::clone(&part);
        let play: Play = Arc::new(move |scene| {
            let mut part = played.lock();
            if scene.prompt == "agent-react" {
                return Some(part.next(scene));
            }
            part.others.push((scene.prompt.to_owned(), scene.request().clone()));
            None
        });
        Self { model: ScriptedModel::playing(play).await, part }
    }

    /// The variables that lead the program to it.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        vec![
            ("OPENAI_BASE_URL", self.model.url().to_owned()),
            ("OPENAI_API_KEY", "sk-acceptance-0123456789".to_owned()),
            ("OPENAI_MODEL", MODEL.to_owned()),
            ("TRELLIS_MODELS_ONE_CALL_ROUTING", "true".to_owned()),
        ]
    }

    /// What it makes of the next question.
    pub fn play(&self, calls: &[Call], answer: &str) {
        *self.part.lock() = Part { calls: calls.to_vec(), answer: answer.to_owned(), ..Part::default() };
    }

    /// The requests for a step since then.
    pub fn requests(&self) -> Vec<Value> {
        self.part.lock().requests.clone()
    }

    /// All others since then, with the ids of their prompts: what tools have asked.
    pub fn others(&self) -> Vec<(String, Value)> {
        self.part.lock().others.clone()
    }

    /// Waits until so many prompts have arrived, of all questions.
    pub async fn was_asked(&self, times: usize) {
        self.model.was_asked(times).await;
    }

    pub fn times_asked(&self) -> usize {
        self.model.asked().len()
    }
}

impl Part {
    /// The first call that does not stand in the conversation yet: a reply that was lost in a crash is given once more. A
    /// call that is made twice is made once, because the second is not shown if it brings the same.
    fn next(&mut self, scene: &Scene<'_>) -> Reply {
        self.requests.push(scene.request().clone());
        let made = calls_in(scene.request());
        let offered = scene.tools();
        let is_made = |call: &Call| made.contains(&written(&function_name(&call.tool), &call.arguments));
        let next = self.calls.iter().find(|call| !is_made(call));
        let (tool, mut arguments) = match next {
            Some(call) => (function_name(&call.tool), call.arguments.clone()),
            None => (FINAL_ANSWER.to_owned(), Map::from_iter([("answer".to_owned(), json!(self.answer))])),
        };
        let function = offered.iter().find(|function| function.name == tool);
        if function.is_some_and(|function| function.arguments.iter().any(|name| name == THOUGHT)) {
            arguments.entry(THOUGHT).or_insert_with(|| json!("As it is written."));
        }
        Reply::Call { tool, arguments: arguments.into() }
    }
}

/// The name under which a tool is offered as a function: vendors take few letters.
pub fn function_name(tool: &str) -> String {
    tool.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' }).collect()
}

/// The calls that a conversation shows, as text. Arguments that are null were not given.
fn calls_in(request: &Value) -> BTreeSet<String> {
    let messages = request["messages"].as_array().into_iter().flatten();
    let calls = messages.filter_map(|message| message["tool_calls"].as_array()).flatten();
    let read = |call: &Value| {
        let function = &call["function"];
        let mut arguments: Map<String, Value> = serde_json::from_str(function["arguments"].as_str()?).ok()?;
        arguments.remove(THOUGHT);
        Some(written(function["name"].as_str()?, &arguments))
    };
    calls.filter_map(read).collect()
}

fn written(tool: &str, arguments: &Map<String, Value>) -> String {
    let mut given: Vec<_> = arguments.iter().filter(|(_, value)| !value.is_null()).collect();
    given.sort_by_key(|(name, _)| *name);
    format!("{tool}{}", json!(given))
}
