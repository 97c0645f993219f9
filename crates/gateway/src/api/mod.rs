//! Our own API, for programs that know nothing of TrustGraph.
//!
//! The paths here do not decide and do not store: they hand in questions, follow what the loop records and write it
//! down in the shape that was asked for. Errors are written as an [`ApiError`].

mod collections;
pub(crate) mod configuration;
mod error;
mod extract;
pub(crate) mod log;
pub(crate) mod runs;
pub(crate) mod sparql;
mod status;
mod tables;
mod tools;

pub(crate) use error::{ApiError, Usual};
pub(crate) use extract::{Entered, FoundRun, JsonObject, OperatorLog, Parameters, Place, Placed};

use crate::error::ServiceError;
use crate::inside::Gateway;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;

pub(crate) fn router() -> OpenApiRouter<Arc<Gateway>> {
    let runs = runs::router().merge(configuration::router()).merge(sparql::router());
    runs.merge(log::router())
        .merge(collections::router())
        .merge(tables::router())
        .merge(tools::router())
        .merge(status::router())
}

/// Whether a body is read as it comes, so that it need not fit into memory.
pub(crate) fn takes_upload(path: &str) -> bool {
    collections::takes_uploads(path) || tables::takes_uploads(path)
}

/// An error in the shape that the path has, if it is ours or TrustGraph's.
pub(crate) fn error_at(path: &str, error: ServiceError) -> Response {
    let below = |root: &&str| path.strip_prefix(*root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let ours = [
        runs::ROOT,
        configuration::ROOT,
        sparql::ROOT,
        log::ROOT,
        collections::ROOT,
        tables::ROOT,
        tools::ROOT,
        status::ROOT,
    ];
    if ours.iter().any(below) { ApiError::from(error).into_response() } else { error.into_response() }
}
