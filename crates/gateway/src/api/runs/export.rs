//! `GET /api/v1/runs/{id}/trace` and `…/graph`: a run as steps, and as RDF.

use super::{ApiError, FoundRun, Place, Usual};
use crate::inside::Inside;
use axum::Json;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use trellis_domain::record::Record;
use trellis_domain::run::RunSummary;
use trellis_orchestrator::summary::RunTrace;
use trellis_patterns::project;
use trellis_provenance::{Format, export};

/// Read a run as steps
///
/// The sessions of the run with all their steps, decisions and costs, and the texts that they refer to.
#[utoipa::path(
    get, path = "/api/v1/runs/{id}/trace", tag = "runs", operation_id = "getTrace",
    params(("id" = String, Path, description = "The whole id of a run"), Place),
    responses(
        (status = 200, description = "The trace", body = RunTrace),
        (status = 413, description = "The run is too large for one reply; read its records", body = ApiError),
        Usual,
    ),
)]
pub(crate) async fn traced(FoundRun { inside, run, .. }: FoundRun) -> Result<Json<RunTrace>, ApiError> {
    let records = records(&inside, &run).await?;
    let traced = tokio::task::spawn_blocking(move || inside.runs().traced(&run, &records)).await;
    traced.map(Json).map_err(ApiError::internal)
}

/// Read a run as PROV-O
///
/// The provenance of the run, in the syntax that `Accept` asks for; Turtle leaves out the name of the graph.
#[utoipa::path(
    get, path = "/api/v1/runs/{id}/graph", tag = "runs", operation_id = "getGraph",
    params(("id" = String, Path, description = "The whole id of a run"), Place),
    responses(
        (status = 200, description = "The graph", content(
            (String = "text/turtle"), (Object = "application/ld+json"), (String = "application/n-quads"),
        )),
        (status = 406, description = "None of these syntaxes is wanted", body = ApiError),
        (status = 413, description = "The run is too large for one reply; read its records", body = ApiError),
        Usual,
    ),
)]
pub(crate) async fn graph(FoundRun { inside, run, .. }: FoundRun, headers: HeaderMap) -> Result<Response, ApiError> {
    let records = records(&inside, &run).await?;
    let (kind, format) = syntax(&headers)?;
    let written = tokio::task::spawn_blocking(move || export(&project(&records), format)).await;
    let text = written.map_err(ApiError::internal)?.map_err(ApiError::internal)?;
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}

/// All records of a run.
async fn records(inside: &Inside, run: &RunSummary) -> Result<Vec<Arc<Record>>, ApiError> {
    let records = inside.runs().records_within(inside.workspace(), &run.run, WHOLE).await?;
    records.ok_or_else(|| ApiError::too_large(format!("the texts of this run have more than {} MiB", WHOLE >> 20)))
}

/// How many bytes of texts fit into one reply.
const WHOLE: usize = 16 << 20;

const SYNTAXES: [(&str, Format); 3] =
    [("text/turtle", Format::Turtle), ("application/ld+json", Format::JsonLd), ("application/n-quads", Format::NQuads)];

/// The syntax that the caller likes best. Whoever likes all the same gets Turtle.
fn syntax(headers: &HeaderMap) -> Result<(&'static str, Format), ApiError> {
    let mut accepted: Vec<&str> = Vec::new();
    for value in headers.get_all(header::ACCEPT) {
        accepted.extend(value.to_str().unwrap_or_default().split(','));
    }
    if accepted.iter().all(|range| range.trim().is_empty()) {
        return Ok(SYNTAXES[0]);
    }
    let liked = SYNTAXES.iter().map(|(kind, format)| (quality(&accepted, kind), *kind, *format));
    // The first of equals.
    let best = liked.rev().max_by(|(a, ..), (b, ..)| a.total_cmp(b)).filter(|(quality, ..)| *quality > 0.0);
    let known = SYNTAXES.map(|(kind, _)| kind).join(", ");
    let unknown = || ApiError::not_acceptable(format!("the graph can be had as {known}"));
    best.map(|(_, kind, format)| (kind, format)).ok_or_else(unknown)
}

/// How much a type is liked: what the most specific range that fits says, zero if none fits.
fn quality(accepted: &[&str], kind: &str) -> f32 {
    let family = kind.split('/').next().unwrap_or_default();
    let fits = accepted.iter().filter_map(|range| {
        let mut parts = range.split(';').map(str::trim);
        let name = parts.next()?.to_ascii_lowercase();
        let precision = match name.as_str() {
            name if name == kind => 2,
            "*/*" => 0,
            name if name.strip_suffix("/*") == Some(family) => 1,
            _ => return None,
        };
        let quality =
            parts.find_map(|part| part.strip_prefix(['q', 'Q'])?.strip_prefix('=')?.parse().ok()).unwrap_or(1.0);
        Some((precision, quality))
    });
    fits.max_by_key(|(precision, _)| *precision).map_or(0.0, |(_, quality)| quality)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(accept: &str) -> Option<&'static str> {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, accept.parse().unwrap());
        syntax(&headers).ok().map(|(kind, _)| kind)
    }

    #[test]
    fn the_syntax_is_the_one_that_is_liked_best() {
        assert_eq!(syntax(&HeaderMap::new()).unwrap().0, "text/turtle");
        let wishes = [
            ("*/*", Some("text/turtle")),
            ("application/*", Some("application/ld+json")),
            ("text/html, application/n-quads;q=0.4, */*;q=0.1", Some("application/n-quads")),
            ("text/turtle;q=0.1, application/ld+json; q=0.9", Some("application/ld+json")),
            ("text/turtle;Q=0.1, application/ld+json;q=0.5", Some("application/ld+json")),
            ("text/turtle;q=0, */*", Some("application/ld+json")),
            ("TEXT/TURTLE", Some("text/turtle")),
            ("application/json", None),
            ("text/html;q=1", None),
            ("text/turtle;q=0", None),
        ];
        for (accept, expected) in wishes {
            assert_eq!(wish(accept), expected, "{accept}");
        }
    }
}
