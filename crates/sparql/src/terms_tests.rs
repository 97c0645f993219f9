use super::*;
use trellis_domain::rdf::Triple;

fn written(term: &Term) -> String {
    let mut out = String::new();
    write(&mut out, term);
    out
}

fn literal(value: &str, datatype: &str, language: &str) -> Term {
    Term::Literal { value: value.into(), datatype: datatype.into(), language: language.into() }
}

#[test]
fn plain_terms_are_written_as_people_know_them() {
    assert_eq!(written(&Term::iri("urn:trustgraph:agent:S/i1")), "<urn:trustgraph:agent:S/i1>");
    assert_eq!(written(&Term::literal("a \"b\" \\ \n\u{7}é")), r#""a \"b\" \\ \n\u0007é""#);
    assert_eq!(
        written(&literal("1", "http://www.w3.org/2001/XMLSchema#integer", "")),
        r#""1"^^<http://www.w3.org/2001/XMLSchema#integer>"#
    );
    assert_eq!(written(&literal("1", XSD_STRING, "")), r#""1""#);
    assert_eq!(written(&literal("a", "", "en-GB")), r#""a"@en-gb"#);
}

/// Nothing breaks out of its place, and everything comes back.
#[test]
fn what_cannot_be_named_is_held_by_an_iri() {
    let quoted =
        Term::Quoted { triple: Box::new(Triple { s: Term::iri("s"), p: Term::iri("p"), o: Term::literal("o>") }) };
    let strange = [
        Term::iri(""),
        Term::iri("relative"),
        Term::iri("urn:a> <urn:b"),
        Term::iri("urn:a b"),
        Term::iri("http://h/a/../b"),
        Term::iri("http://h/%zz"),
        Term::iri("urn:a#b#c"),
        Term::iri(format!("{OPAQUE}aWE")),
        Term::Blank { id: "b0".into() },
        literal("a", "", "ar--rtl"),
        literal("a", "urn:a b", ""),
        literal("a\0b", "", ""),
        quoted,
    ];
    for term in strange {
        let text = written(&term);
        let iri = text.strip_prefix('<').and_then(|text| text.strip_suffix('>')).unwrap();
        assert!(iri.starts_with(OPAQUE) && !iri.contains(['<', '>', ' ', '"']), "{text}");
        assert_eq!(of_iri(iri.to_owned()), Some(term));
    }
    assert_eq!(of_iri(format!("{OPAQUE}!")), None);
    assert_eq!(of_iri("urn:x".into()), Some(Term::iri("urn:x")));
}
