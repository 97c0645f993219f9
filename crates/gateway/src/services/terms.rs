//! Terms as clients write them.

use crate::error::ServiceError;
use serde_json::{Map, Value};
use trellis_domain::rdf::{Term, Triple};

/// A term, as the object that clients usually send, or as a bare text, which some of them send.
///
/// A text in angle brackets, or one that begins like an IRI, is an IRI; any other is a literal.
pub(crate) fn read(name: &str, value: &Value) -> Result<Term, ServiceError> {
    match value {
        Value::String(text) => from_text(name, text),
        Value::Object(members) => from_object(name, members),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
            Err(wrong(name, "must be a term, such as {\"t\": \"i\", \"i\": \"urn:x\"}, or a text"))
        }
    }
}

fn from_text(name: &str, text: &str) -> Result<Term, ServiceError> {
    const SCHEMES: [&str; 3] = ["http://", "https://", "urn:"];
    if text.is_empty() {
        return Err(wrong(name, "is empty; leave it out to match anything"));
    }
    if let Some(iri) = text.strip_prefix('<').and_then(|rest| rest.strip_suffix('>')) {
        return Ok(Term::iri(iri));
    }
    let is_iri = SCHEMES.iter().any(|scheme| text.starts_with(scheme));
    Ok(if is_iri { Term::iri(text) } else { Term::literal(text) })
}

fn from_object(name: &str, members: &Map<String, Value>) -> Result<Term, ServiceError> {
    let kind = text(name, members, "t", "type")?;
    let needed = |short: &str, long: &str| {
        text(name, members, short, long)?.ok_or_else(|| wrong(name, &format!("has no text under `{short}`")))
    };
    match kind {
        Some("i") => Ok(Term::iri(needed("i", "iri")?)),
        Some("b") => Ok(Term::Blank { id: needed("d", "id")?.to_owned() }),
        Some("l") => Ok(Term::Literal {
            value: needed("v", "value")?.to_owned(),
            datatype: text(name, members, "dt", "datatype")?.unwrap_or_default().to_owned(),
            language: text(name, members, "ln", "language")?.unwrap_or_default().to_owned(),
        }),
        Some("t") => {
            let quoted = member(members, "tr", "triple").and_then(Value::as_object);
            let quoted = quoted.ok_or_else(|| wrong(name, "has no triple under `tr`"))?;
            let part = |place: &str| {
                let value = member(quoted, place, place);
                read(&format!("{name}.tr.{place}"), value.unwrap_or(&Value::Null))
            };
            Ok(Term::Quoted { triple: Box::new(Triple { s: part("s")?, p: part("p")?, o: part("o")? }) })
        }
        Some(_) | None => {
            Err(wrong(name, "must say under `t` what it is: i (IRI), l (literal), b (blank) or t (triple)"))
        }
    }
}

/// A member under its short or its long name; null counts as absent.
fn member<'a>(members: &'a Map<String, Value>, short: &str, long: &str) -> Option<&'a Value> {
    members.get(short).or_else(|| members.get(long)).filter(|value| !value.is_null())
}

fn text<'a>(
    name: &str,
    members: &'a Map<String, Value>,
    short: &str,
    long: &str,
) -> Result<Option<&'a str>, ServiceError> {
    let value = member(members, short, long);
    value.map(|value| value.as_str().ok_or_else(|| wrong(name, &format!("has no text under `{short}`")))).transpose()
}

fn wrong(name: &str, what: &str) -> ServiceError {
    ServiceError::request(format!("the member `{name}` {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn literal(value: &str, datatype: &str, language: &str) -> Term {
        Term::Literal { value: value.into(), datatype: datatype.into(), language: language.into() }
    }

    #[test]
    fn terms_are_read_in_every_spelling() {
        let quoted = Triple { s: Term::iri("urn:s"), p: Term::iri("urn:p"), o: literal("", "", "") };
        for (written, meant) in [
            (json!({"t": "i", "i": "urn:x"}), Term::iri("urn:x")),
            (json!({"type": "i", "iri": "urn:x", "value": "", "triple": null}), Term::iri("urn:x")),
            (json!({"t": "l", "v": ""}), literal("", "", "")),
            (json!({"t": "l", "v": "a", "dt": "urn:t", "ln": null}), literal("a", "urn:t", "")),
            (json!({"t": "l", "v": "a", "ln": "en"}), literal("a", "", "en")),
            (json!({"t": "b", "d": "b0"}), Term::Blank { id: "b0".into() }),
            (
                json!({"t": "t", "tr": {"s": "urn:s", "p": {"t": "i", "i": "urn:p"}, "o": {"t": "l", "v": ""}}}),
                Term::Quoted { triple: Box::new(quoted) },
            ),
            (json!("urn:x"), Term::iri("urn:x")),
            (json!("https://x"), Term::iri("https://x")),
            (json!("<x>"), Term::iri("x")),
            (json!("plain text"), literal("plain text", "", "")),
        ] {
            assert_eq!(read("s", &written).unwrap(), meant, "{written}");
        }
    }

    #[test]
    fn what_is_no_term_is_refused_by_name() {
        for written in [
            json!(1),
            json!(true),
            json!([]),
            json!({}),
            json!(""),
            json!({"t": "x", "i": "urn:x"}),
            json!({"t": 1}),
            json!({"t": "i"}),
            json!({"t": "i", "i": 1}),
            json!({"t": "l", "v": null}),
            json!({"t": "l", "v": "a", "dt": 1}),
            json!({"t": "t"}),
            json!({"t": "t", "tr": {"s": "urn:s", "p": "urn:p"}}),
        ] {
            let refused = read("o", &written).unwrap_err();
            assert!(refused.message.starts_with("the member `o"), "{written}: {refused}");
        }
    }
}
