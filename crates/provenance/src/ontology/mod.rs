//! The published vocabulary as a check on graphs: they say only what it declares, and only of what it declares it for.
//!
//! [`crate::check()`] asks whether a run is told rightly; this asks whether it is told in words that a stranger can look
//! up. Only tests ask, so this is no part of a normal build.

mod form;
mod problems;
mod read;

pub use form::Form;
pub use problems::OntologyProblem;
pub use read::UnreadableOntology;

pub use read::Declarations;

use std::collections::{BTreeMap, BTreeSet};

/// What a vocabulary in OWL says about its terms, as far as graphs can be checked against it.
///
/// ```
/// use trellis_domain::rdf::{Quad, Term};
/// use trellis_provenance::ONTOLOGY;
/// use trellis_provenance::ontology::{Ontology, OntologyProblem};
/// use trellis_provenance::vocabulary::tg;
///
/// let ontology = Ontology::parse(ONTOLOGY)?;
/// let (s, p, o) = (Term::iri("urn:trustgraph:agent:S"), Term::iri(tg::QUERY), Term::literal("why?"));
/// let problems = ontology.problems(&[Quad { s, p, o, g: None }]);
/// assert!(matches!(&problems[..], [OntologyProblem::Domain { .. }]), "nothing says that the node is a question");
/// # Ok::<(), trellis_provenance::ontology::UnreadableOntology>(())
/// ```
#[derive(Debug)]
pub struct Ontology {
    classes: BTreeMap<String, Class>,
    properties: BTreeMap<String, Property>,
}

#[derive(Debug)]
struct Class {
    /// The class itself and all classes that it is a kind of.
    kinds: BTreeSet<String>,
    disjoint: BTreeSet<String>,
    membership: Membership,
}

/// How a node is known to be of a class.
#[derive(Debug)]
enum Membership {
    /// The graph says so.
    Stated,
    /// Its IRI begins like this.
    Prefix(Vec<String>),
    /// A property with this range, and no other, points at it.
    PointedAt,
}

#[derive(Debug)]
struct Property {
    /// Classes of which the subject must have one; empty if any will do.
    domain: BTreeSet<String>,
    /// Classes of which the object must have one, `rdfs:Literal` among them; empty if any will do.
    range: BTreeSet<String>,
    /// Properties that must lead back from the object to the subject.
    back: BTreeSet<String>,
    form: Option<Form>,
    /// What literals are taken from; empty if from nothing in particular.
    words: BTreeSet<String>,
}
