//! Authentication: bearer tokens to identities, and which workspaces each of them reaches.

use std::collections::BTreeSet;
use std::fmt;
use subtle::ConstantTimeEq as _;
use trellis_domain::Workspace;
use trellis_orchestrator::ports::ConfigError;

/// How callers are told apart.
#[derive(Debug, Clone, Default)]
pub enum Access {
    /// Nobody is asked who they are, and everybody may do everything. For loopback addresses.
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
        self.0.as_bytes().ct_eq(given.as_bytes()).into()
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
    /// None where nobody is asked who they are.
    pub name: Option<String>,
    pub reach: Reach,
}

/// Which workspaces a caller sees and changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    All,
    /// Its home, where requests go that name none, and these.
    Only {
        home: Workspace,
        others: BTreeSet<Workspace>,
    },
}

impl Reach {
    /// Where requests go that name no workspace.
    pub(crate) fn home(&self) -> Workspace {
        match self {
            Self::All => Workspace::default(),
            Self::Only { home, .. } => home.clone(),
        }
    }

    pub(crate) fn includes(&self, workspace: &Workspace) -> bool {
        match self {
            Self::All => true,
            Self::Only { home, others } => home == workspace || others.contains(workspace),
        }
    }
}

/// Why a caller is not in a workspace.
#[derive(Debug)]
pub(crate) enum EnterError {
    /// It is not the caller's, whether or not it exists.
    Denied,
    NoWorkspace,
    Failed(ConfigError),
}

impl From<ConfigError> for EnterError {
    fn from(error: ConfigError) -> Self {
        Self::Failed(error)
    }
}

impl Identity {
    /// Whoever runs the server: what the token is called that reaches everything.
    pub const OPERATOR: &'static str = "operator";

    /// The one who may do everything, by a token of that name.
    pub fn operator() -> Self {
        Self { name: Some(Self::OPERATOR.to_owned()), reach: Reach::All }
    }

    /// A user of these workspaces, the first of which is its home; of `default` if there are none.
    pub fn user(name: impl Into<String>, workspaces: impl IntoIterator<Item = Workspace>) -> Self {
        let mut workspaces = workspaces.into_iter();
        let home = workspaces.next().unwrap_or_default();
        Self { name: Some(name.into()), reach: Reach::Only { home, others: workspaces.collect() } }
    }

    /// As clients of the original see a caller that nobody asked who it is.
    pub(crate) fn shown(&self) -> &str {
        self.name.as_deref().unwrap_or("anonymous")
    }
}

impl Access {
    /// Whose token it is. None stays outside.
    ///
    /// ```
    /// use trellis_gateway::{Access, Identity, Token};
    ///
    /// let alice = Identity::user("alice", []);
    /// let access = Access::Tokens(vec![(Token::new("s3cret"), alice.clone())]);
    /// assert_eq!(access.identify("s3cret"), Some(alice));
    /// assert_eq!(access.identify(""), None);
    /// assert!(Access::Open.identify("").is_some());
    /// ```
    pub fn identify(&self, token: &str) -> Option<Identity> {
        match self {
            Self::Open => Some(Identity { name: None, reach: Reach::All }),
            Self::Tokens(tokens) => {
                tokens.iter().find(|(known, _)| known.is(token)).map(|(_, identity)| identity.clone())
            }
        }
    }
}
