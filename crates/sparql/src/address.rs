//! Where an endpoint is, and who asks there.

use std::fmt;
use trellis_domain::Secret;
use url::Url;

/// An address that cannot be used. It is not shown: whatever is wrong with it, it may hold a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    #[error("this is no address of a SPARQL endpoint; write http(s)://USER@HOST:3030/DATASET")]
    NotAnAddress,
    #[error("the address of a graph has no option {0:?}; there are query, update and data, each with a path")]
    UnknownOption(String),
    #[error("a graph is asked with a user or with a token, not with both")]
    TwoWaysIn,
    #[error(
        "a password (TRELLIS_GRAPH_PASSWORD) belongs to a user: name one in the address, http(s)://USER@HOST/DATASET"
    )]
    NoUser,
}

/// Secrets, which come by reference: not from the address.
#[derive(Debug, Clone, Default)]
pub struct Credentials {
    pub password: Option<Secret>,
    pub token: Option<Secret>,
}

/// How a request shows who asks.
#[derive(Clone)]
pub(crate) enum WayIn {
    Open,
    User { name: String, password: String },
    Token(Secret),
}

/// The three doors of an endpoint.
///
/// `http://USER@HOST:3030/DATASET` is where Fuseki has a dataset, with `query`, `update` and `data` (graph store protocol)
/// below it. Others are named in the address, from its root if they begin with a slash: `?query=&update=statements`.
#[derive(Clone)]
pub struct Address {
    pub(crate) query: Url,
    pub(crate) update: Url,
    pub(crate) data: Url,
    pub(crate) way_in: WayIn,
    shown: String,
}

impl Address {
    pub fn parse(text: &str, credentials: Credentials) -> Result<Self, AddressError> {
        let mut base = Url::parse(text.trim()).map_err(|_| AddressError::NotAnAddress)?;
        if !matches!(base.scheme(), "http" | "https") || !base.has_host() || base.fragment().is_some() {
            return Err(AddressError::NotAnAddress);
        }
        let way_in = way_in(&base, credentials)?;
        let options: Vec<_> = base.query_pairs().map(|(name, path)| (name.into_owned(), path.into_owned())).collect();
        if base.set_username("").is_err() || base.set_password(None).is_err() {
            return Err(AddressError::NotAnAddress);
        }
        base.set_query(None);
        let door = |name: &str| {
            let path = options.iter().find(|(option, _)| option == name).map_or(name, |(_, path)| path);
            let mut door = base.clone();
            let below = base.path().trim_end_matches('/');
            match path {
                "" => {}
                path if path.starts_with('/') => door.set_path(path),
                path => door.set_path(&format!("{below}/{path}")),
            }
            door
        };
        if let Some((unknown, _)) =
            options.iter().find(|(name, _)| !["query", "update", "data"].contains(&name.as_str()))
        {
            return Err(AddressError::UnknownOption(unknown.clone()));
        }
        Ok(Self { query: door("query"), update: door("update"), data: door("data"), way_in, shown: base.to_string() })
    }
}

fn way_in(address: &Url, credentials: Credentials) -> Result<WayIn, AddressError> {
    let decoded = |text: &str| percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned();
    let name = decoded(address.username());
    let written = address.password().map(decoded);
    match (name.is_empty(), credentials.token, credentials.password) {
        (true, None, None) if written.is_none() => Ok(WayIn::Open),
        (true, Some(token), None) if written.is_none() => Ok(WayIn::Token(token)),
        (true, None, _) => Err(AddressError::NoUser),
        (_, Some(_), _) => Err(AddressError::TwoWaysIn),
        (false, None, password) => {
            let password = written.or_else(|| password.map(|password| password.expose().to_owned()));
            Ok(WayIn::User { name, password: password.unwrap_or_default() })
        }
    }
}

/// As it may be shown.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Address").field(&self.shown).finish()
    }
}

#[cfg(test)]
#[path = "address_tests.rs"]
mod tests;
