//! How the answer to a query is written down.

use crate::convert::{opaque_node, to_ox, to_ox_triple};
use oxrdf::{BlankNode, Variable};
use sparesults::{QueryResultsFormat, QueryResultsSerializer};
use std::fmt::Write;
use std::io;
use trellis_domain::rdf::{Term, Triple};
use trellis_orchestrator::ports::Answer;

/// The W3C results format in JSON; a graph as N-Triples, because that format has none.
pub fn to_json(answer: &Answer) -> String {
    serialize(answer, QueryResultsFormat::Json)
}

/// The W3C results format in CSV; a graph as N-Triples, because that format has none.
pub fn to_csv(answer: &Answer) -> String {
    serialize(answer, QueryResultsFormat::Csv)
}

fn serialize(answer: &Answer, format: QueryResultsFormat) -> String {
    let serializer = QueryResultsSerializer::from_format(format);
    let bytes = match answer {
        Answer::Constructed(triples) | Answer::Described(triples) => return to_ntriples(triples),
        Answer::Truth(truth) => serializer.serialize_boolean_to_writer(Vec::new(), *truth),
        Answer::Rows { variables, rows, .. } => serialize_rows(serializer, variables, rows),
    };
    let bytes = bytes.expect("writing into memory does not fail");
    String::from_utf8(bytes).expect("the serializer writes UTF-8")
}

fn serialize_rows(
    serializer: QueryResultsSerializer,
    variables: &[String],
    rows: &[Vec<Option<Term>>],
) -> io::Result<Vec<u8>> {
    let variables: Vec<_> = variables.iter().map(Variable::new_unchecked).collect();
    let mut writer = serializer.serialize_solutions_to_writer(Vec::new(), variables.clone())?;
    for row in rows {
        let cells: Vec<_> = row.iter().map(|cell| cell.as_ref().map(to_ox)).collect();
        let bound = variables.iter().zip(&cells);
        writer.serialize(bound.filter_map(|(variable, cell)| Some((variable.as_ref(), cell.as_ref()?.as_ref()))))?;
    }
    writer.finish()
}

/// One line per triple. A triple that RDF does not allow is left out.
fn to_ntriples(triples: &[Triple]) -> String {
    let mut text = String::new();
    for triple in triples.iter().map(printable_triple).filter_map(|triple| to_ox_triple(&triple)) {
        writeln!(text, "{triple} .").expect("writing into memory does not fail");
    }
    text
}

fn printable_triple(triple: &Triple) -> Triple {
    Triple { s: printable(&triple.s), p: printable(&triple.p), o: printable(&triple.o) }
}

/// Foreign IRIs and node names may hold anything; on paper they must not end a term or a line.
fn printable(term: &Term) -> Term {
    match term {
        Term::Iri { iri } => Term::Iri { iri: escape_iri(iri) },
        Term::Blank { id } if BlankNode::new(id).is_err() => Term::Blank { id: opaque_node(term).into_string() },
        Term::Literal { value, datatype, language } => {
            let datatype = escape_iri(datatype);
            Term::Literal { value: value.clone(), datatype, language: language.clone() }
        }
        Term::Quoted { triple } => Term::Quoted { triple: Box::new(printable_triple(triple)) },
        Term::Blank { .. } => term.clone(),
    }
}

fn escape_iri(iri: &str) -> String {
    let mut escaped = String::with_capacity(iri.len());
    for c in iri.chars() {
        if c <= ' ' || "<>\"{}|^`\\".contains(c) {
            write!(escaped, "\\u{:04X}", u32::from(c)).expect("writing into memory does not fail");
        } else {
            escaped.push(c);
        }
    }
    escaped
}
