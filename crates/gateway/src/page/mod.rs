//! The web page: its files are part of the program and are served at `/`.
//!
//! Whatever a browser asks for that is no file and no path of the API is an address within the page, which reads it by
//! itself. Programs that do not ask for HTML get what they got without a page.

mod files;

use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use files::{File, INDEX};

/// What the page may load: itself, and nothing from anywhere else. Scripts only as files; what they write into the page goes
/// through the one policy that its framework has for its own templates.
const POLICY: &str = "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; \
    frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types svelte-trusted-html";

/// Never kept without asking again: it names the files of the newest version.
const ASK_AGAIN: &str = "no-cache";
/// The name changes with the content.
const FOR_EVER: &str = "public, max-age=31536000, immutable";

/// Paths of programs: what is unknown below them is told in their own words.
const OF_PROGRAMS: [&str; 7] = ["api", "v1", "mcp", "healthz", "readyz", "ontology", "assets"];
/// The page's own paths. Names in them may have dots.
const OF_PEOPLE: [&str; 6] = ["ask", "runs", "compare", "configuration", "knowledge", "system"];

/// What the page has at this address; none if that is nothing for it.
pub(crate) fn response(method: &Method, uri: &Uri, headers: &HeaderMap) -> Option<Response> {
    if method != Method::GET && method != Method::HEAD {
        return None;
    }
    let path = uri.path();
    let (file, kept) = match files::named(path) {
        Some(file) if path == INDEX || path == "/" => (wants_html(headers).then_some(file)?, ASK_AGAIN),
        Some(file) if path.starts_with("/assets/") => (file, FOR_EVER),
        Some(file) => (file, ASK_AGAIN),
        None if is_within_page(path) && wants_html(headers) => (files::named(INDEX)?, ASK_AGAIN),
        None => return None,
    };
    Some(sent(file, kept, headers))
}

/// Whether a path without a file is an address within the page.
fn is_within_page(path: &str) -> bool {
    let first = path.trim_start_matches('/').split('/').next().unwrap_or_default();
    OF_PEOPLE.contains(&first) || (!OF_PROGRAMS.contains(&first) && !path.contains('.'))
}

/// Browsers say that they want HTML where a person will read the reply; scripts of pages and programs do not.
fn wants_html(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|kind| {
        let mut parts = kind.split(';').map(str::trim);
        parts.next().is_some_and(|name| name.eq_ignore_ascii_case("text/html"))
            && !parts.any(|part| part.replace(' ', "").eq_ignore_ascii_case("q=0"))
    })
}

fn sent(file: &'static File, kept: &'static str, headers: &HeaderMap) -> Response {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok()).unwrap_or_default();
    let known = text(header::IF_NONE_MATCH).split(',').map(|tag| tag.trim().trim_start_matches("W/"));
    let common = [
        (header::ETAG, file.tag.as_str()),
        (header::CACHE_CONTROL, kept),
        (header::VARY, "accept, accept-encoding"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    for tag in known {
        if tag == file.tag || tag == "*" {
            return (StatusCode::NOT_MODIFIED, common).into_response();
        }
    }
    let takes_gzip = text(header::ACCEPT_ENCODING).split(',').any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        parts.next() == Some("gzip") && !parts.any(|part| part == "q=0")
    });
    let kind = [(header::CONTENT_TYPE, file.kind)];
    match &file.packed {
        Some(packed) if takes_gzip => {
            (common, kind, [(header::CONTENT_ENCODING, "gzip")], packed.as_slice()).into_response()
        }
        _ => (common, kind, file.bytes).into_response(),
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
