//! `POST /api/v1/sparql`: queries over the graph of a workspace, with limits that the caller sets.

use super::{ApiError, Entered, JsonObject, Place, Usual};
use crate::inside::Gateway;
use crate::members::Members;
use crate::peer::{Peer, while_there};
use crate::services::held::Written;
use crate::services::sparql::whole;
use axum::extract::State;
use axum::{Extension, Json};
use std::sync::Arc;
use std::time::Duration;
use trellis_orchestrator::ports::QueryLimits;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Where this path is.
pub(crate) const ROOT: &str = "/api/v1/sparql";
/// Rows are in memory until they are sent.
const MOST_ROWS: u64 = 100_000;
const LONGEST: u64 = 600;

pub(crate) fn router() -> OpenApiRouter<Arc<Gateway>> {
    OpenApiRouter::new().routes(routes!(query))
}

/// A query.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) struct Asked {
    /// SPARQL 1.1
    #[schema(min_length = 1)]
    query: String,
    /// Most rows; 10,000 if left out
    #[schema(minimum = 0, maximum = 100_000)]
    limit: Option<u64>,
    /// Seconds after which the query is given up; 30 if left out, and never more than the operator allows
    #[schema(minimum = 1, maximum = 600)]
    timeout: Option<u64>,
}

/// Ask the graph of all runs
///
/// The reply has a `query-type`: `select` with `variables`, `bindings` and `truncated`, `ask` with `ask-result`,
/// `construct` or `describe` with `triples`. Terms are written as stock TrustGraph clients read them. An answer that
/// lacks runs because the index is too far behind says how many: `missing-runs`.
#[utoipa::path(
    post, path = "/api/v1/sparql", tag = "runs", operation_id = "query",
    params(Place),
    request_body(content = Asked, content_type = "application/json"),
    responses(
        (status = 200, description = "The answer", body = Object),
        (status = 408, description = "The query took too long", body = ApiError),
        (status = 413, description = "The answer, or what it is made from, is too large", body = ApiError),
        (status = 429, description = "Too many queries at once; ask again later", body = ApiError),
        Usual,
    ),
)]
pub(crate) async fn query(
    State(gateway): State<Arc<Gateway>>,
    Entered { inside, .. }: Entered,
    peer: Option<Extension<Peer>>,
    JsonObject(body): JsonObject,
) -> Result<Json<Written>, ApiError> {
    let members = Members::new(&body);
    let usual = QueryLimits::default();
    let rows = bounded(members, "limit", 0, MOST_ROWS)?;
    let seconds = bounded(members, "timeout", 1, LONGEST)?;
    let limits = QueryLimits {
        max_rows: rows.map_or(usual.max_rows, |rows| usize::try_from(rows).unwrap_or(usize::MAX)),
        time: seconds.map_or(usual.time, Duration::from_secs),
    };
    let query = members.required("query")?;
    let asking = inside.asking();
    tokio::select! {
        answer = while_there(peer.as_deref(), inside.graph().query(asking, query, limits)) => {
            let answer = answer.ok_or_else(|| ApiError::request("the caller has left"))?;
            Ok(Json(whole(&answer?)?))
        }
        () = gateway.closed() => Err(ApiError::stopping()),
    }
}

fn bounded(members: Members<'_>, name: &str, least: u64, most: u64) -> Result<Option<u64>, ApiError> {
    match members.count(name)? {
        Some(number) if !(least..=most).contains(&number) => {
            Err(ApiError::request(format!("the member `{name}` is {number}; it must be from {least} to {most}")))
        }
        number => Ok(number),
    }
}
