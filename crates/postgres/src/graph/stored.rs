//! The tables of quads as queries read them.

use crate::error::damaged;
use crate::graph::reading::Reading;
use crate::graph::tables::{self, KNOWLEDGE, MAIN_GRAPH, PageOfQuads, QuadTables, VIEW, bytes, place_of};
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;
use trellis_domain::rdf::Term;
use trellis_domain::{Collection, Workspace};
use trellis_orchestrator::ports::JournalError;
use trellis_queries::merge::{Distinct, Merge};
use trellis_queries::order::{EncodedQuad, IdPattern, MAIN_GRAPH as MAIN_GRAPH_ID, Order};
use trellis_queries::source::{QuadSource, Source};
use trellis_queries::term_id::read_term;
use trellis_queries::{IndexFault, QueryError, TermId};

/// Quads of a scan's first page, which may be all that is looked at, and of its largest.
const FIRST_PAGE: usize = 64;
const LARGEST_PAGE: usize = 4096;
/// Terms that were read, at most so many, and none that is longer.
const REMEMBERED_TERMS: usize = 16_384;
const LONGEST_REMEMBERED: i32 = 4096;

/// What runs of a workspace say, and collections that were loaded.
pub(crate) struct Stored {
    reading: Rc<Reading>,
    view: Option<i64>,
    loaded: Vec<i64>,
    terms: RefCell<HashMap<TermId, Term>>,
}

impl Stored {
    /// What was loaded into one collection, or into all.
    pub(crate) fn loaded(
        reading: &Rc<Reading>,
        workspace: &Workspace,
        collection: Option<&Collection>,
    ) -> Result<Self, QueryError> {
        let query = "SELECT place FROM knowledge_collections \
            WHERE workspace = $1 AND ($2::text IS NULL OR collection = $2) AND quads > 0 ORDER BY collection";
        let rows = reading.rows(query, &[&workspace.as_str(), &collection.map(Collection::as_str)])?;
        let loaded = rows.iter().map(|row| row.get(0)).collect();
        Ok(Self { reading: Rc::clone(reading), view: None, loaded, terms: RefCell::default() })
    }

    /// And what runs of the workspace say, as far as they were taken into the view.
    pub(crate) fn with_view(self, workspace: &Workspace) -> Self {
        Self { view: Some(place_of(workspace.as_str())), ..self }
    }

    fn places(&self) -> impl Iterator<Item = (QuadTables, Vec<i64>)> {
        let view = self.view.map(|place| (VIEW, vec![place]));
        view.into_iter().chain((!self.loaded.is_empty()).then(|| (KNOWLEDGE, self.loaded.clone())))
    }

    /// Fetches terms, those that are long only if they are wanted.
    fn fetch(&self, ids: &[TermId], longest: i32) -> Result<Vec<(TermId, Term)>, QueryError> {
        let mut found = Vec::new();
        let ids: Vec<_> = ids.iter().map(|id| bytes(*id)).collect();
        for (tables, places) in self.places() {
            let query = format!(
                "SELECT n.id, t.term FROM unnest($2::bytea[]) AS n (id), LATERAL (SELECT term FROM {} \
                 WHERE place = ANY ($1::bigint[]) AND id = n.id AND octet_length(term) <= $3 LIMIT 1) t",
                tables.terms
            );
            for row in self.reading.rows(&query, &[&places, &ids, &longest])? {
                let id = tables::id(&row, 0)?;
                let unreadable = || damaged(format!("the term {id} in {} cannot be read", tables.terms));
                found.push((id, read_term(row.get(1)).ok_or_else(unreadable)?));
            }
        }
        Ok(found)
    }

    /// Whose fault it is that nobody knows a term. The view can be derived anew, what was loaded can not.
    fn missing(&self, id: TermId) -> QueryError {
        let query = "SELECT EXISTS (SELECT 1 FROM view_quads WHERE place = $1 AND s = $2) \
            OR EXISTS (SELECT 1 FROM view_quads WHERE place = $1 AND p = $2) \
            OR EXISTS (SELECT 1 FROM view_quads WHERE place = $1 AND o = $2)";
        let rows = self.reading.rows(query, &[&self.view.unwrap_or_default(), &bytes(id)]);
        if self.loaded.is_empty() || rows.is_ok_and(|rows| rows.iter().any(|row| row.get(0))) {
            let reason = format!("the graph view knows no term {id}; rebuild it");
            return IndexFault { reason, is_damage: true }.into();
        }
        let advice = "remove the collection and load it again, or restore the database from a copy";
        JournalError::Damaged(format!("loaded knowledge lacks the term {id}; {advice}")).into()
    }
}

impl Source for Stored {
    fn scan(&self, pattern: IdPattern) -> Result<QuadSource, QueryError> {
        let scan = |(tables, places)| -> QuadSource {
            Box::new(Scan {
                reading: Rc::clone(&self.reading),
                tables,
                places,
                pattern,
                order: pattern.access_path().order,
                page: Vec::new().into_iter(),
                last: None,
                size: FIRST_PAGE,
                is_over: false,
            })
        };
        let mut sources: Vec<QuadSource> = self.places().map(scan).collect();
        match sources.pop() {
            Some(only) if sources.is_empty() => Ok(only),
            last => {
                sources.extend(last);
                Ok(Box::new(Merge::new(pattern.access_path().order, Distinct::Quads, sources)?))
            }
        }
    }

    fn term(&self, id: TermId) -> Result<Term, QueryError> {
        if let Some(term) = self.terms.borrow().get(&id) {
            return Ok(term.clone());
        }
        match self.fetch(&[id], i32::MAX)?.pop() {
            Some((_, term)) => Ok(term),
            None => Err(self.missing(id)),
        }
    }

    fn expect(&self, ids: &[TermId]) -> Result<(), QueryError> {
        let unknown: Vec<_> = {
            let mut terms = self.terms.borrow_mut();
            if terms.len() > REMEMBERED_TERMS {
                terms.clear();
            }
            ids.iter().copied().filter(|id| !terms.contains_key(id)).collect()
        };
        if !unknown.is_empty() {
            self.terms.borrow_mut().extend(self.fetch(&unknown, LONGEST_REMEMBERED)?);
        }
        Ok(())
    }

    fn named_graphs(&self) -> Result<Vec<TermId>, QueryError> {
        let mut graphs = BTreeSet::new();
        for (QuadTables { quads, .. }, places) in self.places() {
            let main = format!("SELECT 1 FROM {quads} WHERE place = $1 AND g = {MAIN_GRAPH} LIMIT 1");
            // From one to the next: one look for each.
            let others = format!(
                "WITH RECURSIVE graphs AS ( \
                    (SELECT g FROM {quads} WHERE place = $1 AND g <> {MAIN_GRAPH} AND g > $2 ORDER BY g LIMIT 1) \
                    UNION ALL SELECT (SELECT q.g FROM {quads} q WHERE q.place = $1 AND q.g <> {MAIN_GRAPH} \
                        AND q.g > graphs.g ORDER BY q.g LIMIT 1) FROM graphs WHERE graphs.g IS NOT NULL) \
                 SELECT g FROM graphs WHERE g IS NOT NULL"
            );
            for place in places {
                if !self.reading.rows(&main, &[&place])?.is_empty() {
                    graphs.insert(*MAIN_GRAPH_ID);
                }
                for row in self.reading.rows(&others, &[&place, &bytes(TermId::DEFAULT_GRAPH)])? {
                    graphs.insert(tables::id(&row, 0)?);
                }
            }
        }
        Ok(graphs.into_iter().collect())
    }
}

/// Quads that match, page by page.
struct Scan {
    reading: Rc<Reading>,
    tables: QuadTables,
    places: Vec<i64>,
    pattern: IdPattern,
    order: Order,
    page: std::vec::IntoIter<EncodedQuad>,
    last: Option<EncodedQuad>,
    size: usize,
    /// Nothing comes behind this page.
    is_over: bool,
}

impl Scan {
    fn turn(&mut self) -> Result<(), QueryError> {
        let page = PageOfQuads::of(self.tables, &self.places, &self.pattern, self.last.as_ref(), self.size);
        let rows = self.reading.rows(&page.statement, &page.parameters())?;
        let quads = rows.iter().map(|row| tables::quad(row, self.order)).collect::<Result<Vec<_>, _>>()?;
        self.is_over = page.is_only || quads.len() < self.size;
        self.size = (4 * self.size).min(LARGEST_PAGE);
        self.page = quads.into_iter();
        Ok(())
    }
}

impl Iterator for Scan {
    type Item = Result<EncodedQuad, QueryError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.page.len() == 0
            && !self.is_over
            && let Err(error) = self.turn()
        {
            self.is_over = true;
            return Some(Err(error));
        }
        let quad = self.page.next()?;
        self.last = Some(quad);
        Some(Ok(quad))
    }
}
