//! Our own API, for programs that know nothing of TrustGraph.
//!
//! The paths here do not decide and do not store: they hand in questions, follow what the loop records and write it
//! down in the shape that was asked for. Errors are written as a [`Fault`].

pub(crate) mod configuration;
mod fault;
pub(crate) mod log;
pub(crate) mod runs;
pub(crate) mod sparql;

pub(crate) use fault::{Fault, Usual};

use crate::bearer::identify;
use crate::denied::Denied;
use crate::inside::{Gateway, Inside};
use crate::json::{self, Unreadable};
use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::Arc;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;

pub(crate) fn router() -> OpenApiRouter<Arc<Gateway>> {
    runs::router().merge(configuration::router()).merge(sparql::router()).merge(log::router())
}

/// A refusal in the shape that the path has.
pub(crate) fn denied_at(path: &str, denied: Denied) -> Response {
    let below = |root: &&str| path.strip_prefix(*root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let ours = [runs::ROOT, configuration::ROOT, sparql::ROOT, log::ROOT];
    if ours.iter().any(below) { Fault::from(denied).into_response() } else { denied.into_response() }
}

/// Parameters as they came, or why they cannot be read.
pub(crate) type Parameters<T> = Result<Query<T>, QueryRejection>;

pub(crate) fn read<T>(parameters: Parameters<T>) -> Result<T, Fault> {
    parameters.map(|Query(parameters)| parameters).map_err(|error| Fault::request(error.body_text()))
}

/// The body of a request.
pub(crate) fn object(body: &[u8]) -> Result<Map<String, Value>, Fault> {
    match json::read(body) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) => Err(Fault::request("the body must be a JSON object")),
        Err(Unreadable::Json(error)) => Err(Fault::request(format!("the body is not JSON: {error}"))),
        Err(crowded @ Unreadable::Crowded) => {
            let reason = format!("the body is too large: {crowded}");
            Err(Denied::new(StatusCode::PAYLOAD_TOO_LARGE, reason).into())
        }
    }
}

/// Where a request goes.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Place {
    /// The workspace; the caller's own if none is named
    pub(crate) workspace: Option<String>,
}

/// Lets a caller into a workspace.
pub(crate) async fn enter(gateway: &Gateway, headers: &HeaderMap, workspace: Option<&str>) -> Result<Inside, Fault> {
    let identity = identify(gateway, headers)?;
    Ok(gateway.enter(&identity, workspace.unwrap_or_default()).await?)
}
