//! Which models are asked: those that are named, else the one that the environment knows how to reach.

use crate::cloud::{CloudAccess, CloudError};
use crate::described::Described;
use crate::described::path_of;
use crate::dialect::{DialectKind, Quirks};
use crate::embedding::{EmbeddingDialect, RemoteEmbedder};
use crate::provider::Provider;
use crate::remote::{Access, CallSettings, Connection, Endpoint, EndpointConfig, EndpointError, address};
use crate::room::Room;
use crate::services::{self, Service};
use crate::settings::{KeyPlace, ModelSettings, ProviderSettings};
use serde_json::{Map, Value};
use std::sync::Arc;
use trellis_domain::Secret;
use trellis_orchestrator::permits::CallCapacity;
use trellis_orchestrator::ports::World;

/// What the scripted model is called.
pub(crate) const REHEARSAL: &str = "rehearsal";
const OLLAMA_PORT: u16 = 11434;

/// A model that was chosen.
#[derive(Debug, Clone)]
pub enum Choice {
    /// The scripted stand-in.
    Rehearsal,
    Remote(Box<RemoteChoice>),
}

/// A model behind an address.
#[derive(Debug, Clone)]
pub struct RemoteChoice {
    /// What the provider is called here.
    provider: String,
    model: String,
    dialect: DialectKind,
    base: String,
    path: String,
    key: Option<Secret>,
    /// In place of a key.
    cloud: Option<CloudAccess>,
    key_header: Option<String>,
    headers: Vec<(String, String)>,
    body: Map<String, Value>,
    quirks: Quirks,
    described: Option<Described>,
    /// The operator set it up: with a key, an address or a place in the settings.
    is_set_up: bool,
    max_tokens: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChoiceError {
    #[error(
        "there is no provider `{name}`; write PROVIDER/MODEL, such as openai/gpt-4.1-mini, with one of {known}, or \
         rehearsal; others are described in the settings file, this one under [providers.{name}]"
    )]
    UnknownProvider { name: String, known: String },
    #[error("{provider} is of the kind `{kind}`, which is not known; choose one of {known}, or write a dialect")]
    UnknownKind { provider: String, kind: String, known: String },
    #[error("{provider} needs a key; set {variable}")]
    NoKey { provider: String, variable: String },
    #[error("the key of {provider} cannot be read from {place}: {reason}")]
    UnreadableKey { provider: String, place: String, reason: String },
    #[error("{provider} needs {what}; write it under [providers.{provider}] in the settings file{or_variable}")]
    Incomplete { provider: String, what: &'static str, or_variable: String },
    #[error("{provider} is named without a model; write {provider}/NAME{or_variable}")]
    NoModel { provider: String, or_variable: String },
    #[error("{variable} is {value:?}; write a number such as 8192")]
    NotANumber { variable: &'static str, value: String },
    #[error("{provider} is not set up here; the operator can write [providers.{provider}] into the settings file")]
    NotSetUp { provider: String },
    #[error(
        "{provider} speaks {dialect}, which has no vectors; choose one that speaks openai or ollama for embeddings"
    )]
    NoVectors { provider: String, dialect: &'static str },
    #[error("{provider} cannot be reached: {error}")]
    Cloud { provider: String, error: CloudError },
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
}

/// The models to ask, in order: each of them answers if those before it cannot. Without a wish it is the first one
/// whose variables are set; questions never go to a second company that nobody named.
///
/// ```
/// # use trellis_models::{ModelSettings, choose};
/// let environment = |name: &str| (name == "OLLAMA_HOST").then(|| "box".to_owned());
/// let settings = ModelSettings::default();
/// let models = choose(&["ollama/llama3.2".to_owned(), "rehearsal".to_owned()], &settings, &environment)?;
/// assert_eq!(models[0].to_string(), "ollama/llama3.2 at http://box:11434, without a key");
/// assert_eq!(models.len(), 2);
/// let missing = choose(&["groq/llama-3.3-70b".to_owned()], &settings, &environment).unwrap_err();
/// assert!(missing.to_string().contains("GROQ_API_KEY"));
/// # Ok::<(), trellis_models::ChoiceError>(())
/// ```
pub fn choose(
    wishes: &[String],
    settings: &ModelSettings,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<Choice>, ChoiceError> {
    let set = |name: &str| environment(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
    let known = Known { settings, variable: &set };
    let mut named = wishes.iter().map(|wish| wish.trim()).filter(|wish| !wish.is_empty()).peekable();
    if named.peek().is_some() {
        return named.map(|wish| known.choice(wish)).collect();
    }
    let is_set = |name: &str| set(name).is_some();
    let first = match () {
        () if is_set("OPENAI_API_KEY") || is_set("OPENAI_BASE_URL") => "openai",
        () if is_set("ANTHROPIC_API_KEY") => "anthropic",
        () if is_set("OLLAMA_HOST") => "ollama",
        () => REHEARSAL,
    };
    Ok(vec![known.choice(first)?])
}

/// What the settings and the environment say about providers.
struct Known<'a> {
    settings: &'a ModelSettings,
    variable: &'a dyn Fn(&str) -> Option<String>,
}

impl Known<'_> {
    /// `provider/name`, or a provider with its usual model.
    fn choice(&self, wish: &str) -> Result<Choice, ChoiceError> {
        let model = wish.split_once('/').map(|(_, model)| model.trim()).filter(|model| !model.is_empty());
        match provider_of(wish) {
            REHEARSAL => Ok(Choice::Rehearsal),
            name => Ok(Choice::Remote(Box::new(self.remote(name, model)?))),
        }
    }

    fn remote(&self, name: &str, model: Option<&str>) -> Result<RemoteChoice, ChoiceError> {
        let configured = self.settings.providers.get(name);
        let nothing = ProviderSettings::default();
        let own = configured.unwrap_or(&nothing);
        let service = match &own.kind {
            Some(kind) => Some(services::named(kind).ok_or_else(|| unknown_kind(name, kind))?),
            None => services::named(name),
        };
        if service.is_none() && configured.is_none() {
            return Err(self.unknown_provider(name));
        }
        let (base, is_elsewhere) = self.base(name, own, service)?;
        let model = self.model(name, own, service, is_elsewhere, model)?;
        let dialect = self.settings.dialect_of(&format!("{name}/{model}")).or(own.dialect);
        let incomplete = || incomplete(name, "a dialect, such as openai", None);
        let dialect = dialect.or(service.map(|service| service.dialect_of(&model, &base))).ok_or_else(incomplete)?;
        let base = if dialect == DialectKind::Ollama { ollama_address(&base) } else { dialect.base(&base) };
        let path = path_of(&self.path(own, service, dialect, &base), &model);
        let key = self.key(name, own, service, is_elsewhere)?;
        let cloud = service.and_then(|service| service.cloud).filter(|_| key.is_none());
        let cloud = cloud.map(|cloud| cloud.access(self.variable)).transpose();
        let cloud = cloud.map_err(|error| ChoiceError::Cloud { provider: name.to_owned(), error })?;
        // A server elsewhere is only like the service if somebody said so.
        let is_meant = |service: &&Service| configured.is_some() || service.address.is_none() || !is_elsewhere;
        let like = services::at(&base).or(service.filter(is_meant));
        let by_service = || like.filter(|service| service.dialect == dialect).and_then(|service| service.described);
        let usual = dialect.headers().iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let headers = usual.chain(own.headers.clone()).collect();
        let key_header = service.and_then(|service| service.key_header).map(str::to_owned);
        // This machine's own ports and its account at a cloud are not for everybody who can name a model.
        let is_set_up = configured.is_some() || key.is_some() || is_elsewhere || dialect == DialectKind::Ollama;
        Ok(RemoteChoice {
            is_set_up,
            provider: name.to_owned(),
            model,
            dialect,
            base,
            path,
            key,
            cloud,
            key_header: own.key_header.clone().or(key_header),
            headers,
            body: own.body.clone(),
            quirks: like.map(|service| service.quirks).unwrap_or_default(),
            described: dialect.described().or_else(by_service),
            max_tokens: self.max_tokens(service)?,
        })
    }

    /// Where it is, and whether that is another place than the usual one.
    fn base(
        &self,
        name: &str,
        own: &ProviderSettings,
        service: Option<&Service>,
    ) -> Result<(String, bool), ChoiceError> {
        if let Some(cloud) = service.and_then(|service| service.cloud) {
            let base = cloud.base(own.address.clone(), self.variable);
            let base = base.map_err(|error| ChoiceError::Cloud { provider: name.to_owned(), error })?;
            return Ok((base, own.address.is_some()));
        }
        let variable = service.and_then(|service| service.address_variable);
        if let Some(elsewhere) = own.address.clone().or_else(|| variable.and_then(self.variable)) {
            return Ok((elsewhere, true));
        }
        let usual = service.and_then(|service| service.address);
        let usual = usual.ok_or_else(|| incomplete(name, "an address", variable))?;
        Ok((usual.to_owned(), false))
    }

    fn model(
        &self,
        name: &str,
        own: &ProviderSettings,
        service: Option<&Service>,
        is_elsewhere: bool,
        model: Option<&str>,
    ) -> Result<String, ChoiceError> {
        let variable = service.and_then(|service| service.model_variable);
        let named = model.map(str::to_owned).or_else(|| own.model.clone()).or_else(|| variable.and_then(self.variable));
        // Compatible servers have other models.
        let has_usual = |service: &&Service| !is_elsewhere || service.dialect != DialectKind::OpenAi;
        let usual = service.filter(has_usual).and_then(|service| service.model).map(str::to_owned);
        let or_variable = || variable.map(|variable| format!(" or set {variable}")).unwrap_or_default();
        named.or(usual).ok_or_else(|| ChoiceError::NoModel { provider: name.to_owned(), or_variable: or_variable() })
    }

    fn path(&self, own: &ProviderSettings, service: Option<&Service>, dialect: DialectKind, base: &str) -> String {
        let has_versions = base.trim_end_matches('/').ends_with("/v1");
        let deployments = service.filter(|service| service.dialect == dialect && !has_versions);
        let Some(deployments) = deployments.and_then(|service| service.deployments) else {
            return dialect.path().to_owned();
        };
        let set = || deployments.version_variables.iter().find_map(|variable| (self.variable)(variable));
        let version = own.api_version.clone().or_else(set).unwrap_or_else(|| deployments.version.to_owned());
        format!("{}?api-version={version}", deployments.path)
    }

    /// A key goes only to where it was meant for: one that belongs to a service is not sent to an address that
    /// somebody wrote into the settings.
    fn key(
        &self,
        name: &str,
        own: &ProviderSettings,
        service: Option<&Service>,
        is_elsewhere: bool,
    ) -> Result<Option<Secret>, ChoiceError> {
        let missing = |variable: &str| ChoiceError::NoKey { provider: name.to_owned(), variable: variable.to_owned() };
        match &own.key {
            Some(KeyPlace::Variable(variable)) => {
                let key = (self.variable)(variable).as_deref().and_then(Secret::new);
                return key.ok_or_else(|| missing(variable)).map(Some);
            }
            Some(KeyPlace::File(file)) => {
                let unreadable = |reason: String| ChoiceError::UnreadableKey {
                    provider: name.to_owned(),
                    place: file.display().to_string(),
                    reason,
                };
                let text = std::fs::read_to_string(file).map_err(|error| unreadable(error.to_string()))?;
                return Secret::new(&text).ok_or_else(|| unreadable("it is empty".to_owned())).map(Some);
            }
            None => {}
        }
        let Some(service) = service else { return Ok(None) };
        let is_meant = own.address.is_none() || service.address.is_none();
        let mut variables = service.key_variables.iter().filter(|_| is_meant);
        let key = variables.find_map(|variable| Secret::new(&(self.variable)(variable)?));
        let is_needed = service.needs_key && (service.address.is_none() || !is_elsewhere);
        match (key, service.key_variables) {
            (None, [variable, ..]) if is_needed => Err(missing(variable)),
            (key, _) => Ok(key),
        }
    }

    fn max_tokens(&self, service: Option<&Service>) -> Result<Option<u32>, ChoiceError> {
        let Some(variable) = service.and_then(|service| service.max_tokens_variable) else { return Ok(None) };
        let Some(value) = (self.variable)(variable) else { return Ok(None) };
        value.parse().map(Some).map_err(|_| ChoiceError::NotANumber { variable, value })
    }

    fn unknown_provider(&self, name: &str) -> ChoiceError {
        let own = self.settings.providers.keys().filter(|name| services::named(name).is_none());
        let known = std::iter::once(services::names()).chain(own.cloned()).collect::<Vec<_>>().join(", ");
        ChoiceError::UnknownProvider { name: name.to_owned(), known }
    }
}

fn unknown_kind(name: &str, kind: &str) -> ChoiceError {
    ChoiceError::UnknownKind { provider: name.to_owned(), kind: kind.to_owned(), known: services::names() }
}

fn incomplete(provider: &str, what: &'static str, variable: Option<&str>) -> ChoiceError {
    let or_variable = variable.map(|variable| format!(", or set {variable}")).unwrap_or_default();
    ChoiceError::Incomplete { provider: provider.to_owned(), what, or_variable }
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

/// A provider whose dialect has no vectors.
fn no_vectors(provider: &str, kind: DialectKind) -> ChoiceError {
    ChoiceError::NoVectors { provider: provider.to_owned(), dialect: kind.name() }
}

/// Room for as many calls as may be made at a time.
pub(crate) fn capacity(calls: usize) -> Arc<CallCapacity> {
    CallCapacity::new(calls.max(1))
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
        let Self { provider, model, base, key, cloud, .. } = self;
        let key = if key.is_some() || cloud.is_some() { "with a key" } else { "without a key" };
        // Whoever writes a password into an address does not want to read it here.
        let place = address(base, "").map_or_else(|error| error.to_string(), |(_, shown)| shown);
        write!(f, "{provider}/{model} at {}, {key}", place.trim_end_matches('/'))
    }
}

impl RemoteChoice {
    /// `provider/model`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.provider, self.model)
    }

    /// How it is spoken to.
    pub fn dialect(&self) -> DialectKind {
        self.dialect
    }

    /// Whose model it is: models of the same provider share its room for calls.
    pub(crate) fn provider(&self) -> &str {
        &self.provider
    }

    pub(crate) fn is_set_up(&self) -> bool {
        self.is_set_up
    }

    /// Makes the provider ready. Nothing is sent yet.
    pub fn connect(self, settings: CallSettings, world: Arc<dyn World>) -> Result<Arc<dyn Provider>, ChoiceError> {
        let room = Room { capacity: capacity(settings.concurrency), pace: Arc::default() };
        self.connect_sharing(room, settings, world)
    }

    pub(crate) fn connect_sharing(
        self,
        room: Room,
        settings: CallSettings,
        world: Arc<dyn World>,
    ) -> Result<Arc<dyn Provider>, ChoiceError> {
        let access = self.open(&world)?;
        let Self { provider: name, model, dialect, base, path, headers, body, quirks, described, max_tokens, .. } =
            self;
        let config = EndpointConfig { name, base, path, access, headers, body };
        let endpoint = Endpoint::new(config, settings, world)?;
        let Room { capacity, pace } = room;
        Ok(dialect.connect(Connection { endpoint, model, capacity, pace, described }, quirks, max_tokens))
    }

    /// The same for a model that makes vectors.
    pub(crate) fn embedder(
        self,
        room: Room,
        settings: CallSettings,
        world: Arc<dyn World>,
    ) -> Result<RemoteEmbedder, ChoiceError> {
        let kind = EmbeddingDialect::of(self.dialect).ok_or_else(|| no_vectors(&self.provider, self.dialect))?;
        let access = self.open(&world)?;
        let Self { provider: name, model, base, path, headers, body, .. } = self;
        let config = EndpointConfig { name, base, path: kind.path(&path), access, headers, body };
        let endpoint = Endpoint::new(config, settings, Arc::clone(&world))?;
        Ok(RemoteEmbedder::new(endpoint, kind, model, room, world))
    }

    fn open(&self, world: &Arc<dyn World>) -> Result<Access, ChoiceError> {
        let unusable = |error| ChoiceError::Cloud { provider: self.provider.clone(), error };
        match self.cloud.clone() {
            Some(cloud) => cloud.open(Arc::clone(world)).map_err(unusable),
            None => Ok(self.access()),
        }
    }

    /// What opens the door there.
    fn access(&self) -> Access {
        let Some(secret) = self.key.clone() else { return Access::Free };
        let mut key = self.dialect.key(secret);
        if let Some(header) = &self.key_header {
            (key.header, key.scheme) = (header.to_lowercase(), "");
        }
        Access::Key(key)
    }
}

#[cfg(test)]
#[path = "choice_tests.rs"]
mod tests;
