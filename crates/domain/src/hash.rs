//! SHA-256 content hashes: what an auditor can check with any standard tool.

use ring::digest::{Context, SHA256, digest};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A SHA-256 hash, written as 64 hexadecimal digits.
///
/// ```
/// use trellis_domain::Hash;
///
/// let hash = Hash::of(b"abc");
/// assert!(hash.to_string().starts_with("ba7816bf"));
/// assert_eq!(hash.to_string().parse::<Hash>()?, hash);
/// # Ok::<(), trellis_domain::hash::NotAHash>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Hash([u8; 32]);

#[derive(Debug, thiserror::Error)]
#[error("not a SHA-256 hash in hexadecimal: {0:?}")]
pub struct NotAHash(String);

impl Hash {
    /// The start of every chain.
    pub const ZERO: Self = Self([0; 32]);

    pub fn of(bytes: impl AsRef<[u8]>) -> Self {
        Self::from_digest(digest(&SHA256, bytes.as_ref()))
    }

    /// One hash over several parts; each part's length is hashed too, so that moving bytes from one
    /// part to the next changes the result.
    pub fn of_parts<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut hashing = Hashing::default();
        for part in parts {
            hashing.update(&(part.len() as u64).to_be_bytes());
            hashing.update(part);
        }
        hashing.finish()
    }

    /// One hash over parts as if they were one. Only for parts whose lengths are fixed but for the last one's.
    pub fn of_joined<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut hashing = Hashing::default();
        parts.into_iter().for_each(|part| hashing.update(part));
        hashing.finish()
    }

    fn from_digest(digest: ring::digest::Digest) -> Self {
        Self(digest.as_ref().try_into().expect("SHA-256 has 32 bytes"))
    }

    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// A hash over bytes that come one after the other.
#[derive(Clone)]
pub struct Hashing(Context);

impl Default for Hashing {
    fn default() -> Self {
        Self(Context::new(&SHA256))
    }
}

impl fmt::Debug for Hashing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Hashing").finish_non_exhaustive()
    }
}

impl Hashing {
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub fn finish(self) -> Hash {
        Hash::from_digest(self.0.finish())
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut digits = [0; 64];
        hex::encode_to_slice(self.0, &mut digits).map_err(|_| fmt::Error)?;
        f.write_str(str::from_utf8(&digits).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hash({self})")
    }
}

impl From<Hash> for String {
    fn from(hash: Hash) -> Self {
        hash.to_string()
    }
}

impl std::str::FromStr for Hash {
    type Err = NotAHash;

    fn from_str(text: &str) -> Result<Self, NotAHash> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(text, &mut bytes).map_err(|_| NotAHash(text.to_owned()))?;
        Ok(Self(bytes))
    }
}

impl TryFrom<String> for Hash {
    type Error = NotAHash;

    fn try_from(text: String) -> Result<Self, NotAHash> {
        text.parse()
    }
}
