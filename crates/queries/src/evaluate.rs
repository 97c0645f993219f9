//! SPARQL queries over a source and an overlay.

use crate::convert::{from_ox, from_ox_triple};
use crate::overlay::Overlay;
use crate::query::{Bounds, QueryError};
use crate::session::{DefaultGraph, Session};
use crate::size::Size;
use crate::source::Source;
use crate::survey::{MAX_DEPTH, Survey};
use crate::term_id::TermId;
use oxrdf::GraphName;
use spareval::{QueryEvaluator, QueryResults, QuerySolutionIter, QueryTripleIter};
use spargebra::{Query, SparqlParser};
use trellis_domain::rdf::{Term, Triple};
use trellis_orchestrator::ports::Answer;
use trellis_provenance::vocabulary::{PREFIXES, trellis};

/// Nested collections take the parser time by the square: 3 s at this length, and it cannot be cancelled.
pub const MAX_QUERY_BYTES: usize = 16 * 1024;
/// Parser, optimiser and evaluator recurse, and a stack that overflows ends a process. Measured
/// per byte of text: up to 4 KB to parse; per level of nesting in a debug build: 50 KB to evaluate.
const STACK_PER_QUERY_BYTE: usize = 5 * 1024;
const STACK_PER_LEVEL: usize = 80 * 1024;

/// Known to every query besides those of exports: a short name for our own words, and the types of numbers and times.
const MORE_PREFIXES: &[(&str, &str)] = &[("t", trellis::NS), ("xsd", "http://www.w3.org/2001/XMLSchema#")];

/// How many characters before a mistake its message shows.
const SHOWN: usize = 24;

/// The stack that a query of this length may need.
pub fn stack_of(sparql: &str) -> usize {
    MAX_DEPTH * STACK_PER_LEVEL + sparql.len() * STACK_PER_QUERY_BYTE
}

pub fn check_length(sparql: &str) -> Result<(), QueryError> {
    if sparql.len() > MAX_QUERY_BYTES {
        return Err(QueryError::TooLong { bytes: sparql.len(), max: MAX_QUERY_BYTES });
    }
    Ok(())
}

/// Answers a SPARQL 1.1 query (`SELECT`, `ASK`, `CONSTRUCT`, `DESCRIBE`).
///
/// The prefixes of exports, `t:` for `trellis:` and `xsd:` need no declaration; one of the query's own counts before
/// them. The default graph is the union of all graphs, unless the query says `FROM`. It takes whatever time, memory and
/// stack it takes: call it where that is bounded.
pub fn answer(sparql: &str, source: &dyn Source, overlay: &dyn Overlay, bounds: &Bounds) -> Result<Answer, QueryError> {
    let query = parse(sparql)?;
    Survey::check(&query)?;
    let cancellation = bounds.cancellation.clone();
    let session = Session::new(source, default_graph(&query), overlay, bounds.max_overlay_quads, cancellation);
    let answer = run(&query, &session, bounds);
    match session.take_failure() {
        Some(failure) => Err(failure),
        None => answer,
    }
}

pub(crate) fn parse(sparql: &str) -> Result<Query, QueryError> {
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
    let evaluator = QueryEvaluator::new();
    let mut prepared = evaluator.prepare(query);
    // The session itself makes the union of the default graph, without duplicates.
    prepared.dataset_mut().set_default_graph(vec![GraphName::DefaultGraph]);
    if let Some(dataset) = query.dataset() {
        let named = dataset.named.iter().flatten().cloned().map(Into::into).collect();
        prepared.dataset_mut().set_available_named_graphs(named);
    }
    match prepared.execute(session)? {
        QueryResults::Boolean(truth) => Ok(Answer::Truth(truth)),
        QueryResults::Solutions(solutions) => rows(solutions, session, bounds),
        QueryResults::Graph(triples) => {
            let triples = graph(triples, session, bounds)?;
            let described = matches!(query, Query::Describe { .. });
            Ok(if described { Answer::Described(triples) } else { Answer::Constructed(triples) })
        }
    }
}

fn rows(solutions: QuerySolutionIter<'_>, session: &Session<'_>, bounds: &Bounds) -> Result<Answer, QueryError> {
    let variables = solutions.variables().iter().map(|variable| variable.as_str().to_owned()).collect();
    let (mut rows, mut size): (Vec<Vec<Option<Term>>>, _) = (Vec::new(), Size::default());
    for solution in solutions {
        let solution = solution?;
        if rows.len() == bounds.max_rows {
            return Ok(Answer::Rows { variables, rows, truncated: true });
        }
        if session.is_stopped() {
            break;
        }
        let row: Vec<_> = solution.values().iter().map(|value| value.clone().map(from_ox)).collect();
        if !size.admits(row.iter().flatten(), bounds.max_bytes) {
            if rows.is_empty() {
                return Err(QueryError::AnswerTooLarge { max: bounds.max_bytes });
            }
            return Ok(Answer::Rows { variables, rows, truncated: true });
        }
        rows.push(row);
    }
    Ok(Answer::Rows { variables, rows, truncated: false })
}

fn graph(triples: QueryTripleIter<'_>, session: &Session<'_>, bounds: &Bounds) -> Result<Vec<Triple>, QueryError> {
    let (mut graph, mut size) = (Vec::new(), Size::default());
    for triple in triples {
        let triple = from_ox_triple(triple?);
        if graph.len() == bounds.max_rows {
            return Err(QueryError::GraphTooLarge { max: bounds.max_rows });
        }
        if session.is_stopped() {
            break;
        }
        if !size.admits([&triple.s, &triple.p, &triple.o], bounds.max_bytes) {
            return Err(QueryError::AnswerTooLarge { max: bounds.max_bytes });
        }
        graph.push(triple);
    }
    Ok(graph)
}
