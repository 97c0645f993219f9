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

/// A model of Bedrock that keeps what it computed for a prefix, if it is asked to. Others refuse to be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Caching {
    /// A part of its name: regions stand before it, dates and versions behind.
    pub(crate) model: &'static str,
    /// Whether tools may be asked for, too, and not only instructions and messages.
    pub(crate) tools: bool,
}

/// As AWS lists them.
const CACHING: [Caching; 9] = [
    Caching { model: "anthropic.claude-3-5-haiku", tools: true },
    Caching { model: "anthropic.claude-3-7-sonnet", tools: true },
    Caching { model: "anthropic.claude-haiku-4", tools: true },
    Caching { model: "anthropic.claude-opus-4", tools: true },
    Caching { model: "anthropic.claude-sonnet-4", tools: true },
    Caching { model: "amazon.nova-lite", tools: false },
    Caching { model: "amazon.nova-micro", tools: false },
    Caching { model: "amazon.nova-premier", tools: false },
    Caching { model: "amazon.nova-pro", tools: false },
];

/// What a model of Bedrock can be asked to keep; none if nothing is known.
pub(crate) fn caching(model: &str) -> Option<Caching> {
    CACHING.into_iter().find(|known| model.contains(known.model))
}
