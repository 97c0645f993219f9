//! What an endpoint answers, in the JSON of SPARQL results.

use crate::terms;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use trellis_domain::rdf::Term;

const XSD_STRING: &str = "http://www.w3.org/2001/XMLSchema#string";

#[derive(Deserialize)]
struct Document<'a> {
    #[serde(borrow)]
    results: Option<Results<'a>>,
    boolean: Option<bool>,
}

/// Rows stay as they came until they are looked at: read, they take many times as much memory.
#[derive(Deserialize)]
struct Results<'a> {
    #[serde(borrow)]
    bindings: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct Cell {
    #[serde(rename = "type")]
    kind: String,
    value: String,
    #[serde(default)]
    datatype: String,
    #[serde(default, rename = "xml:lang")]
    language: String,
}

/// The rows of a `SELECT`, one after the other: for each of these variables the term, if it has one.
pub(crate) fn rows<'a, const N: usize>(
    answer: &'a [u8],
    variables: [&'a str; N],
) -> Result<impl Iterator<Item = Result<[Option<Term>; N], String>> + 'a, String> {
    let document: Document<'a> = serde_json::from_slice(answer).map_err(|error| error.to_string())?;
    let results = document.results.ok_or("it has no rows")?;
    Ok(results.bindings.into_iter().map(move |row| {
        let mut cells: BTreeMap<String, Cell> = serde_json::from_str(row.get()).map_err(|error| error.to_string())?;
        let mut row = [const { None }; N];
        for (slot, variable) in row.iter_mut().zip(variables) {
            *slot = cells.remove(variable).map(term).transpose()?;
        }
        Ok(row)
    }))
}

/// The answer of an `ASK`.
pub(crate) fn truth(answer: &[u8]) -> Result<bool, String> {
    let document: Document<'_> = serde_json::from_slice(answer).map_err(|error| error.to_string())?;
    document.boolean.ok_or_else(|| "it is neither true nor false".to_owned())
}

fn term(cell: Cell) -> Result<Term, String> {
    let Cell { kind, value, datatype, language } = cell;
    match kind.as_str() {
        "uri" => terms::of_iri(value).ok_or_else(|| "an IRI of ours holds no term".to_owned()),
        "literal" | "typed-literal" => {
            let datatype = if datatype == XSD_STRING || !language.is_empty() { String::new() } else { datatype };
            Ok(Term::Literal { value, datatype, language })
        }
        other => Err(format!("a term of the kind {other:?}, which nobody here has written")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_read_as_they_were_written() {
        let answer = br#"{"head": {"vars": ["s", "o"]}, "results": {"bindings": [
            {"s": {"type": "uri", "value": "urn:s"}, "o": {"type": "literal", "value": "x", "xml:lang": "en"}},
            {"o": {"type": "literal", "value": "1", "datatype": "urn:d"}}]}}"#;
        let found: Vec<_> = rows(answer, ["s", "o"]).unwrap().map(Result::unwrap).collect();
        let literal = |value: &str, datatype: &str, language: &str| Term::Literal {
            value: value.into(),
            datatype: datatype.into(),
            language: language.into(),
        };
        let first = [Some(Term::iri("urn:s")), Some(literal("x", "", "en"))];
        assert_eq!(found, [first, [None, Some(literal("1", "urn:d", ""))]]);
        assert_eq!(truth(br#"{"head": {}, "boolean": true}"#), Ok(true));
    }

    #[test]
    fn what_makes_no_sense_is_no_answer() {
        let blank = br#"{"results": {"bindings": [{"s": {"type": "bnode", "value": "b0"}}]}}"#;
        let forged = br#"{"results": {"bindings": [{"s": {"type": "uri", "value": "urn:trellis:term:!"}}]}}"#;
        let cases: [&[u8]; 6] = [b"", b"<html>", b"[]", br#"{"boolean": true}"#, blank, forged];
        for answer in cases {
            let read = rows(answer, ["s"]).and_then(Iterator::collect::<Result<Vec<_>, _>>);
            assert!(read.is_err(), "{}", String::from_utf8_lossy(answer));
        }
        assert!(truth(br#"{"results": {"bindings": []}}"#).is_err());
    }
}
