//! Quads by pattern: what the explain tools walk through.

use super::batches::Portions;
use super::held::{Written, hold_quads, written};
use super::sparql::lacking;
use super::terms;
use super::whole_collection;
use crate::call::Call;
use crate::error::{ServiceError, StreamError};
use crate::inside::Gateway;
use crate::members::Members;
use crate::outbox::Outbox;
use serde::Serialize;
use serde_json::json;
use trellis_domain::Collection;
use trellis_domain::rdf::{Quad, Term};
use trellis_orchestrator::ports::{Found, QuadPattern};
use trellis_provenance::iri;
use trellis_provenance::vocabulary::prov;

/// All quads at once.
pub(crate) async fn answer(gateway: &Gateway, call: Call) -> Result<Written, ServiceError> {
    if let Some(collection) = whole_collection::of(&pattern(call.members())?) {
        return whole_collection::answer(gateway, &call, collection).await;
    }
    let portions = Portions::read(call.members())?;
    let Found { found, missing_runs } = find(gateway, &call, portions.limit).await?;
    let _held = hold_quads(&found)?;
    Ok(written(&Reply { response: &found, missing_runs: Some(missing_runs).filter(|runs| *runs > 0) }))
}

/// The quads in batches, if that is wished.
pub(crate) async fn stream(gateway: &Gateway, call: Call, outbox: &Outbox) -> Result<(), StreamError> {
    if !call.members().flag("streaming")? {
        return Ok(outbox.last(&answer(gateway, call).await?).await?);
    }
    if let Some(collection) = whole_collection::of(&pattern(call.members())?) {
        return whole_collection::stream(gateway, &call, collection, outbox).await;
    }
    let portions = Portions::read(call.members())?;
    let Found { found, missing_runs } = find(gateway, &call, portions.limit).await?;
    let _held = hold_quads(&found)?;
    portions.send(&found, |batch, _| lacking(json!({ "response": batch }), missing_runs), outbox).await
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Reply<'a> {
    response: &'a [Quad],
    #[serde(skip_serializing_if = "Option::is_none")]
    missing_runs: Option<usize>,
}

async fn find(gateway: &Gateway, call: &Call, limit: usize) -> Result<Found<Vec<Quad>>, ServiceError> {
    let pattern = pattern(call.members())?;
    let limit = if walks_a_trace(&pattern, limit) { WHOLE_NODE } else { limit };
    tokio::select! {
        found = call.inside.graph().matching(call.workspace(), &pattern, limit) => Ok(found?),
        () = gateway.closed() => Err(ServiceError::stopping()),
    }
}

/// All that is ever said of a node, or derives from it.
const WHOLE_NODE: usize = 10_000;

/// Whether this is a step of the stock explain tools through a run: what derives from a node of it, or what is said of
/// one. They ask for 20 and for 100, and show a plan of fifty steps without most of them and without its answer: to
/// these two questions the trace is given whole. Any other limit is somebody's wish.
fn walks_a_trace(pattern: &QuadPattern, limit: usize) -> bool {
    let is_node =
        |term: &Option<Term>| term.as_ref().and_then(Term::as_iri).is_some_and(|iri| iri::session_of(iri).is_some());
    let derives = || pattern.p.as_ref().and_then(Term::as_iri) == Some(prov::WAS_DERIVED_FROM);
    match (&pattern.s, &pattern.p, &pattern.o) {
        (None, Some(_), object @ Some(_)) => limit == 20 && derives() && is_node(object),
        (subject @ Some(_), None, None) => limit == 100 && is_node(subject),
        _ => false,
    }
}

/// What runs say is visible under every collection; what was loaded, under its own.
fn pattern(members: Members<'_>) -> Result<QuadPattern, ServiceError> {
    let collection = members.text("collection")?.filter(|name| !name.is_empty());
    let collection = collection.map(Collection::new).transpose();
    let collection = collection.map_err(|error| ServiceError::request(error.to_string()))?;
    let term = |name| members.value(name).map(|value| terms::read(name, value)).transpose();
    // The original means the default graph if none is named, where our provenance is not: its own label look-ups,
    // which name none, would find nothing.
    let g = members.text("g")?.filter(|graph| *graph != "*").map(str::to_owned);
    Ok(QuadPattern { s: term("s")?, p: term("p")?, o: term("o")?, g, collection })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn read(request: &Value) -> Result<QuadPattern, ServiceError> {
        pattern(Members::new(request.as_object().unwrap()))
    }

    #[test]
    fn a_graph_is_one_or_all_or_the_nameless_one() {
        let graph = |request: Value| read(&request).unwrap().g;
        assert_eq!(graph(json!({})), None);
        assert_eq!(graph(json!({"g": null})), None);
        assert_eq!(graph(json!({"g": "*"})), None);
        assert_eq!(graph(json!({"g": ""})), Some(String::new()));
        assert_eq!(graph(json!({"g": "urn:g"})), Some("urn:g".to_owned()));
    }

    #[test]
    fn a_place_that_is_left_out_matches_anything() {
        let found = read(&json!({"s": null, "p": {"t": "i", "i": "urn:p"}, "collection": "default"})).unwrap();
        let collection = Some(Collection::default());
        assert_eq!(found, QuadPattern { p: Some(Term::iri("urn:p")), collection, ..QuadPattern::default() });
    }

    #[test]
    fn every_member_of_the_wrong_type_is_named() {
        for name in ["s", "p", "o", "g", "collection"] {
            let refused = read(&json!({name: 7})).unwrap_err();
            assert!(refused.message.contains(&format!("`{name}`")), "{refused}");
        }
    }

    #[test]
    fn the_limits_of_the_explain_tools_never_cut_a_trace() {
        let walks = |request: Value, limit| walks_a_trace(&read(&request).unwrap(), limit);
        let iri = |iri: &str| json!({"t": "i", "i": iri});
        let (node, derived) = (iri("urn:trustgraph:agent:s/plan"), iri(prov::WAS_DERIVED_FROM));
        assert!(walks(json!({"p": derived, "o": node}), 20));
        assert!(walks(json!({"s": node}), 100));
        assert!(!walks(json!({"p": derived, "o": node}), 3), "somebody wants three");
        assert!(!walks(json!({"s": node}), 2), "somebody wants two");
        assert!(!walks(json!({"p": derived}), 20), "that may be anywhere");
        assert!(!walks(json!({"p": derived, "o": iri("urn:book")}), 20), "that is nobody's trace");
        assert!(!walks(json!({"s": node, "p": derived}), 100));
        assert!(!walks(json!({"p": iri("urn:trustgraph:query"), "o": node}), 20));
    }
}
