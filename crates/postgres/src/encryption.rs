//! TLS to the server. Who asks for it is held to it: the certificate is always checked, for the host's name.

use crate::error::OpenError;
use percent_encoding::percent_decode_str;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;

/// Makes connections to the server, encrypted ones if the address says so.
#[derive(Clone)]
pub(crate) struct Encryption(pub(crate) MakeRustlsConnect);

impl std::fmt::Debug for Encryption {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Encryption")
    }
}

/// What an address says of it, in the words of libpq.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    is_required: bool,
    /// A file with the certificates that are trusted, in place of the machine's.
    roots: Option<String>,
}

/// Takes what is said of encryption out of an address.
pub(crate) fn wanted(address: &str) -> Result<(String, Wanted), OpenError> {
    let mut wanted = Wanted::default();
    let Some((place, parameters)) = address.split_once('?') else { return Ok((address.to_owned(), wanted)) };
    let mut others = Vec::new();
    for parameter in parameters.split('&') {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        match (name, value) {
            // Without a promise, connections are as they would be without the word.
            ("sslmode", "disable" | "allow" | "prefer") => {}
            ("sslmode", "require" | "verify-ca" | "verify-full") => wanted.is_required = true,
            ("sslmode", other) => {
                return Err(OpenError::Encryption(format!(
                    "sslmode={other} is not known; write sslmode=verify-full or sslmode=disable"
                )));
            }
            ("sslrootcert", "system" | "") => {}
            ("sslrootcert", file) => wanted.roots = Some(percent_decode_str(file).decode_utf8_lossy().into_owned()),
            _ => others.push(parameter),
        }
    }
    let address = if others.is_empty() { place.to_owned() } else { format!("{place}?{}", others.join("&")) };
    Ok((address, wanted))
}

impl Wanted {
    pub(crate) const fn mode(&self) -> SslMode {
        if self.is_required { SslMode::Require } else { SslMode::Disable }
    }

    pub(crate) fn encryption(&self) -> Result<Encryption, OpenError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| OpenError::Encryption(error.to_string()))?
            .with_root_certificates(self.roots()?)
            .with_no_client_auth();
        Ok(Encryption(MakeRustlsConnect::new(config)))
    }

    fn roots(&self) -> Result<RootCertStore, OpenError> {
        let mut roots = RootCertStore::empty();
        match &self.roots {
            _ if !self.is_required => {}
            None => {
                let found = rustls_native_certs::load_native_certs();
                roots.add_parsable_certificates(found.certs);
                if roots.is_empty() {
                    let why = "this machine has no certificates to check the server's with; install ca-certificates, or \
                               name a file: sslrootcert=/etc/…/ca.pem";
                    return Err(OpenError::Encryption(why.to_owned()));
                }
            }
            Some(file) => {
                let unusable = |why: &dyn std::fmt::Display| {
                    OpenError::Encryption(format!("`{file}` of sslrootcert is no file of certificates (PEM): {why}"))
                };
                for certificate in CertificateDer::pem_file_iter(file).map_err(|error| unusable(&error))? {
                    roots.add(certificate.map_err(|error| unusable(&error))?).map_err(|error| unusable(&error))?;
                }
                if roots.is_empty() {
                    return Err(unusable(&"there is none in it"));
                }
            }
        }
        Ok(roots)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_what_is_wanted() {
        let of = |address: &str| {
            let (address, Wanted { is_required, roots }) = wanted(address).unwrap();
            (address, is_required, roots)
        };
        let plain = "postgres://u:p%26@h:5432/n".to_owned();
        assert_eq!(of(&plain), (plain.clone(), false, None));
        assert_eq!(of(&format!("{plain}?sslmode=prefer")), (plain.clone(), false, None));
        assert_eq!(of(&format!("{plain}?sslmode=require&sslrootcert=system")), (plain.clone(), true, None));
        let named = format!("{plain}?connect_timeout=3&sslmode=verify-full&sslrootcert=/etc/our%20ca.pem");
        assert_eq!(of(&named), (format!("{plain}?connect_timeout=3"), true, Some("/etc/our ca.pem".to_owned())));
        let unknown = wanted(&format!("{plain}?sslmode=full")).unwrap_err().to_string();
        assert!(unknown.contains("sslmode=full") && unknown.contains("verify-full"), "{unknown}");
    }

    #[test]
    fn a_file_without_certificates_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().display().to_string();
        let wanted = Wanted { is_required: true, roots: Some(path.clone()) };
        let refused = wanted.encryption().unwrap_err().to_string();
        assert!(refused.contains(&path), "{refused}");
    }
}
