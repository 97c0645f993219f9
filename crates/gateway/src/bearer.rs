//! Who is asking, by the bearer token of a request.

use crate::access::Identity;
use crate::error::{Code, ServiceError};
use crate::inside::Gateway;
use axum::http::{HeaderMap, header};

/// Who is asking, by the bearer token.
pub(crate) fn identify(gateway: &Gateway, headers: &HeaderMap) -> Result<Identity, ServiceError> {
    let known = gateway.access().identify(token(headers));
    known.ok_or_else(|| ServiceError::new(Code::AuthRequired, "auth failure"))
}

/// The bearer token of a request; empty if it has none.
pub(crate) fn token(headers: &HeaderMap) -> &str {
    let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (scheme, token) = given.split_once(' ').unwrap_or_default();
    if scheme.eq_ignore_ascii_case("bearer") { token.trim() } else { "" }
}
