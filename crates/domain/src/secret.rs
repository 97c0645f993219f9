//! Keys, which appear in no log, no error and no debug output.

use std::fmt;

/// What stands in the place of a key.
const REDACTED: &str = "[redacted]";
/// Stand-ins such as `x` are no secrets, and replacing them would garble every message.
const SHORTEST: usize = 4;

/// A key. Only the request that it opens the door for sees it.
///
/// ```
/// use trellis_domain::Secret;
///
/// let key = Secret::new(" sk-12345 ").unwrap();
/// assert_eq!(format!("{key:?}"), "Secret([redacted])");
/// assert_eq!(key.redact("wrong key sk-12345!"), "wrong key [redacted]!");
/// assert_eq!(Secret::new("s\"k\"1").unwrap().redact(r#"{"key": "s\"k\"1"}"#), r#"{"key": "[redacted]"}"#);
/// ```
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// None if nothing but white space is there.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }

    /// The key itself, for the request that it opens the door for.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The text without the key, as it is or as JSON writes it: servers echo what they were sent.
    pub fn redact(&self, text: &str) -> String {
        if self.0.len() < SHORTEST {
            return text.to_owned();
        }
        let written = serde_json::Value::from(self.0.as_str()).to_string();
        let text = text.replace(&self.0, REDACTED);
        if text.contains(['\\']) { text.replace(written.trim_matches('"'), REDACTED) } else { text }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({REDACTED})")
    }
}
