//! Which terms were written lately.
//!
//! Predicates, classes and graph names occur in every run. Remembering some thousand of them saves
//! most dictionary writes. Forgetting one only costs a write of the same bytes.

use std::collections::HashSet;
use std::mem;

/// A set of bounded size that keeps what is used: two generations, of which the older one is
/// dropped whole when the younger one is full.
#[derive(Debug)]
pub(super) struct RecentTerms<K> {
    young: HashSet<K>,
    old: HashSet<K>,
    generation_size: usize,
}

impl<K: Eq + std::hash::Hash> RecentTerms<K> {
    pub(super) fn new(generation_size: usize) -> Self {
        Self { young: HashSet::new(), old: HashSet::new(), generation_size }
    }

    /// Whether the term was remembered; a hit keeps it for longer.
    pub(super) fn recall(&mut self, term: K) -> bool {
        if self.young.contains(&term) {
            return true;
        }
        let known = self.old.contains(&term);
        if known {
            self.remember(term);
        }
        known
    }

    pub(super) fn remember(&mut self, term: K) {
        if self.young.len() >= self.generation_size {
            self.old = mem::take(&mut self.young);
        }
        self.young.insert(term);
    }

    pub(super) fn forget(&mut self, term: &K) {
        self.young.remove(term);
        self.old.remove(term);
    }

    pub(super) fn forget_all(&mut self) {
        self.young.clear();
        self.old.clear();
    }
}
