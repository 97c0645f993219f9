//! A run as server-sent events in OpenAI's words: what is said at once, silence that is broken by comments, and what is
//! said when the run has ended.

use super::OpenAiError;
use super::ending::EndedRun;
use super::headers::of_run;
use crate::bounds;
use crate::inside::{Gateway, Inside};
use crate::unread::Held;
use axum::http::HeaderName;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use trellis_domain::RunId;
use trellis_domain::record::{Body, Name};
use trellis_orchestrator::{Item, RunSubscription};
use utoipa::ToSchema;

/// Silence that is broken by a comment, so that nobody takes the connection for dead.
const QUIET: Duration = Duration::from_secs(15);

/// One server-sent event, as its fields say.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) struct StreamedEvent {
    /// The `type` of a response's event; those of a chat have no name
    #[schema(nullable = false)]
    event: Option<String>,
    /// One JSON object; a chat ends with `[DONE]`
    data: String,
}

/// How one surface tells of a run. What it says is written one event at a time: an answer may be long.
pub(super) trait Script: Send + 'static {
    type Line: Send;

    /// What is said at once.
    fn beginning(&self) -> Vec<Self::Line>;
    /// What is said of a run that has ended.
    fn ending(&self, ended: &EndedRun) -> Vec<Self::Line>;
    /// What is said if the end cannot be waited for.
    fn breaking_off(&self, error: OpenAiError) -> Vec<Self::Line>;
    /// The name of an event, if events have names here, and its data. None if it is not to be told.
    fn write(&mut self, line: Self::Line, ended: Option<&EndedRun>) -> Option<(Option<&'static str>, String)>;
}

/// Tells of a run from its beginning to its end.
pub(super) fn respond<S: Script>(gateway: Arc<Gateway>, inside: Inside, run: RunId, script: S) -> Response {
    let headers = of_run(&run);
    let subscription = inside.runs().follow(inside.workspace(), &run, 0);
    let lines = script.beginning().into();
    let told = Telling { gateway, inside, run, subscription, script, lines, ended: None, over: false, held: None };
    let events = stream::unfold(told, |mut told| async move {
        let event = told.next().await?;
        Some((Ok::<_, Infallible>(event), told))
    });
    // Proxies that gather replies would spoil the stream.
    let unbuffered = [(HeaderName::from_static("x-accel-buffering"), "no")];
    (headers, unbuffered, Sse::new(events).keep_alive(KeepAlive::new().interval(QUIET))).into_response()
}

struct Telling<S: Script> {
    gateway: Arc<Gateway>,
    inside: Inside,
    run: RunId,
    subscription: RunSubscription,
    script: S,
    lines: VecDeque<S::Line>,
    ended: Option<EndedRun>,
    /// All lines that there are to be are there.
    over: bool,
    /// The place of the event that was told last. When the next is asked for, most of it is on its way.
    held: Option<Held>,
}

/// What happened that a caller is told of.
enum Told {
    Ended,
    /// A person is asked something.
    Asked(String),
    /// The server stops.
    Stopping,
}

impl<S: Script> Telling<S> {
    /// The next event; none when the stream is over.
    async fn next(&mut self) -> Option<Event> {
        drop(self.held.take());
        loop {
            while let Some(line) = self.lines.pop_front() {
                let Some((name, data)) = self.script.write(line, self.ended.as_ref()) else { continue };
                self.held = Some(self.gateway.capacity().unread.take(data.len()).await);
                let event = name.map_or_else(Event::default, |name| Event::default().event(name));
                return Some(event.data(data));
            }
            if self.over {
                return None;
            }
            let told = self.follow().await;
            self.over = !matches!(told, Ok(Told::Asked(_)));
            let lines = match told {
                Ok(Told::Asked(question)) => return Some(Event::default().comment(question)),
                Ok(Told::Ended) => self.end().await,
                Ok(Told::Stopping) => Err(OpenAiError::goes_on(&self.run)),
                Err(error) => Err(error),
            };
            self.lines = lines.unwrap_or_else(|error| self.script.breaking_off(error)).into();
        }
    }

    async fn follow(&mut self) -> Result<Told, OpenAiError> {
        let unread = &self.gateway.capacity().unread;
        while let Some(item) = self.gateway.follow(&mut self.subscription, || unread.take(bounds::FRAME)).await {
            // What a model is still writing may come to nothing.
            let (Item::Record(record), _room) = item? else { continue };
            if let Body::Parked(parked) = &record.body {
                let question = parked.question.text().replace(['\r', '\n'], " ");
                return Ok(Told::Asked(format!("run {} waits for a person: {question}", self.run)));
            }
            if record.header.session == self.run && record.header.name == Name::end() {
                return Ok(Told::Ended);
            }
        }
        Ok(Told::Stopping)
    }

    async fn end(&mut self) -> Result<Vec<S::Line>, OpenAiError> {
        let ended = EndedRun::read(&self.inside, &self.run).await?;
        Ok(self.script.ending(self.ended.insert(ended)))
    }
}

/// Where a text is cut into pieces that fit into one event each.
pub(super) fn pieces(text: &str) -> Vec<(usize, usize)> {
    let mut pieces = Vec::new();
    let mut from = 0;
    while from < text.len() {
        let to = text.floor_char_boundary(from + bounds::PIECE);
        pieces.push((from, to));
        from = to;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_make_up_the_text_and_cut_no_character() {
        let text = "añ€😀".repeat(60_000);
        let joined: String = pieces(&text).into_iter().map(|(from, to)| &text[from..to]).collect();
        assert_eq!((joined == text, pieces(&text).len()), (true, text.len().div_ceil(bounds::PIECE)));
        assert_eq!(pieces(""), []);
    }
}
