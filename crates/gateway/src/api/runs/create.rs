//! `POST /api/v1/runs`: asking a question.

use super::shapes::{Begun, Links, NewRun};
use super::{ApiError, Entered, JsonObject, Placed, Usual, wait};
use crate::inside::Gateway;
use crate::members::Members;
use crate::request_memory::BodyPlace;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use trellis_domain::ids::iri_part;
use trellis_domain::limits::SomeLimits;
use trellis_domain::message::{AgentRequest, AgentStep};
use trellis_domain::{RequestId, Scope, Selection, Surface};
use trellis_orchestrator::Question;
use trellis_orchestrator::accept::UnknownNames;
use utoipa::IntoParams;

/// Names a request, so that it can be sent again.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// Where a question goes, and whether its caller waits.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Asked {
    /// The workspace; the caller's own if none is named
    workspace: Option<String>,
    /// So many seconds are waited for the run's end, or for a question that somebody has to answer; then the reply has the
    /// whole `run`. It goes on if it takes longer
    #[param(value_type = Option<u64>, minimum = 0, maximum = 600)]
    wait: Option<String>,
}

impl Placed for Asked {
    fn workspace(&self) -> Option<&str> {
        self.workspace.as_deref()
    }
}

/// Ask a question
///
/// Answers as soon as the question is safely stored; from then on it is worked on, whoever listens. A request that is
/// sent again under the same `Idempotency-Key` gets the same run.
#[utoipa::path(
    post, path = "/api/v1/runs", tag = "runs", operation_id = "createRun",
    params(
        Asked,
        ("Idempotency-Key" = Option<String>, Header,
            description = "Any id of the caller's own, such as a UUID. Not together with `session_id`",
            nullable = false, min_length = 1, max_length = 200, pattern = "^[A-Za-z0-9._~:@+=,-]+$"),
    ),
    request_body(content = NewRun, content_type = "application/json"),
    responses(
        (status = 202, description = "Accepted; a new run, which goes on", body = Begun),
        (status = 200, description = "What came of it within `wait`; or the same request was accepted before, and this is its run", body = Begun),
        (status = 409, description = "The key or id belongs to another request", body = ApiError),
        (status = 413, description = "The question or the body is too large", body = ApiError),
        (status = 429, description = "Too many runs are open, or too many wrong tokens came; see `Retry-After`", body = ApiError),
        Usual,
    ),
)]
pub(crate) async fn create(
    State(gateway): State<Arc<Gateway>>,
    Entered { inside, parameters: asked }: Entered<Asked>,
    place: Option<Extension<BodyPlace>>,
    headers: HeaderMap,
    JsonObject(body): JsonObject,
) -> Result<Response, ApiError> {
    if !gateway.takes_questions() {
        return Err(ApiError::stopping());
    }
    let time = wait::wanted(asked.wait.as_deref())?;
    let key = idempotency_key(&headers)?;
    let (request, limits, selection) = read_question(&body)?;
    let request_id = match key {
        Some(_) if !request.session_id.is_empty() => {
            let message = "a session id makes a request repeatable by itself; leave out it or the Idempotency-Key";
            return Err(ApiError::request(message));
        }
        Some(key) => key,
        None => inside.runs().new_request_id().map_err(ApiError::internal)?,
    };
    let scope = Scope { workspace: inside.workspace().clone(), ..Scope::default() };
    let by = Some(inside.caller(Surface::Api));
    let question = Question { scope, request_id, request, limits, names: UnknownNames::Refuse, selection, by };
    let accepted = inside.accept(question).await??;
    // It is on record. Many may wait, and nobody else's question is to wait for them.
    drop(body);
    if let Some(Extension(place)) = place {
        place.give_back();
    }
    let run = match time {
        Some(time) => wait::outcome(&gateway, &inside, &accepted.run, time).await?,
        None => None,
    };
    let links = links(accepted.run.as_str(), asked.workspace.as_deref());
    let location = links.own.clone();
    let status = if accepted.attached || run.is_some() { StatusCode::OK } else { StatusCode::ACCEPTED };
    let begun = Begun { run_id: accepted.run.as_str().to_owned(), attached: accepted.attached, links, run };
    Ok((status, [(header::LOCATION, location)], Json(begun)).into_response())
}

pub(crate) fn idempotency_key(headers: &HeaderMap) -> Result<Option<RequestId>, ApiError> {
    let Some(key) = headers.get(IDEMPOTENCY_KEY) else { return Ok(None) };
    let key = key.to_str().map_err(|_| ApiError::request("the Idempotency-Key has characters that are no ASCII"))?;
    // The header's own standard writes it as a quoted text.
    let bare = key.strip_prefix('"').and_then(|key| key.strip_suffix('"')).unwrap_or(key);
    RequestId::new(bare).map(Some).map_err(|error| ApiError::request(format!("the Idempotency-Key is wrong: {error}")))
}

/// Where to go on. Ids may have characters that a path cannot hold as they are.
fn links(run: &str, workspace: Option<&str>) -> Links {
    let place = workspace.filter(|name| !name.is_empty());
    let place = place.map(|name| format!("?workspace={}", iri_part(name))).unwrap_or_default();
    let link = |end: &str| format!("{}/{}{end}{place}", super::ROOT, iri_part(run));
    Links {
        own: link(""),
        events: link("/events"),
        records: link("/records"),
        trace: link("/trace"),
        graph: link("/graph"),
        cancel: link("/cancel"),
        decide: link("/decide"),
        tell: link("/tell"),
    }
}

/// The members of a new run.
const MEMBERS: [&str; 14] = [
    "question",
    "pattern",
    "task_type",
    "group",
    "state",
    "collection",
    "conversation_id",
    "session_id",
    "framing",
    "streaming",
    "history",
    "limits",
    "tools",
    "model",
];

fn read_question(body: &Map<String, Value>) -> Result<(AgentRequest, SomeLimits, Selection), ApiError> {
    refuse_unknown(body, &MEMBERS, "a new run")?;
    let members = Members::new(body);
    let text = |name: &str| members.text(name).map(|text| text.unwrap_or_default().to_owned());
    let usual = AgentRequest::default();
    let request = AgentRequest {
        // What an empty one lacks is said where it is accepted.
        question: members.text("question")?.ok_or_else(no_question)?.to_owned(),
        pattern: text("pattern")?,
        task_type: text("task_type")?,
        group: members.texts("group")?,
        state: text("state")?,
        collection: members.text("collection")?.filter(|name| !name.is_empty()).unwrap_or(&usual.collection).to_owned(),
        conversation_id: text("conversation_id")?,
        session_id: text("session_id")?,
        framing: text("framing")?,
        streaming: members.value("streaming").is_none() || members.flag("streaming")?,
        history: history(members)?,
        ..usual
    };
    Ok((request, limits(members)?, selection(members)?))
}

/// What the caller chooses out of what is configured. Empty names choose nothing.
fn selection(members: Members<'_>) -> Result<Selection, ApiError> {
    let tools = members.texts("tools")?.map(|names| names.iter().map(|name| name.as_str().into()).collect());
    let model = members.text("model")?.filter(|name| !name.is_empty()).map(str::to_owned);
    Ok(Selection { tools, model })
}

fn no_question() -> ApiError {
    ApiError::request("the member `question` is missing; it must be a text")
}

pub(crate) fn refuse_unknown(object: &Map<String, Value>, known: &[&str], of: &str) -> Result<(), ApiError> {
    match object.keys().find(|name| !known.contains(&name.as_str())) {
        Some(name) => Err(ApiError::request(format!("{of} has no member `{name}`; it may have {}", known.join(", ")))),
        None => Ok(()),
    }
}

fn history(members: Members<'_>) -> Result<Vec<AgentStep>, ApiError> {
    const KNOWN: [&str; 5] = ["thought", "action", "arguments", "observation", "step_type"];
    let step = |value: &Value| {
        let object =
            value.as_object().ok_or_else(|| ApiError::request("the member `history` must be a list of objects"))?;
        refuse_unknown(object, &KNOWN, "a step of `history`")?;
        let members = Members::new(object);
        let text = |name: &str| members.text(name).map(|text| text.unwrap_or_default().to_owned());
        let mut arguments = std::collections::BTreeMap::new();
        for (name, value) in members.object("arguments")?.into_iter().flatten() {
            let text = value.as_str().ok_or_else(|| {
                ApiError::request(format!(
                    "the argument `{name}` in `history` must be a text; write other values as JSON"
                ))
            })?;
            arguments.insert(name.clone(), text.to_owned());
        }
        Ok(AgentStep {
            thought: text("thought")?,
            action: text("action")?,
            arguments,
            observation: text("observation")?,
            step_type: text("step_type")?,
            ..AgentStep::default()
        })
    };
    members.list("history")?.iter().map(step).collect()
}

pub(crate) fn limits(members: Members<'_>) -> Result<SomeLimits, ApiError> {
    let Some(given) = members.object("limits")? else { return Ok(SomeLimits::default()) };
    for (name, value) in given {
        // One by one, so that the error can say which.
        serde_json::from_value::<SomeLimits>(json!({ name: value }))
            .map_err(|error| ApiError::request(format!("the limit `{name}` is wrong: {error}")))?;
    }
    let limits: SomeLimits = serde_json::from_value(json!(given))
        .map_err(|error| ApiError::request(format!("the limits are wrong: {error}")))?;
    match limits.wrongly_zero() {
        Some(zero) => {
            Err(ApiError::request(format!("the limit `{zero}` is 0, so nothing could run; write at least 1")))
        }
        None => Ok(limits),
    }
}
