//! The vocabulary as a file: complete, and the same as the one that the program writes.

use crate::ONTOLOGY;
use crate::ontology::{Declarations, Ontology, UnreadableOntology};
use crate::vocabulary::{prov, rdf, rdfs, tg, trellis};
use expect_test::expect;
use std::collections::BTreeSet;
use trellis_domain::Surface;
use trellis_domain::decision::{DecidedBy, DecisionKind, Enforcement};
use trellis_domain::fan_out::JoinCause;
use trellis_domain::record::ReplyFormat;
use trellis_domain::run::Termination;

const OWL: &str = "http://www.w3.org/2002/07/owl#";
const DCTERMS: &str = "http://purl.org/dc/terms/";
const SKOS: &str = "http://www.w3.org/2004/02/skos/core#";

/// The kinds of terms, and how the name of one begins.
const KINDS: [(&str, &str, Begins); 5] = [
    (OWL, "Class", Begins::Large),
    (OWL, "ObjectProperty", Begins::Small),
    (OWL, "DatatypeProperty", Begins::Small),
    (OWL, "AnnotationProperty", Begins::Small),
    (rdf::NS, "Property", Begins::Small),
];

#[derive(Debug, Clone, Copy, PartialEq)]
enum Begins {
    Large,
    Small,
}

impl Begins {
    fn of(term: &str) -> Self {
        let (_, name) = term.rsplit_once(['/', '#', ':']).unwrap();
        if name.starts_with(char::is_uppercase) { Self::Large } else { Self::Small }
    }
}

fn declarations() -> Declarations {
    Declarations::parse(ONTOLOGY).unwrap()
}

fn annotations(file: &Declarations) -> BTreeSet<String> {
    file.of_type(OWL, "AnnotationProperty")
}

/// Everything that is declared, without what the file says about its own terms.
fn terms(file: &Declarations) -> BTreeSet<String> {
    file.classes().chain(file.properties()).collect()
}

fn standing(file: &Declarations, term: &str) -> Option<String> {
    file.values(term, trellis::NS, "standing").pop_first()
}

fn is_ours(term: &str) -> bool {
    term.starts_with(tg::NS) || term.starts_with(trellis::NS)
}

/// What a reader misses about the terms of a file.
fn gaps(file: &Declarations) -> Vec<String> {
    let mut gaps = Vec::new();
    for term in terms(file).union(&annotations(file)) {
        let explained = if is_ours(term) {
            [(rdfs::NS, "comment")].as_slice()
        } else {
            &[(SKOS, "scopeNote"), (rdfs::NS, "isDefinedBy")]
        };
        for (namespace, property) in [(rdfs::NS, "label")].iter().chain(explained) {
            let texts = file.values(term, namespace, property);
            if texts.len() != 1 || texts.contains("") {
                gaps.push(format!("{term} has {} of {property}, not one", texts.len()));
            }
        }
        let kinds = KINDS.iter().filter(|(namespace, kind, _)| file.of_type(namespace, kind).contains(term));
        let kinds: Vec<_> = kinds.collect();
        if kinds.len() != 1 || kinds[0].2 != Begins::of(term) {
            gaps.push(format!("{term} is declared as {kinds:?}"));
        }
    }
    gaps
}

/// What is missing or unknown in domains, ranges and hierarchies.
fn loose_ends(file: &Declarations) -> Vec<String> {
    let literal = format!("{}Literal", rdfs::NS);
    let (classes, mut found): (BTreeSet<String>, _) = (file.classes().collect(), Vec::new());
    for class in classes.iter().filter(|class| is_ours(class)) {
        let above = file.values(class, rdfs::NS, "subClassOf");
        if above.is_empty() || !above.is_subset(&classes) {
            found.push(format!("{class} is a kind of {above:?}"));
        }
    }
    for property in file.properties().filter(|property| is_ours(property)) {
        let (domain, range) = (file.values(&property, rdfs::NS, "domain"), file.values(&property, rdfs::NS, "range"));
        let is_written = standing(file, &property).is_none();
        // Some lead to whatever a knowledge graph holds.
        let leads_anywhere = file.of_type(rdf::NS, "Property").contains(&property);
        if is_written && (domain.is_empty() || range.is_empty() && !leads_anywhere) {
            found.push(format!("{property} does not say from what to what it leads"));
        }
        let unknown = domain.iter().chain(&range).filter(|class| !classes.contains(*class) && **class != literal);
        found.extend(unknown.map(|class| format!("{property} names {class}, which is not declared")));
        // What leads to anything, or to both literals and nodes, is neither of OWL's two kinds.
        let expected = match (range.len(), range.contains(&literal)) {
            (0, _) | (2.., true) => "Property",
            (1, true) => "DatatypeProperty",
            (_, false) => "ObjectProperty",
        };
        if !KINDS.iter().any(|(ns, kind, _)| *kind == expected && file.of_type(ns, kind).contains(&property)) {
            found.push(format!("{property} is no {expected}, but leads to {range:?}"));
        }
    }
    found
}

/// Constants that the file does not declare, and terms that neither a constant nor their standing explains.
fn disagreements(file: &Declarations) -> Vec<String> {
    let constants: BTreeSet<&str> = [tg::ALL, trellis::ALL, prov::ALL, rdfs::ALL].concat().into_iter().collect();
    let declared = terms(file);
    let missing = constants.iter().filter(|constant| !declared.contains(**constant));
    let missing = missing.map(|constant| format!("{constant} is not declared"));
    let unexplained = declared.iter().filter(|term| is_ours(term) && !constants.contains(term.as_str()));
    let unexplained = unexplained.filter(|term| standing(file, term).is_none());
    missing.chain(unexplained.map(|term| format!("{term} is no name that the program knows"))).collect()
}

#[test]
fn the_vocabulary_says_what_it_is_in_which_version_and_under_which_licence() {
    let file = declarations();
    let ontologies = Vec::from_iter(file.of_type(OWL, "Ontology"));
    assert_eq!(ontologies, ["urn:trellis:ontology"]);
    for (namespace, property) in
        [(DCTERMS, "title"), (DCTERMS, "description"), (DCTERMS, "license"), (OWL, "versionInfo"), (OWL, "versionIRI")]
    {
        assert_eq!(file.values(&ontologies[0], namespace, property).len(), 1, "{property}");
    }
    let version = file.values(&ontologies[0], OWL, "versionInfo").pop_first().unwrap();
    let named = file.values(&ontologies[0], OWL, "versionIRI").pop_first().unwrap();
    assert_eq!(named, format!("urn:trellis:ontology:{version}"));
}

#[test]
fn every_term_has_a_label_an_explanation_and_one_kind() {
    assert_eq!(gaps(&declarations()), [""; 0]);
}

#[test]
fn a_term_without_explanation_or_with_the_wrong_kind_is_found() {
    let broken = ONTOLOGY
        .replace("tg:Finding a owl:Class", "tg:Finding a owl:ObjectProperty")
        .replace(r#"rdfs:label "query"@en ;"#, "")
        .replace(r#"rdfs:label "join"@en ;"#, r#"rdfs:label "join"@en, "joint"@en ;"#);
    expect![[r#"
        https://trustgraph.ai/ns/Finding is declared as [("http://www.w3.org/2002/07/owl#", "ObjectProperty", Small)]
        https://trustgraph.ai/ns/query has 0 of label, not one
        urn:trellis:ns:join has 2 of label, not one"#]]
    .assert_eq(&gaps(&Declarations::parse(&broken).unwrap()).join("\n"));
}

#[test]
fn every_class_has_its_place_and_every_property_says_from_what_to_what_it_leads() {
    assert_eq!(loose_ends(&declarations()), [""; 0]);
}

#[test]
fn a_property_that_leads_from_or_to_nothing_known_is_found() {
    let broken = ONTOLOGY
        .replace("tg:Focus a owl:Class ;\n    rdfs:subClassOf prov:Entity ;", "tg:Focus a owl:Class ;")
        .replace("rdfs:range trellis:Join ;", "rdfs:range trellis:Knot ;")
        .replace("tg:query a owl:DatatypeProperty ;\n    rdfs:domain tg:Question ;", "tg:query a owl:ObjectProperty ;");
    expect![[r#"
        https://trustgraph.ai/ns/Focus is a kind of {}
        https://trustgraph.ai/ns/query does not say from what to what it leads
        https://trustgraph.ai/ns/query is no DatatypeProperty, but leads to {"http://www.w3.org/2000/01/rdf-schema#Literal"}
        urn:trellis:ns:join names urn:trellis:ns:Knot, which is not declared"#]]
    .assert_eq(&loose_ends(&Declarations::parse(&broken).unwrap()).join("\n"));
}

#[test]
fn the_file_declares_the_names_that_the_program_knows_and_no_others() {
    assert_eq!(disagreements(&declarations()), [""; 0]);
}

#[test]
fn a_name_that_only_the_file_or_only_the_program_knows_is_found() {
    let broken = ONTOLOGY.replace("tg:query a ", "tg:querry a ");
    expect![[r#"
        https://trustgraph.ai/ns/query is not declared
        https://trustgraph.ai/ns/querry is no name that the program knows"#]]
    .assert_eq(&disagreements(&Declarations::parse(&broken).unwrap()).join("\n"));
}

#[test]
fn the_words_of_a_property_are_those_that_the_program_knows() {
    let file = declarations();
    let check = |term: &str, known: &[&str]| {
        let known: BTreeSet<String> = known.iter().copied().map(str::to_owned).collect();
        assert_eq!(file.values(term, trellis::NS, "word"), known, "{term}");
        let comment = file.values(term, rdfs::NS, "comment").pop_first().unwrap();
        let unexplained: Vec<_> = known.iter().filter(|word| !comment.contains(word.as_str())).collect();
        assert!(unexplained.is_empty(), "{term} does not explain {unexplained:?}");
    };
    check(trellis::DECISION_KIND, DecisionKind::WORDS);
    check(trellis::DECIDED_BY, DecidedBy::WORDS);
    check(trellis::ENFORCEMENT, Enforcement::WORDS);
    check(trellis::REPLY_FORMAT, ReplyFormat::WORDS);
    check(trellis::JOIN_CAUSE, JoinCause::WORDS);
    check(trellis::SURFACE, Surface::WORDS);
    check(tg::TERMINATION_REASON, Termination::WORDS);
    let reasons = Termination::WORDS.iter().copied().map(str::to_owned).collect();
    assert_eq!(file.values(trellis::STATUS, trellis::NS, "word"), reasons);
}

#[test]
fn a_vocabulary_that_cannot_be_read_says_why() {
    let no_turtle = Ontology::parse("tg:query a").unwrap_err();
    assert!(matches!(no_turtle, UnreadableOntology::Syntax(_)), "{no_turtle}");
    let form = Ontology::parse(&ONTOLOGY.replace("rdf:JSON", "rdf:HTML")).unwrap_err();
    assert!(matches!(&form, UnreadableOntology::UnknownForm { term, .. } if term == tg::ARGUMENTS), "{form}");
    let standing = Ontology::parse(&ONTOLOGY.replace(r#""implied""#, r#""guessed""#)).unwrap_err();
    expect![[r#"urn:trellis:ns:ConfigurationItem has the standing "guessed", which means nothing here"#]]
        .assert_eq(&standing.to_string());
}
