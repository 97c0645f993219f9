//! A chat completion in chunks.

use super::super::OpenAiError;
use super::super::ending::EndedRun;
use super::super::stream::{Script, pieces};
use super::shapes::{ChatUsage, finish_reason};
use serde_json::{Value, json};

pub(super) struct ChatStream {
    pub(super) id: String,
    pub(super) model: String,
    pub(super) created: i64,
    /// Whether the tokens are told in a chunk of their own.
    pub(super) with_usage: bool,
    pub(super) left_out: usize,
}

pub(super) enum Line {
    Role,
    Text(usize, usize),
    Finish(&'static str),
    Usage,
    Error(OpenAiError),
    Done,
}

impl Script for ChatStream {
    type Line = Line;

    fn beginning(&self) -> Vec<Line> {
        vec![Line::Role]
    }

    fn ending(&self, ended: &EndedRun) -> Vec<Line> {
        let answer = match ended.answer() {
            Some(Ok(answer)) => answer,
            Some(Err(error)) => return self.breaking_off(error),
            None => return self.breaking_off(OpenAiError::still_running(ended.run())),
        };
        let text = pieces(answer.text).into_iter().map(|(from, to)| Line::Text(from, to));
        let usage = self.with_usage.then_some(Line::Usage);
        text.chain([Line::Finish(finish_reason(answer))]).chain(usage).chain([Line::Done]).collect()
    }

    fn breaking_off(&self, error: OpenAiError) -> Vec<Line> {
        vec![Line::Error(error)]
    }

    fn write(&mut self, line: Line, ended: Option<&EndedRun>) -> Option<(Option<&'static str>, String)> {
        let data = match line {
            Line::Role => self.chunk(&json!({"role": "assistant", "content": ""}), None),
            Line::Text(from, to) => {
                let text = ended?.whole.answer.as_deref()?.get(from..to)?;
                self.chunk(&json!({ "content": text }), None)
            }
            Line::Finish(reason) => {
                let mut chunk = self.chunk(&json!({}), Some(reason));
                chunk["trellis"] = json!(ended?.about(self.left_out));
                chunk
            }
            Line::Usage => {
                let mut chunk = self.chunk(&json!({}), None);
                chunk["choices"] = json!([]);
                chunk["usage"] = json!(ended?.usage().map(ChatUsage::of));
                chunk
            }
            Line::Error(error) => json!(error),
            Line::Done => return Some((None, "[DONE]".to_owned())),
        };
        Some((None, data.to_string()))
    }
}

impl ChatStream {
    fn chunk(&self, delta: &Value, finish_reason: Option<&str>) -> Value {
        let choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish_reason});
        let mut chunk = json!({
            "id": self.id, "object": "chat.completion.chunk", "created": self.created, "model": self.model,
            "choices": [choice],
        });
        if self.with_usage {
            chunk["usage"] = Value::Null;
        }
        chunk
    }
}
