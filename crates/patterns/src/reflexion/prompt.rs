//! The prompts of Reflexion and their variables.

use super::critique_of;
use crate::contract::PromptOrder;
use crate::react;
use crate::reader::Reader;
use crate::session::Session;
use serde_json::{Value, json};

pub(super) const ACT: &str = "reflexion-act";
pub(super) const CRITIQUE: &str = "reflexion-critique";

/// The prompt of iteration `n`: that of ReAct, with what the model thought of each step.
pub(super) fn act(session: &Session, n: u32) -> PromptOrder {
    let (mut variables, tools) = react::variables(session, n);
    let own: Vec<u32> = (1..n).filter(|i| react::step(session, *i).is_some()).collect();
    if let Some(Value::Array(history)) = variables.get_mut("history") {
        let brought = history.len().saturating_sub(own.len());
        for (step, i) in history.iter_mut().skip(brought).zip(&own) {
            let told = critique_of(session, *i).map(|critique| critique.told());
            step.as_object_mut().into_iter().for_each(|step| drop(step.insert("critique".to_owned(), json!(told))));
        }
    }
    let last = own.last().and_then(|i| critique_of(session, *i)).filter(|critique| !critique.sound);
    variables.insert("to_take_up".to_owned(), json!(last.map(|critique| critique.told())));
    let offered = vec![react::offered_tools(session)];
    PromptOrder { id: ACT, variables, schema: None, reader: Reader::plain(ACT), offered, tools: Some(tools) }
}

/// The prompt for the critique of iteration `n`.
pub(super) fn critique(session: &Session, n: u32, problem: Option<&str>) -> PromptOrder {
    let (mut variables, _) = react::variables(session, n + 1);
    let step = variables.get("history").and_then(Value::as_array).and_then(|history| history.last()).cloned();
    let own = [("step", step.unwrap_or_default()), ("problem", json!(problem))];
    variables.extend(own.map(|(name, value)| (name.to_owned(), value)));
    let text = json!({ "type": "string" });
    let schema = json!({
        "type": "object",
        "properties": { "sound": { "type": "boolean" }, "problem": text, "advice": text },
        "required": ["sound", "problem", "advice"],
        "additionalProperties": false,
    });
    let reader = Reader::plain(CRITIQUE);
    PromptOrder { id: CRITIQUE, variables, schema: Some(schema), reader, offered: Vec::new(), tools: None }
}
