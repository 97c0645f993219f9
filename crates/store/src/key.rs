//! The key that signs checkpoints. It is made with the folder and tells whose checkpoint it is; that nothing was changed is
//! told by comparing a checkpoint that was kept elsewhere, since whoever can write the folder can read the key.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use std::io::ErrorKind;
use std::path::Path;
use trellis_domain::Hash;
use trellis_orchestrator::checkpoint::{Checkpoint, Signature};

pub(crate) const FILE: &str = "log-key";

/// The kind of a key in the form of notes: Ed25519.
const KIND: u8 = 1;

/// The folder's own key.
pub(crate) struct Key {
    pair: Ed25519KeyPair,
    name: String,
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Key").field("name", &self.name).finish_non_exhaustive()
    }
}

fn make(folder: &Path, path: &Path) -> std::io::Result<()> {
    let random = ring::rand::SystemRandom::new();
    let made = Ed25519KeyPair::generate_pkcs8(&random).map_err(|_| std::io::Error::other("no key could be made"))?;
    write_private(path, BASE64.encode(made.as_ref()).as_bytes())?;
    crate::engine_log::sync_folder(folder)
}

fn lost(what: &str) -> std::io::Error {
    let told = format!(
        "the file `{FILE}` {what}, and only it can sign checkpoints of this log; put it back from a backup, or write the \
         word `new` into it to have another key made"
    );
    std::io::Error::new(ErrorKind::InvalidData, told)
}

impl Key {
    /// Makes a key for a folder that has none yet.
    pub(crate) fn create(folder: &Path) -> std::io::Result<()> {
        let path = folder.join(FILE);
        if path.exists() { Ok(()) } else { make(folder, &path) }
    }

    /// Reads the folder's key. One that is lost is not replaced in silence: checkpoints would be somebody else's then.
    pub(crate) fn of(folder: &Path) -> std::io::Result<Self> {
        let path = folder.join(FILE);
        let read = std::fs::read(&path);
        let mut text =
            read.map_err(|error| if error.kind() == ErrorKind::NotFound { lost("is missing") } else { error })?;
        if text.trim_ascii() == b"new" {
            make(folder, &path)?;
            text = std::fs::read(&path)?;
        }
        let bytes = BASE64.decode(text.trim_ascii()).map_err(|_| lost("holds no key"))?;
        let pair = Ed25519KeyPair::from_pkcs8(&bytes).map_err(|_| lost("holds no key"))?;
        let name = format!("trellis/{}", &Hash::of(pair.public_key().as_ref()).to_string()[..16]);
        Ok(Self { pair, name })
    }

    /// Which log it is: named by its key.
    pub(crate) fn origin(&self) -> &str {
        &self.name
    }

    /// The public key in the form of notes: name, short hash, key.
    pub(crate) fn public(&self) -> String {
        let key = [&[KIND], self.pair.public_key().as_ref()].concat();
        let short = u32::from_be_bytes(self.short());
        format!("{}+{short:08x}+{}", self.name, BASE64.encode(key))
    }

    fn short(&self) -> [u8; 4] {
        short(&self.name, self.pair.public_key().as_ref())
    }

    pub(crate) fn sign(&self, checkpoint: &Checkpoint) -> String {
        let bytes = self.pair.sign(checkpoint.body().as_bytes()).as_ref().to_vec();
        checkpoint.note(&Signature { name: self.name.clone(), key: self.short(), bytes })
    }
}

fn short(name: &str, public: &[u8]) -> [u8; 4] {
    let hash = Hash::of([name.as_bytes(), b"\n", &[KIND], public].concat());
    *hash.as_bytes().first_chunk().expect("a hash has 32 bytes")
}

/// Nobody else may sign in our name. Written beside its place and moved there, so that it is whole or not there.
fn write_private(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    use std::io::Write;
    let scratch = path.with_extension("new");
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&scratch)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(scratch, path)
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
        let (one, two) = (tempfile::TempDir::new().unwrap(), tempfile::TempDir::new().unwrap());
        let key_of =
            |folder: &tempfile::TempDir| Key::create(folder.path()).and_then(|()| Key::of(folder.path())).unwrap();
        let key = key_of(&one);
        assert_eq!(key_of(&one).public(), key.public(), "made once");
        let checkpoint = Checkpoint { origin: key.origin().to_owned(), size: 7, root: Hash::of(b"root") };
        let (read, signatures) = Checkpoint::parse(&key.sign(&checkpoint)).unwrap();
        assert_eq!(verify_signature(&read, &signatures, &key.public()), Ok(()));
        let other = key_of(&two);
        assert!(matches!(verify_signature(&read, &signatures, &other.public()), Err(VerifyError::Unsigned(_))));
        let larger = Checkpoint { size: 8, ..read };
        assert!(matches!(verify_signature(&larger, &signatures, &key.public()), Err(VerifyError::Wrong(_))));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = std::fs::metadata(one.path().join(FILE)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[test]
    fn a_lost_key_is_not_replaced_unless_somebody_says_so() {
        let folder = tempfile::TempDir::new().unwrap();
        Key::create(folder.path()).unwrap();
        let before = Key::of(folder.path()).unwrap().public();
        let file = folder.path().join(FILE);
        for bytes in [&b""[..], b"none", b"\xff\xfe"] {
            std::fs::write(&file, bytes).unwrap();
            assert!(Key::of(folder.path()).unwrap_err().to_string().contains("`log-key` holds no key"));
        }
        std::fs::remove_file(&file).unwrap();
        assert!(Key::of(folder.path()).unwrap_err().to_string().contains("`log-key` is missing"));
        std::fs::write(&file, "new\n").unwrap();
        let after = Key::of(folder.path()).unwrap().public();
        assert_ne!(after, before);
        assert_eq!(Key::of(folder.path()).unwrap().public(), after, "once");
    }
}
