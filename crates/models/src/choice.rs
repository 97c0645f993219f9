//! Which models are asked: those that are named, else the one that the environment knows how to reach.

use crate::dialect::{Anthropic, Ollama, OpenAi};
use crate::provider::Provider;
use crate::remote::{CallSettings, Endpoint, EndpointConfig, EndpointError, Key, Remote, address};
use crate::secret::Secret;
use std::sync::Arc;
use trellis_orchestrator::permits::CallCapacity;
use trellis_orchestrator::ports::World;

/// What the scripted model is called.
pub(crate) const REHEARSAL: &str = "rehearsal";
const OPENAI: &str = "https://api.openai.com/v1";
const OPENAI_MODEL: &str = "gpt-4.1-mini";
const ANTHROPIC: &str = "https://api.anthropic.com";
const ANTHROPIC_MODEL: &str = "claude-sonnet-4-6";
const OLLAMA: &str = "http://127.0.0.1:11434";
const OLLAMA_MODEL: &str = "llama3.2";
const OLLAMA_PORT: u16 = 11434;

/// A model that was chosen.
#[derive(Debug, Clone)]
pub enum Choice {
    /// The scripted stand-in.
    Rehearsal,
    Remote(RemoteChoice),
}

/// A model behind an address.
#[derive(Debug, Clone)]
pub struct RemoteChoice {
    provider: ProviderKind,
    model: String,
    base: String,
    key: Option<Secret>,
    max_tokens: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProviderKind {
    OpenAi,
    Anthropic,
    Ollama,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChoiceError {
    #[error(
        "there is no provider `{0}`; write openai/NAME, anthropic/NAME, ollama/NAME or rehearsal, such as \
         openai/gpt-4.1-mini"
    )]
    UnknownProvider(String),
    #[error("{provider} needs a key; set {variable}")]
    NoKey { provider: &'static str, variable: &'static str },
    #[error("OPENAI_BASE_URL is set, but no model is named; set OPENAI_MODEL or --model openai/NAME")]
    NoModel,
    #[error("ANTHROPIC_MAX_TOKENS is {0:?}; write a number such as 8192")]
    NotANumber(String),
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
}

/// The models to ask, in order: each of them answers if those before it cannot. Without a wish it is the first one
/// whose variables are set; questions never go to a second company that nobody named.
///
/// ```
/// let environment = |name: &str| (name == "OLLAMA_HOST").then(|| "box".to_owned());
/// let models = trellis_models::choose(&["ollama/llama3.2".to_owned(), "rehearsal".to_owned()], &environment)?;
/// assert_eq!(models[0].to_string(), "ollama/llama3.2 at http://box:11434, without a key");
/// assert_eq!(models.len(), 2);
/// let missing = trellis_models::choose(&["anthropic".to_owned()], &environment).unwrap_err();
/// assert!(missing.to_string().contains("ANTHROPIC_API_KEY"));
/// # Ok::<(), trellis_models::ChoiceError>(())
/// ```
pub fn choose(wishes: &[String], environment: &dyn Fn(&str) -> Option<String>) -> Result<Vec<Choice>, ChoiceError> {
    let set = |name: &str| environment(name).filter(|value| !value.trim().is_empty());
    let environment = Environment(&set);
    let mut named = wishes.iter().map(|wish| wish.trim()).filter(|wish| !wish.is_empty()).peekable();
    if named.peek().is_some() {
        return named.map(|wish| environment.named(wish)).collect();
    }
    let first = match () {
        () if environment.knows("OPENAI_API_KEY") || environment.knows("OPENAI_BASE_URL") => {
            environment.openai(None)?
        }
        () if environment.knows("ANTHROPIC_API_KEY") => environment.anthropic(None)?,
        () if environment.knows("OLLAMA_HOST") => environment.ollama(None),
        () => Choice::Rehearsal,
    };
    Ok(vec![first])
}

struct Environment<'a>(&'a dyn Fn(&str) -> Option<String>);

impl Environment<'_> {
    fn knows(&self, name: &str) -> bool {
        (self.0)(name).is_some()
    }

    fn get(&self, name: &str, usual: &str) -> String {
        (self.0)(name).map_or_else(|| usual.to_owned(), |value| value.trim().to_owned())
    }

    fn secret(&self, name: &str) -> Option<Secret> {
        (self.0)(name).as_deref().and_then(Secret::new)
    }

    /// `provider/name`, or a provider with its usual model.
    fn named(&self, wish: &str) -> Result<Choice, ChoiceError> {
        let model = wish.split_once('/').map(|(_, model)| model.trim()).filter(|model| !model.is_empty());
        match provider_of(wish) {
            "openai" => self.openai(model),
            "anthropic" => self.anthropic(model),
            "ollama" => Ok(self.ollama(model)),
            REHEARSAL => Ok(Choice::Rehearsal),
            unknown => Err(ChoiceError::UnknownProvider(unknown.to_owned())),
        }
    }

    fn openai(&self, model: Option<&str>) -> Result<Choice, ChoiceError> {
        let key = self.secret("OPENAI_API_KEY");
        let elsewhere = self.knows("OPENAI_BASE_URL");
        if key.is_none() && !elsewhere {
            return Err(ChoiceError::NoKey { provider: "openai", variable: "OPENAI_API_KEY" });
        }
        let model = model.map(str::to_owned).or_else(|| (self.0)("OPENAI_MODEL"));
        let model = match model {
            Some(model) => model.trim().to_owned(),
            None if elsewhere => return Err(ChoiceError::NoModel),
            None => OPENAI_MODEL.to_owned(),
        };
        let base = self.get("OPENAI_BASE_URL", OPENAI);
        Ok(Choice::Remote(RemoteChoice { provider: ProviderKind::OpenAi, model, base, key, max_tokens: None }))
    }

    fn anthropic(&self, model: Option<&str>) -> Result<Choice, ChoiceError> {
        let key = self.secret("ANTHROPIC_API_KEY");
        if key.is_none() {
            return Err(ChoiceError::NoKey { provider: "anthropic", variable: "ANTHROPIC_API_KEY" });
        }
        let model = model.map_or_else(|| self.get("ANTHROPIC_MODEL", ANTHROPIC_MODEL), str::to_owned);
        let base = self.get("ANTHROPIC_BASE_URL", ANTHROPIC);
        let base = base.trim_end_matches('/').trim_end_matches("/v1").to_owned();
        let tokens = self.get("ANTHROPIC_MAX_TOKENS", "");
        let max_tokens = if tokens.is_empty() { Ok(None) } else { tokens.parse().map(Some) };
        let max_tokens = max_tokens.map_err(|_| ChoiceError::NotANumber(tokens))?;
        Ok(Choice::Remote(RemoteChoice { provider: ProviderKind::Anthropic, model, base, key, max_tokens }))
    }

    fn ollama(&self, model: Option<&str>) -> Choice {
        let model = model.map_or_else(|| self.get("OLLAMA_MODEL", OLLAMA_MODEL), str::to_owned);
        let base = ollama_address(&self.get("OLLAMA_HOST", OLLAMA));
        let key = self.secret("OLLAMA_API_KEY");
        Choice::Remote(RemoteChoice { provider: ProviderKind::Ollama, model, base, key, max_tokens: None })
    }
}

/// Whose model a name such as `openai/gpt-4.1` means.
pub(crate) fn provider_of(name: &str) -> &str {
    name.split('/').next().unwrap_or_default().trim()
}

/// Ollama's own setting: an address, or a host with or without port, or the address that its server listens on.
fn ollama_address(host: &str) -> String {
    let (scheme, rest) = host.split_once("://").unwrap_or(("http", host));
    let rest = rest.trim_end_matches('/');
    let (name, path) = rest.split_once('/').map_or((rest, String::new()), |(name, path)| (name, format!("/{path}")));
    let end_of_name = name.rfind(']').map_or(0, |bracket| bracket + 1);
    let (name, port) = match name[end_of_name..].rfind(':') {
        Some(colon) => name.split_at(end_of_name + colon),
        None => (name, ""),
    };
    let name = match name {
        "" | "0.0.0.0" => "127.0.0.1",
        "[::]" => "[::1]",
        name => name,
    };
    let port = match (port, scheme) {
        ("" | ":", "https") => String::new(),
        ("" | ":", _) => format!(":{OLLAMA_PORT}"),
        (port, _) => port.to_owned(),
    };
    format!("{scheme}://{name}{port}{path}")
}

/// Room for as many calls as may be made at a time.
pub(crate) fn capacity(settings: &CallSettings) -> Arc<CallCapacity> {
    CallCapacity::new(settings.concurrency.max(1))
}

impl ProviderKind {
    const fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Ollama => "ollama",
        }
    }
}

impl std::fmt::Display for Choice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Rehearsal => f.write_str("rehearsal: scripted replies, no language model is asked"),
            Self::Remote(choice) => choice.fmt(f),
        }
    }
}

impl std::fmt::Display for RemoteChoice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { provider, model, base, key, .. } = self;
        let key = if key.is_some() { "with a key" } else { "without a key" };
        // Whoever writes a password into an address does not want to read it here.
        let place = address(base, "").map_or_else(|error| error.to_string(), |(_, shown)| shown);
        write!(f, "{}/{model} at {}, {key}", provider.name(), place.trim_end_matches('/'))
    }
}

impl RemoteChoice {
    /// `provider/model`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.provider.name(), self.model)
    }

    /// Whose model it is: models of the same provider share its room for calls.
    pub(crate) fn provider(&self) -> &'static str {
        self.provider.name()
    }

    /// Makes the provider ready. Nothing is sent yet.
    pub fn connect(self, settings: CallSettings, world: Arc<dyn World>) -> Result<Arc<dyn Provider>, EndpointError> {
        let capacity = capacity(&settings);
        self.connect_sharing(capacity, settings, world)
    }

    pub(crate) fn connect_sharing(
        self,
        capacity: Arc<CallCapacity>,
        settings: CallSettings,
        world: Arc<dyn World>,
    ) -> Result<Arc<dyn Provider>, EndpointError> {
        let Self { provider, model, base, key, max_tokens } = self;
        let bearer = |secret| Key { header: "authorization", scheme: "Bearer ", secret };
        let name = provider.name();
        let config = match provider {
            ProviderKind::OpenAi => {
                EndpointConfig { name, base, path: "/chat/completions", key: key.map(bearer), headers: Vec::new() }
            }
            ProviderKind::Anthropic => {
                let key = key.map(|secret| Key { header: "x-api-key", scheme: "", secret });
                EndpointConfig {
                    name,
                    base,
                    path: "/v1/messages",
                    key,
                    headers: vec![("anthropic-version", "2023-06-01")],
                }
            }
            ProviderKind::Ollama => {
                EndpointConfig { name, base, path: "/api/chat", key: key.map(bearer), headers: Vec::new() }
            }
        };
        let openai = OpenAi::at(&config.base);
        let endpoint = Endpoint::new(config, settings, world)?;
        Ok(match provider {
            ProviderKind::OpenAi => Arc::new(Remote::new(openai, endpoint, model, capacity)),
            ProviderKind::Anthropic => Arc::new(Remote::new(Anthropic { max_tokens }, endpoint, model, capacity)),
            ProviderKind::Ollama => Arc::new(Remote::new(Ollama, endpoint, model, capacity)),
        })
    }
}

#[cfg(test)]
#[path = "choice_tests.rs"]
mod tests;
