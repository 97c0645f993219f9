use crate::projector::project;
use crate::projector::tests::fixture::react_run;
use crate::projector::tests::random_run::any_run;
use oxrdfio::{JsonLdProfileSet, RdfFormat, RdfParser};
use proptest::prelude::*;
use serde_json::Value;
use std::collections::BTreeSet;
use trellis_domain::rdf::{Quad, Term, Triple};
use trellis_provenance::{ExportError, Format, export, to_oxrdf};

/// Statements of a text as sorted lines.
fn parsed(text: &str, format: RdfFormat) -> BTreeSet<String> {
    let quads = RdfParser::from_format(format).for_slice(text);
    quads.map(|quad| quad.unwrap().to_string()).collect()
}

fn expected(quads: &[Quad]) -> BTreeSet<String> {
    quads.iter().map(|quad| to_oxrdf(quad).unwrap().to_string()).collect()
}

fn json_ld() -> RdfFormat {
    RdfFormat::JsonLd { profile: JsonLdProfileSet::empty() }
}

fn without_graphs(quads: &[Quad]) -> Vec<Quad> {
    quads.iter().map(|quad| Quad { g: None, ..quad.clone() }).collect()
}

#[test]
fn turtle_uses_short_names() {
    let text = export(&project(&react_run()), Format::Turtle).unwrap();
    assert!(text.contains("@prefix prov: <http://www.w3.org/ns/prov#> ."), "{text}");
    assert!(text.contains("tg:action \"weather\""), "{text}");
}

#[test]
fn json_ld_uses_short_names() {
    let text = export(&project(&react_run()), Format::JsonLd).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["@context"]["trellis"], "urn:trellis:ns:");
    assert!(text.contains("\"tg:action\""), "{text}");
}

#[test]
fn nothing_is_written_as_nothing() {
    assert_eq!(export(&[], Format::NQuads).unwrap(), "");
    assert_eq!(parsed(&export(&[], Format::Turtle).unwrap(), RdfFormat::Turtle), BTreeSet::new());
    assert_eq!(parsed(&export(&[], Format::JsonLd).unwrap(), json_ld()), BTreeSet::new());
}

#[test]
fn foreign_terms_are_written_too() {
    let s = Term::Blank { id: "b0".to_owned() };
    let typed = |value: &str, datatype: &str, language: &str| Term::Literal {
        value: value.to_owned(),
        datatype: datatype.to_owned(),
        language: language.to_owned(),
    };
    let edge = Triple { s: s.clone(), p: Term::iri("urn:p"), o: Term::literal("x") };
    let objects = [
        typed("3", "http://www.w3.org/2001/XMLSchema#integer", ""),
        typed("drei", "", "de"),
        Term::Quoted { triple: Box::new(edge) },
    ];
    let quads = objects.map(|o| Quad { s: s.clone(), p: Term::iri("urn:p"), o, g: None });
    assert_eq!(
        export(&quads, Format::NQuads).unwrap().lines().collect::<BTreeSet<_>>(),
        BTreeSet::from([
            "_:b0 <urn:p> \"3\"^^<http://www.w3.org/2001/XMLSchema#integer> .",
            "_:b0 <urn:p> \"drei\"@de .",
            "_:b0 <urn:p> <<( _:b0 <urn:p> \"x\" )>> .",
        ])
    );
    let refused = export(&quads, Format::JsonLd).unwrap_err();
    assert!(matches!(refused, ExportError::Format(_)), "{refused}");
}

#[test]
fn what_is_no_statement_is_refused_with_a_reason() {
    let refused = |s: Term, p: Term| {
        export(&[Quad { s, p, o: Term::literal(""), g: None }], Format::NQuads).unwrap_err().to_string()
    };
    assert_eq!(refused(Term::literal("x"), Term::iri("urn:p")), "\"x\" cannot stand as the subject of a statement");
    assert_eq!(refused(Term::iri("urn:s"), Term::literal("x")), "\"x\" cannot stand as the property of a statement");
    assert!(refused(Term::iri("no iri"), Term::iri("urn:p")).starts_with("\"no iri\" is not an IRI"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_format_can_be_read_back(records in any_run()) {
        let quads = project(&records);
        prop_assert_eq!(parsed(&export(&quads, Format::NQuads).unwrap(), RdfFormat::NQuads), expected(&quads));
        prop_assert_eq!(parsed(&export(&quads, Format::JsonLd).unwrap(), json_ld()), expected(&quads));
        let turtle = export(&quads, Format::Turtle).unwrap();
        prop_assert_eq!(parsed(&turtle, RdfFormat::Turtle), expected(&without_graphs(&quads)));
    }
}

#[test]
fn marks_that_turn_a_line_around_are_visible_and_nothing_is_lost() {
    let marks = "a\u{202e}b\u{2066}c\u{200f}d\u{61c}e\u{9b}f\\\u{202a}g";
    let s = Term::iri("urn:trustgraph:agent:S\u{200e}");
    let quads = [Quad { s, p: Term::iri("urn:p"), o: Term::literal(marks), g: None }];
    for (format, read_as) in
        [(Format::Turtle, RdfFormat::Turtle), (Format::NQuads, RdfFormat::NQuads), (Format::JsonLd, json_ld())]
    {
        let text = export(&quads, format).unwrap();
        assert!(!text.contains(trellis_domain::marks::is_direction_mark) && !text.contains('\u{9b}'), "{text}");
        assert!(text.contains("\\u202eb"), "{text}");
        assert_eq!(parsed(&text, read_as), expected(&quads), "{format:?}");
    }
}
