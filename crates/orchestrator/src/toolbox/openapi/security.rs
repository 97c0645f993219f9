//! Keys that an operation needs: sent in headers, and named, never written down.

use super::parameters::Request;
use super::reference::resolved;
use super::{OpenApiError, Operation, members};
use serde_json::{Value, json};
use std::str::FromStr;

/// The operator's secret for a security scheme; for the only one if none is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretName {
    pub scheme: Option<String>,
    pub secret: String,
}

/// `NAME`, or `SCHEME=NAME`.
impl FromStr for SecretName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (scheme, secret) = text.split_once('=').map_or((None, text), |(scheme, secret)| (Some(scheme), secret));
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        if secret.is_empty() || !secret.chars().all(is_name) {
            return Err(format!("`{secret:.100}` is not the name of a secret; write NAME or SCHEME=NAME"));
        }
        Ok(Self { scheme: scheme.map(str::to_owned), secret: secret.to_owned() })
    }
}

/// A header that carries a key.
struct KeyHeader {
    scheme: String,
    header: String,
    /// What stands before the key.
    before: &'static str,
    how: String,
}

pub(super) fn add(
    operation: &Operation<'_>,
    secrets: &[SecretName],
    request: &mut Request,
) -> Result<(), OpenApiError> {
    let needed = chosen(operation, secrets)?;
    if needed.is_empty() && !secrets.is_empty() {
        let why = "the operation needs no key by its document, so no secret is sent; leave it out";
        return Err(OpenApiError::Security(why.to_owned()));
    }
    let is_only = needed.len() == 1;
    for KeyHeader { scheme, header, before, how } in needed {
        let is_meant = |name: &&SecretName| match &name.scheme {
            Some(of) => *of == scheme,
            None => is_only,
        };
        let Some(found) = secrets.iter().find(is_meant) else {
            return Err(OpenApiError::NeedsSecret { scheme, how });
        };
        request.headers.insert(header, json!(format!("{before}{{secret:{}}}", found.secret)));
    }
    Ok(())
}

/// The headers of the first way in that can be taken. One without any key is taken if no secret is named.
fn chosen(operation: &Operation<'_>, secrets: &[SecretName]) -> Result<Vec<KeyHeader>, OpenApiError> {
    let ways = operation.own.get("security").or_else(|| operation.document.get("security"));
    let ways = ways.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let is_open = |way: &Value| way.as_object().is_none_or(serde_json::Map::is_empty);
    if ways.is_empty() || (secrets.is_empty() && ways.iter().any(is_open)) {
        return Ok(Vec::new());
    }
    let mut refusals = Vec::new();
    for way in ways.iter().filter(|way| !is_open(way)) {
        let headers = members(Some(way)).map(|(scheme, _)| key_header(operation, scheme));
        match headers.collect::<Result<Vec<_>, _>>() {
            Ok(headers) => return Ok(headers),
            Err(why) => refusals.push(why),
        }
    }
    Err(OpenApiError::Security(format!("no key of the operation can be sent: {}", refusals.join("; "))))
}

fn key_header(operation: &Operation<'_>, scheme: &str) -> Result<KeyHeader, String> {
    let shown: String = scheme.chars().take(100).collect();
    let schemes = operation.document.pointer("/components/securitySchemes");
    let written =
        schemes.and_then(|schemes| schemes.get(scheme)).ok_or_else(|| format!("`{shown}` is not described"))?;
    let found = resolved(operation.document, written, &shown).map_err(|error| error.to_string())?;
    let text = |name: &str| found.get(name).and_then(Value::as_str).unwrap_or_default();
    let made = |header: &str, before, how: &str| {
        Ok(KeyHeader { scheme: scheme.to_owned(), header: header.to_owned(), before, how: how.to_owned() })
    };
    match (text("type"), text("scheme").to_ascii_lowercase().as_str(), text("in")) {
        ("http", "bearer", _) => made("authorization", "Bearer ", "a bearer token"),
        ("http", "basic", _) => made("authorization", "Basic ", "user:password in base64"),
        ("oauth2" | "openIdConnect", ..) => made("authorization", "Bearer ", "an access token"),
        ("apiKey", _, "header") => made(text("name"), "", &format!("the header {}", text("name"))),
        ("apiKey", _, place) => Err(format!("`{shown}` is sent in the {place}, and secrets are sent in headers only")),
        (kind, ..) => Err(format!("`{shown}` is of the type `{kind}`, which is not known")),
    }
}
