//! What a request chooses out of what is configured.

use crate::ToolName;
use crate::request::TooLarge;
use serde::{Deserialize, Serialize};

/// Names of tools that a request names.
const TOOLS: usize = 100;
/// The name of a tool or model.
const NAME_BYTES: usize = 200;

/// The tools and the model that a caller wants out of those that are configured. It narrows what a run may use, and
/// never widens it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selection {
    /// None for all that group and state allow, an empty list for no tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<ToolName>>,
    /// As `provider/model`; none for the one that configuration chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

impl Selection {
    /// Nothing is chosen: whatever is configured may be used.
    pub fn is_everything(&self) -> bool {
        self.tools.is_none() && self.model.is_none()
    }

    /// Whether it is small enough to be kept with every session of a run.
    ///
    /// ```
    /// use trellis_domain::Selection;
    ///
    /// let much = Selection { tools: Some(vec!["weather".into(); 101]), model: None };
    /// assert_eq!(much.check_size().unwrap_err().to_string(), "`tools` has 101 names; at most 100 are allowed");
    /// ```
    pub fn check_size(&self) -> Result<(), TooLarge> {
        let tools = self.tools.as_deref().unwrap_or_default();
        let longest = tools.iter().map(|name| name.len()).max().unwrap_or(0);
        let sizes = [
            ("`tools`", tools.len(), "names", TOOLS),
            ("the longest name in `tools`", longest, "bytes", NAME_BYTES),
            ("`model`", self.model.as_ref().map_or(0, String::len), "bytes", NAME_BYTES),
        ];
        match sizes.into_iter().find(|(_, size, _, limit)| size > limit) {
            Some((field, size, unit, limit)) => Err(TooLarge { field, size: size as u64, unit, limit: limit as u64 }),
            None => Ok(()),
        }
    }
}
