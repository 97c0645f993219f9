//! `/api/metrics/query`: the figures that stock commands ask Prometheus for through TrustGraph's gateway.
//!
//! There is no Prometheus behind this. What is known here is a handful of figures of this moment, so that a query is the
//! name of one and the labels it must have; nothing is computed over time.

use crate::access::Identity;
use crate::error::{ErrorBody, ServiceError};
use crate::health::operator;
use crate::inside::Gateway;
use crate::services::{OF_FLOWS, OF_WORKSPACES};
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Flows of which the services are told.
const MOST_FLOWS: usize = 100;

#[derive(Debug, Deserialize)]
pub(crate) struct Asked {
    #[serde(default)]
    query: String,
}

/// Ask for a figure, as stock TrustGraph commands do
///
/// As Prometheus answers an instant query: `processor_info` (the services that there are), `consumer_state` (the same
/// for each flow), `input_tokens_total` and `output_tokens_total` (what models have read and written since the start).
#[utoipa::path(
    get, path = "/api/metrics/query", tag = "compatible", operation_id = "figures",
    params(("query" = String, Query, description = "A name, perhaps with labels: `consumer_state{flow=\"default\"}`")),
    responses(
        (status = 200, description = "As many samples as there are", body = Object),
        (status = 400, description = "The query is more than a name with labels", body = Object),
        (status = 401, description = "No token, or one that nobody knows", body = ErrorBody),
        (status = 403, description = "From a page of another site, or the token is not the operator's", body = ErrorBody),
        (status = 429, description = "Too many wrong tokens came from this address", body = ErrorBody),
        (status = 503, description = "The store fails", body = ErrorBody),
    ),
)]
pub(crate) async fn query(
    State(gateway): State<Arc<Gateway>>,
    headers: HeaderMap,
    asked: Result<Query<Asked>, QueryRejection>,
) -> Result<Response, ServiceError> {
    let identity = operator(&gateway, &headers)?;
    let Some(selector) = asked.ok().and_then(|Query(asked)| Selector::read(&asked.query)) else {
        let why = "only the name of a figure can be asked for here, perhaps with labels that are equal to something";
        let refused = json!({"status": "error", "errorType": "bad_data", "error": why});
        return Ok((StatusCode::BAD_REQUEST, Json(refused)).into_response());
    };
    let samples = samples(&gateway, &identity, &selector).await?;
    #[allow(clippy::cast_precision_loss, reason = "Prometheus tells the time as a number of seconds")]
    let now = gateway.now().as_micros() as f64 / 1e6;
    let result: Vec<_> =
        samples.into_iter().filter(|sample| selector.fits(sample)).map(|sample| sample.told(now)).collect();
    Ok(Json(json!({"status": "success", "data": {"resultType": "vector", "result": result}})).into_response())
}

/// A name, and labels with what they must be.
#[derive(Debug, PartialEq, Eq)]
struct Selector {
    name: String,
    labels: Vec<(String, String)>,
}

impl Selector {
    fn read(query: &str) -> Option<Self> {
        let query = query.trim();
        let (name, labels) = match query.split_once('{') {
            Some((name, rest)) => (name.trim(), rest.strip_suffix('}')?),
            None => (query, ""),
        };
        let is_name = |name: &str| {
            let mut letters = name.chars();
            let first = letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_');
            first && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        };
        let label = |text: &str| {
            let (name, value) = text.split_once('=')?;
            let value = value.trim().strip_prefix('"')?.strip_suffix('"')?;
            is_name(name.trim()).then(|| (name.trim().to_owned(), value.to_owned()))
        };
        let parts = labels.split(',').map(str::trim).filter(|part| !part.is_empty());
        let labels = parts.map(label).collect::<Option<Vec<_>>>()?;
        // Newer processes upstream have this in front of all their names; commands still ask without.
        let name = name.strip_prefix("tg_").unwrap_or(name);
        is_name(name).then(|| Self { name: name.to_owned(), labels })
    }

    fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|(label, _)| label == name).map(|(_, value)| value.as_str())
    }

    fn fits(&self, sample: &Sample) -> bool {
        self.labels
            .iter()
            .all(|(name, value)| sample.labels.iter().any(|(label, found)| label == name && found == value))
    }
}

/// One figure with its labels.
struct Sample {
    labels: Vec<(&'static str, String)>,
    value: u64,
}

impl Sample {
    fn new<const N: usize>(name: &str, labels: [(&'static str, &str); N], value: u64) -> Self {
        let usual = [("__name__", name), ("job", "trellis")];
        let labels = usual.into_iter().chain(labels).map(|(label, text)| (label, text.to_owned())).collect();
        Self { labels, value }
    }

    fn told(&self, now: f64) -> Value {
        let metric: serde_json::Map<_, _> =
            self.labels.iter().map(|(label, text)| ((*label).to_owned(), json!(text))).collect();
        json!({"metric": metric, "value": [now, self.value.to_string()]})
    }
}

/// All samples of a name. One that nobody knows has none, as with Prometheus.
async fn samples(gateway: &Gateway, identity: &Identity, selector: &Selector) -> Result<Vec<Sample>, ServiceError> {
    let (read, written) = gateway.tokens();
    let name = selector.name.as_str();
    let process = ("processor", "trellis");
    Ok(match name {
        "processor_info" => {
            let services = OF_FLOWS.iter().chain(OF_WORKSPACES);
            services.map(|service| Sample::new(name, [("processor", service)], 1)).collect()
        }
        "input_tokens_total" => vec![Sample::new(name, [process], read)],
        "output_tokens_total" => vec![Sample::new(name, [process], written)],
        "trellis_open_runs" => {
            let open = gateway.open_runs().await?;
            vec![Sample::new(name, [process], u64::try_from(open).unwrap_or(u64::MAX))]
        }
        "consumer_state" => {
            let flows = flows(gateway, identity, selector.label("flow")).await?;
            let running = ("consumer_state", "running");
            let of_flow = |flow: &String| {
                OF_FLOWS
                    .iter()
                    .map(|service| Sample::new(name, [("processor", service), ("flow", flow.as_str()), running], 1))
                    .collect::<Vec<_>>()
            };
            flows.iter().flat_map(of_flow).collect()
        }
        _ => Vec::new(),
    })
}

/// The flows of all workspaces by name, or the one that is asked for.
async fn flows(gateway: &Gateway, identity: &Identity, wanted: Option<&str>) -> Result<BTreeSet<String>, ServiceError> {
    let mut flows = BTreeSet::from(["default".to_owned()]);
    for inside in gateway.everywhere(identity).await? {
        let (_, items) = inside.config().all(inside.workspace()).await?;
        flows.extend(items.into_iter().filter(|item| item.kind == "flow").map(|item| item.key));
    }
    flows.retain(|flow| wanted.is_none_or(|wanted| wanted == flow));
    Ok(flows.into_iter().take(MOST_FLOWS).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_a_name_with_labels() {
        let read = |query: &str| Selector::read(query).map(|selector| (selector.name, selector.labels));
        let label = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(read("processor_info"), Some(("processor_info".to_owned(), Vec::new())));
        assert_eq!(read(" tg_processor_info{} "), Some(("processor_info".to_owned(), Vec::new())));
        let labels = vec![label("consumer_state", "running"), label("flow", "default")];
        assert_eq!(
            read("consumer_state{consumer_state=\"running\",flow=\"default\"}"),
            Some(("consumer_state".to_owned(), labels))
        );
        for wrong in ["", "rate(x[5m])", "x{", "x{a}", "x{a=b}", "x{a!=\"b\"}", "sum(x)", "1 + 1", "x{a=\"b\"} > 1"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_sample_has_all_labels_that_are_asked_for() {
        let sample = Sample::new("consumer_state", [("flow", "default")], 1);
        let fits = |query: &str| Selector::read(query).unwrap().fits(&sample);
        assert!(fits("consumer_state") && fits("consumer_state{flow=\"default\"}"));
        assert!(!fits("consumer_state{flow=\"other\"}") && !fits("consumer_state{colour=\"\"}"));
    }
}
