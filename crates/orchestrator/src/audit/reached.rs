//! Whether a run's end follows from everything that was recorded.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use trellis_domain::SessionId;
use trellis_domain::record::{Header, Name, Record};

/// Since this format a record names everything that it follows from.
pub(super) const COMPLETE_CAUSES: u16 = 4;

/// What is wrong with a run whose end does not follow from everything that was recorded in time. Nothing is known of runs
/// that have not ended, and of those of older formats, which named one cause of each record.
pub fn unreached(records: &[Arc<Record>]) -> Vec<String> {
    let place = |record: &Record| (record.header.session.clone(), record.header.name.clone());
    let by_place: HashMap<_, _> = records.iter().map(|record| (place(record), record)).collect();
    let root = records.first().map(|record| (record.header.run.clone(), Name::end()));
    let Some(end) = root.filter(|end| by_place.contains_key(end)) else { return Vec::new() };
    if records.iter().any(|record| record.header.format < COMPLETE_CAUSES) {
        return Vec::new();
    }
    let (mut reached, mut open) = (HashSet::new(), vec![end]);
    while let Some(next) = open.pop() {
        let Some(record) = by_place.get(&next) else { continue };
        if reached.insert(next) {
            let Header { session, causes, .. } = &record.header;
            open.extend(causes.iter().map(|cause| (cause.session_seen_from(session).clone(), cause.name.clone())));
        }
    }
    let given_up = given_up(records);
    let lost = records.iter().filter(|record| {
        !record.header.late && !reached.contains(&place(record)) && !given_up.contains(&record.header.session)
    });
    let told = |record: &Arc<Record>| {
        format!("nothing that the end follows from needs record {}/{}", record.header.session, record.header.name)
    };
    lost.map(told).collect()
}

/// The sessions that a join went on without because they could not be read then, with everything below them.
fn given_up(records: &[Arc<Record>]) -> HashSet<SessionId> {
    let joins = records.iter().filter_map(|record| record.body.as_joined());
    let members = joins.flat_map(|joined| &joined.members).filter(|member| member.was_unreadable());
    let mut given_up: HashSet<_> = members.map(|member| member.session.clone()).collect();
    for record in records {
        let parent = record.body.as_accepted().and_then(|accepted| accepted.parent.as_ref());
        if parent.is_some_and(|parent| given_up.contains(&parent.session)) {
            given_up.insert(record.header.session.clone());
        }
    }
    given_up
}
