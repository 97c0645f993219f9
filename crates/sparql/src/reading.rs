//! One reading of a workspace: the view at the endpoint and what was loaded into the store, as quads by pattern.
//!
//! An endpoint knows nothing of the ids by which queries are evaluated, and has no snapshot. So what matches a pattern is
//! fetched whole, within bounds, sorted here, and kept for the rest of the reading.

use crate::client::Client;
use crate::error::RemoteError;
use crate::graph::Followed;
use crate::names::Names;
use crate::{results, terms};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use trellis_domain::rdf::{Quad, Term};
use trellis_domain::{Collection, Workspace};
use trellis_orchestrator::ports::{JournalError, KnowledgeError, KnowledgePlace, QuadPattern};
use trellis_provenance::vocabulary::GRAPH_RETRIEVAL;
use trellis_queries::order::{EncodedQuad, Graphs, IdPattern, MAIN_GRAPH};
use trellis_queries::source::{QuadSource, Source};
use trellis_queries::{Cancellation, QueryError, TermId};

/// Statements that match one pattern: they are in memory.
const MOST_MATCHES: usize = 200_000;
/// Statements that are kept for the rest of the reading.
const MOST_KEPT: usize = 200_000;
/// Bytes of all terms that were met.
const MOST_TEXT: usize = 32 << 20;
/// What a term takes beside its text.
const PER_TERM: usize = 100;
/// Answers that are read at once, whoever asks: until they are, they are in memory whole.
static ANSWERS: Semaphore = Semaphore::const_new(2);
/// How often it is looked whether somebody still waits.
const LOOK: Duration = Duration::from_millis(50);

/// The terms behind ids, as far as they were met: in the query, in what was fetched, in what is laid over it.
#[derive(Debug, Default)]
pub(crate) struct Terms {
    known: RefCell<HashMap<TermId, Term>>,
    /// Of all of them.
    bytes: Cell<usize>,
}

impl Terms {
    pub(crate) fn note(&self, term: &Term) -> TermId {
        let id = TermId::of_term(term);
        self.known.borrow_mut().entry(id).or_insert_with(|| {
            self.bytes.set(self.bytes.get() + PER_TERM + term.text_bytes());
            term.clone()
        });
        id
    }

    pub(crate) fn note_quad(&self, quad: &Quad) -> EncodedQuad {
        let [s, p, o] = [&quad.s, &quad.p, &quad.o].map(|term| self.note(term));
        let g = match quad.g.as_deref().filter(|graph| !graph.is_empty()) {
            None => TermId::DEFAULT_GRAPH,
            Some(graph) => self.note(&Term::iri(graph)),
        };
        EncodedQuad { s, p, o, g }
    }

    fn get(&self, id: TermId) -> Option<Term> {
        self.known.borrow().get(&id).cloned()
    }
}

/// All methods block: it is for threads that may.
pub(crate) struct Reading<'a> {
    client: &'a Client,
    followed: &'a Followed,
    /// What the names of the view's graphs begin with. None if there is no view to be read.
    graphs: Option<String>,
    loaded: Vec<KnowledgePlace>,
    cancellation: Cancellation,
    terms: Rc<Terms>,
    kept: RefCell<HashMap<IdPattern, Rc<[EncodedQuad]>>>,
    kept_quads: Cell<usize>,
    /// What the endpoint did first that it should not.
    failure: RefCell<Option<RemoteError>>,
}

impl<'a> Reading<'a> {
    pub(crate) fn new(
        (client, followed): (&'a Client, &'a Followed),
        workspace: &Workspace,
        collection: Option<&Collection>,
        cancellation: &Cancellation,
    ) -> Result<Self, QueryError> {
        let reading = Self {
            client,
            followed,
            graphs: None,
            loaded: Vec::new(),
            cancellation: cancellation.clone(),
            terms: Rc::default(),
            kept: RefCell::default(),
            kept_quads: Cell::default(),
            failure: RefCell::default(),
        };
        let collections =
            reading.of_store(async { followed.knowledge.collections(workspace).await.map_err(of_knowledge) })?;
        let wanted = collections.into_iter().map(|loaded| loaded.collection);
        let wanted = wanted.filter(|name| collection.is_none_or(|only| only == name));
        let loaded = wanted.map(|collection| KnowledgePlace { workspace: workspace.clone(), collection }).collect();
        Ok(Self { loaded, ..reading })
    }

    /// With the view at the endpoint.
    pub(crate) fn with_view(self, names: &Names, workspace: &Workspace) -> Self {
        Self { graphs: Some(names.of_workspace(workspace)), ..self }
    }

    pub(crate) fn terms(&self) -> &Rc<Terms> {
        &self.terms
    }

    /// What the endpoint did, if an error comes of it.
    pub(crate) fn take_failure(&self) -> Option<RemoteError> {
        self.failure.take()
    }

    /// Asks the endpoint, until nobody waits for it any more.
    pub(crate) fn remote<T>(&self, asking: impl Future<Output = Result<T, RemoteError>>) -> Result<T, QueryError> {
        let asked = self.until_cancelled(asking)?;
        asked.map_err(|error| {
            self.failure.borrow_mut().get_or_insert_with(|| error.clone());
            error.into()
        })
    }

    fn of_store<T>(&self, asking: impl Future<Output = Result<T, JournalError>>) -> Result<T, QueryError> {
        Ok(self.until_cancelled(asking)??)
    }

    fn until_cancelled<T>(&self, asking: impl Future<Output = T>) -> Result<T, QueryError> {
        let cancelled = async {
            while !self.cancellation.is_cancelled() {
                tokio::time::sleep(LOOK).await;
            }
        };
        Handle::current().block_on(async {
            tokio::select! {
                biased;
                () = cancelled => Err(QueryError::Cancelled),
                asked = asking => Ok(asked),
            }
        })
    }

    /// What matches, sorted as the pattern's access path has it.
    fn matches(&self, pattern: IdPattern) -> Result<Rc<[EncodedQuad]>, QueryError> {
        if let Some(kept) = self.kept.borrow().get(&pattern) {
            return Ok(Rc::clone(kept));
        }
        // Nobody can be asked for a term that is not known, such as one that the query computes: all that could match is
        // fetched in its place.
        let term = |id: Option<TermId>| id.and_then(|id| self.terms.get(id));
        let (s, p, o) = (term(pattern.s), term(pattern.p), term(pattern.o));
        let known = |id: Option<TermId>, term: &Option<Term>| id.filter(|_| term.is_some());
        let asked = IdPattern { s: known(pattern.s, &s), p: known(pattern.p, &p), o: known(pattern.o, &o), ..pattern };
        let mut found = if asked == pattern {
            self.fetch(pattern.g, [s, p, o])?
        } else {
            self.matches(asked)?.iter().filter(|quad| pattern.matches(quad)).copied().collect()
        };
        found.retain(|quad| pattern.matches(quad));
        let order = pattern.access_path().order;
        found.sort_unstable_by_key(|quad| order.arrange(quad));
        found.dedup();
        let found: Rc<[EncodedQuad]> = found.into();
        let kept = self.kept_quads.get() + found.len();
        if kept <= MOST_KEPT {
            self.kept_quads.set(kept);
            self.kept.borrow_mut().insert(pattern, Rc::clone(&found));
        }
        Ok(found)
    }

    fn fetch(&self, g: Graphs, [s, p, o]: [Option<Term>; 3]) -> Result<Vec<EncodedQuad>, QueryError> {
        let _place = self.until_cancelled(ANSWERS.acquire())?;
        let mut found = Vec::new();
        let is_of_runs = match g {
            Graphs::All | Graphs::Named => true,
            Graphs::One(graph) => graph == *MAIN_GRAPH,
        };
        if let Some(graphs) = self.graphs.as_deref().filter(|_| is_of_runs) {
            let sparql = statement(graphs, [&s, &p, &o]);
            let answer = self.remote(self.client.query(&sparql))?;
            let rows = match results::rows(&answer, ["s", "p", "o"]) {
                Ok(rows) => rows,
                Err(why) => return self.refuse(self.client.nonsense(why)),
            };
            for row in rows {
                let [found_s, found_p, found_o] = match row {
                    Ok(row) => row,
                    Err(why) => return self.refuse(self.client.nonsense(why)),
                };
                let (Some(s), Some(p), Some(o)) =
                    (found_s.or_else(|| s.clone()), found_p.or_else(|| p.clone()), found_o.or_else(|| o.clone()))
                else {
                    return self.refuse(self.client.nonsense("a row lacks a term"));
                };
                found.push(self.terms.note_quad(&Quad { s, p, o, g: Some(GRAPH_RETRIEVAL.to_owned()) }));
                self.admit(found.len())?;
            }
        }
        let g = match g {
            Graphs::One(graph) if graph == TermId::DEFAULT_GRAPH => Some(String::new()),
            Graphs::One(graph) => self.terms.get(graph).and_then(|graph| graph.as_iri().map(str::to_owned)),
            Graphs::All | Graphs::Named => None,
        };
        let wanted = QuadPattern { s, p, o, g, collection: None };
        for place in &self.loaded {
            let more = self.loaded_matches(place, &wanted)?;
            self.admit(found.len() + more.len())?;
            found.extend(more.iter().map(|quad| self.terms.note_quad(quad)));
        }
        Ok(found)
    }

    fn loaded_matches(&self, place: &KnowledgePlace, pattern: &QuadPattern) -> Result<Vec<Quad>, QueryError> {
        let knowledge = &self.followed.knowledge;
        self.of_store(async { knowledge.matching(place, pattern, MOST_MATCHES + 1).await.map_err(of_knowledge) })
    }

    fn admit(&self, matches: usize) -> Result<(), QueryError> {
        if matches > MOST_MATCHES {
            return self.refuse(RemoteError::TooMany { max: MOST_MATCHES });
        }
        if self.terms.bytes.get() > MOST_TEXT {
            return self.refuse(RemoteError::TooMuchText { max: MOST_TEXT });
        }
        Ok(())
    }

    fn refuse<T>(&self, why: RemoteError) -> Result<T, QueryError> {
        self.remote(std::future::ready(Err(why)))
    }
}

/// The only question that an endpoint is asked about runs.
fn statement(graphs: &str, terms: [&Option<Term>; 3]) -> String {
    let mut pattern = String::new();
    let mut open = String::new();
    for (term, name) in terms.into_iter().zip(["?s", "?p", "?o"]) {
        if let Some(term) = term {
            terms::write(&mut pattern, term);
        } else {
            pattern.push_str(name);
            open.push_str(name);
            open.push(' ');
        }
        pattern.push(' ');
    }
    // Something has to be selected.
    let open = if open.is_empty() { "?g " } else { &open };
    let limit = MOST_MATCHES + 1;
    format!("SELECT {open}WHERE {{ GRAPH ?g {{ {pattern}}} FILTER(STRSTARTS(STR(?g), \"{graphs}\")) }} LIMIT {limit}")
}

fn of_knowledge(error: KnowledgeError) -> JournalError {
    match error {
        KnowledgeError::Store(error) => error,
        KnowledgeError::Refused(why) | KnowledgeError::Busy(why) => JournalError::Read(why),
    }
}

impl Source for Reading<'_> {
    fn scan(&self, pattern: IdPattern) -> Result<QuadSource, QueryError> {
        let found = self.matches(pattern)?;
        Ok(Box::new((0..found.len()).map(move |at| Ok(found[at]))))
    }

    fn term(&self, id: TermId) -> Result<Term, QueryError> {
        let unknown = || JournalError::Read(format!("the term {id} was never met"));
        Ok(self.terms.get(id).ok_or_else(unknown)?)
    }

    fn named_graphs(&self) -> Result<Vec<TermId>, QueryError> {
        let mut graphs = BTreeSet::new();
        if let Some(begin) = &self.graphs {
            let ask = format!("ASK {{ GRAPH ?g {{ ?s ?p ?o }} FILTER(STRSTARTS(STR(?g), \"{begin}\")) }}");
            if self.remote(self.client.ask(&ask))? {
                graphs.insert(self.terms.note(&Term::iri(GRAPH_RETRIEVAL)));
            }
        }
        for place in &self.loaded {
            let quads = self.loaded_matches(place, &QuadPattern::default())?;
            self.admit(quads.len())?;
            graphs.extend(quads.iter().map(|quad| self.terms.note_quad(quad).g));
        }
        graphs.remove(&TermId::DEFAULT_GRAPH);
        Ok(graphs.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_endpoint_is_asked_for_one_pattern_in_the_graphs_of_one_workspace() {
        let (s, o) = (Some(Term::iri("urn:s")), Some(Term::literal("x\" } DROP ALL #")));
        assert_eq!(
            statement("urn:trellis:graph:k:w:", [&s, &None, &o]),
            "SELECT ?p WHERE { GRAPH ?g { <urn:s> ?p \"x\\\" } DROP ALL #\" } \
             FILTER(STRSTARTS(STR(?g), \"urn:trellis:graph:k:w:\")) } LIMIT 200001"
        );
        let bound = statement("urn:g:", [&s, &s, &o]);
        assert!(bound.starts_with("SELECT ?g WHERE { GRAPH ?g { <urn:s> <urn:s> \"x"), "{bound}");
    }
}
