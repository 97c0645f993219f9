//! Reading a run's record against its own hashes.

use crate::keys;
use crate::tables::{Reader, Tables, read_failed};
use trellis_domain::document::Payload;
use trellis_domain::record::Record;
use trellis_domain::{Hash, RunId, Workspace};
use trellis_orchestrator::audit::Audit;
use trellis_orchestrator::ports::JournalError;

pub(crate) fn audit(tables: &Tables, workspace: &Workspace, run: &RunId) -> Result<Audit, JournalError> {
    let reader = tables.read();
    let mut audit = Audit::default();
    for row in reader.index_prefix(&keys::events(workspace, run)) {
        let place = row.value().map_err(read_failed)?;
        let Some(bytes) = reader.record(&place)? else {
            audit.faults.push(format!("event {} has no record", audit.records + 1));
            continue;
        };
        audit.records += 1;
        match Record::from_bytes_checked(&bytes) {
            Err(error) => audit.faults.push(error.to_string()),
            Ok(mut record) => {
                audit.link(&record);
                check_blobs(&reader, workspace, &mut audit, &mut record)?;
            }
        }
    }
    Ok(audit)
}

fn check_blobs(
    reader: &Reader<'_>,
    workspace: &Workspace,
    audit: &mut Audit,
    record: &mut Record,
) -> Result<(), JournalError> {
    let name = format!("{}/{}", record.header.session, record.header.name);
    for payload in record.body.payloads_mut() {
        let Payload::Blob(stored) = payload else { continue };
        match reader.blob(workspace, stored.blob)? {
            None => audit.faults.push(format!("a text of record {name} is missing")),
            Some(bytes) if Hash::of(&bytes) != stored.blob => {
                audit.faults.push(format!("a text of record {name} is not what its hash says"));
            }
            Some(_) => {}
        }
    }
    Ok(())
}
