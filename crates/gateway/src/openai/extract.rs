//! What handlers are given. What cannot be given is refused in OpenAI's words.

use super::OpenAiError;
use crate::api::{Entered, JsonObject, Placed};
use crate::inside::{Gateway, Inside};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::Arc;
use utoipa::IntoParams;

/// Where a request goes. Other parameters mean nothing here: clients add their own.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Place {
    /// The workspace; the token's own if none is named
    workspace: Option<String>,
}

impl Placed for Place {
    fn workspace(&self) -> Option<&str> {
        self.workspace.as_deref()
    }
}

/// A caller in the workspace that its request names, or in its own.
#[derive(Debug)]
pub(super) struct Inward<P = Place>(pub(super) Inside, pub(super) P);

impl<P: Placed> FromRequestParts<Arc<Gateway>> for Inward<P> {
    type Rejection = OpenAiError;

    async fn from_request_parts(parts: &mut Parts, gateway: &Arc<Gateway>) -> Result<Self, OpenAiError> {
        let Entered { inside, parameters } = Entered::from_request_parts(parts, gateway).await?;
        Ok(Self(inside, parameters))
    }
}

/// The members of a body.
#[derive(Debug)]
pub(super) struct Members(pub(super) Map<String, Value>);

impl<S: Send + Sync> FromRequest<S> for Members {
    type Rejection = OpenAiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, OpenAiError> {
        let JsonObject(members) = JsonObject::from_request(request, state).await?;
        Ok(Self(members))
    }
}
