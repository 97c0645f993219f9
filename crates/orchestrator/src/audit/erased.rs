//! Whether the erasures that the log tells of have taken place: a run is not replayed because of them.

use crate::evidence::{Erasure, ProvenRecord};
use std::collections::HashSet;
use trellis_domain::Hash;
use trellis_domain::record::Lines;
use trellis_domain::sealed::erased_in;

/// What is wrong with erasures of which nothing is erased.
pub(super) fn without_effect(erasures: &[&Erasure], entries: &[ProvenRecord]) -> Vec<String> {
    let erased: HashSet<Hash> = entries.iter().flat_map(erased_of).collect();
    let named = |erasure: &Erasure| erasure.texts.iter().any(|(_, texts)| texts.iter().any(|it| erased.contains(it)));
    // Older records have their texts in them. What is left of one may have been replaced once more.
    let has_older = entries.iter().any(|entry| entry.texts.is_none());
    let replaced = |erasure: &Erasure| has_older && !erasure.replaced.is_empty();
    let without = erasures.iter().filter(|erasure| !named(erasure) && !replaced(erasure));
    without.map(|erasure| format!("the erasure by {} has erased nothing", erasure.by)).collect()
}

fn erased_of(entry: &ProvenRecord) -> Vec<Hash> {
    let body = Lines::of(entry.proven.as_bytes()).map(|lines| lines.body);
    let found = body.ok().zip(entry.texts.as_ref()).map(|(body, texts)| erased_in(body, texts.as_bytes()));
    found.and_then(Result::ok).unwrap_or_default()
}
