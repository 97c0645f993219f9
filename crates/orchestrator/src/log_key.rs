//! The key that signs checkpoints of a log, as every store has it. It tells whose checkpoint it is; that nothing was changed
//! is told by comparing a checkpoint that was kept elsewhere, since whoever can write a store can read its key.

use crate::checkpoint::{Checkpoint, Signature};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use trellis_domain::Hash;

/// The kind of a key in the form of notes: Ed25519.
const KIND: u8 = 1;

/// The key of one log.
pub struct LogKey {
    pair: Ed25519KeyPair,
    name: String,
}

impl std::fmt::Debug for LogKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogKey").field("name", &self.name).finish_non_exhaustive()
    }
}

impl LogKey {
    /// A new key, as it is stored; none if there is no chance to be had.
    pub fn make() -> Option<Vec<u8>> {
        let made = Ed25519KeyPair::generate_pkcs8(&ring::rand::SystemRandom::new()).ok()?;
        Some(made.as_ref().to_vec())
    }

    /// A key as it was stored; none if these bytes are no key.
    pub fn of_stored(bytes: &[u8]) -> Option<Self> {
        let pair = Ed25519KeyPair::from_pkcs8(bytes).ok()?;
        let name = format!("trellis/{}", &Hash::of(pair.public_key().as_ref()).to_string()[..16]);
        Some(Self { pair, name })
    }

    /// Which log it is: named by its key.
    pub fn origin(&self) -> &str {
        &self.name
    }

    /// The public key in the form of notes: name, short hash, key.
    pub fn public(&self) -> String {
        let key = [&[KIND], self.pair.public_key().as_ref()].concat();
        let short = u32::from_be_bytes(self.short());
        format!("{}+{short:08x}+{}", self.name, BASE64.encode(key))
    }

    fn short(&self) -> [u8; 4] {
        short(&self.name, self.pair.public_key().as_ref())
    }

    pub fn sign(&self, checkpoint: &Checkpoint) -> String {
        let bytes = self.pair.sign(checkpoint.body().as_bytes()).as_ref().to_vec();
        checkpoint.note(&Signature { name: self.name.clone(), key: self.short(), bytes })
    }
}

fn short(name: &str, public: &[u8]) -> [u8; 4] {
    let hash = Hash::of([name.as_bytes(), b"\n", &[KIND], public].concat());
    *hash.as_bytes().first_chunk().expect("a hash has 32 bytes")
}

/// Why a signature does not hold.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum VerifyError {
    #[error("the public key cannot be read: {0:?}; `trellis log key` prints it")]
    Key(String),
    #[error("no signature is by the key {0}")]
    Unsigned(String),
    #[error("the signature by {0} does not hold")]
    Wrong(String),
}

/// Whether one of the signatures under a checkpoint is by this public key.
pub fn verify_signature(checkpoint: &Checkpoint, signatures: &[Signature], key: &str) -> Result<(), VerifyError> {
    let wrong = || VerifyError::Key(key.to_owned());
    // Names have no plus, but keys in base64 do.
    let mut parts = key.trim().splitn(3, '+');
    let (name, _, bytes) = (parts.next().ok_or_else(wrong)?, parts.next(), parts.next());
    let bytes = bytes.and_then(|bytes| BASE64.decode(bytes).ok()).ok_or_else(wrong)?;
    let Some((&KIND, public)) = bytes.split_first() else { return Err(wrong()) };
    let ours = signatures.iter().find(|signature| signature.name == name && signature.key == short(name, public));
    let signature = ours.ok_or_else(|| VerifyError::Unsigned(name.to_owned()))?;
    let holds = UnparsedPublicKey::new(&ED25519, public).verify(checkpoint.body().as_bytes(), &signature.bytes);
    holds.map_err(|_| VerifyError::Wrong(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_by_its_key_and_no_other() {
        let made = || LogKey::of_stored(&LogKey::make().unwrap()).unwrap();
        let (key, other) = (made(), made());
        let checkpoint = Checkpoint { origin: key.origin().to_owned(), size: 7, root: Hash::of(b"root") };
        let (read, signatures) = Checkpoint::parse(&key.sign(&checkpoint)).unwrap();
        assert_eq!(verify_signature(&read, &signatures, &key.public()), Ok(()));
        assert!(matches!(verify_signature(&read, &signatures, &other.public()), Err(VerifyError::Unsigned(_))));
        let larger = Checkpoint { size: 8, ..read };
        assert!(matches!(verify_signature(&larger, &signatures, &key.public()), Err(VerifyError::Wrong(_))));
        assert!(LogKey::of_stored(b"none").is_none());
    }
}
