//! How models are called, as the operator sets it: all of them, some by name, and the providers that they belong to.

use crate::dialect::DialectKind;
use crate::remote::{CallSettings, Prices, RateLimit, Sampling};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use trellis_orchestrator::documents::FactsBudgets;

/// How models are called: all of them, and some by name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelSettings {
    pub usual: CallSettings,
    /// By `provider/name`.
    pub models: BTreeMap<String, ModelOptions>,
    /// By name.
    pub providers: BTreeMap<String, ProviderSettings>,
    /// The model that makes vectors of documents and questions; none means that only words are searched.
    pub embedding_model: Option<String>,
    /// The model that is asked for the facts of documents while they are loaded; none means that nobody is asked.
    pub extraction_model: Option<String>,
    /// What it may be asked for.
    pub extraction_budgets: FactsBudgets,
    /// The pause between two pieces of a rehearsed reply.
    pub rehearsal_delay: Option<Duration>,
}

/// A provider: any number of them may be known, each under a name of its own.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProviderSettings {
    /// The known service that it is. A provider that has the name of one is that one.
    pub kind: Option<String>,
    pub dialect: Option<DialectKind>,
    pub address: Option<String>,
    pub key: Option<KeyPlace>,
    /// The header that takes the key.
    pub key_header: Option<String>,
    /// The version of the interface, for services that ask for it in the address.
    pub api_version: Option<String>,
    /// The model that is meant if none is named.
    pub model: Option<String>,
    pub headers: BTreeMap<String, String>,
    /// Members that are added to each request.
    pub body: Map<String, Value>,
    /// Calls at a time.
    pub concurrency: Option<usize>,
    pub rate_limit: RateLimit,
}

/// Where a key is: settings are read by many, and hold none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyPlace {
    /// In this variable of the environment.
    Variable(String),
    File(PathBuf),
}

/// What is different for one model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelOptions {
    pub dialect: Option<DialectKind>,
    /// How much it can read and write together.
    pub context_tokens: Option<u64>,
    pub max_tokens: Option<u32>,
    pub prices: Option<Prices>,
    pub native_tools: Option<bool>,
    pub probe: Option<bool>,
    pub one_call_routing: Option<bool>,
    pub parallel_calls: Option<bool>,
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    pub reasoning_effort: Option<String>,
    pub keep_alive: Option<Value>,
    pub think: Option<Value>,
}

impl ModelSettings {
    /// How one model is called.
    pub(crate) fn of(&self, model: &str) -> CallSettings {
        let usual = self.usual.clone();
        let Some(options) = self.models.get(model).cloned() else { return usual };
        let sampling = Sampling {
            temperature: options.temperature.or(usual.sampling.temperature),
            top_p: options.top_p.or(usual.sampling.top_p),
            max_tokens: options.max_tokens.or(usual.sampling.max_tokens),
            reasoning_effort: options.reasoning_effort.or(usual.sampling.reasoning_effort),
            keep_alive: options.keep_alive.or(usual.sampling.keep_alive),
            think: options.think.or(usual.sampling.think),
        };
        CallSettings {
            sampling,
            native_tools: options.native_tools.unwrap_or(usual.native_tools),
            probe: options.probe.unwrap_or(usual.probe),
            one_call_routing: options.one_call_routing.or(usual.one_call_routing),
            parallel_calls: options.parallel_calls.or(usual.parallel_calls),
            context_tokens: options.context_tokens.or(usual.context_tokens),
            prices: options.prices.or(usual.prices),
            ..usual
        }
    }

    /// The dialect that one model alone is spoken to in.
    pub(crate) fn dialect_of(&self, model: &str) -> Option<DialectKind> {
        self.models.get(model).and_then(|options| options.dialect)
    }
}
