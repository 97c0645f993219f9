//! What differs between servers that speak the same dialect. Which server has which is written in `services`.

use crate::remote::Members;

/// Where servers that speak OpenAI's dialect differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Quirks {
    /// Members that it refuses, or misunderstands.
    pub(crate) lacks: Members,
    /// The limit of tokens is `max_completion_tokens`, and not `max_tokens`.
    pub(crate) new_limit: bool,
    /// The longest reply if nobody set one. Where thinking counts, too, it is longer.
    pub(crate) usual_tokens: u32,
    /// How `tool_choice` says that something has to be called.
    pub(crate) forced: &'static str,
    /// The results of tools need the names of their functions.
    pub(crate) named_results: bool,
    /// A router picks one of several servers, and must not pick one that overlooks the schema.
    pub(crate) routed: bool,
}

/// A server of which nothing else is known.
pub(crate) const NO_QUIRKS: Quirks =
    Quirks { lacks: 0, new_limit: false, usual_tokens: 4096, forced: "required", named_results: false, routed: false };

impl Default for Quirks {
    fn default() -> Self {
        NO_QUIRKS
    }
}
