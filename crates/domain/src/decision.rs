//! Choices: what was chosen, from which options, by whom.

use crate::document::Document;
use serde::{Deserialize, Serialize};

/// One choice with the set it was made from. No choice lies outside its set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    pub kind: DecisionKind,
    pub options: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excluded: Vec<Excluded>,
    /// Empty when the model named something outside the set.
    pub chosen: Vec<String>,
    /// IRI of the configuration item or node that the set came from.
    pub source: String,
    pub config_version: u64,
    pub decided_by: DecidedBy,
    pub enforcement: Enforcement,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signals: Vec<String>,
    /// The reason the model gave: a claim, not a fact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rationale: Option<Document>,
    /// A reply that was outside the set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejected: Option<Document>,
}

impl Decision {
    /// A choice that a model is about to make: what it may choose, and nothing chosen yet. Its reply is checked.
    pub fn offered(kind: DecisionKind, options: Vec<String>, source: String, config_version: u64) -> Self {
        Self {
            kind,
            options,
            excluded: Vec::new(),
            chosen: Vec::new(),
            source,
            config_version,
            decided_by: DecidedBy::Model,
            enforcement: Enforcement::Validated,
            signals: Vec::new(),
            rationale: None,
            rejected: None,
        }
    }
}

/// Options that every workspace has, whatever it configures.
pub mod option {
    /// A plan step needs no tool.
    pub const NO_TOOL: &str = "none";
    /// A plan stays as it is, or its rest is planned anew.
    pub const KEEP: &str = "keep";
    pub const REVISE: &str = "revise";
    /// The findings of a supervisor are enough, or another round is needed.
    pub const ANSWER: &str = "answer";
    pub const AGAIN: &str = "again";
}

/// An option that was ruled out before the choice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Excluded {
    pub name: String,
    pub reason: String,
}

/// An enumeration whose values are words in kebab case: the same in records, in the graph and for people.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$meaning:meta])* $variant:ident),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        #[derive(strum::Display, strum::EnumString, strum::IntoStaticStr, strum::VariantArray, strum::VariantNames)]
        #[serde(rename_all = "kebab-case")]
        #[strum(serialize_all = "kebab-case", const_into_str)]
        pub enum $name {
            $($(#[$meaning])* $variant),*
        }

        impl $name {
            /// All of them, in the order in which they are defined.
            pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;
            pub const WORDS: &'static [&'static str] = <Self as strum::VariantNames>::VARIANTS;

            pub const fn as_str(self) -> &'static str {
                self.into_str()
            }
        }
    };
}
pub(crate) use words;

words!(
    /// What is being chosen.
    DecisionKind {
        TaskType,
        Pattern,
        Tool,
        Goals,
        SubagentPattern,
        SubagentGroup,
        Replan,
        Round,
        Approval,
        UncertainCall,
        ToolInput,
        Edges,
    }
);

words!(
    /// Who chose. Honest: `OnlyOption` means that no model was asked.
    DecidedBy {
        Model,
        OnlyOption,
        Fallback,
        Caller,
        Supervisor,
        Rule,
    }
);

words!(
    /// Whether the set was enforced while the model wrote, or checked afterwards.
    Enforcement {
        Decoding,
        Validated,
        None,
    }
);
