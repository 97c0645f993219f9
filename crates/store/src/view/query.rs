//! SPARQL queries over the view and an overlay.

use super::convert::{from_ox, from_ox_triple};
use super::overlay::Overlay;
use super::session::{DefaultGraph, Session};
use super::survey::{MAX_DEPTH, Survey};
use super::term_id::TermId;
use super::{View, ViewError, held};
use oxrdf::GraphName;
use spareval::{
    CancellationToken, QueryEvaluationError, QueryEvaluator, QueryResults, QuerySolutionIter, QueryTripleIter,
};
use spargebra::{Query, SparqlParser};
use std::{fmt, io, thread};
use trellis_domain::rdf::{Term, Triple};
use trellis_orchestrator::ports::{Answer, JournalError};
use trellis_provenance::vocabulary::{PREFIXES, trellis};

/// Nested collections take the parser time by the square: 3 s at this length, and it cannot be cancelled.
const MAX_QUERY_BYTES: usize = 16 * 1024;
/// Parser, optimiser and evaluator recurse, and a stack overflow would end the process. Measured
/// per byte of text: up to 4 KB to parse; per level of nesting in a debug build: 50 KB to evaluate.
const STACK_PER_QUERY_BYTE: usize = 5 * 1024;
const STACK_PER_LEVEL: usize = 80 * 1024;

/// Known to every query besides those of exports: a short name for our own words, and the types of numbers and times.
const MORE_PREFIXES: &[(&str, &str)] = &[("t", trellis::NS), ("xsd", "http://www.w3.org/2001/XMLSchema#")];

/// How many characters before a mistake its message shows.
const SHOWN: usize = 24;

/// How much one reading of the view may take.
#[derive(Debug, Clone)]
pub struct Bounds {
    /// Rows beyond this are cut off and the answer says so; a graph beyond it is an error.
    pub max_rows: usize,
    /// How many quads of runs outside the view a query may hold in memory, at about 300 bytes each.
    pub max_overlay_quads: usize,
    /// Ends the query from another thread: after a deadline, or when nobody waits for it any more.
    pub cancellation: Cancellation,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { max_rows: 10_000, max_overlay_quads: 500_000, cancellation: Cancellation::default() }
    }
}

/// Stops the queries that hold a clone of it at their next read of the index.
#[derive(Clone, Default)]
pub struct Cancellation(CancellationToken);

impl Cancellation {
    pub fn cancel(&self) {
        self.0.cancel();
    }

    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }
}

impl fmt::Debug for Cancellation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cancellation").field(&self.is_cancelled()).finish()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// The message begins with `error at <line>:<column>`.
    #[error("this is not a SPARQL query: {0}")]
    Syntax(String),
    #[error("SPARQL Update is refused: the graph follows from recorded runs and is not edited")]
    UpdateRefused,
    #[error("SERVICE {service} is refused: queries do not leave this graph")]
    ServiceRefused { service: String },
    #[error("the query has {bytes} bytes, more than the {max} allowed")]
    TooLong { bytes: usize, max: usize },
    #[error("the query has more than {max} {what}")]
    TooComplex { what: &'static str, max: usize },
    #[error("the query was cancelled")]
    Cancelled,
    #[error("runs that are not indexed yet have more than {max} quads; ask again later or name a run")]
    OverlayTooLarge { max: usize },
    #[error("the resulting graph has more than {max} triples; add a LIMIT")]
    GraphTooLarge { max: usize },
    #[error(transparent)]
    View(#[from] ViewError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("the query cannot be evaluated: {0}")]
    Evaluation(String),
    #[error("no thread for the query")]
    NoThread(#[source] io::Error),
}

impl View {
    /// Answers a SPARQL 1.1 query (`SELECT`, `ASK`, `CONSTRUCT`, `DESCRIBE`) about one workspace.
    ///
    /// The prefixes of exports, `t:` for `trellis:` and `xsd:` need no declaration; one of the query's own counts before
    /// them. The default graph is the union of all graphs of the workspace, unless the query says `FROM`.
    /// Blocks until done; cancel it with [`Bounds::cancellation`].
    pub fn query(
        &self,
        workspace: &str,
        sparql: &str,
        overlay: &dyn Overlay,
        bounds: &Bounds,
    ) -> Result<Answer, QueryError> {
        if sparql.len() > MAX_QUERY_BYTES {
            return Err(QueryError::TooLong { bytes: sparql.len(), max: MAX_QUERY_BYTES });
        }
        let stack = MAX_DEPTH * STACK_PER_LEVEL + sparql.len() * STACK_PER_QUERY_BYTE;
        on_stack(stack, || {
            held::run_under(&bounds.cancellation);
            let query = parse(sparql)?;
            Survey::check(&query)?;
            self.evaluate(workspace, &query, overlay, bounds)
        })
    }

    fn evaluate(
        &self,
        workspace: &str,
        query: &Query,
        overlay: &dyn Overlay,
        bounds: &Bounds,
    ) -> Result<Answer, QueryError> {
        let session = Session::new(
            self.reader(workspace),
            default_graph(query),
            overlay,
            bounds.max_overlay_quads,
            bounds.cancellation.clone(),
        );
        let answer = run(query, &session, bounds);
        match session.take_failure() {
            Some(failure) => Err(failure),
            None => answer,
        }
    }
}

fn on_stack<T: Send>(bytes: usize, work: impl FnOnce() -> Result<T, QueryError> + Send) -> Result<T, QueryError> {
    thread::scope(|scope| {
        let builder = thread::Builder::new().name("sparql".to_owned()).stack_size(bytes);
        let worker = builder.spawn_scoped(scope, work).map_err(QueryError::NoThread)?;
        worker.join().unwrap_or_else(held::unwound)
    })
}

fn parse(sparql: &str) -> Result<Query, QueryError> {
    parser().parse_query(sparql).map_err(|error| {
        let update = parser().parse_update(sparql);
        if update.is_ok_and(|update| !update.operations.is_empty()) {
            QueryError::UpdateRefused
        } else {
            QueryError::Syntax(brief(&error.to_string(), sparql))
        }
    })
}

fn parser() -> SparqlParser {
    PREFIXES.iter().chain(MORE_PREFIXES).fold(SparqlParser::new(), |parser, (name, namespace)| {
        parser.with_prefix(*name, *namespace).expect("our namespaces are IRIs")
    })
}

/// Everything that could have stood at a place is a list that hides the place: what stands before it says more. Whole
/// sentences in the list are kept, such as that a prefix is not known.
fn brief(message: &str, sparql: &str) -> String {
    let found = message.strip_prefix("error at ").and_then(|rest| rest.split_once(": expected one of "));
    let Some((place, list)) = found else { return message.to_owned() };
    let sentences: Vec<_> = list.split(", ").filter(|item| item.contains(' ') && !item.starts_with('[')).collect();
    let why = if sentences.is_empty() { String::new() } else { format!(": {}", sentences.join(", ")) };
    format!("error at {place}, behind {:?}{why}", before(place, sparql))
}

/// The end of the line up to a place such as `2:14`.
fn before(place: &str, sparql: &str) -> String {
    let number = |text: &str| text.parse::<usize>().ok()?.checked_sub(1);
    let (line, column) = place.split_once(':').and_then(|(l, c)| number(l).zip(number(c))).unwrap_or_default();
    let line: Vec<char> = sparql.lines().nth(line).unwrap_or_default().chars().take(column).collect();
    line[line.len().saturating_sub(SHOWN)..].iter().collect()
}

fn default_graph(query: &Query) -> DefaultGraph {
    query.dataset().map_or(DefaultGraph::Union, |dataset| {
        DefaultGraph::Listed(dataset.default.iter().map(|graph| TermId::of_graph(Some(graph.as_str()))).collect())
    })
}

fn run(query: &Query, session: &Session<'_>, bounds: &Bounds) -> Result<Answer, QueryError> {
    let evaluator = QueryEvaluator::new().with_cancellation_token(bounds.cancellation.0.clone());
    let mut prepared = evaluator.prepare(query);
    // The session itself makes the union of the default graph, without duplicates.
    prepared.dataset_mut().set_default_graph(vec![GraphName::DefaultGraph]);
    if let Some(dataset) = query.dataset() {
        let named = dataset.named.iter().flatten().cloned().map(Into::into).collect();
        prepared.dataset_mut().set_available_named_graphs(named);
    }
    match prepared.execute(session)? {
        QueryResults::Boolean(truth) => Ok(Answer::Truth(truth)),
        QueryResults::Solutions(solutions) => rows(solutions, session, bounds.max_rows),
        QueryResults::Graph(triples) => {
            let triples = graph(triples, session, bounds.max_rows)?;
            let described = matches!(query, Query::Describe { .. });
            Ok(if described { Answer::Described(triples) } else { Answer::Constructed(triples) })
        }
    }
}

fn rows(solutions: QuerySolutionIter<'_>, session: &Session<'_>, max_rows: usize) -> Result<Answer, QueryError> {
    let variables = solutions.variables().iter().map(|variable| variable.as_str().to_owned()).collect();
    let mut rows: Vec<Vec<Option<Term>>> = Vec::new();
    for solution in solutions {
        let solution = solution?;
        if rows.len() == max_rows {
            return Ok(Answer::Rows { variables, rows, truncated: true });
        }
        if session.is_stopped() {
            break;
        }
        rows.push(solution.values().iter().map(|value| value.clone().map(from_ox)).collect());
    }
    Ok(Answer::Rows { variables, rows, truncated: false })
}

fn graph(triples: QueryTripleIter<'_>, session: &Session<'_>, max: usize) -> Result<Vec<Triple>, QueryError> {
    let mut graph = Vec::new();
    for triple in triples {
        let triple = triple?;
        if graph.len() == max {
            return Err(QueryError::GraphTooLarge { max });
        }
        if session.is_stopped() {
            break;
        }
        graph.push(from_ox_triple(triple));
    }
    Ok(graph)
}

/// What the session did not cause itself.
impl From<QueryEvaluationError> for QueryError {
    fn from(error: QueryEvaluationError) -> Self {
        if matches!(error, QueryEvaluationError::Cancelled) {
            Self::Cancelled
        } else {
            Self::Evaluation(error.to_string())
        }
    }
}
