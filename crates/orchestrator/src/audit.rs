//! A run's records against each other: numbers without gap, links to what they name, contents as their hashes say.

use std::collections::HashMap;
use std::sync::Arc;
use trellis_domain::record::{FORMAT, Name, Record, UnreadableRecord};
use trellis_domain::{Hash, SessionId};

/// What an audit of a run's records found.
#[derive(Debug, Default)]
pub struct Audit {
    pub records: usize,
    pub faults: Vec<String>,
    /// Records whose contents could not be held against their hashes, because only the store has their bytes.
    pub unchecked: usize,
    contents: HashMap<(SessionId, Name), Hash>,
}

impl Audit {
    /// Audits records that were read elsewhere, whoever sent them. Those of an older format are written differently
    /// today, so their hashes say nothing here.
    pub fn of(records: &[Arc<Record>]) -> Self {
        let mut audit = Self::default();
        for record in records {
            audit.records += 1;
            let header = &record.header;
            if header.format < FORMAT {
                audit.unchecked += 1;
            } else if Hash::of(&record.body.clone().written().0) != header.content {
                let (session, name) = (header.session.clone(), header.name.clone());
                audit.faults.push(UnreadableRecord::Content { session, name }.to_string());
            }
            audit.link(record);
        }
        audit
    }

    /// Checks the number and the links of the next record, which is counted already.
    pub fn link(&mut self, record: &Record) {
        let header = &record.header;
        let name = format!("{}/{}", header.session, header.name);
        if header.seq != self.records as u64 {
            self.faults.push(format!("record {name} has number {}, {} was expected", header.seq, self.records));
        }
        for (cause, parent) in header.causes.iter().zip(&header.parents) {
            let found = self.contents.get(&(header.session.clone(), cause.clone()));
            if found != Some(parent) {
                self.faults.push(format!("record {name} follows from {cause}, which is not what it was"));
            }
        }
        self.contents.insert((header.session.clone(), header.name.clone()), header.content);
    }
}
