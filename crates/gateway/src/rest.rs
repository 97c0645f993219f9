//! The services over plain HTTP: one request, one reply.
//!
//! What is wrong with a request as such has a status of its own. What a service refuses is answered with 200 and an
//! error object, because the stock client looks at nothing else.

use crate::access::Identity;
use crate::bearer::identify;
use crate::call::Call;
use crate::capacity::Turn;
use crate::error::{Code, ErrorBody, ServiceError};
use crate::inside::{Gateway, Inside};
use crate::json::{self, JsonError};
use crate::peer::{Peer, while_there};
use crate::request_memory::BodyPlace;
use crate::responses::by_status;
use crate::services::Service;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use trellis_domain::{Flow, Surface};
use utoipa::IntoResponses;
use utoipa::openapi::RefOr;

/// What is wrong with a request as such.
pub(crate) struct UsualErrors;

impl IntoResponses for UsualErrors {
    fn responses() -> BTreeMap<String, RefOr<utoipa::openapi::Response>> {
        by_status::<ErrorBody>(&[
            ("400", "The body is no JSON object, or a name is none"),
            ("401", "No token, or one that nobody knows"),
            ("403", "From a page of another site, or the workspace is not the token's"),
            ("404", "No such service or workspace"),
            ("408", "The body stopped coming"),
            ("413", "The body is too large"),
            ("429", "Too many wrong tokens came from this address"),
            ("503", "The store fails, or there is no room for a large body"),
        ])
    }
}

/// Ask a service of a workspace
///
/// As stock TrustGraph clients do: `config`, `librarian`, `flow` and so on, each with its own members. The member
/// `workspace` names the workspace.
#[utoipa::path(
    post, path = "/api/v1/{kind}", tag = "compatible", operation_id = "askWorkspaceService",
    params(("kind" = String, Path, description = "The name of the service")),
    request_body(content = Object, content_type = "application/json"),
    responses(
        (status = 200, description = "The reply, or an object with the `error` that the service had", body = Object),
        UsualErrors,
    ),
)]
pub(crate) async fn workspace_service(
    State(gateway): State<Arc<Gateway>>,
    Path(kind): Path<String>,
    turn: Option<Extension<Turn>>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, ServiceError> {
    let identity = identify(&gateway, &headers)?;
    let request = read_object(&body)?;
    let service = Service::of_workspace(&kind).ok_or_else(unknown_kind)?;
    let inside = inside_of(&gateway, &identity, &request).await?;
    let call = Call { inside, surface: Surface::TrustgraphRest, flow: None, request, memory: None };
    if let Some(turn) = turn.filter(|_| service.takes_long(&call)) {
        turn.give_back();
    }
    Ok(answer(&gateway, service, call).await)
}

/// Ask a service of a flow
///
/// As stock TrustGraph clients do: `agent`, `prompt`, `triples` and so on, each with its own members. Replies come
/// whole; the socket streams them.
#[utoipa::path(
    post, path = "/api/v1/flow/{flow}/service/{kind}", tag = "compatible", operation_id = "askFlowService",
    params(
        ("flow" = String, Path, description = "The flow, usually `default`"),
        ("kind" = String, Path, description = "The name of the service"),
    ),
    request_body(content = Object, content_type = "application/json"),
    responses(
        (status = 200, description = "The reply, or an object with the `error` that the service had", body = Object),
        UsualErrors,
    ),
)]
pub(crate) async fn flow_service(
    State(gateway): State<Arc<Gateway>>,
    Path((flow, kind)): Path<(String, String)>,
    peer: Option<Extension<Peer>>,
    memory: Option<Extension<BodyPlace>>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, ServiceError> {
    let identity = identify(&gateway, &headers)?;
    let request = read_object(&body)?;
    drop(body);
    let memory = memory.map(|Extension(place)| place);
    let service = Service::of_flow(&kind).ok_or_else(unknown_kind)?;
    let inside = inside_of(&gateway, &identity, &request).await?;
    let flow = Flow::new(&flow).map_err(|error| ServiceError::request(error.to_string()))?;
    let call = Call { inside, surface: Surface::TrustgraphRest, flow: Some(flow), request, memory };
    let answered = answer(&gateway, service, call);
    // What reads the graph is of no use without its reader. All else may have effects, and goes on.
    let peer = peer.as_deref().filter(|_| matches!(service, Service::Sparql | Service::Triples));
    let left = || Json(json!({"error": ServiceError::gateway("the caller has left").object()})).into_response();
    Ok(while_there(peer, answered).await.unwrap_or_else(left))
}

async fn answer(gateway: &Arc<Gateway>, service: Service, call: Call) -> Response {
    let streamed = service.streamed(gateway, &call).await;
    if let Some(response) = streamed.transpose() {
        return response.unwrap_or_else(|error| Json(json!({"error": error.object()})).into_response());
    }
    match service.answer(gateway, call).await {
        Ok(reply) => Json(reply).into_response(),
        Err(error) if error.code == Code::Operation => error.into_response(),
        Err(error) => Json(json!({"error": error.object()})).into_response(),
    }
}

/// Log in, as stock TrustGraph clients try to
///
/// There are no passwords to log in with, and nothing to bootstrap: this server knows tokens only.
#[utoipa::path(
    post, path = "/api/v1/auth/{what}", tag = "compatible", operation_id = "logIn",
    params(("what" = String, Path, description = "Such as `bootstrap-status` or `login`")),
    responses((status = 200, description = "Whether there is something to bootstrap", body = Object), UsualErrors),
)]
pub(crate) async fn auth(Path(what): Path<String>) -> Result<Response, ServiceError> {
    match what.as_str() {
        "bootstrap-status" => Ok(Json(json!({"bootstrap_available": false})).into_response()),
        "login" | "bootstrap" | "change-password" => {
            Err(ServiceError::new(Code::AuthRequired, "auth failure: this server knows tokens only, not passwords"))
        }
        _ => Err(unknown_kind()),
    }
}

/// The body as an object.
fn read_object(body: &[u8]) -> Result<Map<String, Value>, ServiceError> {
    match json::read(body) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) => Err(ServiceError::request("body must be an object")),
        Err(JsonError::Syntax(_)) => Err(ServiceError::request("invalid json")),
        Err(error @ JsonError::TooManyValues) => {
            Err(ServiceError::new(Code::TooLarge, format!("the body is too large: {error}")))
        }
    }
}

/// Into the workspace that a body names, or into the caller's own.
async fn inside_of(
    gateway: &Gateway,
    identity: &Identity,
    request: &Map<String, Value>,
) -> Result<Inside, ServiceError> {
    match request.get("workspace") {
        None | Some(Value::Null) => Ok(gateway.enter(identity, "").await?),
        Some(Value::String(name)) => Ok(gateway.enter(identity, name).await?),
        Some(_) => Err(ServiceError::request("workspace must be a text")),
    }
}

fn unknown_kind() -> ServiceError {
    ServiceError::new(Code::UnknownService, "unknown kind")
}
