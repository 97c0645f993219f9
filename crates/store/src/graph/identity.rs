//! Which log the view was built from.

use crate::log;
use crate::tables::Tables;
use trellis_domain::Hash;
use trellis_orchestrator::ports::JournalError;

/// The root of the log when it had this size: another journal, or an older copy of this one, has another or none.
pub(super) fn identity_at(tables: &Tables, size: u64) -> Result<Option<Hash>, JournalError> {
    let reader = tables.read();
    if log::size(&reader)? < size { Ok(None) } else { log::root(&reader, size).map(Some) }
}
