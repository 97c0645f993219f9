//! The leaves of the log, as every store hashes them.
//!
//! What a leaf covers is hashed under the name of its kind, so that none can pass for another.

use trellis_domain::record::Lines;
use trellis_domain::{Hash, merkle};

/// What a leaf covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeafKind {
    Record,
    Config,
    Erasure,
}

impl LeafKind {
    pub const ALL: [Self; 3] = [Self::Record, Self::Config, Self::Erasure];

    /// The byte that stands for it where leaves are stored.
    pub const fn tag(self) -> u8 {
        match self {
            Self::Record => b'r',
            Self::Config => b'c',
            Self::Erasure => b'x',
        }
    }

    pub fn of_tag(tag: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.tag() == tag)
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Record => "record",
            Self::Config => "config",
            Self::Erasure => "erasure",
        }
    }

    /// The bytes that are hashed for a row of this kind. A record's header says where it stands, so its key need not be
    /// told; its texts are not proven by the log but by the record.
    pub fn input(self, key: &[u8], value: &[u8]) -> Vec<u8> {
        match self {
            Self::Record => {
                let proven = Lines::of(value).map_or(value, |lines| lines.proven);
                [self.word().as_bytes(), b"\n", proven].concat()
            }
            Self::Config | Self::Erasure => [self.word().as_bytes(), b"\n", key, b"\n", value].concat(),
        }
    }

    pub fn hash(self, key: &[u8], value: &[u8]) -> Hash {
        merkle::leaf([self.input(key, value).as_slice()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_covered_cannot_pass_for_another_kind() {
        let hashes = [LeafKind::Record, LeafKind::Config, LeafKind::Erasure].map(|kind| kind.hash(b"", b"{}\n{}"));
        assert_ne!(hashes[0], hashes[1]);
        assert_ne!(hashes[1], hashes[2]);
        let with = |texts: &str| LeafKind::Record.hash(b"key", format!("{{}}\n{{}}\n{texts}").as_bytes());
        assert_eq!(with("[1]"), with("[2]"), "texts are proven by the record");
    }
}
