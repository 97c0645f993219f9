//! How far the view is, and in which log.

use super::ViewError;
use super::trees::{Snapshot, Writing};
use trellis_domain::Hash;

/// Shorter than any index prefix, so that no scan takes it for a quad.
pub(super) const KEY: &[u8] = b"cursor";

/// A place in the log that runs are read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    pub number: u64,
    /// What the log was up to there: another log, or one that was changed before this place, has another hash.
    pub identity: Hash,
}

impl Cursor {
    pub const START: Self = Self { number: 0, identity: Hash::ZERO };

    pub(super) fn read(snapshot: &Snapshot) -> Result<Self, ViewError> {
        let Some(stored) = snapshot.quads_value(KEY)? else { return Ok(Self::START) };
        let damaged = || ViewError::KeyDamaged { key: KEY.to_vec() };
        let (number, identity) = stored.split_first_chunk::<8>().ok_or_else(damaged)?;
        let identity = Hash::from_bytes(identity.try_into().map_err(|_| damaged())?);
        Ok(Self { number: u64::from_be_bytes(*number), identity })
    }

    pub(super) fn write(&self, writing: &Writing<'_>) {
        writing.put_quad(KEY, &[self.number.to_be_bytes().as_slice(), self.identity.as_bytes()].concat());
    }
}

/// A place in a log of no particular identity.
impl From<u64> for Cursor {
    fn from(number: u64) -> Self {
        Self { number, ..Self::START }
    }
}
