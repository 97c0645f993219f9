//! One setting of a provider.

use super::values::{json, text, whole};
use std::path::PathBuf;
use toml::de::DeValue;
use trellis_models::{DialectKind, KeyPlace, ProviderSettings};

/// Everything that can be set for a provider.
const NAMES: [&str; 12] = [
    "kind",
    "dialect",
    "address",
    "key-env",
    "key-file",
    "key-header",
    "api-version",
    "model",
    "headers",
    "body",
    "concurrency",
    "rate-limit",
];

/// Sets one thing of a provider. Its name may be written with `_` or `-`.
pub(crate) fn set(provider: &mut ProviderSettings, name: &str, value: &DeValue<'_>) -> Result<(), String> {
    match name.replace('_', "-").as_str() {
        "kind" => provider.kind = Some(string(value)?),
        "dialect" => provider.dialect = Some(dialect(&string(value)?)?),
        "address" => provider.address = Some(string(value)?),
        "key-env" => provider.key = Some(KeyPlace::Variable(string(value)?)),
        "key-file" => provider.key = Some(KeyPlace::File(PathBuf::from(string(value)?))),
        "key-header" => provider.key_header = Some(string(value)?),
        "api-version" => provider.api_version = Some(string(value)?),
        "model" => provider.model = Some(string(value)?),
        "headers" => {
            for (name, value) in table(value)? {
                if holds_a_key(name.get_ref()) {
                    return Err(no_keys(&format!("; for this header write key-header = \"{}\"", name.get_ref())));
                }
                provider.headers.insert(name.get_ref().to_lowercase(), string(value.get_ref())?);
            }
        }
        "body" => {
            let members = table(value)?.iter();
            let members = members.map(|(name, value)| Ok((name.get_ref().to_string(), json(value.get_ref())?)));
            provider.body = members.collect::<Result<_, String>>()?;
        }
        "concurrency" => provider.concurrency = Some(whole(&text(value))?),
        "rate-limit" => {
            for (name, value) in table(value)? {
                let value = text(value.get_ref());
                match name.get_ref().replace('_', "-").as_str() {
                    "requests-per-minute" => provider.rate_limit.requests_per_minute = Some(whole(&value)?),
                    "tokens-per-minute" => provider.rate_limit.tokens_per_minute = Some(whole(&value)?),
                    other => {
                        return Err(format!(
                            "there is no rate `{other}`; choose requests-per-minute or tokens-per-minute"
                        ));
                    }
                }
            }
        }
        name if holds_a_key(name) => return Err(no_keys("")),
        _ => return Err(format!("there is no setting `{name}` of a provider; choose one of {}", NAMES.join(", "))),
    }
    Ok(())
}

pub(crate) fn dialect(name: &str) -> Result<DialectKind, String> {
    let known = || DialectKind::ALL.map(DialectKind::name).join(", ");
    DialectKind::named(name).ok_or_else(|| format!("there is no dialect {name:?}; choose one of {}", known()))
}

/// Settings are read by many and copied around.
fn no_keys(besides: &str) -> String {
    format!(
        "a key does not belong into this file; put it into a variable and write key-env = \"NAME_OF_THE_VARIABLE\", or \
         into a file and write key-file = \"/path/of/the/file\"{besides}"
    )
}

fn holds_a_key(name: &str) -> bool {
    let name = name.to_lowercase();
    ["authorization", "cookie", "token", "secret", "password"].iter().any(|word| name.contains(word))
        || name == "key"
        || name.ends_with("-key")
        || name.ends_with("_key")
        || name == "apikey"
}

fn string(value: &DeValue<'_>) -> Result<String, String> {
    let text = value.as_str().map(str::trim).filter(|text| !text.is_empty());
    text.map(str::to_owned).ok_or_else(|| format!("{} is not a text; write it in quotes", super::values::text(value)))
}

fn table<'v>(value: &'v DeValue<'v>) -> Result<&'v toml::de::DeTable<'v>, String> {
    value.as_table().ok_or_else(|| "this is not a table; write { name = \"value\" }".to_owned())
}
