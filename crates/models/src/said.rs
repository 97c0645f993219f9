//! What a request says and offers, whoever it is sent to.

use crate::provider::ModelRequest;
use memchr::memmem;
use serde_json::Value;
use trellis_domain::Hash;
use trellis_domain::config::PromptReply;
use trellis_domain::parts::{ChatTurn, ReplyPart};
use trellis_patterns::react::functions::Functions;

/// Of the prompt's id, its texts, the turns after it, the form of the reply and the functions that are offered. Not of the
/// model, of how it draws its words, of marks and the day, and of the names that providers give to calls: they change nothing in the question.
pub(crate) fn said(request: &ModelRequest) -> Hash {
    let ModelRequest { system, user, prompt, expected, turns, tools, drawn, .. } = request;
    let mut parts = vec![prompt.clone(), system.to_string(), user.to_string(), form(expected)];
    for turn in turns {
        turn_said(turn, &mut parts);
    }
    if let Some(tools) = tools {
        for function in Functions::of(tools).iter() {
            let (name, description) = (function.name.clone(), function.description.clone());
            parts.extend(["function".to_owned(), name, description, function.schema.to_string()]);
        }
    }
    let parts: Vec<_> = parts.into_iter().map(|part| without(part.into_bytes(), drawn)).collect();
    Hash::of_parts(parts.iter().map(Vec::as_slice))
}

/// Questions may be long, and all of them pass through here.
fn without(part: Vec<u8>, drawn: &[String]) -> Vec<u8> {
    drawn.iter().fold(part, |part, drawn| {
        let mut found = memmem::find_iter(&part, drawn).peekable();
        if found.peek().is_none() {
            drop(found);
            return part;
        }
        let (mut kept, mut from) = (Vec::with_capacity(part.len()), 0);
        for at in found {
            kept.extend_from_slice(&part[from..at]);
            from = at + drawn.len();
        }
        kept.extend_from_slice(&part[from..]);
        kept
    })
}

fn form(expected: &PromptReply) -> String {
    let under = |schema: &Option<Value>| schema.as_ref().map(Value::to_string).unwrap_or_default();
    match expected {
        PromptReply::Text => "text".to_owned(),
        PromptReply::Json { schema } => format!("json {}", under(schema)),
        PromptReply::JsonLines { schema } => format!("jsonl {}", under(schema)),
    }
}

fn turn_said(turn: &ChatTurn, parts: &mut Vec<String>) {
    match turn {
        ChatTurn::User { text } => parts.extend(["user".to_owned(), text.text().to_owned()]),
        ChatTurn::ToolResult { function, text, is_error, .. } => {
            let kind = if *is_error { "error" } else { "result" };
            parts.extend([kind.to_owned(), function.clone(), text.text().to_owned()]);
        }
        ChatTurn::Assistant { parts: said } => {
            parts.push("assistant".to_owned());
            for part in said {
                match part {
                    ReplyPart::Thought { text, .. } => parts.extend(["thought".to_owned(), text.text().to_owned()]),
                    ReplyPart::Text { text } => parts.extend(["text".to_owned(), text.text().to_owned()]),
                    ReplyPart::Refusal { text } => parts.extend(["refusal".to_owned(), text.text().to_owned()]),
                    ReplyPart::Call { function, arguments, .. } => {
                        parts.extend(["call".to_owned(), function.clone(), arguments.text().to_owned()]);
                    }
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
            let user = format!("<question-{mark}>{question}</question-{mark}>").as_str().into();
            let drawn = vec![mark.to_owned()];
            said(&ModelRequest { user, drawn, ..request("agent-react", PromptReply::Text) })
        };
        assert_eq!(asked("7f3a9c", "why?"), asked("00aa11", "why?"));
        assert_ne!(asked("7f3a9c", "why?"), asked("7f3a9c", "who?"));
    }
}
