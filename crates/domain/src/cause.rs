//! What a record follows from.

use crate::SessionId;
use crate::name::Name;
use serde::{Deserialize, Serialize};

/// A record that another one follows from.
///
/// ```
/// use trellis_domain::SessionId;
/// use trellis_domain::record::{Cause, Name};
///
/// let child = SessionId::new("child").unwrap();
/// let end = Cause::elsewhere(child, Name::end());
/// assert_eq!(end.to_string(), "@child/end");
/// assert_eq!(Cause::from(end.to_string()), end);
/// assert_eq!(Cause::from("i3".to_owned()), Cause::from(Name::new("i3")));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct Cause {
    /// The session that it is in; none if it is the same.
    pub session: Option<SessionId>,
    pub name: Name,
}

/// Begins what is in another session. No name begins with it.
const ELSEWHERE: char = '@';

impl Cause {
    /// A record of another session of the run.
    pub const fn elsewhere(session: SessionId, name: Name) -> Self {
        Self { session: Some(session), name }
    }

    /// The session that it is in, seen from a record of `own`.
    pub fn session_seen_from<'a>(&'a self, own: &'a SessionId) -> &'a SessionId {
        self.session.as_ref().unwrap_or(own)
    }
}

impl From<Name> for Cause {
    fn from(name: Name) -> Self {
        Self { session: None, name }
    }
}

impl From<String> for Cause {
    fn from(text: String) -> Self {
        let elsewhere = text.strip_prefix(ELSEWHERE).and_then(|text| text.split_once('/'));
        let elsewhere = elsewhere.and_then(|(session, name)| Some((SessionId::new(session).ok()?, name)));
        match elsewhere {
            Some((session, name)) => Self::elsewhere(session, Name::new(name)),
            None => Name::new(text).into(),
        }
    }
}

impl From<Cause> for String {
    fn from(cause: Cause) -> Self {
        cause.to_string()
    }
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.session {
            Some(session) => write!(f, "{ELSEWHERE}{session}/{}", self.name),
            None => self.name.fmt(f),
        }
    }
}
