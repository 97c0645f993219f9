use super::*;
use std::collections::BTreeSet;

/// Everything is allowed.
const FREE: Rule = |_| Ok(());

fn origin(scope: &str, base: Option<&str>) -> Origin {
    Origin { name: "a file".to_owned(), scope: scope.to_owned(), base: base.map(str::to_owned) }
}

/// Gives few bytes at a time.
struct Drops<'a>(&'a [u8]);

impl Read for Drops<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let size = self.0.len().min(out.len()).min(5);
        out[..size].copy_from_slice(&self.0[..size]);
        self.0 = &self.0[size..];
        Ok(size)
    }
}

fn read(format: Format, text: impl AsRef<[u8]>) -> Result<BTreeSet<Quad>, ReadError> {
    let text = text.as_ref();
    let whole: Result<BTreeSet<_>, _> =
        Statements::new(text, format, origin("s", Some("http://base/")), FREE)?.collect();
    let drops: Result<BTreeSet<_>, _> =
        Statements::new(Drops(text), format, origin("s", Some("http://base/")), FREE)?.collect();
    assert_eq!(whole.as_ref().ok(), drops.as_ref().ok(), "however it arrives");
    whole
}

fn quad(s: &str, p: &str, o: Term, g: Option<&str>) -> Quad {
    Quad { s: Term::iri(s), p: Term::iri(p), o, g: g.map(str::to_owned) }
}

#[test]
fn every_format_says_the_same() {
    let expected = BTreeSet::from([
        quad("http://base/s", "http://p", Term::iri("http://o"), None),
        quad(
            "http://base/s",
            "http://p",
            Term::Literal { value: "ü".into(), datatype: String::new(), language: "de".into() },
            None,
        ),
    ]);
    let texts = [
        (Format::Turtle, "\u{feff}<s> <http://p> <http://o>, \"ü\"@de ."),
        (Format::TriG, "{ <s> <http://p> <http://o>, \"ü\"@de }"),
        (Format::NTriples, "<http://base/s> <http://p> <http://o> .\n<http://base/s> <http://p> \"\\u00fc\"@de .\n"),
        (Format::NQuads, "<http://base/s> <http://p> <http://o> .\n<http://base/s> <http://p> \"ü\"@de .\n"),
        (Format::JsonLd, r#"{"@id": "s", "http://p": [{"@id": "http://o"}, {"@value": "ü", "@language": "de"}]}"#),
        (
            Format::RdfXml,
            "<?xml version=\"1.0\"?>\n<!DOCTYPE r [<!ENTITY o \"http://o\">]>\n<r:RDF xmlns:r='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:n='http://'>\n\
             <r:Description r:about='s'><n:p r:resource='&o;'/><n:p xml:lang='de'>ü</n:p></r:Description></r:RDF>",
        ),
    ];
    for (format, text) in texts {
        assert_eq!(read(format, text).as_ref(), Ok(&expected), "{format}");
    }
}

#[test]
fn graphs_and_triples_within_triples_are_kept() {
    let found = read(Format::NQuads, "<urn:s> <urn:p> <<( <urn:a> <urn:b> \"c\" )>> <urn:g> .\n").expect("it is right");
    let within = Triple { s: Term::iri("urn:a"), p: Term::iri("urn:b"), o: Term::literal("c") };
    let expected = quad("urn:s", "urn:p", Term::Quoted { triple: Box::new(within) }, Some("urn:g"));
    assert_eq!(found, BTreeSet::from([expected]));
}

#[test]
fn blank_nodes_belong_to_their_file() {
    let text = "_:a <urn:p> [ <urn:q> _:a ] , ( 1 2 ) .";
    let names = |scope: &str| -> Vec<Quad> {
        let statements = Statements::new(text.as_bytes(), Format::Turtle, origin(scope, None), FREE);
        statements.expect("no base").map(|quad| quad.expect("it is right")).collect()
    };
    assert_eq!(names("one"), names("one"), "the same file means the same nodes");
    let blanks = |quads: Vec<Quad>| -> BTreeSet<Term> {
        let terms = quads.into_iter().flat_map(|quad| [quad.s, quad.o]);
        terms.filter(|term| matches!(term, Term::Blank { .. })).collect()
    };
    let (one, two) = (blanks(names("one")), blanks(names("two")));
    assert_eq!((one.len(), two.len()), (4, 4));
    assert!(one.is_disjoint(&two), "another file means others");
}

#[test]
fn mistakes_are_told_with_their_place() {
    let cases: [(Format, &str, Option<u64>); 9] = [
        (Format::Turtle, "<urn:s> <urn:p> 1 .\n<urn:s> <urn:p> .\n", Some(2)),
        (Format::TriG, "<urn:g> {\n<urn:s> <urn:p> 1 \n}}", Some(3)),
        (Format::NTriples, "<urn:s> <urn:p> <urn:o> .\n<urn:s> <urn:p> <urn:o>\n", Some(3)),
        (Format::NQuads, "<urn:s> <urn:p> \"a .\n", Some(1)),
        (Format::JsonLd, "{\n\"@id\": \"urn:s\",\n \"urn:p\": }", Some(3)),
        (Format::JsonLd, "{\"@id\": \"urn:s\"", Some(1)),
        (Format::RdfXml, "<a>\n<b>\n</a>", Some(2)),
        (Format::RdfXml, "just text", Some(1)),
        (Format::Turtle, "<urn:s> <urn:p> \"\"\"never closed\n\n", None),
    ];
    for (format, text, line) in cases {
        let error = read(format, text).expect_err(text);
        assert!(line.is_none() || error.line == line, "{format}: {text:?}: {error}");
        assert!(error.to_string().starts_with("a file:"), "{error}");
        assert!(!error.interrupted, "{error}");
    }
}

#[test]
fn what_cannot_be_text_is_refused() {
    for format in Format::ALL {
        for bytes in [b"\xff\xfe<\0u\0".as_slice(), b"\x1f\x8b\x08\0\0", b"<urn:s> <urn:p> \"\xff\xfe\" .", b"\0\0\0\0"]
        {
            let found = read(format, bytes);
            assert!(found.is_err(), "{format}: {bytes:?}: {found:?}");
        }
    }
}

#[test]
fn relative_names_need_a_base() {
    let relative = |base| Statements::new(&b"<a> <urn:p> <b> ."[..], Format::Turtle, origin("s", base), FREE);
    let error = relative(None).expect("no base").next().expect("a statement").expect_err("what is it relative to?");
    assert!(error.to_string().contains("--base"), "{error}");
    let error = relative(Some("nowhere")).expect_err("not absolute");
    assert!(error.to_string().contains("not an absolute IRI"), "{error}");
}

#[test]
fn contexts_are_not_fetched() {
    let error = read(Format::JsonLd, r#"{"@context": "https://schema.org/", "name": "x"}"#).expect_err("not fetched");
    assert!(error.to_string().contains("contexts are not fetched"), "{error}");
}

#[test]
fn the_rule_is_told_with_the_place() {
    let rule: Rule = |quad| if quad.o == Term::literal("bad") { Err("bad".to_owned()) } else { Ok(()) };
    let text = "<urn:s> <urn:p> \"good\" .\n<urn:s> <urn:p> \"bad\" .\n<urn:s> <urn:p> \"good\" .\n";
    let found: Vec<_> =
        Statements::new(text.as_bytes(), Format::Turtle, origin("s", None), rule).expect("ok").collect();
    assert_eq!(found.len(), 2, "nothing comes behind a mistake");
    assert!(found[1].as_ref().expect_err("bad").line.is_some());
}

#[test]
fn files_that_grow_in_memory_are_refused() {
    let laughs = "<?xml version=\"1.0\"?><!DOCTYPE r [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]><r/>";
    assert!(read(Format::RdfXml, laughs).expect_err("entities").message.contains("made of other entities"));
    let deep = "<urn:s> <urn:p> ".to_owned() + &"[ <urn:p> ".repeat(100_000);
    assert!(read(Format::Turtle, deep).expect_err("deep").message.contains("nested"));
    assert!(read(Format::JsonLd, "[".repeat(100_000)).expect_err("deep").message.contains("nested"));
    assert!(read(Format::RdfXml, "<a>".repeat(100_000)).expect_err("deep").message.contains("nested"));
    let text = format!("<urn:s> <urn:p> \"\"\"{}\"\"\" .", "x".repeat(20 << 20));
    let endless: Vec<_> =
        Statements::new(text.as_bytes(), Format::Turtle, origin("s", None), FREE).expect("ok").collect();
    assert!(matches!(endless.as_slice(), [Err(_)]), "a term of 20 MiB");
    let comments = "# nothing\n".repeat(2 << 20);
    let silent: Vec<_> =
        Statements::new(comments.as_bytes(), Format::NTriples, origin("s", None), FREE).expect("ok").collect();
    assert!(matches!(silent.as_slice(), [Err(error)] if error.message.contains("without a statement")), "{silent:?}");
}

#[test]
fn a_tag_with_attributes_without_end_is_not_given_to_the_parser() {
    let space = "xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:u='urn:'";
    let tag = |count: usize, value: &str| {
        let attributes: Vec<_> = (0..count).map(|n| format!("u:a{n} = {value}")).collect();
        format!("<rdf:RDF {space}><rdf:Description rdf:about='urn:e' {}/></rdf:RDF>", attributes.join(" "))
    };
    assert_eq!(read(Format::RdfXml, tag(1_000, "'1'")).unwrap().len(), 1_000);
    for value in ["'1'", "'>'", "\"'\""] {
        let error = read(Format::RdfXml, tag(200_000, value)).unwrap_err().to_string();
        assert!(error.contains("more than 2000 attributes without a statement"), "{error}");
    }
}
