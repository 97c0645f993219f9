//! All that was loaded into a collection, for clients that ask for triples and name nothing else: those that show or
//! export a collection.
//!
//! They mean the original's default graph, in which what runs say is not.

use super::batches::Portions;
use super::held::{Written, hold_quads, written};
use crate::call::Call;
use crate::error::{ServiceError, StreamError};
use crate::inside::Gateway;
use crate::outbox::Outbox;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use trellis_domain::Collection;
use trellis_domain::rdf::{Quad, Term};
use trellis_orchestrator::ports::{KnowledgePlace, QuadPattern};

/// The collection, if a request names one and nothing else.
pub(super) fn of(pattern: &QuadPattern) -> Option<&Collection> {
    let QuadPattern { s: None, p: None, o: None, g: None, collection } = pattern else { return None };
    collection.as_ref()
}

/// Everything at once.
pub(super) async fn answer(gateway: &Gateway, call: &Call, collection: &Collection) -> Result<Written, ServiceError> {
    let portions = Portions::of_all(call.members())?;
    let found = find(gateway, call, collection, portions).await?;
    let _held = hold_quads(&found)?;
    Ok(written(&Reply { response: found.iter().map(Carried).collect() }))
}

/// In batches.
pub(super) async fn stream(
    gateway: &Gateway,
    call: &Call,
    collection: &Collection,
    outbox: &Outbox,
) -> Result<(), StreamError> {
    let portions = Portions::of_all(call.members())?;
    let found = find(gateway, call, collection, portions).await?;
    let _held = hold_quads(&found)?;
    let carried: Vec<_> = found.iter().map(Carried).collect();
    portions.send(&carried, |batch, _| json!({"response": batch}), outbox).await
}

async fn find(
    gateway: &Gateway,
    call: &Call,
    collection: &Collection,
    portions: Portions,
) -> Result<Vec<Quad>, ServiceError> {
    let place = KnowledgePlace { workspace: call.workspace().clone(), collection: collection.clone() };
    let pattern = QuadPattern::default();
    let found = tokio::select! {
        found = call.inside.knowledge().matching(&place, &pattern, portions.limit) => found?,
        () = gateway.closed() => return Err(ServiceError::stopping()),
    };
    Portions::check(found.len())?;
    Ok(found)
}

#[derive(Serialize)]
struct Reply<'q> {
    response: Vec<Carried<'q>>,
}

/// Written one at a time: as JSON values, all of them would take many times what is held for them.
struct Carried<'q>(&'q Quad);

impl Serialize for Carried<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        carried(self.0).serialize(serializer)
    }
}

/// A quad with what literals are under two names: `tg-export-workspace` looks for language and datatype under names of
/// its own, and would lose both.
fn carried(quad: &Quad) -> Value {
    let mut quad_written = json!(quad);
    if let Term::Literal { datatype, language, .. } = &quad.o {
        for (name, text) in [("d", datatype), ("l", language)] {
            if !text.is_empty() {
                quad_written["o"][name] = json!(text);
            }
        }
    }
    quad_written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collection_alone_means_all_of_it() {
        let named = QuadPattern { collection: Some(Collection::default()), ..QuadPattern::default() };
        assert_eq!(of(&named), Some(&Collection::default()));
        assert_eq!(of(&QuadPattern::default()), None, "nobody said which");
        assert_eq!(of(&QuadPattern { g: Some(String::new()), ..named.clone() }), None);
        assert_eq!(of(&QuadPattern { s: Some(Term::iri("urn:s")), ..named }), None);
    }

    #[test]
    fn literals_have_both_names_of_what_they_are() {
        let literal = |datatype: &str, language: &str| {
            let o = Term::Literal { value: "x".into(), datatype: datatype.into(), language: language.into() };
            carried(&Quad { s: Term::iri("urn:s"), p: Term::iri("urn:p"), o, g: None })["o"].clone()
        };
        assert_eq!(literal("", ""), json!({"t": "l", "v": "x"}));
        assert_eq!(literal("urn:t", ""), json!({"t": "l", "v": "x", "dt": "urn:t", "d": "urn:t"}));
        assert_eq!(literal("", "en"), json!({"t": "l", "v": "x", "ln": "en", "l": "en"}));
    }
}
