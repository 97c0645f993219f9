//! The names that configuration, callers and models give to things. Each is a type of its own, so that none is taken for
//! another. A name that nobody gave is `None`, never an empty text.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

macro_rules! named {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(into = "String", from = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// The name as it came from outside, where an empty one means that none was given.
            pub fn given(name: &str) -> Option<Self> {
                (!name.is_empty()).then(|| name.into())
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl Deref for $name {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(name: &str) -> Self {
                Self(name.into())
            }
        }

        impl From<String> for $name {
            fn from(name: String) -> Self {
                Self(name.into())
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0.as_ref().to_owned()
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                *self.0 == *other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                *self.0 == **other
            }
        }
    )*};
}

named!(
    /// A kind of problem.
    ///
    /// ```
    /// use trellis_domain::TaskTypeName;
    ///
    /// assert_eq!(TaskTypeName::given("research").as_deref(), Some("research"));
    /// assert_eq!(TaskTypeName::given(""), None);
    /// ```
    TaskTypeName,
    /// A way of working on a question.
    PatternName,
    /// A tool, as models know it. A model may name one that does not exist.
    ToolName,
    /// A group of tools.
    GroupName,
);

/// Records have an empty text where no name was given.
pub(crate) mod empty_is_none {
    use super::{Deref, Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(name: &impl AsText, serializer: S) -> Result<S::Ok, S::Error> {
        name.text().serialize(serializer)
    }

    pub(crate) fn deserialize<'de, T: From<String>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<T>, D::Error> {
        let name = String::deserialize(deserializer)?;
        Ok(if name.is_empty() { None } else { Some(name.into()) })
    }

    pub(crate) trait AsText {
        fn text(&self) -> &str;
    }

    impl<T: Deref<Target = str>> AsText for Option<T> {
        fn text(&self) -> &str {
            self.as_deref().unwrap_or_default()
        }
    }
}
