//! What was said after the prompt, for a model that knows no functions: calls and their results in words.

use trellis_domain::parts::{ChatTurn, ReplyPart};

/// The same conversation without calls.
pub(crate) fn in_words(turns: &[ChatTurn]) -> Vec<ChatTurn> {
    turns.iter().map(turn).collect()
}

fn turn(turn: &ChatTurn) -> ChatTurn {
    match turn {
        ChatTurn::User { .. } => turn.clone(),
        ChatTurn::Assistant { parts } => {
            let texts: Vec<_> = parts.iter().filter_map(words).collect();
            ChatTurn::Assistant { parts: vec![ReplyPart::Text { text: texts.join("\n").into() }] }
        }
        ChatTurn::ToolResult { text, .. } => ChatTurn::User { text: format!("Observation: {}", text.text()).into() },
    }
}

fn words(part: &ReplyPart) -> Option<String> {
    match part {
        ReplyPart::Text { text } | ReplyPart::Refusal { text } => Some(text.text().to_owned()),
        ReplyPart::Call { function, arguments, .. } => Some(format!("Action: {function}\nArgs: {}", arguments.text())),
        ReplyPart::Thought { .. } => None,
    }
}

/// The id of each call of a conversation and of each result, in their order: where a provider gave none, one is made up,
/// the same for a call and its result.
#[derive(Debug, Default)]
pub(crate) struct CallIds {
    made: usize,
    /// The ids of calls whose results have not been seen yet.
    open: std::collections::VecDeque<String>,
}

impl CallIds {
    pub(crate) fn of_call(&mut self, given: Option<&String>) -> String {
        self.made += 1;
        let id = given.cloned().unwrap_or_else(|| format!("call_{}", self.made));
        self.open.push_back(id.clone());
        id
    }

    pub(crate) fn of_result(&mut self, given: Option<&String>) -> String {
        let place = given.and_then(|given| self.open.iter().position(|open| open == given)).unwrap_or(0);
        let open = self.open.remove(place);
        given.cloned().or(open).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_and_its_result_have_one_id() {
        let mut ids = CallIds::default();
        let given = "toolu_1".to_owned();
        let calls = [ids.of_call(None), ids.of_call(Some(&given)), ids.of_call(None)];
        assert_eq!(calls, ["call_1", "toolu_1", "call_3"]);
        assert_eq!(
            [ids.of_result(Some(&given)), ids.of_result(None), ids.of_result(None)],
            ["toolu_1", "call_1", "call_3"]
        );
    }

    #[test]
    fn in_words_there_are_no_calls() {
        let call =
            ReplyPart::Call { id: None, function: "search".to_owned(), arguments: "{\"query\": \"moss\"}".into() };
        let parts = vec![ReplyPart::Thought { text: "hm".into() }, ReplyPart::Text { text: "I look.".into() }, call];
        let result =
            ChatTurn::ToolResult { call: None, function: "search".to_owned(), text: "green".into(), is_error: false };
        let written = "I look.\nAction: search\nArgs: {\"query\": \"moss\"}";
        let expected = [
            ChatTurn::Assistant { parts: vec![ReplyPart::Text { text: written.into() }] },
            ChatTurn::User { text: "Observation: green".into() },
        ];
        assert_eq!(in_words(&[ChatTurn::Assistant { parts }, result]), expected);
    }
}
