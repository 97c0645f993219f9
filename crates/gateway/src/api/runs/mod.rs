//! `/api/v1/runs`: runs, their events, their records and their graph. Tests hold the replies against the shapes that the
//! API's document tells.

mod cancel;
pub(crate) mod create;
pub(crate) mod decide;
mod events;
mod evidence;
mod export;
mod list;
mod records;
mod shapes;
mod tell;
pub(crate) mod wait;

use super::{ApiError, Entered, FoundRun, JsonObject, Place, Placed, Usual};
use crate::inside::Gateway;
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Where these paths begin.
pub(crate) const ROOT: &str = "/api/v1/runs";

pub(crate) fn router() -> OpenApiRouter<Arc<Gateway>> {
    OpenApiRouter::new()
        .routes(routes!(create::create, list::list))
        .routes(routes!(list::one))
        .routes(routes!(events::follow))
        .routes(routes!(records::records))
        .routes(routes!(evidence::evidence))
        .routes(routes!(export::traced))
        .routes(routes!(export::graph))
        .routes(routes!(cancel::cancel))
        .routes(routes!(decide::decide))
        .routes(routes!(tell::tell))
}

/// A whole number in a parameter or header.
pub(crate) fn number(name: &str, text: &str) -> Result<u64, ApiError> {
    // Not more than what other languages read as a whole number.
    const MOST: u64 = i64::MAX as u64;
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|number| digits && *number <= MOST);
    number.ok_or_else(|| {
        ApiError::request(format!("`{name}` must be a whole number that is not negative, found {text:?}"))
    })
}

/// How many of something are wanted: at least one, and not more than can be held at once.
pub(crate) fn limit(text: Option<&str>, usual: usize, most: usize) -> Result<usize, ApiError> {
    let Some(text) = text else { return Ok(usual) };
    let wanted = usize::try_from(number("limit", text)?).unwrap_or(usize::MAX);
    if (1..=most).contains(&wanted) {
        return Ok(wanted);
    }
    Err(ApiError::request(format!("`limit` must be from 1 to {most}, found {wanted}")))
}
