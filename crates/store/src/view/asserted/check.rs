//! Loaded knowledge held against itself: every row is read, each quad is in all orders, has its terms, and all of a
//! collection add up to what its catalogue says.

use super::Asserted;
use super::catalogue::{Entry, Row, place_of, row_of};
use crate::view::ViewError;
use crate::view::compare::Sum;
use crate::view::order::{EncodedQuad, Order, quad_key, read_quad_key};
use crate::view::reader::{TermKey, term_key};
use crate::view::recent_terms::RecentTerms;
use crate::view::term_id::{TermId, WORKSPACE_ID_BYTES, WorkspaceId, read_term};
use crate::view::trees::Snapshot;
use lsm_tree::Guard;
use std::collections::BTreeMap;
use trellis_domain::Collection;

const ORDERS: usize = Order::ALL.len();
/// Terms that were found already, of which most occur again and again.
const FOUND_TERMS: usize = 65_536;

/// What was found, and what is wrong with it.
#[derive(Debug, Default)]
pub(crate) struct CheckedAssertions {
    pub(crate) collections: u64,
    pub(crate) quads: u64,
    pub(crate) faults: Vec<String>,
}

/// The quads of a place.
#[derive(Default)]
struct Found {
    orders: [Sum; ORDERS],
    /// What each order is to have.
    expected: [Sum; ORDERS],
    missing_terms: u64,
}

impl Asserted {
    /// Reads everything.
    pub(crate) fn check(&self) -> Result<CheckedAssertions, ViewError> {
        let snapshot = self.trees.snapshot();
        let mut checking = Checking {
            terms: RecentTerms::new(FOUND_TERMS),
            collections: Vec::new(),
            places: BTreeMap::new(),
            wrong_rows: 0,
            snapshot: &snapshot,
        };
        for row in snapshot.all_quads() {
            let (key, value) = row.into_inner()?;
            checking.row(&key, &value)?;
        }
        for row in snapshot.all_terms() {
            let (key, value) = row.into_inner()?;
            let is_term = key.len() > WORKSPACE_ID_BYTES
                && key[WORKSPACE_ID_BYTES..] == TermId::of(&value).to_bytes()
                && read_term(&value).is_some();
            checking.wrong_rows += u64::from(!is_term);
        }
        Ok(checking.told())
    }
}

struct Checking<'s> {
    snapshot: &'s Snapshot,
    terms: RecentTerms<TermKey>,
    collections: Vec<(WorkspaceId, Collection, Entry)>,
    places: BTreeMap<[u8; WORKSPACE_ID_BYTES], Found>,
    wrong_rows: u64,
}

impl Checking<'_> {
    fn row(&mut self, key: &[u8], value: &[u8]) -> Result<(), ViewError> {
        match row_of(key) {
            Some(Row::Collection(workspace, collection)) => {
                match Entry::read(value) {
                    Some(entry) => self.collections.push((workspace, collection, entry)),
                    None => self.wrong_rows += 1,
                }
                Ok(())
            }
            Some(Row::Removed | Row::Source) => Ok(()),
            None => self.quad(key),
        }
    }

    fn quad(&mut self, key: &[u8]) -> Result<(), ViewError> {
        let read = Order::of_key(key).and_then(|order| Some((order, read_quad_key(order, key)?)));
        let Some((order, quad)) = read else {
            self.wrong_rows += 1;
            return Ok(());
        };
        let mut place = WorkspaceId([0; WORKSPACE_ID_BYTES]);
        place.0.copy_from_slice(&key[..WORKSPACE_ID_BYTES]);
        let first = quad_key(place, Order::Spog, &quad);
        let missing = if order == Order::Spog { self.missing_terms(place, &quad)? } else { 0 };
        let found = self.places.entry(place.0).or_default();
        found.orders[order as usize].add(&first);
        found.missing_terms += missing;
        if order == Order::Spog {
            let kept = Order::ALL.into_iter().zip(&mut found.expected).filter(|(order, _)| order.keeps(&quad));
            for (_, sum) in kept {
                sum.add(&first);
            }
        }
        Ok(())
    }

    fn missing_terms(&mut self, place: WorkspaceId, quad: &EncodedQuad) -> Result<u64, ViewError> {
        let mut missing = 0;
        for id in [quad.s, quad.p, quad.o, quad.g].into_iter().filter(|id| *id != TermId::DEFAULT_GRAPH) {
            let key = term_key(place, id);
            if !self.terms.recall(key) {
                missing += u64::from(self.snapshot.term(&key)?.is_none());
                self.terms.remember(key);
            }
        }
        Ok(missing)
    }

    fn told(mut self) -> CheckedAssertions {
        let mut checked =
            CheckedAssertions { collections: self.collections.len() as u64, ..CheckedAssertions::default() };
        for (workspace, collection, entry) in &self.collections {
            checked.quads += entry.sum.rows;
            let found = self.places.remove(&place_of(*workspace, collection, entry.generation).0).unwrap_or_default();
            let mut fault = |what: String| checked.faults.push(format!("collection {collection}: {what}"));
            if found.orders[Order::Spog as usize] != entry.sum {
                let there = found.orders[Order::Spog as usize].rows;
                fault(format!("it has {there} quads, which are not the {} that were loaded", entry.sum.rows));
            }
            for order in Order::ALL {
                if found.orders[order as usize] != found.expected[order as usize] {
                    fault(format!("its index by {} has other quads than that by subject", order.begins_with()));
                }
            }
            if found.missing_terms > 0 {
                fault(format!("{} terms are missing", found.missing_terms));
            }
        }
        if !self.places.is_empty() {
            checked.faults.push(format!("{} places hold quads of no collection", self.places.len()));
        }
        if self.wrong_rows > 0 {
            checked.faults.push(format!("{} rows are none that it could have written", self.wrong_rows));
        }
        checked
    }
}
