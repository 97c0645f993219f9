//! A checkpoint: size and root of the log at some time, signed, as a note in the form that transparency logs use
//! (C2SP `tlog-checkpoint` and `signed-note`), so that other people's tools can read it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use trellis_domain::Hash;

/// What a log was like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// Which log.
    pub origin: String,
    pub size: u64,
    pub root: Hash,
}

/// Why a text is no checkpoint.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum NotACheckpoint {
    #[error("it needs an origin, a size and a root, a line each; `trellis log checkpoint` prints one")]
    Lines,
    #[error("its size is no number: {0:?}")]
    Size(String),
    #[error("its root is no SHA-256 hash in base64: {0:?}")]
    Root(String),
    #[error("its signature cannot be read: {0:?}")]
    Signature(String),
    #[error("it is not signed")]
    Unsigned,
}

/// A signature under a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// Whose it is.
    pub name: String,
    /// The first bytes of a hash of name and key.
    pub key: [u8; 4],
    pub bytes: Vec<u8>,
}

impl Checkpoint {
    /// What is signed.
    pub fn body(&self) -> String {
        format!("{}\n{}\n{}\n", self.origin, self.size, BASE64.encode(self.root.as_bytes()))
    }

    /// The whole note.
    pub fn note(&self, signature: &Signature) -> String {
        let bytes = [signature.key.as_slice(), &signature.bytes].concat();
        format!("{}\n— {} {}\n", self.body(), signature.name, BASE64.encode(bytes))
    }

    /// Reads a note with its signatures, which are not checked here.
    ///
    /// ```
    /// use trellis_orchestrator::checkpoint::{Checkpoint, Signature};
    /// use trellis_domain::Hash;
    ///
    /// let checkpoint = Checkpoint { origin: "trellis/1a2b".to_owned(), size: 3, root: Hash::of(b"root") };
    /// let signature = Signature { name: "trellis/1a2b".to_owned(), key: [1, 2, 3, 4], bytes: vec![5; 64] };
    /// let (read, signatures) = Checkpoint::parse(&checkpoint.note(&signature))?;
    /// assert_eq!((read, signatures), (checkpoint, vec![signature]));
    /// # Ok::<(), trellis_orchestrator::checkpoint::NotACheckpoint>(())
    /// ```
    pub fn parse(note: &str) -> Result<(Self, Vec<Signature>), NotACheckpoint> {
        let (body, signatures) = note.split_once("\n\n").ok_or(NotACheckpoint::Lines)?;
        let mut lines = body.lines();
        let mut line = || lines.next().filter(|line| !line.is_empty()).ok_or(NotACheckpoint::Lines);
        let (origin, size, root) = (line()?, line()?, line()?);
        let hash = BASE64.decode(root).ok().and_then(|bytes| bytes.try_into().ok()).map(Hash::from_bytes);
        let checkpoint = Self {
            origin: origin.to_owned(),
            size: size.parse().map_err(|_| NotACheckpoint::Size(size.to_owned()))?,
            root: hash.ok_or_else(|| NotACheckpoint::Root(root.to_owned()))?,
        };
        if body != checkpoint.body().trim_end() {
            // Another log may say more than three lines; ours never does.
            return Err(NotACheckpoint::Lines);
        }
        let signatures = signatures.lines().filter(|line| !line.trim().is_empty()).map(Signature::parse);
        let signatures = signatures.collect::<Result<Vec<_>, _>>()?;
        if signatures.is_empty() { Err(NotACheckpoint::Unsigned) } else { Ok((checkpoint, signatures)) }
    }
}

impl Signature {
    fn parse(line: &str) -> Result<Self, NotACheckpoint> {
        let wrong = || NotACheckpoint::Signature(line.to_owned());
        let (name, text) = line.strip_prefix("— ").and_then(|rest| rest.rsplit_once(' ')).ok_or_else(wrong)?;
        let bytes = BASE64.decode(text.trim()).map_err(|_| wrong())?;
        let (key, bytes) = bytes.split_first_chunk::<4>().ok_or_else(wrong)?;
        Ok(Self { name: name.to_owned(), key: *key, bytes: bytes.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_checkpoint_is_told_why() {
        let root = BASE64.encode(Hash::ZERO.as_bytes());
        let refused = |text: &str| Checkpoint::parse(text).unwrap_err();
        assert_eq!(refused(""), NotACheckpoint::Lines);
        assert_eq!(refused("origin\n3\n\n— x AAAA\n"), NotACheckpoint::Lines);
        assert_eq!(refused(&format!("origin\nmany\n{root}\n\n— x AAAAAA==\n")), NotACheckpoint::Size("many".into()));
        assert_eq!(refused("origin\n3\nabc\n\n— x AAAAAA==\n"), NotACheckpoint::Root("abc".into()));
        assert_eq!(refused(&format!("origin\n3\n{root}\n\n")), NotACheckpoint::Unsigned);
        assert!(matches!(refused(&format!("origin\n3\n{root}\n\nrubbish\n")), NotACheckpoint::Signature(_)));
        assert_eq!(
            refused(&format!("origin\n03\n{root}\n\n— x AAAAAA==\n")),
            NotACheckpoint::Lines,
            "another spelling"
        );
    }
}
