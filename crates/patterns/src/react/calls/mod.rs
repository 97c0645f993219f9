//! Reads the reply of a model that was offered functions, at once or while it arrives.
//!
//! What it calls is decoded here and nowhere else: the name of a function back to its tool, the member that holds the
//! thought, the function that takes the answer. No call passes through the text grammar.

mod arguments;

use super::functions::{self, Does, Function, Functions};
use super::parser::{self, Channel, Fragment, ShownText};
use super::written;
use arguments::{Arguments, Part};
use serde_json::{Map, Value};
use std::sync::Arc;
use trellis_domain::config::ToolItem;
use trellis_domain::parts::CallPiece;
use trellis_domain::reading::{ToolUse, left_out_note};
use trellis_domain::reply::ReactReply;
use trellis_domain::{ToolName, counted};

/// So many calls of one reply are made at most.
const MOST_CALLS: usize = 8;
/// What a line of the text grammar begins with.
const KEYWORDS: [&str; 4] = ["Thought:", "Action:", "Args:", "Final Answer:"];

const NO_NAME: &str = "a function was called without a name; call one of those that you were given";
const CALL_IN_TEXT: &str =
    "a call stands in the text, and more after it; call the function itself, or call final_answer";
const NO_ANSWER: &str = "final_answer was called without an answer; call it with the complete answer";

/// Reads a reply in calls: thought and answer are shown at once, an action is there when it is whole.
#[derive(Debug)]
pub struct CallReader {
    functions: Functions,
    /// Calls in texts count, too.
    finds_calls: bool,
    /// What was said without a call. It is a thought if a call follows, else it is the answer.
    words: String,
    calls: Vec<Call>,
    thought: ShownText,
    answer: ShownText,
    /// The answer, as long as a thought may still come before it.
    early_answer: String,
}

#[derive(Debug)]
struct Call {
    place: u64,
    id: Option<String>,
    name: String,
    does: Option<Does>,
    arguments: Arguments,
}

impl CallReader {
    pub fn new(tools: &[Arc<ToolItem>], finds_calls: bool) -> Self {
        Self {
            functions: Functions::of(tools),
            finds_calls,
            words: String::new(),
            calls: Vec::new(),
            thought: ShownText::default(),
            answer: ShownText::default(),
            early_answer: String::new(),
        }
    }

    /// Words outside of any call. Behind one they are neither thought nor answer.
    pub fn words(&mut self, text: &str) {
        if self.calls.is_empty() {
            self.words.push_str(text);
        }
    }

    /// A piece of a call. Gives what may be shown now.
    pub fn call(&mut self, piece: &CallPiece) -> Vec<Fragment> {
        let known = self.calls.iter().position(|call| piece.belongs_to(call.place, call.id.as_deref()));
        let place = match known {
            Some(place) => place,
            None if piece.function.is_none() && piece.arguments.is_empty() => return Vec::new(),
            None => self.begin(piece),
        };
        let call = &mut self.calls[place];
        let is_first = place == 0;
        let (thought, answer, early) = (&mut self.thought, &mut self.answer, &mut self.early_answer);
        call.arguments.push(&piece.arguments, &mut |part, c| match part {
            // Once the answer has begun, no thought is shown any more.
            Part::Thought if answer.is_empty() => think(thought, c),
            Part::Answer if is_first && !thought.is_empty() => answer.push(c),
            Part::Answer if is_first => early.push(c),
            Part::Thought | Part::Answer | Part::Argument => {}
        });
        self.fragments()
    }

    fn begin(&mut self, piece: &CallPiece) -> usize {
        let words = std::mem::take(&mut self.words);
        words.trim().chars().for_each(|c| think(&mut self.thought, c));
        // Its thought is another sentence.
        self.thought.end_line();
        let name = piece.function.clone().unwrap_or_default();
        let function = self.functions.meant(&name);
        let thought = function.map_or("thought", |function| &*function.thought);
        let does = function.map(|function: &Function| function.does.clone());
        let arguments = Arguments::new(thought, does == Some(Does::Answer));
        self.calls.push(Call { place: piece.place, id: piece.id.clone(), name, does, arguments });
        self.calls.len() - 1
    }

    fn fragments(&mut self) -> Vec<Fragment> {
        let thought = self.thought.fragment(Channel::Thought);
        let answer = self.answer.fragment(Channel::Answer);
        thought.into_iter().chain(answer).collect()
    }

    /// The reply is complete: the rest of what may be shown, what the reply says, and what is noted about it.
    pub fn finish(mut self) -> (Vec<Fragment>, ReactReply, Vec<String>) {
        if self.calls.is_empty() {
            return self.finish_words();
        }
        for c in std::mem::take(&mut self.early_answer).chars() {
            self.answer.push(c);
        }
        let fragments = self.fragments();
        let (reply, notes) = self.decide();
        (fragments, reply, notes)
    }

    /// Some models write the text grammar all the same. Whatever else is said without a call is the answer.
    fn finish_words(mut self) -> (Vec<Fragment>, ReactReply, Vec<String>) {
        let starts = |line: &str| KEYWORDS.iter().any(|keyword| line.trim_start().starts_with(keyword));
        let words = std::mem::take(&mut self.words);
        if words.trim().is_empty() || words.lines().any(starts) {
            let mut grammar = parser::ReplyParser::new();
            let mut fragments = grammar.push(&words);
            let (rest, reply) = grammar.finish();
            fragments.extend(rest);
            return (fragments, reply, Vec::new());
        }
        let found = self.finds_calls.then(|| written::find(&words, &self.functions)).flatten();
        let quotes = found.as_ref().is_some_and(|found| found.stands_alone && !found.is_meant);
        let found = found.filter(|found| found.is_meant);
        if let Some((reply, thought, notes)) = found.and_then(|found| call_written(found, &self.functions, "")) {
            let mut fragments: Vec<_> =
                thought.into_iter().map(|text| Fragment { channel: Channel::Thought, text }).collect();
            if let ReactReply::Answer { answer, .. } = &reply {
                fragments.push(Fragment { channel: Channel::Answer, text: answer.clone() });
            }
            return (fragments, reply, notes);
        }
        if quotes {
            let thought = String::new();
            return (Vec::new(), ReactReply::Unreadable { thought, reason: CALL_IN_TEXT.to_owned() }, Vec::new());
        }
        words.chars().for_each(|c| self.answer.push(c));
        let fragments = self.fragments();
        (fragments, ReactReply::Answer { thought: String::new(), answer: self.answer.text }, Vec::new())
    }

    /// An answer that comes first counts, and nothing is called beside it. One behind a call was written before anybody
    /// knew what comes of the call.
    fn decide(self) -> (ReactReply, Vec<String>) {
        let Self { calls, thought, answer, .. } = self;
        let thought = thought.text;
        let made = calls.len();
        if calls.first().is_some_and(|call| call.does == Some(Does::Answer)) {
            let note = (made > 1).then(|| format!("{} were made at once; the answer counts", counted(made, "call")));
            let reply = match answer.text {
                answer if answer.is_empty() => ReactReply::Unreadable { thought, reason: NO_ANSWER.to_owned() },
                answer => ReactReply::Answer { thought, answer },
            };
            return (reply, note.into_iter().collect());
        }
        let mut notes = Vec::new();
        if calls.iter().any(|call| call.does == Some(Does::Answer)) {
            notes.push("an answer that came with calls was left out: it was written before their results".to_owned());
        }
        let tools: Vec<_> = calls.iter().filter(|call| call.does != Some(Does::Answer)).collect();
        if tools.len() > MOST_CALLS {
            notes.push(left_out_note(&counted(tools.len(), "call"), MOST_CALLS));
        }
        let uses: Result<Vec<_>, _> = tools.into_iter().take(MOST_CALLS).map(Call::tool_use).collect();
        let reply = match uses.map(|uses| uses.split_first().map(|(first, also)| (first.clone(), also.to_vec()))) {
            Ok(Some((ToolUse { tool, arguments }, also))) => ReactReply::Action { thought, tool, arguments, also },
            Ok(None) => ReactReply::Unreadable { thought, reason: NO_NAME.to_owned() },
            Err(reason) => ReactReply::Unreadable { thought, reason },
        };
        (reply, notes)
    }
}

/// What calls mean that stand in a text; besides it what is to be shown of the thought, and what is noted. The thought
/// that was shown already is part of it. None if nothing can be called like this.
pub(super) fn call_written(
    found: written::Found,
    functions: &Functions,
    shown: &str,
) -> Option<(ReactReply, Option<String>, Vec<String>)> {
    let made = found.calls.len();
    let mut calls = found.calls.into_iter().filter_map(|call| {
        let function = functions.meant(&call.name)?;
        Some((function, call.arguments))
    });
    let (first, mut arguments) = calls.next()?;
    let said =
        |arguments: &mut Map<String, Value>, function: &Function| match arguments.shift_remove(&*function.thought) {
            Some(Value::String(thought)) => thought,
            Some(_) | None => String::new(),
        };
    let own = said(&mut arguments, first);
    let thought = [shown, &found.before, &own].into_iter().find(|text| !text.trim().is_empty()).unwrap_or_default();
    let thought: String = thought.split_whitespace().collect::<Vec<_>>().join(" ");
    // What was shown is not shown again, and nothing else instead.
    let thought = if shown.is_empty() { thought } else { shown.to_owned() };
    let to_show = (shown.is_empty() && !thought.is_empty()).then(|| thought.clone());
    let note = "the call stood in the text".to_owned();
    let tool = match &first.does {
        Does::Answer => {
            let answer =
                arguments.get(functions::ANSWER).and_then(Value::as_str).filter(|answer| !answer.trim().is_empty())?;
            return Some((ReactReply::Answer { thought, answer: answer.to_owned() }, to_show, vec![note]));
        }
        Does::Call(tool) => tool.name.clone(),
    };
    let also = calls.filter_map(|(function, mut arguments)| {
        said(&mut arguments, function);
        match &function.does {
            Does::Call(tool) => Some(ToolUse { tool: tool.name.clone(), arguments }),
            Does::Answer => None,
        }
    });
    let also: Vec<_> = also.take(MOST_CALLS - 1).collect();
    let are_flat =
        std::iter::once(&arguments).chain(also.iter().map(|call| &call.arguments)).all(parser::is_flat_enough);
    if !are_flat {
        return None;
    }
    let left_out = (made > MOST_CALLS).then(|| left_out_note(&counted(made, "call"), MOST_CALLS));
    let notes = std::iter::once(note).chain(left_out).collect();
    Some((ReactReply::Action { thought, tool, arguments, also }, to_show, notes))
}

/// A thought is shown on one line.
fn think(thought: &mut ShownText, c: char) {
    if c == '\n' { thought.end_line() } else { thought.push(c) }
}

impl Call {
    fn tool_use(&self) -> Result<ToolUse, String> {
        let tool = match &self.does {
            Some(Does::Call(tool)) => &*tool.name,
            // Whoever looks for it finds that there is no such tool.
            Some(Does::Answer) | None => self.name.trim(),
        };
        let tool = ToolName::given(tool).ok_or(NO_NAME)?;
        let arguments = read_object(&tool, &self.arguments.object())?;
        Ok(ToolUse { tool, arguments })
    }
}

fn read_object(tool: &ToolName, json: &str) -> Result<Map<String, Value>, String> {
    let wrong = |what: String| format!("the JSON object with the arguments of `{tool}` {what}");
    match serde_json::from_str(json) {
        Ok(Value::Object(arguments)) if parser::is_flat_enough(&arguments) => Ok(arguments),
        Ok(Value::Object(_)) => Err(wrong("is nested more than 64 levels deep; write it flatter".to_owned())),
        Ok(_) => Err(format!("the arguments of `{tool}` are not a JSON object; write {{\"name\": value}}")),
        Err(error) if error.is_eof() => Err(wrong("never ends; close every brace and every quoted text".to_owned())),
        Err(error) => Err(wrong(format!("is broken ({error}); write it again as valid JSON"))),
    }
}

#[cfg(test)]
#[path = "../calls_tests.rs"]
mod tests;
