//! Messages of a chat as a question: what was said before it, and the words on how to go about it.

use super::OpenAiError;
use serde_json::{Map, Value};
use trellis_domain::record::Exchange;
use trellis_orchestrator::accept::TOLD_BYTES;

/// A question and what goes before it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Talk {
    /// Messages of the system or the developer, in their order.
    pub(super) framing: String,
    /// What was said before, oldest first.
    pub(super) earlier: Vec<Exchange>,
    /// How many of the oldest exchanges had no room.
    pub(super) left_out: usize,
    /// The last message of the user.
    pub(super) question: String,
}

enum Role {
    Instruction,
    User,
    Assistant,
}

struct Message {
    role: Role,
    text: String,
}

/// The messages of a chat, under the parameter of that name.
pub(super) fn read(list: &[Value], parameter: &str) -> Result<Talk, OpenAiError> {
    let read = |(place, value): (usize, &Value)| message(value, &format!("{parameter}[{place}]"));
    let messages: Vec<Message> = list.iter().enumerate().map(read).collect::<Result<_, _>>()?;
    let mut talk = Talk::default();
    let mut said = Vec::new();
    for message in messages {
        match message.role {
            Role::Instruction => append(&mut talk.framing, &message.text),
            Role::User | Role::Assistant => said.push(message),
        }
    }
    let Some(Message { role: Role::User, text }) = said.pop() else {
        let message = format!("the last message of `{parameter}` must be the user's: it is the question");
        return Err(OpenAiError::parameter(parameter, message));
    };
    talk.question = text;
    (talk.earlier, talk.left_out) = newest(exchanges(said), parameter)?;
    Ok(talk)
}

/// Questions with their answers. Whoever speaks twice in a row has said both.
fn exchanges(said: Vec<Message>) -> Vec<Exchange> {
    let mut all: Vec<Exchange> = Vec::new();
    for Message { role, text } in said {
        match (role, all.last_mut()) {
            (Role::Assistant, Some(last)) => append(&mut last.answer, &text),
            (Role::Assistant, None) => all.push(Exchange { run: None, question: String::new(), answer: text }),
            (Role::User | Role::Instruction, _) => {
                all.push(Exchange { run: None, question: text, answer: String::new() });
            }
        }
    }
    all
}

/// As many of the newest as there is room for, and how many are left out.
fn newest(mut all: Vec<Exchange>, parameter: &str) -> Result<(Vec<Exchange>, usize), OpenAiError> {
    let mut room = TOLD_BYTES;
    let fits = |exchange: &&Exchange| {
        let left = room.checked_sub(exchange.question.len() + exchange.answer.len());
        room = left.unwrap_or(0);
        left.is_some()
    };
    let kept = all.iter().rev().take_while(fits).count();
    if kept == 0 && !all.is_empty() {
        let message = format!(
            "what was said just before the question has more than {TOLD_BYTES} bytes; shorten it, or store it as a document"
        );
        return Err(OpenAiError::too_long(parameter, message));
    }
    let left_out = all.len() - kept;
    Ok((all.split_off(left_out), left_out))
}

fn message(value: &Value, place: &str) -> Result<Message, OpenAiError> {
    let wrong = |what: &str| OpenAiError::parameter(place, format!("{place}: {what}"));
    let object = value.as_object().ok_or_else(|| wrong("a message must be an object"))?;
    match object.get("type").and_then(Value::as_str) {
        None | Some("message") => {}
        Some(other) => {
            let message = format!("{place}: items of type `{other}` cannot be read here; send messages of text");
            return Err(OpenAiError::unsupported(place, message));
        }
    }
    let role = match object.get("role").and_then(Value::as_str) {
        Some("system" | "developer") => Role::Instruction,
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("tool" | "function") => {
            let message = format!("{place}: functions of the caller are not called here, so they have no results");
            return Err(OpenAiError::unsupported(place, message));
        }
        Some(_) | None => return Err(wrong("`role` must be system, developer, user or assistant")),
    };
    Ok(Message { role, text: content(object, place)? })
}

fn content(message: &Map<String, Value>, place: &str) -> Result<String, OpenAiError> {
    let place = format!("{place}.content");
    match message.get("content") {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Array(parts)) => {
            let mut text = String::new();
            for (number, value) in parts.iter().enumerate() {
                text.push_str(part(value, &format!("{place}[{number}]"))?);
            }
            Ok(text)
        }
        None | Some(_) => {
            Err(OpenAiError::parameter(&place, format!("{place} must be a text or a list of text parts")))
        }
    }
}

fn part<'v>(value: &'v Value, place: &str) -> Result<&'v str, OpenAiError> {
    let kind = value.get("type").and_then(Value::as_str).unwrap_or_default();
    let member = match kind {
        "text" | "input_text" | "output_text" => "text",
        "refusal" => "refusal",
        _ => {
            let message = format!("{place}: parts of type `{kind}` cannot be read here, only text");
            return Err(OpenAiError::unsupported(place, message));
        }
    };
    let text = value.get(member).and_then(Value::as_str);
    text.ok_or_else(|| OpenAiError::parameter(place, format!("{place}: `{member}` must be a text")))
}

fn append(text: &mut String, more: &str) {
    if !text.is_empty() && !more.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(more);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn talk(messages: &Value) -> Result<Talk, String> {
        read(messages.as_array().unwrap(), "messages").map_err(|error| error.message().to_owned())
    }

    fn said(role: &str, content: &str) -> Value {
        json!({"role": role, "content": content})
    }

    #[test]
    fn the_last_message_is_the_question_and_the_others_go_before_it() {
        let read = talk(&json!([
            said("system", "Be brief."), said("assistant", "Hello!"), said("user", "Who?"), said("user", "Really?"),
            {"role": "assistant", "content": [{"type": "output_text", "text": "Ada"}, {"type": "text", "text": "."}]},
            said("developer", "Be kind."), {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "When?"}]},
        ]))
        .unwrap();
        let exchange = |question: &str, answer: &str| Exchange {
            run: None,
            question: question.to_owned(),
            answer: answer.to_owned(),
        };
        let earlier = vec![exchange("", "Hello!"), exchange("Who?", ""), exchange("Really?", "Ada.")];
        let framing = "Be brief.\n\nBe kind.".to_owned();
        assert_eq!(read, Talk { framing, earlier, left_out: 0, question: "When?".to_owned() });
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let with = |content: Value| json!([{"role": "user", "content": content}]);
        for (messages, says) in [
            (json!([]), "the last message of `messages`"),
            (json!([said("user", "a"), said("assistant", "b")]), "must be the user's"),
            (json!(["hello"]), "messages[0]: a message must be an object"),
            (json!([said("robot", "a")]), "messages[0]: `role` must be"),
            (json!([said("tool", "a")]), "have no results"),
            (json!([{"role": "assistant", "tool_calls": []}]), "messages[0].content must be"),
            (with(json!(1)), "messages[0].content must be"),
            (with(json!([{"type": "image_url"}])), "messages[0].content[0]: parts of type `image_url`"),
            (with(json!([{"type": "text", "text": 1}])), "messages[0].content[0]: `text` must be a text"),
            (json!([{"type": "function_call_output"}]), "items of type `function_call_output`"),
        ] {
            let message = talk(&messages).unwrap_err();
            assert!(message.contains(says), "{messages}: {message}");
        }
    }

    #[test]
    fn the_oldest_of_a_long_conversation_is_left_out_and_what_was_said_last_never() {
        let long = "x".repeat(TOLD_BYTES / 3);
        let mut messages: Vec<Value> = (0..5).flat_map(|_| [said("user", &long), said("assistant", "ok")]).collect();
        messages.push(said("user", "why?"));
        let read = talk(&json!(messages)).unwrap();
        assert_eq!((read.earlier.len(), read.left_out), (2, 3));
        let too_long =
            json!([said("user", &"x".repeat(TOLD_BYTES + 1)), said("assistant", "ok"), said("user", "why?")]);
        assert!(talk(&too_long).unwrap_err().contains("more than 262144 bytes"));
    }
}
