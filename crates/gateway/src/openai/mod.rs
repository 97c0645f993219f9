//! What OpenAI's packages use, and the programs that are made for them: `/v1/models`, `/v1/chat/completions` and
//! `/v1/responses`.
//!
//! A request becomes a run like any other: it is on record, and it goes on when its caller leaves. A model is a way to be
//! answered: `trellis/auto`, or a pattern. Text that was sent cannot be taken back here, and what a model is still writing
//! may come to nothing. So only the recorded answer is sent, in pieces where a stream was asked for.

mod asking;
mod chat;
mod ending;
mod error;
mod extract;
mod headers;
mod messages;
mod models;
mod parameters;
mod responses;
mod stream;

pub(crate) use error::OpenAiError;

use crate::inside::Gateway;
use axum::Router;
use axum::routing::{get, post};
use std::sync::Arc;
use trellis_domain::Timestamp;
use utoipa::OpenApi;

/// Where these paths begin.
pub(crate) const ROOT: &str = "/v1";

/// What the API's document says of these paths.
#[derive(OpenApi)]
#[openapi(
    tags((
        name = "openai",
        description = "What OpenAI's packages use, and programs that are made for them: set their base address to \
            `/v1` of this server, and the key to a token.\n\nA model is a way to be answered: `trellis/auto`, or a \
            pattern such as `trellis/supervisor`. Each question is a run, which goes on if its caller leaves; the header \
            `x-trellis-run` has its id.",
    )),
    paths(
        models::list, models::one, chat::create, responses::create, responses::stored::one, responses::stored::delete,
        responses::stored::cancel,
    ),
    components(schemas(OpenAiError)),
)]
pub(crate) struct Document;

pub(crate) fn routes() -> Router<Arc<Gateway>> {
    Router::new()
        .route("/v1/models", get(models::list))
        // Names have a slash, which some clients write as it is.
        .route("/v1/models/{*id}", get(models::one))
        .route("/v1/chat/completions", post(chat::create))
        .route("/v1/responses", post(responses::create))
        .route("/v1/responses/{id}", get(responses::stored::one).delete(responses::stored::delete))
        .route("/v1/responses/{id}/cancel", post(responses::stored::cancel))
}

/// A time as OpenAI's objects have it.
fn seconds(time: Timestamp) -> i64 {
    time.as_micros().div_euclid(1_000_000)
}
