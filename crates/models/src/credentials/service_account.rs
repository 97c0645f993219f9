//! The key file of a Google service account, and the assertion that is exchanged for a token. Pure.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use ring::rand::SystemRandom;
use ring::rsa::KeyPair;
use ring::signature::RSA_PKCS1_SHA256;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;
use serde::Deserialize;
use serde_json::{Value, json};
use trellis_domain::Timestamp;

/// What a token is for: everything that the account may do.
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
/// Seconds; Google takes no longer ones.
const ASSERTED_FOR: i64 = 3600;

/// Why a key file is of no use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum KeyFileError {
    #[error("it is not the JSON of a service account's key; create one in the console of Google Cloud")]
    NotAServiceAccount,
    #[error("its private key cannot be read; download the key again")]
    UnusableKey,
}

/// An account that signs for itself.
pub(super) struct ServiceAccount {
    email: String,
    key_id: String,
    key: KeyPair,
    /// Where an assertion is exchanged for a token.
    pub(super) token_address: String,
}

#[derive(Deserialize)]
struct KeyFile {
    #[serde(rename = "type")]
    kind: String,
    client_email: String,
    private_key: String,
    #[serde(default)]
    private_key_id: String,
    token_uri: String,
}

impl ServiceAccount {
    pub(super) fn read(json: &str) -> Result<Self, KeyFileError> {
        let file: KeyFile = serde_json::from_str(json).map_err(|_| KeyFileError::NotAServiceAccount)?;
        if file.kind != "service_account" {
            return Err(KeyFileError::NotAServiceAccount);
        }
        let key = PrivateKeyDer::from_pem_slice(file.private_key.as_bytes()).map_err(|_| KeyFileError::UnusableKey)?;
        let key = if let PrivateKeyDer::Pkcs8(key) = &key {
            KeyPair::from_pkcs8(key.secret_pkcs8_der())
        } else {
            // The older form, which is the only other one for keys of this kind.
            KeyPair::from_der(key.secret_der())
        };
        let key = key.map_err(|_| KeyFileError::UnusableKey)?;
        let KeyFile { client_email: email, private_key_id: key_id, token_uri: token_address, .. } = file;
        Ok(Self { email, key_id, key, token_address })
    }

    /// A signed statement of who asks. None if it cannot be signed.
    pub(super) fn assertion(&self, now: Timestamp) -> Option<String> {
        let header = json!({ "alg": "RS256", "typ": "JWT", "kid": self.key_id });
        let now = now.as_micros() / 1_000_000;
        let claims = json!({ "iss": self.email, "scope": SCOPE, "aud": self.token_address, "iat": now,
            "exp": now + ASSERTED_FOR });
        let written = |value: Value| BASE64.encode(value.to_string());
        let said = format!("{}.{}", written(header), written(claims));
        let mut signature = vec![0; self.key.public().modulus_len()];
        self.key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), said.as_bytes(), &mut signature).ok()?;
        Some(format!("{said}.{}", BASE64.encode(signature)))
    }
}

#[cfg(test)]
#[path = "service_account_tests.rs"]
mod tests;
