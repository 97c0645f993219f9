//! One operation of an `OpenAPI` document as a tool of the kind `http`: the request with places for arguments, what is said
//! of each of them, and the names of the secrets that it needs. What comes out is all there is: the document is not read
//! again when the tool is called.
//!
//! Documents are somebody else's. References are followed within the document and within bounds; those that go round in
//! circles are refused.

mod body;
mod parameters;
mod reference;
mod schema;
mod security;
mod server;

pub use security::SecretName;

use super::argument::short;
use parameters::Request;
use serde_json::{Map, Value, json};

/// Methods that a tool can have, and what a call of each changes.
const METHODS: [(&str, &str); 6] = [
    ("get", "read"),
    ("head", "read"),
    ("put", "idempotent"),
    ("delete", "idempotent"),
    ("post", "unsafe"),
    ("patch", "unsafe"),
];
/// So many operations are listed in a refusal.
const LISTED: usize = 50;

/// Which operation, and what its document does not say.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wanted<'a> {
    /// Its `operationId`, or method and path as `GET /cities/{city}`.
    pub operation: &'a str,
    /// Where the document was found, if its servers are named relative to it.
    pub found_at: Option<&'a str>,
    /// The address to use in place of the document's own.
    pub server: Option<&'a str>,
    pub secrets: &'a [SecretName],
}

/// The tool that an operation is.
#[derive(Debug, Clone, PartialEq)]
pub struct Expanded {
    pub item: Value,
    /// What was left out of it, and why.
    pub notes: Vec<String>,
}

/// Why an operation cannot be a tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenApiError {
    #[error("this is no OpenAPI document of version 3.0 or 3.1: {0}")]
    NotOpenApi(String),
    #[error("there is no operation `{name}` in it; there are {known}")]
    NoOperation { name: String, known: String },
    #[error("name one of its operations: {known}")]
    Unnamed { known: String },
    #[error("{place} refers to `{reference}`, which {why}")]
    Reference { place: String, reference: String, why: &'static str },
    #[error("{place} is too large: more than {limit} {unit}")]
    TooLarge { place: String, limit: usize, unit: &'static str },
    #[error("{0}")]
    Server(String),
    #[error("the operation needs a key (`{scheme}`, {how}): name the operator's secret that holds it")]
    NeedsSecret { scheme: String, how: String },
    #[error("{0}")]
    Security(String),
    #[error("{place}: {why}")]
    NotSupported { place: String, why: String },
}

/// An operation where it was found.
struct Operation<'d> {
    document: &'d Value,
    path: &'d str,
    method: &'static str,
    effect: &'static str,
    /// What holds for all operations of the path.
    shared: &'d Value,
    own: &'d Value,
}

/// Makes a tool of one operation.
pub fn expand(document: &Value, wanted: Wanted<'_>) -> Result<Expanded, OpenApiError> {
    check_version(document)?;
    let operation = find(document, wanted.operation)?;
    if !operation.path.starts_with('/') {
        // Put behind the server's address, it would lead to another host.
        return Err(OpenApiError::NotSupported {
            place: operation.place(),
            why: "its path does not begin with a slash".to_owned(),
        });
    }
    let mut request = Request::new(operation.path);
    parameters::add(&operation, &mut request)?;
    body::add(&operation, &mut request)?;
    security::add(&operation, wanted.secrets, &mut request)?;
    let base = server::address(&operation, wanted)?;
    let Request { path, query, headers, body, arguments, notes, .. } = request;
    let title = document.pointer("/info/title").and_then(Value::as_str).unwrap_or_default();
    let version = document.pointer("/info/version").and_then(Value::as_str).unwrap_or_default();
    let mut item = json!({
        "type": "http",
        "description": description(operation.own),
        "method": operation.method.to_uppercase(),
        "url": format!("{}{path}", base.trim_end_matches('/')),
        "effect": operation.effect,
        "arguments": arguments,
        "openapi": { "title": short(title), "version": short(version), "operation": wanted.operation },
    });
    for (member, value) in [("query", query), ("headers", headers)] {
        if !value.is_empty() {
            item[member] = Value::Object(value);
        }
    }
    if let Some(body) = body {
        item["body"] = body;
    }
    Ok(Expanded { item, notes })
}

fn check_version(document: &Value) -> Result<(), OpenApiError> {
    let wrong = |why: &str| Err(OpenApiError::NotOpenApi(why.to_owned()));
    match document.get("openapi").and_then(Value::as_str) {
        Some(version) if version.starts_with("3.0") || version.starts_with("3.1") => Ok(()),
        Some(version) => wrong(&format!("it says `openapi` {}", version.chars().take(20).collect::<String>())),
        None if document.get("swagger").is_some() => wrong("it is a Swagger document, which has to be converted first"),
        None => wrong("it has no member `openapi`"),
    }
}

fn description(operation: &Value) -> String {
    let text = |name: &str| operation.get(name).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
    match (text("summary"), text("description")) {
        (Some(summary), Some(more)) if !more.starts_with(summary) => short(&format!("{summary}. {more}")),
        (_, Some(text)) | (Some(text), None) => short(text),
        (None, None) => String::new(),
    }
}

/// All operations that can be tools.
fn operations(document: &Value) -> impl Iterator<Item = Operation<'_>> {
    let paths = document.get("paths").and_then(Value::as_object).into_iter().flatten();
    paths.flat_map(move |(path, shared)| {
        let of = move |(method, effect): &(&'static str, &'static str)| {
            let own = shared.get(*method).filter(|own| own.is_object())?;
            Some(Operation { document, path, method, effect, shared, own })
        };
        METHODS.iter().filter_map(of)
    })
}

impl Operation<'_> {
    fn id(&self) -> Option<&str> {
        self.own.get("operationId").and_then(Value::as_str)
    }

    fn place(&self) -> String {
        format!("{} {}", self.method.to_uppercase(), self.path)
    }
}

fn find<'d>(document: &'d Value, name: &str) -> Result<Operation<'d>, OpenApiError> {
    let named = |operation: &Operation<'_>| operation.id() == Some(name) || operation.place() == name;
    if let Some(found) = operations(document).find(named) {
        return Ok(found);
    }
    let mut known: Vec<_> =
        operations(document).map(|operation| operation.id().map_or_else(|| operation.place(), str::to_owned)).collect();
    let more = known.len().saturating_sub(LISTED);
    known.truncate(LISTED);
    let known = match (known.is_empty(), more) {
        (true, _) => "none".to_owned(),
        (false, 0) => known.join(", "),
        (false, more) => format!("{} and {more} more", known.join(", ")),
    };
    let name: String = name.chars().take(200).collect();
    Err(if name.is_empty() { OpenApiError::Unnamed { known } } else { OpenApiError::NoOperation { name, known } })
}

/// Members of an object, or none.
fn members(value: Option<&Value>) -> impl Iterator<Item = (&String, &Value)> {
    value.and_then(Value::as_object).map(Map::iter).into_iter().flatten()
}

#[cfg(test)]
mod tests;
