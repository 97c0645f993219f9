//! The services that are known by name: where they are, how they are spoken to, which variable holds their key, and
//! what they do not take. Data only.

use crate::cloud::Cloud;
use crate::described::{Described, GEMINI, LLAMA_CPP, LM_STUDIO, OPENROUTER, TGI, VLLM};
use crate::dialect::{DialectKind, NO_QUIRKS, Quirks};
use crate::remote::{COUNTS, ONE_CALL, SCHEMA, STRICT_CALLS};

/// A service that somebody runs, or a server that many run themselves.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Service {
    pub(crate) name: &'static str,
    pub(crate) dialect: DialectKind,
    /// None if everybody has another one.
    pub(crate) address: Option<&'static str>,
    pub(crate) address_variable: Option<&'static str>,
    /// The first that is set counts.
    pub(crate) key_variables: &'static [&'static str],
    /// The header that takes the key, if it is not the one that is usual in the dialect.
    pub(crate) key_header: Option<&'static str>,
    /// At its own address nobody is answered without a key.
    pub(crate) needs_key: bool,
    /// The model that is meant if none is named.
    pub(crate) model: Option<&'static str>,
    pub(crate) model_variable: Option<&'static str>,
    /// Holds the longest reply in tokens.
    pub(crate) max_tokens_variable: Option<&'static str>,
    pub(crate) deployments: Option<Deployments>,
    /// Its address is made of variables, and its requests are signed or carry a token, unless there is a key.
    pub(crate) cloud: Option<Cloud>,
    /// Where it tells how much its models can read, to whoever speaks its own dialect.
    pub(crate) described: Option<Described>,
    pub(crate) quirks: Quirks,
}

/// A service that has an address per model, unless its address ends with `/v1`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deployments {
    pub(crate) path: &'static str,
    pub(crate) version: &'static str,
    pub(crate) version_variables: &'static [&'static str],
}

/// Somebody else's machines, which are fast, and think.
const HOSTED: Quirks = Quirks { usual_tokens: 8192, ..NO_QUIRKS };

/// What most of them have in common.
const COMPATIBLE: Service = Service {
    name: "",
    dialect: DialectKind::OpenAi,
    address: None,
    address_variable: None,
    key_variables: &[],
    key_header: None,
    needs_key: true,
    model: None,
    model_variable: None,
    max_tokens_variable: None,
    deployments: None,
    cloud: None,
    described: None,
    quirks: HOSTED,
};

/// A server on this machine, unless its address is set.
const OWN: Service = Service { needs_key: false, quirks: NO_QUIRKS, ..COMPATIBLE };

pub(crate) const SERVICES: [Service; 21] = [
    Service {
        name: "openai",
        address: Some("https://api.openai.com/v1"),
        address_variable: Some("OPENAI_BASE_URL"),
        key_variables: &["OPENAI_API_KEY"],
        model: Some("gpt-4.1-mini"),
        model_variable: Some("OPENAI_MODEL"),
        quirks: Quirks { new_limit: true, usual_tokens: 16_384, ..HOSTED },
        ..COMPATIBLE
    },
    Service {
        name: "anthropic",
        dialect: DialectKind::Anthropic,
        address: Some("https://api.anthropic.com"),
        address_variable: Some("ANTHROPIC_BASE_URL"),
        key_variables: &["ANTHROPIC_API_KEY"],
        model: Some("claude-sonnet-4-6"),
        model_variable: Some("ANTHROPIC_MODEL"),
        max_tokens_variable: Some("ANTHROPIC_MAX_TOKENS"),
        ..COMPATIBLE
    },
    Service {
        name: "ollama",
        dialect: DialectKind::Ollama,
        address: Some("http://127.0.0.1:11434"),
        address_variable: Some("OLLAMA_HOST"),
        key_variables: &["OLLAMA_API_KEY"],
        model: Some("llama3.2"),
        model_variable: Some("OLLAMA_MODEL"),
        ..OWN
    },
    Service {
        name: "azure",
        address_variable: Some("AZURE_OPENAI_ENDPOINT"),
        key_variables: &["AZURE_OPENAI_API_KEY"],
        key_header: Some("api-key"),
        deployments: Some(Deployments {
            path: "/openai/deployments/{model}/chat/completions",
            version: "2024-10-21",
            version_variables: &["AZURE_OPENAI_API_VERSION", "OPENAI_API_VERSION"],
        }),
        quirks: Quirks { new_limit: true, usual_tokens: 16_384, ..HOSTED },
        ..COMPATIBLE
    },
    Service {
        name: "mistral",
        address: Some("https://api.mistral.ai/v1"),
        key_variables: &["MISTRAL_API_KEY"],
        // It counts without being asked to, and refuses what it does not know.
        quirks: Quirks { lacks: COUNTS, forced: "any", ..HOSTED },
        ..COMPATIBLE
    },
    Service {
        name: "cohere",
        address: Some("https://api.cohere.ai/compatibility/v1"),
        key_variables: &["COHERE_API_KEY", "CO_API_KEY"],
        quirks: Quirks { lacks: ONE_CALL, ..HOSTED },
        ..COMPATIBLE
    },
    Service {
        name: "openrouter",
        address: Some("https://openrouter.ai/api/v1"),
        key_variables: &["OPENROUTER_API_KEY"],
        described: Some(OPENROUTER),
        quirks: Quirks { routed: true, ..HOSTED },
        ..COMPATIBLE
    },
    Service {
        name: "groq",
        address: Some("https://api.groq.com/openai/v1"),
        key_variables: &["GROQ_API_KEY"],
        quirks: Quirks { new_limit: true, usual_tokens: 16_384, ..HOSTED },
        ..COMPATIBLE
    },
    Service {
        name: "gemini",
        dialect: DialectKind::Gemini,
        address: Some("https://generativelanguage.googleapis.com/v1beta"),
        key_variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        described: Some(GEMINI),
        // For whoever asks it in OpenAI's dialect: what differs follows the host.
        quirks: Quirks { lacks: ONE_CALL, named_results: true, ..HOSTED },
        ..COMPATIBLE
    },
    Service { name: "vertex", dialect: DialectKind::Gemini, cloud: Some(Cloud::Google), ..OWN },
    Service {
        name: "bedrock",
        dialect: DialectKind::Bedrock,
        key_variables: &["AWS_BEARER_TOKEN_BEDROCK"],
        cloud: Some(Cloud::Aws),
        ..OWN
    },
    Service {
        name: "gemini-compatible",
        address: Some("https://generativelanguage.googleapis.com/v1beta/openai"),
        key_variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        quirks: Quirks { lacks: ONE_CALL, named_results: true, ..HOSTED },
        ..COMPATIBLE
    },
    Service {
        name: "deepseek",
        address: Some("https://api.deepseek.com/v1"),
        key_variables: &["DEEPSEEK_API_KEY"],
        // It knows JSON, and no schema; functions are only strict at its beta address.
        quirks: Quirks { lacks: ONE_CALL | SCHEMA | STRICT_CALLS, ..HOSTED },
        ..COMPATIBLE
    },
    Service {
        name: "together",
        address: Some("https://api.together.xyz/v1"),
        key_variables: &["TOGETHER_API_KEY"],
        ..COMPATIBLE
    },
    Service {
        name: "fireworks",
        address: Some("https://api.fireworks.ai/inference/v1"),
        key_variables: &["FIREWORKS_API_KEY"],
        ..COMPATIBLE
    },
    Service {
        name: "xai",
        address: Some("https://api.x.ai/v1"),
        key_variables: &["XAI_API_KEY"],
        quirks: Quirks { new_limit: true, usual_tokens: 16_384, ..HOSTED },
        ..COMPATIBLE
    },
    Service {
        name: "vllm",
        address: Some("http://127.0.0.1:8000/v1"),
        key_variables: &["VLLM_API_KEY"],
        described: Some(VLLM),
        ..OWN
    },
    Service { name: "tgi", address: Some("http://127.0.0.1:8080/v1"), described: Some(TGI), ..OWN },
    Service { name: "llamacpp", address: Some("http://127.0.0.1:8080/v1"), described: Some(LLAMA_CPP), ..OWN },
    Service { name: "lmstudio", address: Some("http://127.0.0.1:1234/v1"), described: Some(LM_STUDIO), ..OWN },
    Service { name: "llamafile", address: Some("http://127.0.0.1:8080/v1"), described: Some(LLAMA_CPP), ..OWN },
];

/// How the names of OpenAI's models begin that think before they answer. They call functions after thinking in the
/// Responses API only.
const REASONING: [&str; 10] = ["o1", "o3", "o4", "o5", "gpt-5", "gpt-6", "gpt-7", "gpt-8", "gpt-9", "codex-"];
/// What the names of others hold that begin like that.
const ANSWERS_AT_ONCE: &str = "-chat";

impl Service {
    /// How a model is spoken to at this address, if nobody says it.
    pub(crate) fn dialect_of(&self, model: &str, base: &str) -> DialectKind {
        let thinks = REASONING.iter().any(|name| model.starts_with(name)) && !model.contains(ANSWERS_AT_ONCE);
        let is_openai = self.name == "openai" && at(base).is_some_and(|service| service.name == self.name);
        if thinks && is_openai { DialectKind::Responses } else { self.dialect }
    }
}

/// The service of that name.
pub(crate) fn named(name: &str) -> Option<&'static Service> {
    SERVICES.iter().find(|service| service.name == name)
}

/// The service whose host an address has, whatever it was called by whoever wrote the address.
pub(crate) fn at(address: &str) -> Option<&'static Service> {
    let host = |address: &str| reqwest::Url::parse(address).ok().and_then(|url| url.host_str().map(str::to_owned));
    let asked = host(address).filter(|host| host != "127.0.0.1")?;
    SERVICES.iter().find(|service| service.address.and_then(host).is_some_and(|host| host == asked))
}

/// All names, for whoever looks for one.
pub(crate) fn names() -> String {
    SERVICES.map(|service| service.name).join(", ")
}
