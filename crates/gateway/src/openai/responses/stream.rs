//! A response as typed events. They are numbered the same each time they are told, so that a stream can be taken up again.

use super::super::OpenAiError;
use super::super::ending::EndedRun;
use super::super::stream::{Script, pieces};
use super::shapes::{Echo, OutputMessage, OutputText, ResponseObject, message_id};
use serde_json::{Value, json};

pub(super) struct ResponseStream {
    /// As it was when the question was accepted.
    begun: Value,
    echo: Echo,
    /// The number of the next event.
    next: u64,
    /// Events up to this number are known to the caller.
    after: Option<u64>,
}

pub(super) enum Line {
    Created,
    InProgress,
    ItemAdded,
    PartAdded,
    Delta(usize, usize),
    TextDone,
    PartDone,
    ItemDone,
    Ended,
    Error(OpenAiError),
}

impl ResponseStream {
    pub(super) fn new(begun: ResponseObject, echo: Echo, after: Option<u64>) -> Self {
        Self { begun: json!(begun), echo, next: 0, after }
    }

    /// The type of an event and its other members.
    fn event(&self, line: Line, ended: Option<&EndedRun>) -> Option<(&'static str, Value)> {
        let text = || ended?.whole.answer.as_deref();
        let answer = || ended?.answer()?.ok();
        let run = ended.map(EndedRun::run);
        let part = |text: &str| json!({"output_index": 0, "content_index": 0, "part": OutputText::of(text)});
        Some(match line {
            Line::Created => ("response.created", json!({"response": self.begun})),
            Line::InProgress => ("response.in_progress", json!({"response": self.begun})),
            Line::ItemAdded => {
                ("response.output_item.added", json!({"output_index": 0, "item": OutputMessage::of(run?, None)}))
            }
            Line::PartAdded => ("response.content_part.added", part("")),
            Line::Delta(from, to) => {
                let delta = text()?.get(from..to)?;
                let event = json!({"output_index": 0, "content_index": 0, "delta": delta, "logprobs": []});
                ("response.output_text.delta", event)
            }
            Line::TextDone => {
                let event = json!({"output_index": 0, "content_index": 0, "text": text()?, "logprobs": []});
                ("response.output_text.done", event)
            }
            Line::PartDone => ("response.content_part.done", part(text()?)),
            Line::ItemDone => {
                ("response.output_item.done", json!({"output_index": 0, "item": OutputMessage::of(run?, answer())}))
            }
            Line::Ended => {
                let response = ResponseObject::of(ended?, &self.echo);
                let name = match response.status() {
                    "completed" => "response.completed",
                    "incomplete" => "response.incomplete",
                    _ => "response.failed",
                };
                (name, json!({ "response": response }))
            }
            Line::Error(error) => ("error", json!({"code": error.code(), "message": error.message(), "param": null})),
        })
    }
}

impl Script for ResponseStream {
    type Line = Line;

    fn beginning(&self) -> Vec<Line> {
        vec![Line::Created, Line::InProgress]
    }

    fn ending(&self, ended: &EndedRun) -> Vec<Line> {
        let Some(Ok(answer)) = ended.answer() else { return vec![Line::Ended] };
        let text = pieces(answer.text).into_iter().map(|(from, to)| Line::Delta(from, to));
        let done = [Line::TextDone, Line::PartDone, Line::ItemDone, Line::Ended];
        [Line::ItemAdded, Line::PartAdded].into_iter().chain(text).chain(done).collect()
    }

    fn breaking_off(&self, error: OpenAiError) -> Vec<Line> {
        vec![Line::Error(error)]
    }

    fn write(&mut self, line: Line, ended: Option<&EndedRun>) -> Option<(Option<&'static str>, String)> {
        let number = self.next;
        self.next += 1;
        if self.after.is_some_and(|after| number <= after) {
            return None;
        }
        let (name, mut event) = self.event(line, ended)?;
        event["type"] = json!(name);
        event["sequence_number"] = json!(number);
        let of_message = ["response.content_part", "response.output_text"];
        if let Some(ended) = ended.filter(|_| of_message.iter().any(|kind| name.starts_with(kind))) {
            event["item_id"] = json!(message_id(ended.run()));
        }
        Some((Some(name), event.to_string()))
    }
}
