//! The erasures that the log tells of.

use crate::keys::{self, prefix};
use crate::tables::{Reader, read_failed};
use trellis_domain::Hash;
use trellis_domain::record::Record;
use trellis_orchestrator::evidence::Erasure;
use trellis_orchestrator::ports::JournalError;

/// All erasures: number, key and text of their entries.
pub(crate) fn erasures(reader: &Reader<'_>) -> Result<Vec<(u64, Vec<u8>, fjall::UserValue)>, JournalError> {
    let rows = reader.index_prefix(&[prefix::ERASURE]).map(|row| row.into_inner().map_err(read_failed));
    rows.map(|row| row.map(|(key, value)| (keys::number(&key).unwrap_or(0), key.to_vec(), value))).collect()
}

/// How many there are. They are not read.
pub(crate) fn number_of_erasures(reader: &Reader<'_>) -> Result<u64, JournalError> {
    let keys = reader.index_prefix(&[prefix::ERASURE]).map(|row| row.key().map_err(read_failed));
    keys.map(|key| key.map(|_| 1)).sum()
}

/// Whether an erasure in the log says that this is what is left of a record.
pub(crate) fn replaced(reader: &Reader<'_>, value: &[u8], hash: Hash) -> Result<bool, JournalError> {
    let Ok(header) = Record::header_of(value) else { return Ok(false) };
    let name = format!("{}/{}", header.session, header.name);
    for (_, _, entry) in erasures(reader)? {
        let told = serde_json::from_slice::<Erasure>(&entry).unwrap_or_default();
        let same = told.workspace == header.workspace.as_str() && told.run == header.run.as_str();
        if same && told.replaced.contains(&(name.clone(), hash)) {
            return Ok(true);
        }
    }
    Ok(false)
}
