//! References within a document.

use super::OpenApiError;
use serde_json::Value;

/// One may lead to another, so often.
const MOST_HOPS: usize = 16;

/// What a value refers to, or itself.
pub(super) fn resolved<'d>(document: &'d Value, value: &'d Value, place: &str) -> Result<&'d Value, OpenApiError> {
    let mut found = value;
    for _ in 0..MOST_HOPS {
        let Some(reference) = found.get("$ref").and_then(Value::as_str) else { return Ok(found) };
        found = target(document, reference, place)?;
    }
    Err(wrong(place, value["$ref"].as_str().unwrap_or_default(), "leads from one reference to the next"))
}

pub(super) fn target<'d>(document: &'d Value, reference: &str, place: &str) -> Result<&'d Value, OpenApiError> {
    let Some(pointer) = reference.strip_prefix('#') else {
        return Err(wrong(place, reference, "lies outside of the document; put it into one"));
    };
    // Braces of paths may be encoded.
    let pointer = pointer.replace("%7B", "{").replace("%7D", "}").replace("%7b", "{").replace("%7d", "}");
    document.pointer(&pointer).ok_or_else(|| wrong(place, reference, "is not in the document"))
}

pub(super) fn wrong(place: &str, reference: &str, why: &'static str) -> OpenApiError {
    OpenApiError::Reference { place: place.to_owned(), reference: reference.chars().take(200).collect(), why }
}
