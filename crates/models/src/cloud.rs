//! Services of clouds: their addresses are made of variables, and each request is signed or carries a token.

use crate::credentials::{AwsKeys, GoogleTokens, NoTokens};
use crate::remote::Access;
use std::sync::Arc;
use trellis_domain::Secret;
use trellis_orchestrator::ports::World;

/// The file of a service account's key.
const KEY_FILE: &str = "GOOGLE_APPLICATION_CREDENTIALS";

/// Whose cloud it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cloud {
    Google,
    Aws,
}

/// Why a cloud cannot be asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CloudError {
    #[error("{variable} is not set; set it to {what}")]
    NotSet { variable: &'static str, what: &'static str },
    #[error("the file {place} that {KEY_FILE} names is of no use: {reason}")]
    KeyFile { place: String, reason: String },
}

/// What the environment knows that opens the door.
#[derive(Debug, Clone)]
pub(crate) enum CloudAccess {
    Aws {
        access_key: String,
        secret_key: Secret,
        session_token: Option<Secret>,
        region: String,
    },
    /// The key file of a service account, and where it lies.
    GoogleAccount {
        key_file: Secret,
        place: String,
    },
    /// A machine of Google's, whose own server may be elsewhere.
    GoogleMachine {
        host: Option<String>,
    },
}

type Variable<'a> = dyn Fn(&str) -> Option<String> + 'a;

impl Cloud {
    /// Where its models are asked: at the usual address, or below the one that is given.
    pub(crate) fn base(self, given: Option<String>, variable: &Variable<'_>) -> Result<String, CloudError> {
        match self {
            Self::Aws => match given {
                Some(given) => Ok(given),
                None => Ok(format!("https://bedrock-runtime.{}.amazonaws.com", region(variable)?)),
            },
            Self::Google => {
                if let Some(given) = given.as_ref().filter(|given| given.contains("/projects/")) {
                    return Ok(given.clone());
                }
                let project = set(variable, "GOOGLE_CLOUD_PROJECT", "the id of a project of Google Cloud")?;
                let location = set(variable, "GOOGLE_CLOUD_LOCATION", "a region such as europe-west4, or global")?;
                let host = match location.as_str() {
                    "global" => "https://aiplatform.googleapis.com".to_owned(),
                    region => format!("https://{region}-aiplatform.googleapis.com"),
                };
                let host = given.unwrap_or(host);
                let host = host.trim_end_matches('/').trim_end_matches("/v1");
                Ok(format!("{host}/v1/projects/{project}/locations/{location}/publishers/google"))
            }
        }
    }

    pub(crate) fn access(self, variable: &Variable<'_>) -> Result<CloudAccess, CloudError> {
        match self {
            Self::Aws => {
                let access_key = set(
                    variable,
                    "AWS_ACCESS_KEY_ID",
                    "the id of an access key, or AWS_BEARER_TOKEN_BEDROCK to a key for Bedrock",
                )?;
                let secret = set(variable, "AWS_SECRET_ACCESS_KEY", "the secret of the access key")?;
                let not_set = || not_set("AWS_SECRET_ACCESS_KEY", "the secret of the access key");
                let secret_key = Secret::new(&secret).ok_or_else(not_set)?;
                let session_token = variable("AWS_SESSION_TOKEN").as_deref().and_then(Secret::new);
                Ok(CloudAccess::Aws { access_key, secret_key, session_token, region: region(variable)? })
            }
            Self::Google => {
                let Some(place) = variable(KEY_FILE) else {
                    return Ok(CloudAccess::GoogleMachine { host: variable("GCE_METADATA_HOST") });
                };
                let unusable = |reason: String| CloudError::KeyFile { place: place.clone(), reason };
                let text = std::fs::read_to_string(&place).map_err(|error| unusable(error.to_string()))?;
                let key_file = Secret::new(&text).ok_or_else(|| unusable("it is empty".to_owned()))?;
                Ok(CloudAccess::GoogleAccount { key_file, place })
            }
        }
    }
}

impl CloudAccess {
    pub(crate) fn open(self, world: Arc<dyn World>) -> Result<Access, CloudError> {
        let tokens = |tokens: Result<GoogleTokens, NoTokens>, place: &str| {
            let unusable = |error: NoTokens| CloudError::KeyFile { place: place.to_owned(), reason: error.to_string() };
            tokens.map(|tokens| Access::Credentials(Arc::new(tokens))).map_err(unusable)
        };
        match self {
            Self::Aws { access_key, secret_key, session_token, region } => {
                Ok(Access::Credentials(Arc::new(AwsKeys { access_key, secret_key, session_token, region, world })))
            }
            Self::GoogleAccount { key_file, place } => {
                tokens(GoogleTokens::of_account(key_file.expose(), world), &place)
            }
            Self::GoogleMachine { host } => tokens(GoogleTokens::of_machine(host.as_deref(), world), "(none)"),
        }
    }
}

fn region(variable: &Variable<'_>) -> Result<String, CloudError> {
    let other = variable("AWS_DEFAULT_REGION");
    variable("AWS_REGION").or(other).ok_or_else(|| not_set("AWS_REGION", "a region such as eu-central-1"))
}

fn set(variable: &Variable<'_>, name: &'static str, what: &'static str) -> Result<String, CloudError> {
    variable(name).ok_or_else(|| not_set(name, what))
}

fn not_set(variable: &'static str, what: &'static str) -> CloudError {
    CloudError::NotSet { variable, what }
}

#[cfg(test)]
#[path = "cloud_tests.rs"]
mod tests;
