//! AWS's Signature Version 4. Pure: what is signed and when is handed in.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::Url;
use ring::hmac;
use std::collections::BTreeMap;
use trellis_domain::{Hash, Timestamp};

/// What AWS leaves as it is in addresses.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Whose signature it is.
#[derive(Clone, Copy)]
pub(super) struct Signer<'k> {
    pub(super) access_key: &'k str,
    pub(super) secret_key: &'k str,
    /// Of keys that run out.
    pub(super) session_token: Option<&'k str>,
    pub(super) region: &'k str,
    pub(super) service: &'k str,
}

/// What is signed. Of the headers, only those that are named here.
#[derive(Debug, Clone, Copy)]
pub(super) struct ToSign<'r> {
    pub(super) method: &'r str,
    pub(super) url: &'r Url,
    pub(super) headers: &'r [(&'r str, &'r str)],
    pub(super) body: &'r [u8],
}

/// The headers that a signature consists of.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SignedHeaders {
    pub(super) authorization: String,
    pub(super) date: String,
}

impl Signer<'_> {
    pub(super) fn sign(self, request: ToSign<'_>, now: Timestamp) -> SignedHeaders {
        let date = basic_date(now);
        let headers = self.headers(&request, &date);
        let names = headers.keys().map(String::as_str).collect::<Vec<_>>().join(";");
        let written: Vec<_> = headers.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
        let written = written.concat();
        let ToSign { method, url, body, .. } = request;
        let canonical = format!("{method}\n{}\n{}\n{written}\n{names}\n{}", path(url), query(url), Hash::of(body));
        let day = &date[..8];
        let scope = format!("{day}/{}/{}/aws4_request", self.region, self.service);
        let to_sign = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{}", Hash::of(canonical));
        let key = format!("AWS4{}", self.secret_key).into_bytes();
        let key =
            [day, self.region, self.service, "aws4_request"].iter().fold(key, |key, part| hmac(&key, part).to_vec());
        let signature = Hash::from_bytes(hmac(&key, &to_sign));
        let authorization = format!(
            "AWS4-HMAC-SHA256 Credential={}/{scope}, SignedHeaders={names}, Signature={signature}",
            self.access_key
        );
        SignedHeaders { authorization, date }
    }

    fn headers(self, request: &ToSign<'_>, date: &str) -> BTreeMap<String, String> {
        let host = request.url.host_str().unwrap_or_default();
        let host = request.url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        let given = request.headers.iter().map(|(name, value)| (name.to_lowercase(), single_spaced(value)));
        let token = self.session_token.map(|token| ("x-amz-security-token".to_owned(), token.to_owned()));
        let own = [("host".to_owned(), host), ("x-amz-date".to_owned(), date.to_owned())];
        given.chain(own).chain(token).collect()
    }
}

fn hmac(key: &[u8], text: &str) -> [u8; 32] {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes());
    let mut bytes = [0; 32];
    bytes.copy_from_slice(tag.as_ref());
    bytes
}

/// Such as `20150830T123600Z`.
fn basic_date(now: Timestamp) -> String {
    let micros = now.as_micros();
    let seconds = Timestamp::from_micros(micros - micros.rem_euclid(1_000_000)).to_string();
    seconds.chars().filter(char::is_ascii_alphanumeric).collect()
}

fn single_spaced(value: &str) -> String {
    value.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

/// The path is encoded once more, part by part, as every service but S3 wants it.
fn path(url: &Url) -> String {
    url.path().split('/').map(encoded).collect::<Vec<_>>().join("/")
}

fn query(url: &Url) -> String {
    let mut pairs: Vec<_> = url.query_pairs().map(|(name, value)| (encoded(&name), encoded(&value))).collect();
    pairs.sort();
    pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&")
}

#[cfg(test)]
#[path = "sigv4_tests.rs"]
mod tests;
