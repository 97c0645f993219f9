//! Several places read as one: the view of a workspace, and the collections that were loaded there.

use super::ViewError;
use super::merge::{Distinct, Merge};
use super::order::{Graphs, IdPattern};
use super::query::QueryError;
use super::reader::ViewReader;
use super::source::{QuadSource, Source};
use super::term_id::{TermId, read_term};
use lsm_tree::UserValue;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};
use trellis_domain::rdf::Term;
use trellis_orchestrator::ports::JournalError;

/// The loaded collections that a reading looks at.
#[derive(Default)]
pub(crate) struct LoadedReaders(pub(super) Vec<ViewReader>);

pub(super) struct Sources {
    view: Option<ViewReader>,
    loaded: Vec<ViewReader>,
    /// Where the last term was found: the next one is likely to be there, too.
    last_hit: Cell<usize>,
    /// Terms that were read, at most [`CACHED_TERMS`] of them.
    terms: RefCell<HashMap<TermId, Term>>,
}

const CACHED_TERMS: usize = 16_384;

impl Sources {
    pub(super) fn new(view: Option<ViewReader>, loaded: LoadedReaders) -> Self {
        Self { view, loaded: loaded.0, last_hit: Cell::new(0), terms: RefCell::default() }
    }

    /// The canonical bytes of a term, from wherever it is known.
    pub(super) fn canonical(&self, id: TermId) -> Result<UserValue, QueryError> {
        let places = self.view.iter().chain(&self.loaded).count();
        for place in 0..places {
            let place = (self.last_hit.get() + place) % places;
            if let Some(found) = self.known_at(place, id)? {
                self.last_hit.set(place);
                return Ok(found);
            }
        }
        Err(self.missing(id))
    }

    fn known_at(&self, place: usize, id: TermId) -> Result<Option<UserValue>, QueryError> {
        match (place, &self.view) {
            (0, Some(view)) => Ok(view.known(id)?),
            (place, view) => {
                let place = place - usize::from(view.is_some());
                self.loaded[place].known(id).map_err(|error| loaded_failed(error).into())
            }
        }
    }

    /// Whose fault it is that nobody knows a term. The view can be derived anew, what was loaded can not.
    fn missing(&self, id: TermId) -> QueryError {
        let error = ViewError::TermMissing { id };
        let any = IdPattern { s: None, p: None, o: None, g: Graphs::All };
        let uses = [
            IdPattern { s: Some(id), ..any },
            IdPattern { p: Some(id), ..any },
            IdPattern { o: Some(id), ..any },
            IdPattern { g: Graphs::One(id), ..any },
        ];
        let of_view = |view: &ViewReader| uses.into_iter().any(|pattern| view.quads(pattern).next().is_some());
        if self.loaded.is_empty() || self.view.as_ref().is_some_and(of_view) {
            error.into()
        } else {
            loaded_failed(error).into()
        }
    }
}

impl Source for Sources {
    fn scan(&self, pattern: IdPattern) -> Result<QuadSource, QueryError> {
        let of_view =
            self.view.iter().map(|view| -> QuadSource { Box::new(view.quads(pattern).map(|quad| Ok(quad?))) });
        let of_loaded = self.loaded.iter().map(|loaded| -> QuadSource {
            Box::new(loaded.quads(pattern).map(|quad| quad.map_err(|error| loaded_failed(error).into())))
        });
        let mut sources: Vec<QuadSource> = of_view.chain(of_loaded).collect();
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
        let term = read_term(&self.canonical(id)?).ok_or(ViewError::TermDamaged { id })?;
        let mut terms = self.terms.borrow_mut();
        if terms.len() >= CACHED_TERMS {
            terms.clear();
        }
        terms.insert(id, term.clone());
        Ok(term)
    }

    fn named_graphs(&self) -> Result<Vec<TermId>, QueryError> {
        let mut graphs = BTreeSet::new();
        if let Some(view) = &self.view {
            graphs.extend(view.graphs()?);
        }
        for loaded in &self.loaded {
            graphs.extend(loaded.graphs().map_err(loaded_failed)?);
        }
        Ok(graphs.into_iter().collect())
    }
}

/// What is wrong with loaded knowledge. Nobody can derive it anew.
pub(super) fn loaded_failed(error: ViewError) -> JournalError {
    let advice = "restore the folder from a copy, or remove the collection and load it again";
    match error {
        ViewError::Files(error) => JournalError::Read(format!("loaded knowledge cannot be read: {error}")),
        ViewError::Engine(error) => JournalError::Damaged(format!("loaded knowledge is damaged: {error}; {advice}")),
        ViewError::Damaged(what) => JournalError::Damaged(format!("loaded knowledge is damaged: {what}; {advice}")),
        ViewError::TermMissing { id } => {
            JournalError::Damaged(format!("loaded knowledge is damaged: it lacks the term {id}; {advice}"))
        }
        ViewError::TermDamaged { id } => {
            JournalError::Damaged(format!("loaded knowledge is damaged: its term {id} cannot be read; {advice}"))
        }
        ViewError::KeyDamaged { key } => {
            JournalError::Damaged(format!("loaded knowledge is damaged: it has a key {key:02x?}; {advice}"))
        }
    }
}
