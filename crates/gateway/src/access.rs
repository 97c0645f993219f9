//! Who may come in.

use std::fmt;
use trellis_domain::Workspace;

/// How callers are told apart.
#[derive(Debug, Clone, Default)]
pub enum Access {
    /// Everybody is the anonymous administrator. For loopback addresses.
    #[default]
    Open,
    /// Whoever has a token is the user it belongs to; all others stay outside.
    Tokens(Vec<(Token, Identity)>),
}

/// A bearer token. Never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Takes the same time wherever the first difference lies.
    fn is(&self, given: &str) -> bool {
        let (mine, given) = (self.0.as_bytes(), given.as_bytes());
        let differing = mine.iter().zip(given).fold(0, |all, (a, b)| all | (a ^ b));
        mine.len() == given.len() && differing == 0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// A caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    pub user: String,
    /// Where requests go that name no workspace.
    pub workspace: Workspace,
}

impl Identity {
    fn anonymous() -> Self {
        Self { user: "anonymous".to_owned(), workspace: Workspace::default() }
    }
}

impl Access {
    /// Whose token it is. None stays outside.
    ///
    /// ```
    /// use trellis_gateway::{Access, Identity, Token};
    ///
    /// let alice = Identity { user: "alice".to_owned(), workspace: Default::default() };
    /// let access = Access::Tokens(vec![(Token::new("s3cret"), alice.clone())]);
    /// assert_eq!(access.identify("s3cret"), Some(alice));
    /// assert_eq!(access.identify(""), None);
    /// assert_eq!(Access::Open.identify("").map(|who| who.user), Some("anonymous".to_owned()));
    /// ```
    pub fn identify(&self, token: &str) -> Option<Identity> {
        match self {
            Self::Open => Some(Identity::anonymous()),
            Self::Tokens(tokens) => {
                tokens.iter().find(|(known, _)| known.is(token)).map(|(_, identity)| identity.clone())
            }
        }
    }
}
