//! `/v1/responses`: a run as OpenAI's newer interface has it.

mod shapes;
pub(super) mod stored;
mod stream;

use self::shapes::{Echo, ResponseObject, ResponseRequest};
use self::stream::ResponseStream;
use super::asking::{ConversationOf, Wish, accept, outcome};
use super::ending::EndedRun;
use super::error::Usual;
use super::extract::{Inward, Members, Place};
use super::headers::{of_run, patience};
use super::messages::{self, Talk};
use super::stream::StreamedEvent;
use super::{OpenAiError, models, parameters, stream as sse};
use crate::inside::{Gateway, Inside};
use crate::request_memory::BodyPlace;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use trellis_domain::RunId;
use trellis_orchestrator::accept::Earlier;

/// Ask for a response
///
/// `input` is the question, or a list of messages whose last is the question; `instructions` are the framing. A question
/// with `previous_response_id` goes on from that response, and from any response several may go on. With `conversation`
/// it goes on from the newest questions of the conversation of that name.
///
/// With `background` the reply comes at once, and `GET /v1/responses/{id}` tells how far it is. A stream can be taken up
/// again there. Everything is on record, whatever `store` says. What only shapes how a model writes is ignored, and what
/// would be missed is refused, as for chats.
#[utoipa::path(
    post, path = "/v1/responses", tag = "openai", operation_id = "createResponse",
    params(
        Place,
        ("Idempotency-Key" = Option<String>, Header, nullable = false, min_length = 1, max_length = 200,
            pattern = "^[A-Za-z0-9._~:@+=,-]+$",
            description = "Any id of the caller's own: the same request under the same key is one run"),
    ),
    request_body(content = ResponseRequest, content_type = "application/json"),
    responses(
        (status = 200, description = "What came of it; with `stream` as events, named as their `type`", content(
            (ResponseObject = "application/json"), (StreamedEvent = "text/event-stream"),
        )),
        Usual,
    ),
)]
pub(super) async fn create(
    State(gateway): State<Arc<Gateway>>,
    Inward(inside, _): Inward,
    place: Option<Extension<BodyPlace>>,
    headers: HeaderMap,
    Members(body): Members,
) -> Result<Response, OpenAiError> {
    let pattern = models::pattern(&inside, &body).await?;
    parameters::check_response(&body)?;
    let (streams, background) = (parameters::flag(&body, "stream")?, parameters::flag(&body, "background")?);
    let echo = Echo { background, metadata: metadata(&body)?, exchanges_left_out: 0 };
    let talk = talk(&body)?;
    let echo = Echo { exchanges_left_out: talk.left_out, ..echo };
    let (earlier, conversation) = before(&inside, &body, talk.earlier).await?;
    let wish = Wish { pattern, framing: talk.framing, question: talk.question, earlier, conversation };
    let run = accept(&gateway, &inside, &headers, wish).await?;
    // It is on record. Many may wait, and nobody else's question is to wait for them.
    drop(body);
    if let Some(Extension(place)) = place {
        place.give_back();
    }
    if streams {
        return streamed(gateway, inside, run, echo, None).await;
    }
    let ended = if background {
        EndedRun::read(&inside, &run).await.map_err(|error| error.after(&run))?
    } else {
        outcome(&gateway, &inside, &run, patience(&headers)).await?
    };
    Ok((of_run(&run), Json(ResponseObject::of(&ended, &echo))).into_response())
}

async fn streamed(
    gateway: Arc<Gateway>,
    inside: Inside,
    run: RunId,
    echo: Echo,
    after: Option<u64>,
) -> Result<Response, OpenAiError> {
    let begun = EndedRun::read(&inside, &run).await.map_err(|error| error.after(&run))?;
    let script = ResponseStream::new(ResponseObject::begun(&begun, &echo), echo, after);
    Ok(sse::respond(gateway, inside, run, script))
}

fn metadata(body: &Map<String, Value>) -> Result<BTreeMap<String, String>, OpenAiError> {
    let given = body.get("metadata").filter(|value| !value.is_null());
    let read = given.map(|value| serde_json::from_value(value.clone())).transpose();
    let wrong = |_| OpenAiError::parameter("metadata", "`metadata` must be an object of texts");
    Ok(read.map_err(wrong)?.unwrap_or_default())
}

fn talk(body: &Map<String, Value>) -> Result<Talk, OpenAiError> {
    let mut talk = match body.get("input") {
        Some(Value::String(question)) => Talk { question: question.clone(), ..Talk::default() },
        Some(Value::Array(list)) => messages::read(list, "input")?,
        Some(_) | None => return Err(OpenAiError::parameter("input", "`input` must be a text or a list of messages")),
    };
    let instructions = parameters::text(body, "instructions")?.unwrap_or_default();
    let parts = [instructions, &talk.framing].into_iter().filter(|part| !part.is_empty());
    talk.framing = parts.collect::<Vec<_>>().join("\n\n");
    Ok(talk)
}

/// What a question goes on from, and the conversation that it belongs to.
async fn before(
    inside: &Inside,
    body: &Map<String, Value>,
    told: Vec<trellis_domain::record::Exchange>,
) -> Result<(Earlier, ConversationOf), OpenAiError> {
    let previous = parameters::text(body, "previous_response_id")?;
    let named = conversation(body)?;
    if !told.is_empty() && (previous.is_some() || named.is_some()) {
        let message = "what was said before is on record; send only the new message as `input`";
        return Err(OpenAiError::parameter("input", message));
    }
    match (previous, named) {
        (Some(_), Some(_)) => {
            let message = "give `previous_response_id` or `conversation`, not both";
            Err(OpenAiError::parameter("conversation", message))
        }
        (Some(id), None) => {
            let found = stored::find(inside, id).await?;
            if found.answer().is_none() {
                let message = format!("`{id}` has not ended yet; wait until it has, then go on from it");
                return Err(OpenAiError::parameter("previous_response_id", message));
            }
            let conversation = found.summary.conversation.as_ref().map(ToString::to_string);
            let conversation = conversation.map_or(ConversationOf::Itself, ConversationOf::Named);
            Ok((Earlier::UpTo(found.run().clone()), conversation))
        }
        (None, Some(name)) => Ok((Earlier::OfConversation, ConversationOf::Named(name.to_owned()))),
        (None, None) => Ok((Earlier::Told(told), ConversationOf::Itself)),
    }
}

/// The conversation that a request names, by its id or as an object.
fn conversation(body: &Map<String, Value>) -> Result<Option<&str>, OpenAiError> {
    let wrong = || OpenAiError::parameter("conversation", "`conversation` must be an id, or an object with one");
    let Some(given) = body.get("conversation").filter(|value| !value.is_null()) else { return Ok(None) };
    let id = given.as_str().or_else(|| given.get("id")?.as_str()).filter(|id| !id.is_empty());
    id.map(Some).ok_or_else(wrong)
}
