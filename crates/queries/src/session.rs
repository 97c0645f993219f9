//! One query's reading of a source and what is laid over it.
//!
//! The evaluator swallows errors of its dataset in places (`EXISTS`, `MINUS`, expressions). So the
//! session keeps the first failure, ends all further reading, and the query asks it at the end.

use crate::merge::{Distinct, Merge};
use crate::order::{EncodedQuad, Graphs, IdPattern};
use crate::overlay::{AGENT_PREFIX, Overlay, ProjectedRuns};
use crate::query::{Cancellation, QueryError};
use crate::source::{QuadSource, Source};
use crate::term_id::TermId;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use trellis_domain::rdf::Term;

/// The graphs that a query means by its default graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DefaultGraph {
    /// All of the workspace.
    Union,
    /// Those of its `FROM` clauses.
    Listed(Vec<TermId>),
}

/// Projecting more runs for one query would take too long and too much memory.
const MOST_OVERLAY_RUNS: usize = 1_000;

/// The reading failed, and the session knows why.
#[derive(Debug, thiserror::Error)]
#[error("reading the graph failed")]
pub(crate) struct Interrupted;

pub(crate) struct Session<'q> {
    source: &'q dyn Source,
    default_graph: DefaultGraph,
    overlay: &'q dyn Overlay,
    max_overlay_quads: usize,
    projected: RefCell<ProjectedRuns>,
    /// Overlay runs, until all of them are projected.
    unprojected: RefCell<Option<Vec<String>>>,
    /// Terms that the query names or computes; no other place has them.
    own_terms: RefCell<HashMap<TermId, Term>>,
    cancellation: Cancellation,
    failure: RefCell<Option<QueryError>>,
}

impl<'q> Session<'q> {
    pub(crate) fn new(
        source: &'q dyn Source,
        default_graph: DefaultGraph,
        overlay: &'q dyn Overlay,
        max_overlay_quads: usize,
        cancellation: Cancellation,
    ) -> Self {
        let runs = overlay.runs();
        Self {
            source,
            default_graph,
            overlay,
            max_overlay_quads,
            projected: RefCell::default(),
            unprojected: RefCell::new((!runs.is_empty()).then_some(runs)),
            own_terms: RefCell::default(),
            cancellation,
            failure: RefCell::default(),
        }
    }

    pub(crate) fn take_failure(&self) -> Option<QueryError> {
        let cancelled = self.cancellation.is_cancelled().then_some(QueryError::Cancelled);
        self.failure.take().or(cancelled)
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.cancellation.is_cancelled() || self.failure.borrow().is_some()
    }

    pub(crate) fn fail(&self, error: impl Into<QueryError>) -> Interrupted {
        self.failure.borrow_mut().get_or_insert_with(|| error.into());
        Interrupted
    }

    /// The triples of the query's default graph.
    pub(crate) fn default_graph_quads(&self, pattern: IdPattern) -> Result<SessionQuads<'_>, Interrupted> {
        match &self.default_graph {
            DefaultGraph::Union => self.merged(pattern, &[Graphs::All], Distinct::Triples),
            DefaultGraph::Listed(graphs) => {
                let graphs: Vec<_> = graphs.iter().map(|graph| Graphs::One(*graph)).collect();
                self.merged(pattern, &graphs, Distinct::Triples)
            }
        }
    }

    /// The quads of a pattern that says which graphs it means.
    pub(crate) fn quads(&self, pattern: IdPattern) -> Result<SessionQuads<'_>, Interrupted> {
        self.merged(pattern, &[pattern.g], Distinct::Quads)
    }

    fn merged(
        &self,
        pattern: IdPattern,
        graphs: &[Graphs],
        distinct: Distinct,
    ) -> Result<SessionQuads<'_>, Interrupted> {
        self.project_for(&pattern)?;
        let projected = self.projected.borrow();
        let mut sources: Vec<QuadSource> = Vec::with_capacity(2 * graphs.len());
        for g in graphs {
            let pattern = IdPattern { g: *g, ..pattern };
            sources.push(self.source.scan(pattern).map_err(|error| self.fail(error))?);
            if projected.quad_count() > 0 {
                sources.push(Box::new(projected.matching(&pattern).into_iter().map(Ok)));
            }
        }
        let order = IdPattern { g: graphs.first().copied().unwrap_or(pattern.g), ..pattern }.access_path().order;
        let quads = Merge::new(order, distinct, sources).map_err(|error| self.fail(error))?;
        Ok(SessionQuads { session: self, quads })
    }

    pub(crate) fn named_graphs(&self) -> Result<BTreeSet<TermId>, Interrupted> {
        self.project_all()?;
        let stored = self.source.named_graphs().map_err(|error| self.fail(error))?;
        Ok(stored.into_iter().chain(self.projected.borrow().named_graphs()).collect())
    }

    /// Makes a term known that the query brought along.
    pub(crate) fn own_term(&self, term: Term) -> TermId {
        let id = TermId::of_term(&term);
        self.own_terms.borrow_mut().entry(id).or_insert(term);
        id
    }

    pub(crate) fn term(&self, id: TermId) -> Result<Term, Interrupted> {
        if let Some(term) = self.own_terms.borrow().get(&id) {
            return Ok(term.clone());
        }
        if let Some(term) = self.projected.borrow().term(id) {
            return Ok(term.clone());
        }
        self.source.term(id).map_err(|error| self.fail(error))
    }

    /// Says which terms are asked for next.
    pub(crate) fn expect(&self, ids: &[TermId]) -> Result<(), Interrupted> {
        let (own, projected) = (self.own_terms.borrow(), self.projected.borrow());
        let is_elsewhere = |id: &TermId| *id == TermId::DEFAULT_GRAPH || own.contains_key(id);
        let wanted: BTreeSet<_> =
            ids.iter().copied().filter(|id| !is_elsewhere(id) && projected.term(*id).is_none()).collect();
        self.source.expect(&wanted.into_iter().collect::<Vec<_>>()).map_err(|error| self.fail(error))
    }

    /// Projects the overlay runs in which the pattern can match. Statements about a node of a run
    /// are made by that run only, so a bound subject names it. A bound object leads to its own run and
    /// to the few that follow on it.
    fn project_for(&self, pattern: &IdPattern) -> Result<(), Interrupted> {
        if self.unprojected.borrow().is_none() {
            return Ok(());
        }
        if let Some(subject) = self.agent_iri(pattern.s)? {
            return self.overlay.run_of(&subject).map_or(Ok(()), |run| self.project(&run));
        }
        if let Some(object) = self.agent_iri(pattern.o)? {
            return self.overlay.runs_naming(&object).iter().try_for_each(|run| self.project(run));
        }
        self.project_all()
    }

    fn agent_iri(&self, id: Option<TermId>) -> Result<Option<String>, Interrupted> {
        let Some(id) = id else { return Ok(None) };
        let term = self.term(id)?;
        Ok(term.as_iri().filter(|iri| iri.starts_with(AGENT_PREFIX)).map(str::to_owned))
    }

    fn project_all(&self) -> Result<(), Interrupted> {
        let runs = self.unprojected.take().unwrap_or_default();
        if runs.len() > MOST_OVERLAY_RUNS {
            return Err(self.fail(QueryError::OverlayTooLarge { max: self.max_overlay_quads }));
        }
        runs.iter().try_for_each(|run| self.project(run))
    }

    fn project(&self, run: &str) -> Result<(), Interrupted> {
        let mut projected = self.projected.borrow_mut();
        if projected.admit(run) {
            projected.add(self.overlay.project(run));
        }
        if projected.quad_count() > self.max_overlay_quads {
            return Err(self.fail(QueryError::OverlayTooLarge { max: self.max_overlay_quads }));
        }
        Ok(())
    }
}

/// Quads that end when the session has failed or was cancelled.
pub(crate) struct SessionQuads<'s> {
    session: &'s Session<'s>,
    quads: Merge,
}

impl Iterator for SessionQuads<'_> {
    type Item = Result<EncodedQuad, Interrupted>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.session.is_stopped() {
            return None;
        }
        self.quads.next().map(|found| found.map_err(|error| self.session.fail(error)))
    }
}
