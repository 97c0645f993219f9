//! What handlers are given: parameters that were read, a workspace that was entered, a run that was found. What cannot be
//! given is refused here, as the API words it.

use super::ApiError;
use crate::bearer::identify;
use crate::error::{Code, ServiceError};
use crate::inside::{Gateway, Inside};
use crate::json::{self, JsonError};
use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::sync::Arc;
use trellis_domain::RunId;
use trellis_domain::run::RunSummary;
use trellis_orchestrator::ports::Log;
use utoipa::IntoParams;

/// The parameters of a query.
#[derive(Debug)]
pub(crate) struct Parameters<P>(pub(crate) P);

impl<P: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Parameters<P> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let read = Query::from_request_parts(parts, state).await;
        read.map(|Query(parameters)| Self(parameters)).map_err(|error| ApiError::request(error.body_text()))
    }
}

/// Parameters that may name a workspace.
pub(crate) trait Placed: DeserializeOwned + Send {
    fn workspace(&self) -> Option<&str>;
}

/// Where a request goes.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Place {
    /// The workspace; the caller's own if none is named
    pub(crate) workspace: Option<String>,
}

impl Placed for Place {
    fn workspace(&self) -> Option<&str> {
        self.workspace.as_deref()
    }
}

/// A caller in the workspace that its request names, or in its own.
#[derive(Debug)]
pub(crate) struct Entered<P = Place> {
    pub(crate) inside: Inside,
    pub(crate) parameters: P,
}

impl<P: Placed> FromRequestParts<Arc<Gateway>> for Entered<P> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, gateway: &Arc<Gateway>) -> Result<Self, ApiError> {
        let Parameters(parameters): Parameters<P> = Parameters::from_request_parts(parts, gateway).await?;
        let identity = identify(gateway, &parts.headers)?;
        let inside = gateway.enter(&identity, parameters.workspace().unwrap_or_default()).await?;
        Ok(Self { inside, parameters })
    }
}

/// The run that a path names, in the workspace that the request names.
#[derive(Debug)]
pub(crate) struct FoundRun<P = Place> {
    pub(crate) inside: Inside,
    pub(crate) run: RunSummary,
    pub(crate) parameters: P,
}

impl<P: Placed> FromRequestParts<Arc<Gateway>> for FoundRun<P> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, gateway: &Arc<Gateway>) -> Result<Self, ApiError> {
        // What cannot be read as an id is no run.
        let id = Path::<String>::from_request_parts(parts, gateway).await;
        let Path(id) = id.map_err(|_| ApiError::no_run(parts.uri.path()))?;
        let Entered { inside, parameters } = Entered::from_request_parts(parts, gateway).await?;
        let run = RunId::new(&id).map_err(|_| ApiError::no_run(&id))?;
        let found = inside.runs().find(inside.workspace(), &run).await?;
        Ok(Self { run: found.ok_or_else(|| ApiError::no_run(&id))?, inside, parameters })
    }
}

/// The log, for a caller that sees every workspace.
#[derive(Debug)]
pub(crate) struct OperatorLog(pub(crate) Arc<dyn Log>);

impl FromRequestParts<Arc<Gateway>> for OperatorLog {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, gateway: &Arc<Gateway>) -> Result<Self, ApiError> {
        let identity = identify(gateway, &parts.headers)?;
        gateway.log(&identity).map(Self).ok_or_else(ApiError::not_the_operator)
    }
}

/// The members of a body, which is a JSON object.
#[derive(Debug)]
pub(crate) struct JsonObject(pub(crate) Map<String, Value>);

impl<S: Send + Sync> FromRequest<S> for JsonObject {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let body = Bytes::from_request(request, state).await;
        let body = body.map_err(|error| ApiError::request(error.body_text()))?;
        match json::read(&body) {
            Ok(Value::Object(members)) => Ok(Self(members)),
            Ok(_) => Err(ApiError::request("the body must be a JSON object")),
            Err(JsonError::Syntax(error)) => Err(ApiError::request(format!("the body is not JSON: {error}"))),
            Err(error @ JsonError::TooManyValues) => {
                Err(ServiceError::new(Code::TooLarge, format!("the body is too large: {error}")).into())
            }
        }
    }
}
