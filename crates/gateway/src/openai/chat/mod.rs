//! `POST /v1/chat/completions`.

mod shapes;
mod stream;

use self::shapes::{ChatCompletion, ChatRequest};
use self::stream::ChatStream;
use super::asking::{ConversationOf, Wish, accept, outcome};
use super::error::Usual;
use super::extract::{Inward, Members, Place};
use super::headers::{of_run, patience};
use super::stream::StreamedEvent;
use super::{OpenAiError, messages, models, parameters, seconds, stream as sse};
use crate::inside::Gateway;
use crate::request_memory::BodyPlace;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde_json::{Map, Value};
use std::sync::Arc;
use trellis_orchestrator::accept::Earlier;

/// Chat
///
/// The last message is the question, those before it are the conversation, and messages of the system or the developer are
/// the framing. The answer is that of a whole run. A stream begins at once and has comments while the run goes on; the text
/// comes when it is certain, at the end.
///
/// What only shapes how a model writes is ignored: `temperature`, `top_p`, `seed`, `max_tokens`, `max_completion_tokens`,
/// penalties, `reasoning_effort`, `user`, `store` (everything is on record). Refused is what would be missed: functions,
/// schemas, several choices, stop words, log probabilities, images and audio.
#[utoipa::path(
    post, path = "/v1/chat/completions", tag = "openai", operation_id = "createChatCompletion",
    params(
        Place,
        ("Idempotency-Key" = Option<String>, Header, nullable = false, min_length = 1, max_length = 200,
            pattern = "^[A-Za-z0-9._~:@+=,-]+$",
            description = "Any id of the caller's own: the same request under the same key is one run"),
    ),
    request_body(content = ChatRequest, content_type = "application/json"),
    responses(
        (status = 200, description = "The answer; with `stream` as events, each of which has one chunk as its `data`", content(
            (ChatCompletion = "application/json"), (StreamedEvent = "text/event-stream"),
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
    let model = models::name(Some(pattern.as_str()).filter(|pattern| !pattern.is_empty()));
    parameters::check_chat(&body)?;
    let (streams, with_usage) = (parameters::flag(&body, "stream")?, wants_usage(&body)?);
    let no_list = || OpenAiError::parameter("messages", "`messages` must be a list of messages");
    let list = body.get("messages").and_then(Value::as_array).ok_or_else(no_list)?;
    let talk = messages::read(list, "messages")?;
    let left_out = talk.left_out;
    let wish = Wish {
        pattern,
        framing: talk.framing,
        question: talk.question,
        earlier: Earlier::Told(talk.earlier),
        conversation: ConversationOf::Nobody,
    };
    let run = accept(&gateway, &inside, &headers, wish).await?;
    // It is on record. Many may wait, and nobody else's question is to wait for them.
    drop(body);
    if let Some(Extension(place)) = place {
        place.give_back();
    }
    if streams {
        let created = seconds(inside.world().now());
        let script = ChatStream { id: chat_id(&run), model, created, with_usage, left_out };
        return Ok(sse::respond(gateway, inside, run, script));
    }
    let ended = outcome(&gateway, &inside, &run, patience(&headers)).await?;
    let completion = ChatCompletion::of(&ended, model, left_out)?;
    Ok((of_run(&run), Json(completion)).into_response())
}

fn wants_usage(body: &Map<String, Value>) -> Result<bool, OpenAiError> {
    match body.get("stream_options") {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Object(options)) => parameters::flag(options, "include_usage"),
        Some(_) => Err(OpenAiError::parameter("stream_options", "`stream_options` must be an object")),
    }
}

fn chat_id(run: &trellis_domain::RunId) -> String {
    format!("chatcmpl-{run}")
}
