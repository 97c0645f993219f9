//! Quads by pattern: what the explain tools walk through.

use super::batches::Portions;
use super::terms;
use crate::Gateway;
use crate::call::Call;
use crate::error::{Refusal, Unserved};
use crate::members::Members;
use crate::outbox::Outbox;
use serde_json::{Value, json};
use trellis_domain::rdf::Quad;
use trellis_orchestrator::ports::QuadPattern;

/// All quads at once.
pub(crate) async fn answer(gateway: &Gateway, call: Call) -> Result<Value, Refusal> {
    let portions = Portions::read(call.members())?;
    Ok(json!({"response": find(gateway, &call, portions.limit).await?}))
}

/// The quads in batches, if that is wished.
pub(crate) async fn stream(gateway: &Gateway, call: Call, outbox: &Outbox) -> Result<(), Unserved> {
    let portions = Portions::read(call.members())?;
    if !portions.streaming {
        return Ok(outbox.last(&answer(gateway, call).await?).await?);
    }
    let quads = find(gateway, &call, portions.limit).await?;
    portions.send(&quads, |batch, _| json!({"response": batch}), outbox).await
}

async fn find(gateway: &Gateway, call: &Call, limit: usize) -> Result<Vec<Quad>, Refusal> {
    let pattern = pattern(call.members())?;
    tokio::select! {
        found = call.inside.graph().matching(call.workspace(), &pattern, limit) => Ok(found?),
        () = gateway.closed() => Err(Refusal::stopping()),
    }
}

/// Provenance is visible under every collection, so that which one is named does not matter.
fn pattern(members: Members<'_>) -> Result<QuadPattern, Refusal> {
    members.text("collection")?;
    let term = |name| members.value(name).map(|value| terms::read(name, value)).transpose();
    // The original means the default graph if none is named, where our provenance is not: its own label look-ups,
    // which name none, would find nothing.
    let g = members.text("g")?.filter(|graph| *graph != "*").map(str::to_owned);
    Ok(QuadPattern { s: term("s")?, p: term("p")?, o: term("o")?, g })
}

#[cfg(test)]
mod tests {
    use super::*;
    use trellis_domain::rdf::Term;

    fn read(request: &Value) -> Result<QuadPattern, Refusal> {
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
        assert_eq!(found, QuadPattern { p: Some(Term::iri("urn:p")), ..QuadPattern::default() });
    }

    #[test]
    fn every_member_of_the_wrong_type_is_named() {
        for name in ["s", "p", "o", "g", "collection"] {
            let refused = read(&json!({name: 7})).unwrap_err();
            assert!(refused.message.contains(&format!("`{name}`")), "{refused}");
        }
    }
}
