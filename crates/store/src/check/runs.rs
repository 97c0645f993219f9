//! What is derived from records: events, the lines of runs, their lists, open turns.

use super::{Checked, Proven};
use crate::keys::{self, prefix};
use crate::state::Turn;
use crate::tables::{Reader, read_failed};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use trellis_domain::record::Record;
use trellis_domain::run::RunSummary;
use trellis_domain::{RunId, Workspace};
use trellis_orchestrator::audit::Audit;
use trellis_orchestrator::ledger::summary_of;

type RunPlace = (Workspace, RunId);

pub(super) fn check(reader: &Reader<'_>, proven: &Proven, checked: &mut Checked) {
    let mut summaries = HashMap::new();
    let aside = set_aside(reader, checked);
    let mut events = 0;
    for row in reader.index_prefix(&[prefix::RUN]) {
        let row = row.into_inner().map_err(read_failed);
        let Some((key, value)) = checked.read("the list of runs", row) else { continue };
        let summary: Result<RunSummary, _> = serde_json::from_slice(&value);
        let Some(summary) = checked.read("the line of a run", summary) else { continue };
        checked.unless(keys::run(&summary.workspace, &summary.run) == *key, || {
            format!("run {}: its line stands in the wrong place", summary.run)
        });
        events += run(reader, &summary, &aside, checked);
        checked.runs += 1;
        summaries.insert((summary.workspace.clone(), summary.run.clone()), summary);
    }
    let all = count(reader, &[prefix::EVENT], checked);
    checked.unless(events == all && events == proven.records, || {
        format!("{} records are in the log, {all} are listed as events, {events} belong to a run", proven.records)
    });
    summaries.retain(|place, _| !aside.contains(place));
    lists(reader, &summaries, &aside, checked);
    turns(reader, &summaries, checked);
}

/// Runs with turns that were set aside.
fn set_aside(reader: &Reader<'_>, checked: &mut Checked) -> HashSet<RunPlace> {
    let keys = reader.index_prefix(&[prefix::ASIDE]).map(|row| row.key().map_err(read_failed));
    let turns = keys.filter_map(|key| checked.read("the turns set aside", key)).filter_map(|key| keys::read_turn(&key));
    turns.map(|turn| (turn.scope.workspace, turn.run)).collect()
}

fn count(reader: &Reader<'_>, prefix: &[u8], checked: &mut Checked) -> u64 {
    let rows = reader.index_prefix(prefix).map(|row| row.key().map_err(read_failed));
    rows.filter(|row| checked.read("the index", row.as_ref()).is_some()).count() as u64
}

/// One run: its events without gap, its links, its line.
fn run(reader: &Reader<'_>, summary: &RunSummary, aside: &HashSet<RunPlace>, checked: &mut Checked) -> u64 {
    let (workspace, run) = (&summary.workspace, &summary.run);
    let (faults, records) = read(reader, workspace, run);
    let events = records.len() as u64;
    let whole = faults.is_empty();
    for fault in faults {
        checked.fault(format!("run {run}: {fault}"));
    }
    // One that was set aside was ended without a record.
    if whole && !aside.contains(&(workspace.clone(), run.clone())) {
        let derived = summary_of(&records);
        checked.unless(derived.as_ref() == Some(summary), || {
            format!("run {run}: its line in the list of runs does not follow from its records")
        });
    }
    events
}

/// The records of a run by its list of events, and what is wrong with them among each other.
pub(crate) fn read(reader: &Reader<'_>, workspace: &Workspace, run: &RunId) -> (Vec<String>, Vec<Arc<Record>>) {
    let (mut audit, mut records, mut faults) = (Audit::default(), Vec::new(), Vec::new());
    for row in reader.index_prefix(&keys::events(workspace, run)) {
        let record = row.into_inner().map_err(read_failed).and_then(|(key, place)| {
            let stored = keys::read_event(&place).map(|(_, key)| reader.record(key)).transpose()?.flatten();
            Ok((key, stored.map(|bytes| reader.read_record(workspace, &bytes)).transpose()?))
        });
        audit.records += 1;
        match record {
            Err(error) => faults.push(error.to_string()),
            Ok((_, None)) => faults.push(format!("event {} has no record", audit.records)),
            Ok((key, Some(record))) => {
                let header = &record.header;
                if *key != keys::event(&header.workspace, &header.run, header.seq) {
                    faults.push(format!("record {}/{} is listed in the wrong place", header.session, header.name));
                }
                audit.link(&record);
                records.push(record);
            }
        }
    }
    faults.extend(audit.faults);
    (faults, records)
}

/// The lists that runs are found by.
fn lists(
    reader: &Reader<'_>,
    summaries: &HashMap<RunPlace, RunSummary>,
    aside: &HashSet<RunPlace>,
    checked: &mut Checked,
) {
    let mut expected = HashMap::new();
    for summary in summaries.values() {
        let rows = crate::listing::rows(summary, true, summary.state.is_end());
        expected.extend(rows.into_iter().map(|row| (row, &summary.run)));
    }
    for prefix in [prefix::LISTED, prefix::CONVERSATION, prefix::ENDED] {
        for row in reader.index_prefix(&[prefix]) {
            let row = row.into_inner().map_err(read_failed);
            let Some((key, value)) = checked.read("the lists of runs", row) else { continue };
            let known = expected.remove(&(key.to_vec(), value.to_vec()));
            let of_aside = aside.iter().any(|(_, run)| key.ends_with(run.as_str().as_bytes()));
            checked.unless(known.is_some() || of_aside, || {
                "a list names a run that there is not, or not as it is".to_owned()
            });
        }
    }
    for run in expected.values() {
        checked.fault(format!("run {run} is not in one of its lists"));
    }
    let mut finished = HashSet::new();
    for row in reader.index_prefix(&[prefix::FINISHED]) {
        let place = row.value().map_err(read_failed);
        let place = checked.read("the list of finished runs", place).and_then(|value| keys::read_finished(&value));
        finished.extend(place);
    }
    for (place, summary) in summaries {
        checked.unless(summary.state.is_end() == finished.contains(place), || {
            format!("run {} is {}, and the list of finished runs says otherwise", place.1, summary.state)
        });
    }
}

/// A run without end has something that will bring it there.
fn turns(reader: &Reader<'_>, summaries: &HashMap<RunPlace, RunSummary>, checked: &mut Checked) {
    let mut going = HashSet::new();
    for row in reader.index_prefix(&[prefix::TURN]) {
        let row = row.into_inner().map_err(read_failed);
        let Some((key, value)) = checked.read("the open turns", row) else { continue };
        let turn = serde_json::from_slice::<Turn>(&value).ok().and(keys::read_turn(&key));
        let Some(turn) = checked.read("the open turns", turn.ok_or("one cannot be read")) else { continue };
        let place = (turn.scope.workspace, turn.run);
        let known = reader.run(&place.0, &place.1).is_ok_and(|run| run.is_some());
        checked.unless(known, || format!("a turn of run {} is open without its run", place.1));
        going.insert(place);
    }
    for (place, summary) in summaries {
        checked.unless(summary.state.is_end() || going.contains(place), || {
            format!("run {} has no end, and nothing is left to do for it", place.1)
        });
    }
}
