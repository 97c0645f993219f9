//! Terms as SPARQL and N-Triples write them, which is alike.
//!
//! What SPARQL 1.1 cannot name, or what an endpoint might change on the way, is an IRI that holds its bytes: quoted
//! triples, blank nodes (which no query can name), strange IRIs and language tags.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use std::fmt::Write as _;
use trellis_domain::rdf::{Quad, Term};
use trellis_queries::term_id::{canonical_bytes, read_term};

const OPAQUE: &str = "urn:trellis:term:";
const XSD_STRING: &str = "http://www.w3.org/2001/XMLSchema#string";

/// Writes a term so that nothing of it can be taken for anything but this term.
pub(crate) fn write(out: &mut String, term: &Term) {
    match term {
        Term::Iri { iri } if is_plain_iri(iri) => write_iri(out, iri),
        Term::Literal { value, datatype, language } if is_plain_literal(value, datatype, language) => {
            write_string(out, value);
            if !language.is_empty() {
                out.push('@');
                out.push_str(&language.to_ascii_lowercase());
            } else if !datatype.is_empty() && datatype != XSD_STRING {
                out.push_str("^^");
                write_iri(out, datatype);
            }
        }
        Term::Iri { .. } | Term::Literal { .. } | Term::Blank { .. } | Term::Quoted { .. } => {
            write_iri(out, &format!("{OPAQUE}{}", BASE64.encode(canonical_bytes(term))));
        }
    }
}

/// The term that an IRI of an endpoint stands for; none if it claims to hold bytes and does not.
pub(crate) fn of_iri(iri: String) -> Option<Term> {
    match iri.strip_prefix(OPAQUE) {
        None => Some(Term::Iri { iri }),
        Some(bytes) => read_term(&BASE64.decode(bytes).ok()?),
    }
}

/// One line of N-Triples.
pub(crate) fn write_triple(out: &mut String, quad: &Quad) {
    for term in [&quad.s, &quad.p, &quad.o] {
        write(out, term);
        out.push(' ');
    }
    out.push_str(".\n");
}

fn write_iri(out: &mut String, iri: &str) {
    out.push('<');
    out.push_str(iri);
    out.push('>');
}

pub(crate) fn write_string(out: &mut String, value: &str) {
    out.push('"');
    for c in value.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => write!(out, "\\u{:04X}", u32::from(c)).expect("a string takes everything"),
            c => out.push(c),
        }
    }
    out.push('"');
}

/// Whether every endpoint takes this for an absolute IRI and gives it back as it is.
fn is_plain_iri(iri: &str) -> bool {
    let Some((scheme, rest)) = iri.split_once(':') else { return false };
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    let fits = |c: char| c.is_alphanumeric() || "-._~:/?#@!$&'()*+,;=%".contains(c);
    // Whoever resolves it against a base takes these out.
    let is_resolved = !rest.split(['/', '?', '#']).any(|part| matches!(part, "." | ".."));
    let escapes = |part: &str| part.len() >= 2 && part.bytes().take(2).all(|byte| byte.is_ascii_hexdigit());
    is_scheme
        && !rest.is_empty()
        && rest.chars().all(fits)
        && rest.matches('#').count() <= 1
        && is_resolved
        && rest.split('%').skip(1).all(escapes)
        && !iri.starts_with(OPAQUE)
}

fn is_plain_literal(value: &str, datatype: &str, language: &str) -> bool {
    let of_tag = |part: &str| (1..=8).contains(&part.len()) && part.chars().all(|c| c.is_ascii_alphanumeric());
    let is_tag = language.split('-').all(of_tag) && language.starts_with(|c: char| c.is_ascii_alphabetic());
    // These no XML can hold, nor what is made for it.
    let is_text = !value.contains(['\0', '\u{fffe}', '\u{ffff}']);
    is_text && (language.is_empty() || is_tag) && (datatype.is_empty() || is_plain_iri(datatype))
}

#[cfg(test)]
#[path = "terms_tests.rs"]
mod tests;
