//! Requests to Bedrock, signed with the keys of an AWS account.

use super::sigv4::{SignedHeaders, Signer, ToSign};
use crate::provider::ProviderError;
use crate::remote::{Credentials, Unsigned};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use std::fmt;
use std::sync::Arc;
use trellis_domain::Secret;
use trellis_orchestrator::ports::{BoxFuture, World};

/// What Bedrock is called in a signature.
const SERVICE: &str = "bedrock";

/// The keys of an account, or of a role for a while.
pub(crate) struct AwsKeys {
    pub(crate) access_key: String,
    pub(crate) secret_key: Secret,
    /// Of keys that run out.
    pub(crate) session_token: Option<Secret>,
    pub(crate) region: String,
    pub(crate) world: Arc<dyn World>,
}

impl fmt::Debug for AwsKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AwsKeys").field("region", &self.region).finish_non_exhaustive()
    }
}

impl AwsKeys {
    fn sign(&self, request: Unsigned<'_>) -> Option<HeaderMap> {
        let session_token = self.session_token.as_ref().map(Secret::expose);
        let signer = Signer {
            access_key: &self.access_key,
            secret_key: self.secret_key.expose(),
            session_token,
            region: &self.region,
            service: SERVICE,
        };
        let content_type = request.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let headers: Vec<_> = content_type.map(|value| (CONTENT_TYPE.as_str(), value)).into_iter().collect();
        let to_sign = ToSign { method: "POST", url: request.url, headers: &headers, body: request.body };
        let SignedHeaders { authorization, date } = signer.sign(to_sign, self.world.now());
        let (date_name, token_name) =
            (HeaderName::from_static("x-amz-date"), HeaderName::from_static("x-amz-security-token"));
        let made =
            [(AUTHORIZATION, Some(authorization.as_str())), (date_name, Some(&date)), (token_name, session_token)];
        let mut added = HeaderMap::new();
        for (name, value) in made.into_iter().filter_map(|(name, value)| Some((name, value?))) {
            let mut value = HeaderValue::from_str(value).ok()?;
            value.set_sensitive(true);
            added.insert(name, value);
        }
        Some(added)
    }
}

impl Credentials for AwsKeys {
    fn authorize<'a>(&'a self, request: Unsigned<'a>) -> BoxFuture<'a, Result<HeaderMap, ProviderError>> {
        let unusable = || ProviderError::Permanent {
            reason: "the keys for AWS hold characters that cannot be sent; copy them again".to_owned(),
        };
        Box::pin(std::future::ready(self.sign(request).ok_or_else(unusable)))
    }

    fn secrets(&self) -> Vec<Secret> {
        std::iter::once(&self.secret_key).chain(&self.session_token).cloned().collect()
    }
}
