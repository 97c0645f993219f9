//! `GET /api/v1/runs/{id}/records`: the journal's own records.

use super::{ApiError, FoundRun, Placed, Usual, limit, number};
use axum::Json;
use serde::Deserialize;
use trellis_orchestrator::service::RecordPage;
use utoipa::IntoParams;

const USUAL: usize = 100;
const MOST: usize = 1000;

/// Which records are wanted.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Wanted {
    /// The workspace; the caller's own if none is named
    workspace: Option<String>,
    /// Only records behind this number
    #[param(value_type = Option<u64>, minimum = 0)]
    after: Option<String>,
    /// How many; 100 if left out. A page with long texts ends earlier
    #[param(value_type = Option<u32>, minimum = 1, maximum = 1000)]
    limit: Option<String>,
}

impl Placed for Wanted {
    fn workspace(&self) -> Option<&str> {
        self.workspace.as_deref()
    }
}

/// Read a run's records
///
/// All of them, also those that arrived after the end, exactly as they are stored.
#[utoipa::path(
    get, path = "/api/v1/runs/{id}/records", tag = "runs", operation_id = "getRecords",
    params(("id" = String, Path, description = "The whole id of a run"), Wanted),
    responses((status = 200, description = "Records in order", body = RecordPage), Usual),
)]
pub(crate) async fn records(
    FoundRun { inside, run, parameters: wanted }: FoundRun<Wanted>,
) -> Result<Json<RecordPage>, ApiError> {
    let limit = limit(wanted.limit.as_deref(), USUAL, MOST)?;
    let after = wanted.after.map(|after| number("after", &after)).transpose()?.unwrap_or(0);
    Ok(Json(inside.runs().records(inside.workspace(), &run.run, after, limit).await?))
}
