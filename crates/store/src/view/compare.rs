//! The view against what it was derived from: every row is read, and what runs say is in all orders, and nothing else.
//!
//! What a session's nodes say is said by its own run only. So it is added up, run by run and row by row, and both sums
//! are the same if the rows are. What several runs say, such as of a model, is little, and is remembered.

use super::RunQuads;
use super::ViewError;
use super::additions::{Additions, nodes_in, session_key};
use super::cursor;
use super::order::{EncodedQuad, Order, quad_key, read_quad_key};
use super::reader::TermKey;
use super::recent_terms::RecentTerms;
use super::term_id::{TermId, WORKSPACE_ID_BYTES, WorkspaceId, read_term};
use super::trees::Snapshot;
use lsm_tree::Guard;
use std::collections::{HashMap, HashSet};
use xxhash_rust::xxh3::xxh3_128;

/// Terms that were found already, of which most occur again and again.
const FOUND_TERMS: usize = 65_536;
const ORDERS: usize = Order::ALL.len();

/// Many rows in whatever order they come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) rows: u64,
    pub(super) hash: u128,
}

impl Sum {
    pub(super) fn add(&mut self, row: &[u8]) {
        self.rows += 1;
        self.hash = self.hash.wrapping_add(xxh3_128(row));
    }

    /// Takes a row away that was added.
    pub(super) fn remove(&mut self, row: &[u8]) {
        self.rows = self.rows.saturating_sub(1);
        self.hash = self.hash.wrapping_sub(xxh3_128(row));
    }
}

/// A quad that is no session's own.
#[derive(Default)]
struct SharedQuad {
    /// A run says so that the view covers as it is.
    required: bool,
    /// In which orders it was found.
    found: [bool; ORDERS],
}

/// What there should be, and then what there is.
pub(crate) struct Comparison {
    snapshot: Snapshot,
    expected: [Sum; ORDERS],
    found: [Sum; ORDERS],
    expected_sessions: Sum,
    found_sessions: Sum,
    shared: HashMap<(WorkspaceId, EncodedQuad), SharedQuad>,
    /// Nodes and sessions of runs that the view may have in an earlier form.
    loose_nodes: HashSet<(WorkspaceId, TermId)>,
    loose_sessions: HashSet<TermKey>,
    found_terms: RecentTerms<TermKey>,
    missing_terms: u64,
    wrong_rows: u64,
}

impl Comparison {
    pub(super) fn new(snapshot: Snapshot) -> Self {
        Self {
            snapshot,
            expected: Default::default(),
            found: Default::default(),
            expected_sessions: Sum::default(),
            found_sessions: Sum::default(),
            shared: HashMap::new(),
            loose_nodes: HashSet::new(),
            loose_sessions: HashSet::new(),
            found_terms: RecentTerms::new(FOUND_TERMS),
            missing_terms: 0,
            wrong_rows: 0,
        }
    }

    /// Whether the view has seen this session.
    pub(crate) fn knows(&self, workspace: &str, session: &str) -> Result<bool, ViewError> {
        Ok(self.snapshot.term(&session_key(WorkspaceId::of(workspace), session))?.is_some())
    }

    /// A run that the view must have as it is.
    pub(crate) fn expect(&mut self, run: &RunQuads) -> Result<(), ViewError> {
        let said = Additions::of(&run.workspace, std::iter::once(run), &mut self.found_terms);
        let (workspace, own): (_, HashSet<_>) = (said.workspace(), said.nodes().collect());
        for quad in said.quads() {
            if own.contains(&quad.s) {
                let row = quad_key(workspace, Order::Spog, quad);
                let kept = Order::ALL.into_iter().zip(&mut self.expected).filter(|(order, _)| order.keeps(quad));
                kept.for_each(|(_, sum)| sum.add(&row));
            } else {
                self.shared.entry((workspace, *quad)).or_default().required = true;
            }
        }
        for (key, row) in said.session_rows() {
            self.expected_sessions.add(&[key.as_slice(), &row].concat());
        }
        for key in said.terms() {
            if !self.found_terms.recall(key) {
                self.missing_terms += u64::from(self.snapshot.term(&key)?.is_none());
                self.found_terms.remember(key);
            }
        }
        Ok(())
    }

    /// A run that was changed since the view has seen it, and waits to be seen again.
    pub(crate) fn allow(&mut self, run: &RunQuads) -> Result<(), ViewError> {
        let said = Additions::of(&run.workspace, std::iter::once(run), &mut RecentTerms::new(0));
        let workspace = said.workspace();
        let own: HashSet<_> = said.nodes().collect();
        for quad in said.quads().iter().filter(|quad| !own.contains(&quad.s)) {
            self.shared.entry((workspace, *quad)).or_default();
        }
        self.loose_nodes.extend(own.into_iter().map(|node| (workspace, node)));
        for (key, _) in said.session_rows() {
            // Its nodes then may be others than now.
            let before = self.snapshot.term(&key)?;
            let nodes = before.iter().flat_map(|row| nodes_in(row)).map(|node| (workspace, node));
            self.loose_nodes.extend(nodes);
            self.loose_sessions.insert(key);
        }
        Ok(())
    }

    /// Reads every row. Whether they are those that were expected.
    pub(crate) fn read(&mut self) -> Result<bool, ViewError> {
        for row in self.snapshot.all_quads() {
            let (key, value) = row.into_inner()?;
            if *key != *cursor::KEY {
                self.quad(&key, &value);
            }
        }
        for row in self.snapshot.all_terms() {
            let (key, value) = row.into_inner()?;
            self.dictionary(&key, &value);
        }
        Ok(self.is_whole())
    }

    fn quad(&mut self, key: &[u8], value: &[u8]) {
        let order = Order::of_key(key).filter(|_| value.is_empty());
        let Some((order, quad)) = order.and_then(|order| Some((order, read_quad_key(order, key)?))) else {
            self.wrong_rows += 1;
            return;
        };
        let mut workspace = WorkspaceId([0; WORKSPACE_ID_BYTES]);
        workspace.0.copy_from_slice(&key[..WORKSPACE_ID_BYTES]);
        if self.loose_nodes.contains(&(workspace, quad.s)) {
            return;
        }
        let place = order as usize;
        match self.shared.get_mut(&(workspace, quad)) {
            Some(shared) => shared.found[place] = true,
            None => self.found[place].add(&quad_key(workspace, Order::Spog, &quad)),
        }
    }

    /// A term is its own proof. What is not one tells which nodes a session has.
    fn dictionary(&mut self, key: &[u8], value: &[u8]) {
        let Ok(known) = TermKey::try_from(key) else {
            self.wrong_rows += 1;
            return;
        };
        if known[WORKSPACE_ID_BYTES..] == TermId::of(value).to_bytes() {
            self.wrong_rows += u64::from(read_term(value).is_none());
        } else if !self.loose_sessions.contains(&known) {
            self.found_sessions.add(&[key, value].concat());
        }
    }

    fn is_whole(&self) -> bool {
        self.expected == self.found
            && self.expected_sessions == self.found_sessions
            && self.missing_shared() == 0
            && (self.missing_terms, self.wrong_rows) == (0, 0)
    }

    fn missing_shared(&self) -> usize {
        let required = self.shared.iter().filter(|(_, shared)| shared.required);
        let missing = |quad: &EncodedQuad, shared: &SharedQuad| {
            Order::ALL.into_iter().zip(shared.found).any(|(order, found)| order.keeps(quad) && !found)
        };
        required.filter(|((_, quad), shared)| missing(quad, shared)).count()
    }

    /// How many quads there are.
    pub(crate) fn quads(&self) -> u64 {
        self.expected[Order::Spog as usize].rows + self.shared.values().filter(|shared| shared.required).count() as u64
    }

    /// How many rows of a run are not there. Looks for each of them, so it is for runs of a view that is not whole.
    pub(crate) fn lacking(&self, run: &RunQuads) -> Result<usize, ViewError> {
        let said = Additions::of(&run.workspace, std::iter::once(run), &mut RecentTerms::new(0));
        let mut lacking = 0;
        for quad in said.quads() {
            for order in Order::ALL.into_iter().filter(|order| order.keeps(quad)) {
                lacking += usize::from(!self.snapshot.has_quad(&quad_key(said.workspace(), order, quad))?);
            }
        }
        for key in said.terms() {
            lacking += usize::from(self.snapshot.term(&key)?.is_none());
        }
        for (key, row) in said.session_rows() {
            lacking += usize::from(self.snapshot.term(&key)?.is_none_or(|found| *found != *row));
        }
        Ok(lacking)
    }

    /// What is wrong in all, once everything was read.
    pub(crate) fn differences(&self) -> Vec<String> {
        let mut told = Vec::new();
        for order in Order::ALL {
            let (expected, found) = (self.expected[order as usize], self.found[order as usize]);
            if expected != found {
                let (expected, found, by) = (expected.rows, found.rows, order.begins_with());
                told.push(format!("its index by {by} has {found} quads of runs, of which {expected} are to be there"));
            }
        }
        if self.expected_sessions != self.found_sessions {
            told.push("what it knows of sessions is not what their runs say".to_owned());
        }
        let mut count = |count: u64, what: &str| {
            if count > 0 {
                told.push(format!("{count} {what}"));
            }
        };
        count(self.missing_shared() as u64, "quads that several runs may say are missing");
        count(self.missing_terms, "terms are missing");
        count(self.wrong_rows, "rows are none that it could have written");
        told
    }
}
