//! The terms that a query names.

use crate::convert::from_ox;
use crate::evaluate::parse;
use crate::query::QueryError;
use oxrdf::{Literal, NamedNode};
use std::str::FromStr;
use trellis_domain::rdf::Term;

/// The IRIs and literals of a query, for a source that has no ids of its own and has to know what they stand for. There
/// may be more among them than patterns name, and terms that the query computes are not.
pub fn constants(sparql: &str) -> Result<Vec<Term>, QueryError> {
    // Written anew, without prefixes and short forms.
    let text = parse(sparql)?.to_string();
    let mut found = Vec::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find(['<', '"']) {
        rest = &rest[at..];
        let length = if rest.starts_with('<') { iri_length(rest) } else { literal_length(rest) };
        let token = &rest[..length];
        let term = if rest.starts_with('<') {
            NamedNode::from_str(token).ok().map(oxrdf::Term::from)
        } else {
            Literal::from_str(token).ok().map(oxrdf::Term::from)
        };
        found.extend(term.map(from_ox));
        rest = &rest[length..];
    }
    Ok(found)
}

/// How long the IRI is that begins here. A sign that only compares is as long as itself.
fn iri_length(text: &str) -> usize {
    let end = text[1..].find(|c: char| c.is_whitespace() || matches!(c, '<' | '>' | '"'));
    end.filter(|end| text[1 + end..].starts_with('>')).map_or(1, |end| end + 2)
}

fn literal_length(text: &str) -> usize {
    let mut escaped = false;
    let closing = text.char_indices().skip(1).find(|(_, c)| {
        let ends = *c == '"' && !escaped;
        escaped = *c == '\\' && !escaped;
        ends
    });
    let Some(end) = closing.map(|(at, _)| at + 1) else { return text.len() };
    let behind = &text[end..];
    if let Some(datatype) = behind.strip_prefix("^^") {
        return end + 2 + if datatype.starts_with('<') { iri_length(datatype) } else { 0 };
    }
    let of_tag = |c: char| c.is_ascii_alphanumeric() || c == '-';
    behind.strip_prefix('@').map_or(end, |tag| end + 1 + tag.find(|c| !of_tag(c)).unwrap_or(tag.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_term_of_a_query_is_among_them() {
        let query = r#"PREFIX e: <urn:e/> SELECT * { ?s e:p "a \"b\" <urn:no>" ; a e:T ; e:q "x"@en-GB, 3, true .
            FILTER(?s != <urn:x> && ?n < 3) { GRAPH <urn:g> { <urn:s> e:r|^e:t ?o } } VALUES ?v { <urn:v> } }"#;
        let found = constants(query).unwrap();
        let iris = ["urn:e/p", "urn:e/T", "urn:e/q", "urn:x", "urn:g", "urn:s", "urn:e/r", "urn:e/t", "urn:v"];
        for iri in iris.into_iter().chain(["http://www.w3.org/1999/02/22-rdf-syntax-ns#type"]) {
            assert!(found.contains(&Term::iri(iri)), "{iri}: {found:?}");
        }
        let integer = "http://www.w3.org/2001/XMLSchema#integer".to_owned();
        assert!(found.contains(&Term::literal("a \"b\" <urn:no>")), "{found:?}");
        assert!(found.contains(&Term::Literal { value: "3".into(), datatype: integer, language: String::new() }));
        let tagged = |term: &Term| matches!(term, Term::Literal { language, .. } if language == "en-gb");
        assert!(found.iter().any(tagged), "{found:?}");
        assert!(constants("SELECT").is_err());
    }
}
