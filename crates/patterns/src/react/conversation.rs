//! The iterations so far as turns of a conversation: what the model replied, and what came of it.
//!
//! A reply becomes the calls that were read from it, whichever way it was written: a model is shown its earlier steps in
//! the form in which it is asked for the next one. The turns of an iteration change only when a long conversation is
//! shortened (see `fold.rs`), so that providers can reuse what they have computed for them.

use super::fold::{Fold, excerpt, excerpts};
use super::functions::{Does, Functions, simplified};
use super::iterations::{Past, done};
use super::names::observation_of;
use super::progress::Progress;
use crate::session::Session;
use crate::text::cut;
use serde_json::{Map, Value};
use std::cell::LazyCell;
use std::sync::Arc;
use trellis_domain::config::ToolItem;
use trellis_domain::document::Document;
use trellis_domain::parts::{ChatTurn, ReplyPart};
use trellis_domain::record::{Incomplete, Name, Observed, Reading, Replied};

/// So much of a reply that could not be read is shown again.
const SHOWN_OF_UNREADABLE: usize = 2_000;
/// So much of one that only repeated itself: more would invite the model to go on.
const SHOWN_OF_REPETITION: usize = 200;

/// What was said before iteration `n`. What comes `after` an iteration and before the next is the pattern's.
pub(crate) fn turns(session: &Session, n: u32, after: &dyn Fn(u32) -> Option<String>) -> Vec<ChatTurn> {
    let past = Past::before(session, n);
    let is_told = session.has(&Name::told(1));
    let told = |i: u32| is_told.then(|| messages_after(session, &past, i, n)).flatten();
    let progress = Progress::of(session, &past);
    let fold = Fold::of(session, &past, after, &told, &progress);
    let functions = LazyCell::new(|| {
        let all: Vec<_> = session.settings().tools.values().cloned().collect();
        Functions::of(&all)
    });
    let mut turns: Vec<_> = fold.list(session).map(|list| ChatTurn::User { text: list.into() }).into_iter().collect();
    // What a person said is shown, whatever becomes of the step that it came after.
    let unshown = fold.shown_before(n).next().map_or(n, |(first, _)| first);
    (0..unshown).filter_map(told).for_each(|message| add_words(&mut turns, &message));
    for (i, whole) in fold.shown_before(n) {
        let is_left_out = past.get(i).is_none_or(|(replied, _)| replied.was_too_long());
        let note = if is_left_out { None } else { progress.note(session, i) };
        if is_left_out || note.is_some() {
            note.into_iter().chain(told(i)).for_each(|words| add_words(&mut turns, &words));
            continue;
        }
        let Some((replied, done)) = past.get(i) else { continue };
        let said = said(replied, &functions);
        let said = if whole { said } else { excerpts(said) };
        let calls: Vec<_> = said.iter().filter_map(as_call).collect();
        let results: Vec<_> = done
            .iter()
            .enumerate()
            .map(|(place, done)| {
                let text = done.observed.result.as_ref().map_or("", Document::text);
                let text = if whole { cut(text, fold.shown) } else { excerpt(text, i, fold.shown) };
                let text = if has_number(session, done.observed) { marked(session, i, &text) } else { text };
                match calls.get(place) {
                    Some((id, function)) => ChatTurn::ToolResult {
                        call: id.clone(),
                        function: function.clone(),
                        text: text.into(),
                        is_error: done.observed.error.is_some(),
                    },
                    None => ChatTurn::User { text: text.into() },
                }
            })
            .collect();
        turns.push(ChatTurn::Assistant { parts: said });
        turns.extend(results);
        after(i).into_iter().chain(told(i)).for_each(|words| add_words(&mut turns, &words));
    }
    turns
}

/// What a person said after iteration `i`: whatever the next one was the first to hear. Before the first iteration, `i` is 0.
pub(super) fn messages_after(session: &Session, past: &Past<'_>, i: u32, n: u32) -> Option<String> {
    let heard = |i: u32| past.get(i).map_or(0, |(replied, _)| replied.heard);
    let until = if i + 1 == n { u32::MAX } else { heard(i + 1) };
    session.messages(heard(i), until)
}

/// The iterations before `n` whose results an answer can cite.
pub(crate) fn citable(session: &Session, n: u32) -> Vec<u32> {
    let is_first_made = |i: u32| observation_of(session, i, 1).is_some_and(|it| has_number(session, it));
    let is_any_made = |i: u32| done(session, i).iter().any(|done| has_number(session, done.observed));
    (1..n).filter(|i| is_first_made(*i) || is_any_made(*i)).collect()
}

/// An observation as material, with the number by which answers cite it. Nothing in it can close its mark.
fn marked(session: &Session, i: u32, text: &str) -> String {
    match session.mark() {
        Some(mark) => format!("[{i}] <result-{mark}>\n{text}\n</result-{mark}>"),
        None => format!("[{i}] {text}"),
    }
}

/// What only the model was told is nothing to cite.
fn has_number(session: &Session, observed: &Observed) -> bool {
    session.revision() > 1 && observed.idempotency_key.is_some()
}

/// Adds what the user's side says besides. Some providers take nothing from a user between a result and a reply.
fn add_words(turns: &mut Vec<ChatTurn>, words: &str) {
    match turns.last_mut() {
        Some(ChatTurn::ToolResult { text, .. } | ChatTurn::User { text }) => {
            *text = format!("{}\n\n{words}", text.text()).into();
        }
        Some(ChatTurn::Assistant { .. }) | None => turns.push(ChatTurn::User { text: words.into() }),
    }
}

fn as_call(part: &ReplyPart) -> Option<(Option<String>, String)> {
    match part {
        ReplyPart::Call { id, function, .. } => Some((id.clone(), function.clone())),
        ReplyPart::Thought { .. } | ReplyPart::Text { .. } | ReplyPart::Refusal { .. } => None,
    }
}

/// What a reply said, with the calls that were read from it as calls.
fn said<F: FnOnce() -> Functions>(replied: &Replied, functions: &LazyCell<Functions, F>) -> Vec<ReplyPart> {
    let made = replied.reading.calls().count();
    let written = replied.parts.iter().filter_map(as_call).count();
    if made > 0 && written == made {
        return replied.parts.iter().map(sendable).collect();
    }
    if made == 0 {
        return vec![ReplyPart::Text { text: unreadable(replied).into() }];
    }
    let thought = replied.thought.as_ref().map_or("", Document::text);
    let call = |(place, (tool, arguments)): (usize, (&trellis_domain::ToolName, &Map<String, Value>))| {
        let function = functions.of_tool(tool);
        let mut members = Map::new();
        if place == 0 && !thought.is_empty() {
            members.insert(function.map_or("thought", |function| &*function.thought).to_owned(), thought.into());
        }
        members.extend(arguments.clone());
        let name = function.map_or_else(|| simplified(tool), |function| function.name.clone());
        ReplyPart::Call { id: None, function: name, arguments: Value::Object(members).to_string().into() }
    };
    replied.reading.calls().enumerate().map(call).collect()
}

/// A part as every provider takes it back: models invent names that no function can have.
fn sendable(part: &ReplyPart) -> ReplyPart {
    match part {
        ReplyPart::Call { id, function, arguments } => {
            let arguments = if arguments.text().trim().is_empty() { "{}".into() } else { arguments.clone() };
            ReplyPart::Call { id: id.clone(), function: simplified(function), arguments }
        }
        ReplyPart::Thought { .. } | ReplyPart::Text { .. } | ReplyPart::Refusal { .. } => part.clone(),
    }
}

/// A reply that could not be read, as the model is shown it again: it is to see what was wrong, and not to read a book.
fn unreadable(replied: &Replied) -> String {
    let broken = |part: &ReplyPart| match part {
        ReplyPart::Call { function, arguments, .. } => Some(format!("{function}({})", arguments.text())),
        ReplyPart::Thought { .. } | ReplyPart::Text { .. } | ReplyPart::Refusal { .. } => None,
    };
    let said = replied.reply().text().trim().to_owned();
    let calls = replied.parts.iter().filter_map(broken);
    let said = Some(said).filter(|said| !said.is_empty()).into_iter().chain(calls).collect::<Vec<_>>().join("\n");
    let repeats = replied.incomplete == Some(Incomplete::Repeats);
    match &replied.reading {
        Reading::Unusable { .. } if said.is_empty() => "(an empty reply)".to_owned(),
        Reading::Unusable { .. } if repeats => cut(&said, SHOWN_OF_REPETITION),
        Reading::Unusable { .. } => cut(&said, SHOWN_OF_UNREADABLE),
        Reading::Acted { .. } | Reading::Answered { .. } | Reading::Decided { .. } | Reading::Failed { .. } => said,
    }
}

/// The same conversation in the text grammar, for a model that is offered no functions. Of several calls, each has a
/// turn of its own; what follows from the same side is one turn, because some models insist on taking turns.
pub fn in_words(turns: &[ChatTurn], tools: &[Arc<ToolItem>]) -> Vec<ChatTurn> {
    if turns.is_empty() {
        return Vec::new();
    }
    let functions = Functions::of(tools);
    let mut written: Vec<(Side, String)> = Vec::new();
    let mut calls = Vec::new().into_iter();
    for turn in turns {
        match turn {
            ChatTurn::User { text } => add(&mut written, Side::User, text.text()),
            ChatTurn::Assistant { parts } => {
                let (texts, made) = split(parts, &functions);
                calls = made.into_iter();
                match calls.next() {
                    Some(first) => add(&mut written, Side::Model, &with_thought(&texts, &first)),
                    None => add(&mut written, Side::Model, &texts),
                }
            }
            ChatTurn::ToolResult { text, .. } => {
                add(&mut written, Side::User, &format!("Observation: {}", text.text()));
                if let Some(next) = calls.next() {
                    add(&mut written, Side::Model, &next);
                }
            }
        }
    }
    let turn = |(side, text): (Side, String)| match side {
        Side::User => ChatTurn::User { text: text.into() },
        Side::Model => ChatTurn::Assistant { parts: vec![ReplyPart::Text { text: text.into() }] },
    };
    written.into_iter().map(turn).collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    User,
    Model,
}

fn add(written: &mut Vec<(Side, String)>, side: Side, text: &str) {
    match written.last_mut() {
        Some((last, before)) if *last == side => before.extend(["\n\n", text]),
        Some(_) | None => written.push((side, text.to_owned())),
    }
}

/// What was said in words, and each call in the grammar.
fn split(parts: &[ReplyPart], functions: &Functions) -> (String, Vec<String>) {
    let (mut texts, mut calls) = (Vec::new(), Vec::new());
    for part in parts {
        match part {
            ReplyPart::Text { text } | ReplyPart::Refusal { text } => texts.push(text.text()),
            ReplyPart::Call { function, arguments, .. } => {
                calls.push(call_in_words(function, arguments.text(), functions));
            }
            ReplyPart::Thought { .. } => {}
        }
    }
    (texts.concat().trim().to_owned(), calls)
}

/// Words beside a call are its thought.
fn with_thought(texts: &str, call: &str) -> String {
    if texts.is_empty() || call.starts_with("Thought:") {
        return call.to_owned();
    }
    let line: Vec<_> = texts.split_whitespace().collect();
    format!("Thought: {}\n{call}", line.join(" "))
}

fn call_in_words(function: &str, arguments: &str, functions: &Functions) -> String {
    let known = functions.meant(function);
    let tool = match known.map(|function| &function.does) {
        Some(Does::Call(tool)) => tool.name.as_str(),
        Some(Does::Answer) | None => function,
    };
    let Ok(mut members) = serde_json::from_str::<Map<String, Value>>(arguments) else {
        return format!("Action: {tool}\nArgs: {arguments}");
    };
    let thought = members.shift_remove(known.map_or("thought", |function| &function.thought));
    let arguments = Value::Object(members);
    match thought.as_ref().and_then(Value::as_str) {
        Some(thought) => format!("Thought: {thought}\nAction: {tool}\nArgs: {arguments}"),
        None => format!("Action: {tool}\nArgs: {arguments}"),
    }
}

#[cfg(test)]
#[path = "conversation_tests.rs"]
mod tests;
