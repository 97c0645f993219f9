//! `GET /api/v1/runs/{id}/records`: the journal's own records.

use super::shapes::Records;
use super::{Fault, Id, Parameters, Usual, enter, find, limit, number, read};
use crate::inside::Gateway;
use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use trellis_domain::record::Record;
use trellis_orchestrator::hub::size_of_texts;
use utoipa::IntoParams;

const USUAL: usize = 100;
const MOST: usize = 1000;
/// How many are read at a time, and how many bytes of texts a page has before it ends, whatever was asked for.
const STEP: usize = 16;
const FULL: usize = 4 << 20;

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

/// Records, and where to go on.
#[derive(Debug, Serialize)]
pub(crate) struct Page {
    records: Vec<Arc<Record>>,
    next: Option<u64>,
}

/// Read a run's records
///
/// All of them, also those that arrived after the end, exactly as they are stored.
#[utoipa::path(
    get, path = "/api/v1/runs/{id}/records", tag = "runs", operation_id = "getRecords",
    params(("id" = String, Path, description = "The whole id of a run"), Wanted),
    responses((status = 200, description = "Records in order", body = Records), Usual),
)]
pub(crate) async fn records(
    State(gateway): State<Arc<Gateway>>,
    Id(id): Id,
    parameters: Parameters<Wanted>,
    headers: HeaderMap,
) -> Result<Json<Page>, Fault> {
    let wanted = read(parameters)?;
    let inside = enter(&gateway, &headers, wanted.workspace.as_deref()).await?;
    let limit = limit(wanted.limit.as_deref(), USUAL, MOST)?;
    let after = wanted.after.map(|after| number("after", &after)).transpose()?.unwrap_or(0);
    let run = find(&inside, &id).await?;
    let (mut records, mut size, mut last) = (Vec::new(), 0, after);
    while records.len() < limit && size < FULL {
        let some = inside.journal().events(inside.workspace(), &run.run, last, STEP.min(limit - records.len())).await?;
        let Some(newest) = some.last() else { break };
        last = newest.header.seq;
        size += some.iter().map(|record| size_of_texts(record)).sum::<usize>();
        records.extend(some);
    }
    // The run may have gone on meanwhile: then there is more, too.
    let more = !inside.journal().events(inside.workspace(), &run.run, last, 1).await?.is_empty();
    let next = records.last().map(|record: &Arc<Record>| record.header.seq).filter(|_| more);
    Ok(Json(Page { records, next }))
}
