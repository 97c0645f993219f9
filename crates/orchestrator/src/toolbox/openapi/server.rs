//! Where an operation is.

use super::{OpenApiError, Operation, Wanted};
use serde_json::Value;

/// Bytes of an address with everything in its place.
const LONGEST: usize = 8 * 1024;

/// The address that the path is put behind: the one that somebody named, else the first that the document names.
pub(super) fn address(operation: &Operation<'_>, wanted: Wanted<'_>) -> Result<String, OpenApiError> {
    if let Some(server) = wanted.server {
        return whole(server, None);
    }
    let first = |of: &Value| of.get("servers").and_then(Value::as_array).and_then(|list| list.first().cloned());
    let server = first(operation.own).or_else(|| first(operation.shared)).or_else(|| first(operation.document));
    let url = server.as_ref().and_then(|server| server.get("url")).and_then(Value::as_str).unwrap_or("/");
    let mut url = url.to_owned();
    while let Some(name) = place_in(&url) {
        let default = server.as_ref().and_then(|server| server.get("variables")?.get(&name)?.get("default")?.as_str());
        let Some(default) = default.filter(|default| !default.contains('{')) else {
            return Err(OpenApiError::Server(format!(
                "the address `{url:.200}` needs `{name}`; name the server yourself"
            )));
        };
        let place = format!("{{{name}}}");
        // Measured before it is written.
        if url.len() + url.matches(&place).count() * default.len() > LONGEST {
            return Err(OpenApiError::Server(format!("the address has more than {LONGEST} bytes")));
        }
        url = url.replace(&place, default);
    }
    whole(&url, wanted.found_at)
}

/// The first name in braces.
fn place_in(text: &str) -> Option<String> {
    let (_, inside) = text.split_once('{')?;
    inside.split_once('}').map(|(name, _)| name.to_owned())
}

/// An address that may be relative to where the document was found.
fn whole(url: &str, found_at: Option<&str>) -> Result<String, OpenApiError> {
    let is_whole = |url: &str| url.starts_with("http://") || url.starts_with("https://");
    if is_whole(url) {
        return Ok(url.split(['?', '#']).next().unwrap_or_default().to_owned());
    }
    let unknown = || {
        let what =
            if url == "/" { "no server is named".to_owned() } else { format!("`{url:.200}` is no whole address") };
        OpenApiError::Server(format!("{what}; name the server yourself, such as https://api.example.com"))
    };
    let found_at = found_at.filter(|found_at| is_whole(found_at) && !url.contains("://")).ok_or_else(unknown)?;
    let (scheme, rest) = found_at.split_once("://").ok_or_else(unknown)?;
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    if let Some(host) = url.strip_prefix("//") {
        return Ok(format!("{scheme}://{host}"));
    }
    let host = rest.split('/').next().unwrap_or_default();
    if url.starts_with('/') {
        return Ok(format!("{scheme}://{host}{url}"));
    }
    let folder = rest.rsplit_once('/').map_or(rest, |(folder, _)| folder);
    Ok(format!("{scheme}://{folder}/{}", url.trim_start_matches("./")))
}
