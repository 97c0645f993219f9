//! The graph of a workspace: what its runs say and what was loaded, as quads.

use super::{BoxFuture, JournalError};
use std::time::Duration;
use trellis_domain::rdf::{Quad, Term, Triple};
use trellis_domain::{Collection, RunId, Workspace};

/// Which quads to find; `None` matches anything. The graph `""` is the default graph.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QuadPattern {
    pub s: Option<Term>,
    pub p: Option<Term>,
    pub o: Option<Term>,
    pub g: Option<String>,
    /// Which loaded knowledge is looked at: that of one collection, or all of it. What runs say is in no collection.
    pub collection: Option<Collection>,
}

impl QuadPattern {
    /// Whether a quad is one of those. Literals are compared as RDF does it: `xsd:string` is no datatype at all, and
    /// language tags have no case.
    pub fn matches(&self, quad: &Quad) -> bool {
        let fits = |wanted: &Option<Term>, term: &Term| wanted.as_ref().is_none_or(|wanted| is_same(wanted, term));
        let in_graph = self.g.as_ref().is_none_or(|graph| quad.g.as_deref().unwrap_or_default() == graph);
        in_graph && fits(&self.s, &quad.s) && fits(&self.p, &quad.p) && fits(&self.o, &quad.o)
    }
}

fn is_same(a: &Term, b: &Term) -> bool {
    match (a, b) {
        (
            Term::Literal { value, datatype, language },
            Term::Literal { value: other, datatype: other_datatype, language: other_language },
        ) => {
            let tagged = !language.is_empty() || !other_language.is_empty();
            let same_kind = if tagged {
                language.eq_ignore_ascii_case(other_language)
            } else {
                datatype_of(datatype) == datatype_of(other_datatype)
            };
            value == other && same_kind
        }
        (Term::Quoted { triple }, Term::Quoted { triple: other }) => {
            is_same(&triple.s, &other.s) && is_same(&triple.p, &other.p) && is_same(&triple.o, &other.o)
        }
        (Term::Iri { .. } | Term::Blank { .. } | Term::Literal { .. } | Term::Quoted { .. }, _) => a == b,
    }
}

fn datatype_of(datatype: &str) -> &str {
    const STRING: &str = "http://www.w3.org/2001/XMLSchema#string";
    if datatype.is_empty() { STRING } else { datatype }
}

/// What a SPARQL query gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Of `SELECT`. A row has one cell for each variable.
    Rows { variables: Vec<String>, rows: Vec<Vec<Option<Term>>>, truncated: bool },
    /// Of `ASK`.
    Truth(bool),
    /// Of `CONSTRUCT`.
    Constructed(Vec<Triple>),
    /// Of `DESCRIBE`.
    Described(Vec<Triple>),
}

/// What was found, and how much could not be looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found<T> {
    pub found: T,
    /// Runs that are not indexed yet, and too many to be read one by one: what they say is missing.
    pub missing_runs: usize,
}

impl<T> Found<T> {
    /// Found in everything that there is.
    pub const fn whole(found: T) -> Self {
        Self { found, missing_runs: 0 }
    }
}

/// Who asks, and about what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asking<'a> {
    pub workspace: &'a Workspace,
    /// Who it is, where callers are told apart. Nobody keeps others from asking.
    pub caller: Option<&'a str>,
    /// Only what was loaded into this collection, and nothing that runs say. None: all that the workspace has.
    pub knowledge: Option<&'a Collection>,
}

/// How much a SPARQL query may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueryLimits {
    /// Rows beyond this are cut off and the answer says so; a graph beyond it is an error.
    pub max_rows: usize,
    /// A query that takes longer is ended. An adapter may allow less.
    pub time: Duration,
}

impl Default for QueryLimits {
    fn default() -> Self {
        Self { max_rows: 10_000, time: Duration::from_secs(30) }
    }
}

/// Why the graph gives no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum GraphError {
    /// The query's own fault.
    #[error("{0}")]
    Query(String),
    /// More than the limits allow, for a query that is right as such.
    #[error("{0}")]
    TooLarge(String),
    #[error("the query took longer than {} s; narrow it", .0.as_secs_f64())]
    TimedOut(Duration),
    /// Others ask, too: this may be asked again.
    #[error("{0}")]
    Busy(String),
    /// What the graph was derived into is unusable; the records are not.
    #[error("{0}")]
    Index(String),
    #[error("SPARQL is not available here: this graph can only be matched")]
    NoSparql,
    #[error(transparent)]
    Store(#[from] JournalError),
}

/// Quads that follow from the records of a workspace's runs, never edited and current unless an answer says that runs
/// are missing, and beside them what was loaded ([`super::Knowledge`]).
///
/// Answers are stable. Unless something is committed in between, the same request gives the same quads in the same
/// order, and a larger limit only adds to the end.
pub trait Graph: Send + Sync + std::fmt::Debug {
    /// The quads of one run, sorted; none if there is no such run.
    fn run<'a>(&'a self, workspace: &'a Workspace, run: &'a RunId) -> BoxFuture<'a, Result<Vec<Quad>, GraphError>>;

    /// The first quads that match, each once.
    ///
    /// A pattern that names a node of a run in its subject, or in the object of a property that stays within a run,
    /// has its quads sorted. All questions (`? tg:query ?`) come newest run first, those of callers before those of
    /// subagents, so that a limit leaves out what is oldest. What was loaded comes behind both. Other patterns have
    /// whatever order the adapter's index gives them.
    fn matching<'a>(
        &'a self,
        workspace: &'a Workspace,
        pattern: &'a QuadPattern,
        limit: usize,
    ) -> BoxFuture<'a, Result<Found<Vec<Quad>>, GraphError>>;

    /// Answers a SPARQL 1.1 query. Its default graph is the union of all graphs of the workspace. A query whose
    /// answer nobody waits for any more is ended. Whatever it takes, it harms nothing but itself, and however many
    /// queries one caller or workspace has, others are answered meanwhile.
    fn query<'a>(
        &'a self,
        asking: Asking<'a>,
        sparql: &'a str,
        limits: QueryLimits,
    ) -> BoxFuture<'a, Result<Found<Answer>, GraphError>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literal(datatype: &str, language: &str) -> Term {
        Term::Literal { value: "a".into(), datatype: datatype.into(), language: language.into() }
    }

    #[test]
    fn literals_are_compared_as_rdf_does_it() {
        let string = "http://www.w3.org/2001/XMLSchema#string";
        assert!(is_same(&literal("", ""), &literal(string, "")));
        assert!(is_same(&literal("", "en"), &literal("", "EN")));
        assert!(!is_same(&literal("", ""), &literal("", "en")));
        assert!(!is_same(&literal("", ""), &literal("urn:type", "")));
        let quoted = |o| Term::Quoted { triple: Box::new(Triple { s: Term::iri("s"), p: Term::iri("p"), o }) };
        assert!(is_same(&quoted(literal("", "en")), &quoted(literal("", "En"))));
        assert!(!is_same(&quoted(literal("", "en")), &Term::iri("s")));
    }

    #[test]
    fn the_empty_name_is_the_default_graph_and_no_name_is_any() {
        let quad = |g: Option<&str>| Quad {
            s: Term::iri("s"),
            p: Term::iri("p"),
            o: Term::literal("o"),
            g: g.map(str::to_owned),
        };
        let in_graph = |g: &str| QuadPattern { g: Some(g.to_owned()), ..QuadPattern::default() };
        assert!(in_graph("").matches(&quad(None)) && !in_graph("").matches(&quad(Some("urn:g"))));
        assert!(in_graph("urn:g").matches(&quad(Some("urn:g"))) && !in_graph("urn:g").matches(&quad(None)));
        assert!(QuadPattern::default().matches(&quad(None)) && QuadPattern::default().matches(&quad(Some("urn:g"))));
    }
}
