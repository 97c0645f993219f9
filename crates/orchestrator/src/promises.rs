//! The promises that every run keeps, each a function over what it left behind. The contract suites and the simulation ask
//! them; what they ask of the records is what `verify` asks.
//!
//! Each gives what breaks the promise, in words that name the record; nothing if it is kept.

use crate::audit::unreached;
use crate::replay::{Configurations, replay};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use trellis_domain::decision::Decision;
use trellis_domain::record::{Body, Name, Record};
use trellis_patterns::{Projector, documents, project};
use trellis_provenance::ontology::Ontology;
use trellis_provenance::{ONTOLOGY, check};

/// All records of a run, in order, and the configurations that its sessions are pinned to.
#[derive(Clone, Copy)]
pub struct RunEvidence<'a> {
    pub records: &'a [Arc<Record>],
    pub configurations: &'a Configurations<'a>,
}

impl fmt::Debug for RunEvidence<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunEvidence").field("records", &self.records.len()).finish_non_exhaustive()
    }
}

/// A promise by its name.
pub type Promise = (&'static str, fn(RunEvidence<'_>) -> Vec<String>);

/// What holds for every run that has ended.
pub const OF_A_RUN: [Promise; 7] = [
    ("no commit vanishes", without_gap),
    ("answered once", answered_once),
    ("joined once", joined_once),
    ("no choice outside its set", no_choice_outside_its_set),
    ("no orphan", no_orphan),
    ("same records, same quads", same_records_same_quads),
    ("everything follows from what came before it", follows),
];

/// What a run breaks of all that holds for runs that have ended.
pub fn broken(run: RunEvidence<'_>) -> Vec<String> {
    let told = |(name, promise): Promise| promise(run).into_iter().map(move |what| format!("{name}: {what}"));
    OF_A_RUN.into_iter().flat_map(told).collect()
}

fn place(record: &Record) -> String {
    format!("{}/{}", record.header.session, record.header.name)
}

/// The events of a run are numbered from 1 without a gap.
pub fn without_gap(run: RunEvidence<'_>) -> Vec<String> {
    let numbered = run.records.iter().zip(1..);
    let wrong = numbered.filter(|(record, expected)| record.header.seq != *expected);
    wrong
        .map(|(record, expected)| format!("{} has number {}, not {expected}", place(record), record.header.seq))
        .collect()
}

/// One beginning and one end per session, and one session that is the run.
pub fn answered_once(run: RunEvidence<'_>) -> Vec<String> {
    let mut sessions: BTreeMap<_, (u32, u32)> = BTreeMap::new();
    for record in run.records {
        let (begun, ended) = sessions.entry(&record.header.session).or_default();
        *begun += u32::from(record.body.as_accepted().is_some());
        *ended += u32::from(record.body.as_ended().is_some());
    }
    let wrong = sessions.into_iter().filter(|(_, counts)| *counts != (1, 1));
    wrong.map(|(session, (begun, ended))| format!("{session} has {begun} beginnings and {ended} ends")).collect()
}

/// One join per fan-out, with a member for each goal in the goals' order.
pub fn joined_once(run: RunEvidence<'_>) -> Vec<String> {
    let mut joins: BTreeMap<_, Vec<_>> = BTreeMap::new();
    let mut wrong = Vec::new();
    for record in run.records {
        if let Some(joined) = record.body.as_joined() {
            joins.entry((&record.header.session, joined.round)).or_default().push(joined);
        }
    }
    for record in run.records {
        let Some(fan_out) = record.body.as_fanned_out() else { continue };
        let goals = || fan_out.goals.iter().map(|goal| (goal.index, &goal.session));
        match joins.remove(&(&record.header.session, fan_out.round)).as_deref() {
            // Its session ended first.
            None => {}
            Some([joined]) if joined.members.iter().map(|member| (member.index, &member.session)).eq(goals()) => {}
            Some([_]) => wrong.push(format!("the join of {} has other members", place(record))),
            Some(several) => wrong.push(format!("{} has {} joins", place(record), several.len())),
        }
    }
    wrong.extend(joins.into_keys().map(|(session, round)| format!("{session} has a join {round} and no such fan-out")));
    wrong
}

fn decisions(body: &Body) -> &[Decision] {
    match body {
        Body::Routed(routed) => &routed.decisions,
        Body::Replied(replied) => &replied.decision,
        Body::FannedOut(fan_out) => &fan_out.decisions,
        Body::Settled(settled) => std::slice::from_ref(&settled.decision),
        Body::Accepted(_)
        | Body::Intended(_)
        | Body::InputRequired(_)
        | Body::Observed(_)
        | Body::Joined(_)
        | Body::Parked(_)
        | Body::Told(_)
        | Body::Ended(_) => &[],
    }
}

/// What was chosen was one of the options.
pub fn no_choice_outside_its_set(run: RunEvidence<'_>) -> Vec<String> {
    let mut wrong = Vec::new();
    for record in run.records {
        for decision in decisions(&record.body) {
            // A set without options is open: goals are written, not chosen.
            let closed = !decision.options.is_empty();
            let outside = decision.chosen.iter().filter(|chosen| closed && !decision.options.contains(chosen));
            wrong.extend(outside.map(|chosen| format!("{} chose `{chosen}`", place(record))));
        }
    }
    wrong
}

/// From the end everything is reached that was recorded in time, and from every answer the graph leads back to its question.
pub fn no_orphan(run: RunEvidence<'_>) -> Vec<String> {
    let found = documents(run.records).into_iter().map(|found| (found.id, found.text.text().to_owned()));
    let texts: BTreeMap<_, _> = found.collect();
    let quads = project(run.records);
    let mut wrong = unreached(run.records);
    wrong.extend(check(&quads, &|id| texts.get(id).cloned()).iter().map(ToString::to_string));
    match Ontology::parse(ONTOLOGY) {
        Ok(ontology) => wrong.extend(ontology.problems(&quads).iter().map(ToString::to_string)),
        Err(error) => wrong.push(format!("the published vocabulary cannot be read: {error}")),
    }
    wrong
}

/// Projected record by record, as a follower does it, a run has the same quads as when it is read at once.
pub fn same_records_same_quads(run: RunEvidence<'_>) -> Vec<String> {
    let mut projector = Projector::default();
    let mut followed: Vec<_> =
        run.records.iter().flat_map(|record| projector.apply(record)).flat_map(|event| event.quads).collect();
    let mut read = project(run.records);
    for quads in [&mut followed, &mut read] {
        quads.sort();
        quads.dedup();
    }
    let differs = followed != read;
    differs.then(|| "a follower sees other quads than a reader".to_owned()).into_iter().collect()
}

/// Every record can be derived again from those before it.
pub fn follows(run: RunEvidence<'_>) -> Vec<String> {
    let replayed = replay(run.records, run.configurations);
    replayed.faults.into_iter().chain(replayed.gaps).collect()
}

/// Whether the run has ended.
pub fn has_ended(records: &[Arc<Record>]) -> bool {
    records.iter().any(|record| record.header.session == record.header.run && record.header.name == Name::end())
}
