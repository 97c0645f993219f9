use super::convert::{from_ox, to_ox};
use super::term_id::{TermId, canonical_bytes, read_term};
use proptest::prelude::*;
use trellis_domain::rdf::{Term, Triple};

const XSD: &str = "http://www.w3.org/2001/XMLSchema#";

fn literal(value: &str, datatype: &str, language: &str) -> Term {
    Term::Literal { value: value.into(), datatype: datatype.into(), language: language.into() }
}

fn quoted(s: Term, p: Term, o: Term) -> Term {
    Term::Quoted { triple: Box::new(Triple { s, p, o }) }
}

/// Any term in the form in which it comes back: no `xsd:string`, tags in lower case.
pub(super) fn any_term() -> impl Strategy<Value = Term> {
    let leaf = prop_oneof![
        "[a-c]{1,2}".prop_map(|name| Term::iri(format!("urn:x:{name}"))),
        "\\PC{0,6}".prop_map(Term::literal),
        ("\\PC{0,4}", "[a-b]").prop_map(|(value, name)| literal(&value, &format!("urn:type:{name}"), "")),
        ("\\PC{0,4}", "(en|de-at|ar--rtl)").prop_map(|(value, tag)| literal(&value, "", &tag)),
        "[a-b]{1,2}".prop_map(|id| Term::Blank { id }),
    ];
    leaf.prop_recursive(2, 6, 3, |inner| (inner.clone(), inner.clone(), inner).prop_map(|(s, p, o)| quoted(s, p, o)))
}

proptest! {
    #[test]
    fn terms_come_back_from_their_canonical_bytes(term in any_term()) {
        prop_assert_eq!(read_term(&canonical_bytes(&term)), Some(term));
    }

    #[test]
    fn different_terms_have_different_ids(a in any_term(), b in any_term()) {
        prop_assert_eq!(a == b, TermId::of_term(&a) == TermId::of_term(&b));
    }

    #[test]
    fn damaged_bytes_are_refused_or_read_but_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        let _term: Option<Term> = read_term(&bytes);
    }
}

#[test]
fn equal_literals_share_an_id() {
    let id = |datatype: &str, language: &str| TermId::of_term(&literal("a", datatype, language));
    assert_eq!(id("", ""), id(&format!("{XSD}string"), ""));
    assert_eq!(id("", "en"), id("", "EN"));
    assert_ne!(id("", ""), id("", "en"));
    assert_ne!(id("", ""), id(&format!("{XSD}integer"), ""));
}

#[test]
fn the_default_graph_is_named_by_absence_and_by_nothing_else() {
    assert_eq!(TermId::of_graph(None), TermId::DEFAULT_GRAPH);
    assert_eq!(TermId::of_graph(Some("")), TermId::DEFAULT_GRAPH);
    assert_eq!(TermId::of_graph(Some("urn:g")), TermId::of_term(&Term::iri("urn:g")));
}

#[test]
fn terms_survive_the_evaluator() {
    let terms = [
        Term::iri("urn:x:a"),
        Term::Blank { id: "b0".into() },
        Term::literal("plain"),
        literal("1", &format!("{XSD}integer"), ""),
        literal("hallo", "", "de-at"),
        literal("مرحبا", "", "ar--rtl"),
        quoted(Term::iri("urn:s"), Term::iri("urn:p"), literal("o", "", "en")),
    ];
    for term in terms {
        assert_eq!(from_ox(to_ox(&term)), term);
    }
}

#[test]
fn a_triple_that_rdf_forbids_becomes_an_opaque_node() {
    let forbidden = quoted(Term::literal("s"), Term::iri("urn:p"), Term::literal("o"));
    let shown = from_ox(to_ox(&forbidden));
    assert_eq!(shown, Term::Blank { id: format!("t{}", TermId::of_term(&forbidden)) });
}
