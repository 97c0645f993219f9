//! The variables of the prompt `agent-react`.

use super::conversation::{citable, turns};
use super::fold::overflows;
use super::iterations::Done;
use super::{done, offered_tools};
use crate::contract::PromptOrder;
use crate::reader::Reader;
use crate::room::{Room, TextShare};
use crate::session::Session;
use crate::toolset;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use trellis_domain::config::ToolItem;
use trellis_domain::document::Document;
use trellis_domain::parts::ChatTurn;

/// The prompt of an iteration.
pub const REACT: &str = "agent-react";

/// The prompt of iteration `n`.
pub(super) fn order(session: &Session, n: u32) -> PromptOrder {
    let (variables, tools, turns) = as_conversation(session, n, REACT, &|_| None);
    let offered = vec![offered_tools(session)];
    let reader = Reader::under(REACT, citable(session, n)).with_tools(tools);
    PromptOrder { id: REACT, variables, schema: None, reader, offered, turns }
}

/// The same, with the iterations before it as turns of their own where the prompt is made for that.
pub(crate) fn as_conversation(
    session: &Session,
    n: u32,
    prompt: &str,
    after: &dyn Fn(u32) -> Option<String>,
) -> (Map<String, Value>, Vec<Arc<ToolItem>>, Vec<ChatTurn>) {
    if !is_conversation(session, prompt) {
        let room = session.room_beside_messages();
        let room = if overflows(session, n) > 0 { room.narrowed() } else { room };
        let (variables, tools) = variables(session, n, room);
        return (variables, tools, Vec::new());
    }
    let (mut variables, tools) = variables(session, 1, session.room());
    variables.insert("context".to_owned(), session.context_before_turns());
    let turns = turns(session, n, after);
    (variables, tools, turns)
}

/// Whether a prompt is rendered once, and what comes after it are turns.
pub(crate) fn is_conversation(session: &Session, prompt: &str) -> bool {
    session.settings().prompts.get(prompt).is_some_and(|prompt| prompt.conversation)
}

/// What every prompt of an iteration is told, and the tools that its reply chooses from.
pub(crate) fn variables(session: &Session, n: u32, room: Room) -> (Map<String, Value>, Vec<Arc<ToolItem>>) {
    let tools = toolset::visible(session).offered;
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let described = |tool: &&Arc<ToolItem>| json!({ "name": tool.name, "description": tool.description, "arguments": tool.arguments });
    let variables = [
        ("question", json!(session.question())),
        ("tools", tools.iter().map(described).collect()),
        ("tool_names", json!(names.join(","))),
        ("context", session.context_without_steps()),
        ("history", history(session, n, room)),
    ];
    let variables = variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    (variables, tools.into_iter().cloned().collect())
}

/// What the caller brought along, then the iterations before this one.
fn history(session: &Session, n: u32, room: Room) -> Value {
    let brought = session.accepted().map(|accepted| accepted.history.as_slice()).unwrap_or_default().iter();
    let own: Vec<_> = (1..n).flat_map(|i| done(session, i)).collect();
    let texts = brought.clone().map(|step| step.observation.as_str());
    let budget = room.shared_by(texts.chain(own.iter().map(observed)));
    let brought = brought.map(|step| {
        json!({
            "thought": step.thought,
            "action": step.action,
            "arguments": step.arguments,
            "observation": budget.shown(&step.observation),
        })
    });
    brought.chain(own.iter().map(|done| step_variables(done, budget))).collect()
}

fn observed<'d>(done: &Done<'d>) -> &'d str {
    done.observed.result.as_ref().map_or("", Document::text)
}

fn step_variables(done: &Done<'_>, budget: TextShare) -> Value {
    json!({
        "thought": done.thought,
        "action": done.action,
        "arguments": done.arguments.map_or_else(|| json!({}), |arguments| json!(arguments)),
        "observation": budget.shown(observed(done)),
    })
}
