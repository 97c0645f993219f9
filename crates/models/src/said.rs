//! What a request says and offers, whoever it is sent to.

use crate::provider::ModelRequest;
use memchr::memmem;
use serde_json::Value;
use std::borrow::Cow;
use trellis_domain::Hash;
use trellis_domain::config::PromptReply;
use trellis_domain::parts::{ChatTurn, ReplyPart};
use trellis_patterns::react::functions::Functions;

/// Of the prompt's id, its texts, the turns after it, the form of the reply and the functions that are offered. Not of the
/// model, of how it draws its words, of marks and the day, and of the names that providers give to calls: they change nothing in the question.
///
/// The texts are those of the request, system and user.
pub(crate) fn said(request: &ModelRequest, [system, user]: [&str; 2]) -> Hash {
    let ModelRequest { prompt, expected, turns, tools, drawn, .. } = request;
    let mut parts = vec![prompt.into(), system.into(), user.into(), form(expected)];
    for turn in turns {
        turn_said(turn, &mut parts);
    }
    let functions = tools.as_deref().map(Functions::of);
    for function in functions.iter().flat_map(Functions::iter) {
        let (description, schema) = (function.description(), function.schema().to_string());
        parts.extend(["function".into(), function.name.as_str().into(), description.into(), schema.into()]);
    }
    let drawn: Vec<_> = drawn.iter().map(memmem::Finder::new).collect();
    let parts: Vec<_> = parts.iter().map(|part| without(part.as_bytes(), &drawn)).collect();
    Hash::of_parts(parts.iter().map(|part| &**part))
}

/// Questions may be long, and all of them pass through here.
fn without<'p>(part: &'p [u8], drawn: &[memmem::Finder<'_>]) -> Cow<'p, [u8]> {
    drawn.iter().fold(Cow::Borrowed(part), |part, drawn| {
        let mut found = drawn.find_iter(&part).peekable();
        if found.peek().is_none() {
            drop(found);
            return part;
        }
        let (mut kept, mut from) = (Vec::with_capacity(part.len()), 0);
        for at in found {
            kept.extend_from_slice(&part[from..at]);
            from = at + drawn.needle().len();
        }
        kept.extend_from_slice(&part[from..]);
        Cow::Owned(kept)
    })
}

fn form(expected: &PromptReply) -> Cow<'static, str> {
    let under = |schema: &Option<Value>| schema.as_ref().map(Value::to_string).unwrap_or_default();
    match expected {
        PromptReply::Text => "text".into(),
        PromptReply::Json { schema } => format!("json {}", under(schema)).into(),
        PromptReply::JsonLines { schema } => format!("jsonl {}", under(schema)).into(),
    }
}

fn turn_said<'t>(turn: &'t ChatTurn, parts: &mut Vec<Cow<'t, str>>) {
    let mut say = |said: &[&'t str]| parts.extend(said.iter().map(|text| Cow::Borrowed(*text)));
    match turn {
        ChatTurn::User { text } => say(&["user", text.text()]),
        ChatTurn::ToolResult { function, text, is_error, .. } => {
            say(&[if *is_error { "error" } else { "result" }, function, text.text()]);
        }
        ChatTurn::Assistant { parts } => {
            say(&["assistant"]);
            for part in parts {
                match part {
                    ReplyPart::Thought { text, .. } => say(&["thought", text.text()]),
                    ReplyPart::Text { text } => say(&["text", text.text()]),
                    ReplyPart::Refusal { text } => say(&["refusal", text.text()]),
                    ReplyPart::Call { function, arguments, .. } => say(&["call", function, arguments.text()]),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rehearsal::tests::request;

    #[test]
    fn marks_and_the_day_change_nothing_in_the_question() {
        let asked = |mark: &str, question: &str| {
            let user = format!("<question-{mark}>{question}</question-{mark}>");
            let request = ModelRequest { drawn: vec![mark.to_owned()], ..request("agent-react", PromptReply::Text) };
            said(&request, ["", &user])
        };
        assert_eq!(asked("7f3a9c", "why?"), asked("00aa11", "why?"));
        assert_ne!(asked("7f3a9c", "why?"), asked("7f3a9c", "who?"));
    }
}
