//! What no program has ever written, whatever the run was about. Somebody who gives a record an older format, or says that
//! it came late, would otherwise get by with less of a look at it.

use super::reached::COMPLETE_CAUSES;
use std::collections::HashSet;
use std::sync::Arc;
use trellis_domain::record::{Cause, Header, Record};

/// What in the records, in the order of the run's events, cannot be.
pub fn implausible(records: &[Arc<Record>]) -> Vec<String> {
    let (mut faults, mut ended, mut newest) = (Vec::new(), HashSet::new(), 0);
    for record in records {
        let Header { format, session, name, late, .. } = &record.header;
        let mut found = |what: String| faults.push(format!("record {session}/{name}: {what}"));
        if *format < newest {
            found(format!("its format is {format}, after one of format {newest}"));
        }
        if *format < COMPLETE_CAUSES && is_ahead(record) {
            found(format!("its format is {format}, and it says what only later ones can"));
        }
        if *late && !ended.contains(session) {
            found("it is said to be late, and its session had not ended".to_owned());
        }
        newest = newest.max(*format);
        if record.body.as_ended().is_some() {
            ended.insert(session.clone());
        }
    }
    faults
}

/// Whether it says what a record could not say before causes were complete.
fn is_ahead(record: &Record) -> bool {
    let elsewhere = |cause: &Cause| cause.session.is_some();
    let pinned = record.body.as_accepted().is_some_and(|accepted| accepted.operator.is_some());
    pinned || record.header.causes.iter().any(elsewhere)
}
