//! What responses of all paths have in common.

use axum::http::header;
use axum::response::Response;
use std::collections::BTreeMap;
use utoipa::ToSchema;
use utoipa::openapi::{Content, Ref, RefOr, ResponseBuilder};

/// A response that says when to come again, if that is known.
pub(crate) fn with_retry_after(mut response: Response, seconds: Option<u64>) -> Response {
    if let Some(seconds) = seconds {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

/// What a path may answer when something is wrong, by status, in one shape.
pub(crate) fn by_status<T: ToSchema>(all: &[(&str, &str)]) -> BTreeMap<String, RefOr<utoipa::openapi::Response>> {
    let described = |(status, description): &(&str, &str)| {
        let body = Content::new(Some(Ref::from_schema_name(T::name())));
        let response = ResponseBuilder::new().description(*description).content("application/json", body).build();
        ((*status).to_owned(), RefOr::T(response))
    };
    all.iter().map(described).collect()
}
