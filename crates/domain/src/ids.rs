//! Ids as newtypes. They are derived, not drawn: the same request always gets the same session.

use crate::Hash;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};
use std::fmt;
use uuid::Uuid;

/// Why a given id was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidId {
    #[error("the {kind} is empty; leave it out or give 1 to 200 characters")]
    Empty { kind: &'static str },
    #[error("the {kind} is {length} characters long; at most 200 are allowed")]
    TooLong { kind: &'static str, length: usize },
    #[error("the {kind} {id:?} contains {character:?}; use letters, digits and . _ ~ : @ + = , -")]
    Character { kind: &'static str, id: String, character: char },
}

/// Ids become parts of IRIs and keys, so nothing that would break either is let in.
fn check(kind: &'static str, id: &str) -> Result<(), InvalidId> {
    if id.is_empty() {
        return Err(InvalidId::Empty { kind });
    }
    let length = id.chars().count();
    if length > 200 {
        return Err(InvalidId::TooLong { kind, length });
    }
    match id.chars().find(|c| !(c.is_alphanumeric() || "._~:@+=,-".contains(*c))) {
        Some(character) => Err(InvalidId::Character { kind, id: id.to_owned(), character }),
        None => Ok(()),
    }
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $kind:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(into = "String", try_from = "String")]
        pub struct $name(std::sync::Arc<str>);

        impl $name {
            pub fn new(id: &str) -> Result<Self, InvalidId> {
                check($kind, id)?;
                Ok(Self(id.into()))
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0.as_ref().to_owned()
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidId;

            fn try_from(id: String) -> Result<Self, InvalidId> {
                Self::new(&id)
            }
        }
    };
}

id!(
    /// The boundary between tenants: the first part of every key.
    Workspace,
    "workspace"
);
id!(
    /// A flow inside a workspace.
    Flow,
    "flow"
);
id!(
    /// A collection of knowledge inside a workspace.
    Collection,
    "collection"
);
id!(
    /// One agent's part of a run.
    ///
    /// ```
    /// use trellis_domain::SessionId;
    ///
    /// assert!(SessionId::new("8f2c1a").is_ok());
    /// assert!(SessionId::new("a/b").is_err(), "a slash would break the IRIs made from it");
    /// ```
    SessionId,
    "session id"
);
id!(
    /// Groups the requests of one conversation; made by the caller.
    ConversationId,
    "conversation id"
);
id!(
    /// Names one request of one caller; the session id is derived from it.
    RequestId,
    "request id"
);

macro_rules! default_id {
    ($($name:ident),*) => {
        $(impl Default for $name {
            fn default() -> Self {
                Self("default".into())
            }
        })*
    };
}
default_id!(Workspace, Flow, Collection);

/// Everything one question causes; the id of its root session.
pub type RunId = SessionId;

/// Where a call belongs: part of every key and of every port call.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct Scope {
    pub workspace: Workspace,
    pub flow: Flow,
}

/// The namespace of all ids that Trellis derives.
const NAMESPACE: Uuid = Uuid::from_u128(0x7f0e_51a2_6c1b_5d5e_9a53_7472_656c_6c73);

fn derive(parts: &[&str]) -> String {
    Uuid::new_v5(&NAMESPACE, parts.join("\0").as_bytes()).to_string()
}

/// The IRI of a configuration item, or of all items of a type: where an option set came from.
pub fn config_iri(workspace: &Workspace, kind: &str, key: Option<&str>) -> String {
    let key = key.map(|key| format!(":{}", iri_part(key))).unwrap_or_default();
    format!("urn:trellis:config:{}:{kind}{key}", iri_part(workspace.as_str()))
}

/// A name as a part of an IRI: what could break the IRI is percent-encoded.
pub fn iri_part(name: &str) -> String {
    const UNSAFE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    utf8_percent_encode(name, UNSAFE).to_string()
}

impl SessionId {
    fn derived(parts: &[&str]) -> Self {
        Self(derive(parts).into())
    }

    /// The session of a request whose caller gave no session id.
    pub fn for_request(scope: &Scope, request: &RequestId) -> Self {
        Self::derived(&["session", scope.workspace.as_str(), scope.flow.as_str(), request.as_str()])
    }

    /// The session of a request that reuses an id which already belongs to another request.
    #[must_use]
    pub fn beside(&self, request: Hash) -> Self {
        Self::derived(&["beside", self.as_str(), &request.to_string()])
    }

    /// The session of a subagent: siblings are told apart by index, never by goal.
    #[must_use]
    pub fn child(&self, round: u32, index: u32) -> Self {
        Self::derived(&["child", self.as_str(), &round.to_string(), &index.to_string()])
    }

    /// What ties the siblings of one fan-out together.
    pub fn correlation(&self, round: u32) -> String {
        derive(&["correlation", self.as_str(), &round.to_string()])
    }
}

#[cfg(test)]
#[path = "ids_tests.rs"]
mod tests;
