//! One setting of tools: what they may reach, and the keys that they may send.

use std::collections::BTreeMap;
use std::path::PathBuf;
use toml::de::DeValue;
use trellis_tools::http::Reach;

/// `[tools]` of the settings file.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ToolSettings {
    pub(crate) reach: Reach,
    /// By the name under which tools ask for them.
    pub(crate) secrets: BTreeMap<String, SecretSetting>,
}

/// Where a key is, and where it may be sent.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct SecretSetting {
    pub(crate) variable: Option<String>,
    pub(crate) file: Option<PathBuf>,
    pub(crate) hosts: Vec<String>,
}

/// Sets one thing of what tools may reach.
pub(crate) fn set_http(reach: &mut Reach, name: &str, value: &DeValue<'_>) -> Result<(), String> {
    match name {
        "hosts" => reach.hosts = texts(value)?,
        "private" => {
            let DeValue::Boolean(yes) = value else { return Err("write true or false".to_owned()) };
            reach.private = *yes;
        }
        other => return Err(format!("there is no setting `{other}`; choose hosts or private")),
    }
    Ok(())
}

/// Sets one thing of a secret.
pub(crate) fn set_secret(secret: &mut SecretSetting, name: &str, value: &DeValue<'_>) -> Result<(), String> {
    match name.replace('_', "-").as_str() {
        "key-env" => secret.variable = Some(text(value)?),
        "key-file" => secret.file = Some(PathBuf::from(text(value)?)),
        "hosts" => secret.hosts = texts(value)?,
        "key" | "value" => {
            return Err(
                "a key does not belong into this file; write key-env or key-file, which say where it is".to_owned()
            );
        }
        other => return Err(format!("there is no setting `{other}`; choose key-env, key-file or hosts")),
    }
    Ok(())
}

fn text(value: &DeValue<'_>) -> Result<String, String> {
    match value {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Integer(_)
        | DeValue::Float(_)
        | DeValue::Boolean(_)
        | DeValue::Datetime(_)
        | DeValue::Array(_)
        | DeValue::Table(_) => Err("write a text".to_owned()),
    }
}

fn texts(value: &DeValue<'_>) -> Result<Vec<String>, String> {
    let DeValue::Array(list) = value else { return Err("write a list of texts".to_owned()) };
    let member =
        |value: &toml::Spanned<DeValue<'_>>| text(value.get_ref()).map_err(|_| "write a list of texts".to_owned());
    list.iter().map(member).collect()
}
