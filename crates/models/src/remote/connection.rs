//! Addresses, clients and headers; and what lies behind the errors of a connection.

use super::endpoint::EndpointError;
use crate::provider::ModelRequest;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Url};
use std::error::Error as _;
use std::time::Duration;

/// Where requests go, and how that is shown: without anything that is nobody's business. The path may end with a query.
pub fn address(base: &str, path: &str) -> Result<(Url, String), EndpointError> {
    // Whatever is wrong with it, it may hold a password.
    let shown = || base.rsplit('@').next().and_then(|base| base.split('?').next()).unwrap_or_default().to_owned();
    let wrong = || EndpointError::NotAnAddress(shown());
    let mut url = Url::parse(base.trim()).map_err(|_| wrong())?;
    let usable = matches!(url.scheme(), "http" | "https") && url.has_host();
    if !usable {
        return Err(wrong());
    }
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let place = url.path().trim_end_matches('/');
    // Some write the whole address where its beginning is enough.
    let whole = if place.ends_with(path) { place.to_owned() } else { format!("{place}{path}") };
    url.set_path(&whole);
    // What the address says itself counts.
    let said: Vec<_> = url.query_pairs().map(|(name, _)| name.into_owned()).collect();
    for (name, value) in query.split('&').filter_map(|part| part.split_once('=')) {
        if !said.iter().any(|said| said == name) {
            url.query_pairs_mut().append_pair(name, value);
        }
    }
    let mut public = url.clone();
    public.set_query(None);
    let anonymous = public.set_username("").is_ok() && public.set_password(None).is_ok();
    if anonymous { Ok((url, public.to_string())) } else { Err(wrong()) }
}

/// A client that trusts this system and carries the key nowhere else.
pub fn client(url: &Url, headers: HeaderMap, connect_timeout: Duration) -> Result<Client, EndpointError> {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Somebody else may have been faster, which is as good.
        drop(rustls::crypto::ring::default_provider().install_default());
    }
    let mut builder = Client::builder()
        .user_agent(concat!("trellis/", env!("CARGO_PKG_VERSION")))
        .default_headers(headers)
        .connect_timeout(connect_timeout)
        // A key is not carried to where it was not meant for.
        .redirect(reqwest::redirect::Policy::none())
        .referer(false);
    if url.scheme() == "http" {
        // Certificates are not needed, and a small container may have none.
        builder = builder.tls_certs_only([]);
    }
    if is_this_machine(url) {
        builder = builder.no_proxy();
    }
    builder.build().map_err(|error| EndpointError::NoSecurity(cause(&error)))
}

fn is_this_machine(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Says to proxies and recordings where in a run the call belongs.
pub(super) fn labels(request: &ModelRequest) -> HeaderMap {
    let labels = request.labels.as_ref();
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for (name, value) in [
        ("x-trellis-prompt", Some(request.prompt.as_str())),
        ("x-trellis-run", labels.map(|labels| labels.run.as_str())),
        ("x-trellis-session", labels.map(|labels| labels.session.as_str())),
        ("x-trellis-step", labels.map(|labels| labels.step.as_str())),
    ] {
        let Some(value) = value else { continue };
        if let Ok(value) = HeaderValue::from_str(&plain(value)) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    headers
}

/// Visible ASCII; anything else is written as in web addresses.
fn plain(value: &str) -> String {
    const ENCODED: &AsciiSet = &CONTROLS.add(b' ').add(b'%');
    utf8_percent_encode(value, ENCODED).to_string()
}

/// Everything that lies behind an error. What an `io::Error` holds is not its source.
fn chain(error: &reqwest::Error) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> {
    std::iter::successors(error.source(), |&error| {
        let held = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        held.map(|held| held as &(dyn std::error::Error + 'static)).or_else(|| error.source())
    })
}

/// The innermost reason: the outer ones only say that something failed.
pub fn cause(error: &reqwest::Error) -> String {
    chain(error).last().map_or_else(|| error.to_string(), ToString::to_string)
}

/// A certificate that is not trusted, or a server that does not speak TLS at all: the next attempt finds the same.
pub(super) fn is_about_tls(error: &reqwest::Error) -> bool {
    chain(error).any(<dyn std::error::Error>::is::<rustls::Error>)
}

#[cfg(test)]
#[path = "connection_tests.rs"]
mod tests;
