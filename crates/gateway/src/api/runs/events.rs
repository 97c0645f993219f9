//! `GET /api/v1/runs/{id}/events`: a run as it happens, as server-sent events.
//!
//! A durable event has its number as id; text between them has none, so that a client that comes back names the last
//! durable event it saw. Text is a preview: each connection gets every open message from its start, and the durable
//! event that completes a message brings it whole. Nothing is lost and nothing durable comes twice, whatever happens
//! to the connection or to the server. A reader that is slow gets more text at once; nobody waits for it.

use super::shapes::EventFrame;
use super::{ApiError, FoundRun, Placed, Usual, number};
use crate::bounds;
use crate::inside::{Gateway, Inside};
use crate::unread::Held;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde::Deserialize;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use trellis_domain::RunId;
use trellis_domain::record::Name;
use trellis_domain::run::RunSummary;
use trellis_orchestrator::events::RunEvent;
use trellis_orchestrator::ports::JournalError;
use trellis_orchestrator::{Item, RunSubscription};
use utoipa::{IntoParams, ToSchema};

/// Silence that is broken by a comment, so that nobody takes the connection for dead.
const QUIET: Duration = Duration::from_secs(15);
const LAST_EVENT_ID: &str = "last-event-id";

/// What is wanted of a run's stream.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Wanted {
    /// The workspace; the caller's own if none is named
    workspace: Option<String>,
    /// Only events behind this number; the header goes before it
    #[param(value_type = Option<u64>, minimum = 0)]
    after: Option<String>,
    /// `events` for the events of this page, `records` for the journal's records in their place
    #[param(value_type = Option<Shape>, inline)]
    format: Option<String>,
}

impl Placed for Wanted {
    fn workspace(&self) -> Option<&str> {
        self.workspace.as_deref()
    }
}

/// How durable events are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Shape {
    Events,
    Records,
}

/// Follow a run
///
/// Server-sent events. A durable event has its number as `id`, its type as `event` and one JSON object as `data`; types
/// are `run.started`, `call.intended`, `input.required`, `step.completed`, `fanout.started`, `agent.started`, `agent.completed`, `fanout.joined`,
/// `decision.requested`, `decision.made`, `run.completed` and `run.failed`. Between them come events of type `chunk`
/// without id: text while it is written, under the `message_id` of its message. `RunEvent` tells the members of each.
///
/// Chunks are previews. Each connection gets every open message from its start, so drop all previews when you connect
/// again; a `step.completed` brings its thought and answer whole and replaces all previews of its `session_id`.
///
/// The stream ends behind the event of the run's own end, and when the server stops. Whoever comes back with
/// `Last-Event-ID` misses nothing and gets no durable event twice; behind the end there is nothing more (204).
#[utoipa::path(
    get, path = "/api/v1/runs/{id}/events", tag = "runs", operation_id = "followRun",
    params(
        ("id" = String, Path, description = "The whole id of a run"),
        Wanted,
        ("Last-Event-ID" = Option<u64>, Header, nullable = false, description = "The last durable event that was seen"),
    ),
    responses(
        (status = 200, description = "The events", body = EventFrame, content_type = "text/event-stream"),
        (status = 204, description = "The run has ended, and its end was seen"),
        Usual,
    ),
)]
pub(crate) async fn follow(
    State(gateway): State<Arc<Gateway>>,
    FoundRun { inside, run, parameters: wanted }: FoundRun<Wanted>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let shape = shape(wanted.format.as_deref())?;
    let asked = wanted.after.map(|after| number("after", &after)).transpose()?;
    // A browser that comes back asks for the same address again, and says in the header where it was.
    let after = last_event(&headers)?.or(asked).unwrap_or(0);
    if after > run.seq {
        let message = format!("event {after} lies ahead: the newest event of this run is {}", run.seq);
        return Err(ApiError::request(message));
    }
    if is_behind_end(&inside, &run, after).await? {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    if gateway.is_closed() {
        return Err(ApiError::stopping());
    }
    let subscription = inside.runs().follow(inside.workspace(), &run.run, after);
    let following = Following { gateway, run: run.run, subscription, shape, over: false, held: None };
    let events = stream::unfold(following, |mut following| async move {
        let event = following.next().await?;
        Some((Ok::<_, Infallible>(event), following))
    });
    // Proxies that gather replies would spoil the stream.
    let unbuffered = [(HeaderName::from_static("x-accel-buffering"), "no")];
    Ok((unbuffered, Sse::new(events).keep_alive(KeepAlive::new().interval(QUIET))).into_response())
}

fn shape(word: Option<&str>) -> Result<Shape, ApiError> {
    match word {
        None | Some("events") => Ok(Shape::Events),
        Some("records") => Ok(Shape::Records),
        Some(other) => Err(ApiError::request(format!("`format` must be events or records, found {other:?}"))),
    }
}

fn last_event(headers: &HeaderMap) -> Result<Option<u64>, ApiError> {
    let Some(last) = headers.get(LAST_EVENT_ID) else { return Ok(None) };
    number("Last-Event-ID", &String::from_utf8_lossy(last.as_bytes())).map(Some)
}

/// Whether the run has ended and everything up to its end was seen.
async fn is_behind_end(inside: &Inside, run: &RunSummary, after: u64) -> Result<bool, JournalError> {
    let end = inside.runs().end(inside.workspace(), &run.run).await?;
    Ok(end.is_some_and(|end| end.header.seq <= after))
}

/// A run that somebody follows.
struct Following {
    gateway: Arc<Gateway>,
    run: RunId,
    subscription: RunSubscription,
    shape: Shape,
    /// The run's own end was told.
    over: bool,
    /// The place of the event that was told last. When the next is asked for, most of it is on its way.
    held: Option<Held>,
}

impl Following {
    /// The next event; none when the stream is over.
    async fn next(&mut self) -> Option<Event> {
        if self.over {
            return None;
        }
        drop(self.held.take());
        let unread = &self.gateway.capacity().unread;
        match self.gateway.follow(&mut self.subscription, || unread.take(bounds::FRAME)).await? {
            Ok((item, mut held)) => {
                let (event, size) = self.event(&item);
                held.shrink_to(size);
                self.held = Some(held);
                Some(event)
            }
            Err(error) => {
                // Whoever comes back is told why.
                tracing::error!(%error, run = %self.run, "a stream of events broke off");
                None
            }
        }
    }

    /// An event, and about how many bytes it has.
    fn event(&mut self, item: &Item) -> (Event, usize) {
        let Item::Record(record) = item else {
            let data = RunEvent::of(&self.run, item).to_json();
            let size = data.len();
            return (Event::default().event("chunk").data(data), size);
        };
        let header = &record.header;
        self.over = header.session == self.run && header.name == Name::end();
        let (kind, data) = match self.shape {
            Shape::Events => {
                let event = RunEvent::of(&self.run, item);
                (event.kind(), event.to_json())
            }
            Shape::Records => ("record", serde_json::to_string(record).expect("records are always JSON")),
        };
        let size = data.len();
        (Event::default().id(header.seq.to_string()).event(kind).data(data), size)
    }
}
