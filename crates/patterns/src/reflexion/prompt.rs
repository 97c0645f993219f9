//! The prompts of Reflexion and their variables.

use super::critique::name_of;
use super::{Critique, critique_of};
use crate::contract::PromptOrder;
use crate::react;
use crate::reader::Reader;
use crate::session::Session;
use serde_json::{Value, json};

pub(super) const ACT: &str = "reflexion-act";
pub(super) const CRITIQUE: &str = "reflexion-critique";

/// The prompt of iteration `n`: that of ReAct, with what the model thought of each step.
pub(super) fn act(session: &Session, n: u32) -> PromptOrder {
    let told = |i: u32| critique_of(session, i).map(|critique| in_conversation(&critique));
    let (mut variables, tools, turns) = react::as_conversation(session, n, ACT, &told);
    // What was done at once is judged at once: only the last of it is followed by a critique.
    let own: Vec<_> = (1..n).flat_map(|i| judged(i, react::done(session, i).len())).collect();
    if let Some(Value::Array(history)) = variables.get_mut("history") {
        let brought = if turns.is_empty() { history.len().saturating_sub(own.len()) } else { history.len() };
        for (step, judged) in history.iter_mut().skip(brought).zip(&own) {
            let told = judged.and_then(|i| critique_of(session, i)).map(|critique| critique.in_words());
            step.as_object_mut().into_iter().for_each(|step| drop(step.insert("critique".to_owned(), json!(told))));
        }
    }
    let last = own.last().copied().flatten().and_then(|i| critique_of(session, i)).filter(|critique| !critique.sound);
    // In a conversation it was said where it belongs: what was said first stays as it was.
    let last = last.filter(|_| turns.is_empty());
    variables.insert("to_take_up".to_owned(), json!(last.map(|critique| critique.in_words())));
    let offered = vec![react::offered_tools(session)];
    let reader = Reader::under(ACT, react::citable(session, n)).with_tools(tools);
    PromptOrder { id: ACT, variables, schema: None, reader, offered, turns }
}

/// The critique of a step, as the turn that follows it.
fn in_conversation(critique: &Critique) -> String {
    let words = critique.in_words();
    if critique.sound {
        format!("Critique: {words}")
    } else {
        format!("Critique: {words} Take this up in the next step.")
    }
}

/// For each thing that iteration `n` did, the iteration if a critique follows it.
fn judged(n: u32, done: usize) -> impl Iterator<Item = Option<u32>> {
    (1..=done).map(move |it| (it == done).then_some(n))
}

/// The prompt for the critique of iteration `n`.
pub(super) fn critique(session: &Session, n: u32, problem: Option<&str>) -> PromptOrder {
    let (mut variables, _) = react::variables(session, n + 1, session.room_for(&name_of(n)));
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
    PromptOrder { id: CRITIQUE, variables, schema: Some(schema), reader, offered: Vec::new(), turns: Vec::new() }
}
