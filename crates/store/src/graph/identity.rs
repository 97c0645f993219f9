//! What tells one log from another.

use crate::chain;
use crate::tables::Tables;
use trellis_domain::Hash;
use trellis_orchestrator::ports::JournalError;

/// A hash over the log up to a commit; none if there is no such commit.
pub(super) fn identity_at(tables: &Tables, commit: u64) -> Result<Option<Hash>, JournalError> {
    Ok(chain::at(tables, commit)?.map(|mark| mark.chain))
}
