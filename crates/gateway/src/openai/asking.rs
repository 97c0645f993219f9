//! From a request to its run, and to what came of it.

use super::OpenAiError;
use super::ending::EndedRun;
use crate::api::runs::create::idempotency_key;
use crate::api::runs::wait;
use crate::inside::{Gateway, Inside};
use axum::http::HeaderMap;
use std::time::Duration;
use trellis_domain::limits::SomeLimits;
use trellis_domain::message::AgentRequest;
use trellis_domain::run::RunState;
use trellis_domain::{RunId, Scope, Selection, Surface};
use trellis_orchestrator::Question;
use trellis_orchestrator::accept::{Earlier, UnknownNames};

/// What is asked for.
#[derive(Debug)]
pub(super) struct Wish {
    /// Empty if the router chooses.
    pub(super) pattern: String,
    pub(super) framing: String,
    pub(super) question: String,
    pub(super) earlier: Earlier,
    pub(super) conversation: ConversationOf,
}

/// The conversation that a question belongs to.
#[derive(Debug)]
pub(super) enum ConversationOf {
    Nobody,
    /// One that begins with it.
    Itself,
    Named(String),
}

/// Accepts a question. From now on it is worked on, whoever listens.
pub(super) async fn accept(
    gateway: &Gateway,
    inside: &Inside,
    headers: &HeaderMap,
    wish: Wish,
) -> Result<RunId, OpenAiError> {
    if !gateway.takes_questions() {
        return Err(crate::api::ApiError::stopping().into());
    }
    let request_id = match idempotency_key(headers)? {
        Some(key) => key,
        None => inside.runs().new_request_id().map_err(crate::api::ApiError::internal)?,
    };
    let conversation_id = match wish.conversation {
        ConversationOf::Nobody => String::new(),
        // The same for a request that is sent again.
        ConversationOf::Itself => request_id.to_string(),
        ConversationOf::Named(name) => name,
    };
    let request = AgentRequest {
        question: wish.question,
        pattern: wish.pattern,
        framing: wish.framing,
        conversation_id,
        // For whoever follows the run's own events.
        streaming: true,
        ..AgentRequest::default()
    };
    let scope = Scope { workspace: inside.workspace().clone(), ..Scope::default() };
    let by = Some(inside.caller(Surface::Openai));
    let (limits, selection) = (SomeLimits::default(), Selection::default());
    let question = Question { scope, request_id, request, limits, names: UnknownNames::Refuse, selection, by };
    Ok(inside.accept_after(question, wish.earlier).await??.run)
}

/// What came of a run, for a caller that waits for it.
pub(super) async fn outcome(
    gateway: &Gateway,
    inside: &Inside,
    run: &RunId,
    time: Duration,
) -> Result<EndedRun, OpenAiError> {
    let settled = wait::outcome(gateway, inside, run, time).await;
    match settled.map_err(|error| OpenAiError::from(error).after(run))? {
        Some(whole) if whole.state == RunState::Waiting => {
            let question = whole.waiting_for.first().map_or("", |open| &open.question);
            Err(OpenAiError::waits(run, question))
        }
        Some(_) => EndedRun::read(inside, run).await.map_err(|error| error.after(run)),
        None => Err(OpenAiError::still_running(run)),
    }
}
