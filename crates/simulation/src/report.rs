//! What was simulated and what came of it, as a section of Markdown.

use crate::breakage::Breakage;
use crate::promises::PROMISES;
use crate::simulation::FinishedWorld;
use std::collections::BTreeMap;
use std::fmt;

/// Adds up over all seeds.
#[derive(Debug, Default)]
pub struct Report {
    seeds: u64,
    failed: u64,
    questions: u64,
    records: u64,
    calls: u64,
    repeated: u64,
    counts: BTreeMap<&'static str, u64>,
    ends: BTreeMap<String, u64>,
    /// The seed that noticed each deliberate mistake, and the promise that it broke.
    caught: Vec<(String, u64, &'static str)>,
}

pub const HEADING: &str = "## Simulation";

impl Report {
    pub fn add(&mut self, world: &FinishedWorld, failed: bool) {
        self.seeds += 1;
        self.failed += u64::from(failed);
        self.questions += world.runs.len() as u64;
        self.records += world.seen.recorded.len() as u64;
        self.calls += world.seen.calls.len() as u64;
        let mut places: Vec<_> = world.seen.calls.iter().map(|call| &call.place).collect();
        places.sort();
        places.dedup();
        self.repeated += (world.seen.calls.len() - places.len()) as u64;
        for (what, count) in &world.seen.counts {
            *self.counts.entry(what).or_default() += count;
        }
        let ends = world
            .runs
            .iter()
            .flat_map(|run| run.records.iter().filter(|record| record.header.session == record.header.run));
        for ended in ends.filter_map(|record| record.body.as_ended()) {
            *self.ends.entry(ended.reason.to_string()).or_default() += 1;
        }
    }

    pub fn caught(&mut self, breakage: Breakage, seed: u64, promise: &'static str) {
        self.caught.push((breakage.to_string(), seed, promise));
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{HEADING}\n")?;
        writeln!(
            f,
            "Written by `cargo xtask simulate`: {} seeds, {} of which broke a promise. Each is a world of its own in virtual \
             time on one thread: the real orchestrator and patterns in one to four processes over one journal, a broker and a stream \
             between them that lose, double, delay and reorder, a store that does not answer, models and tools that fail, hang, write \
             rubbish or panic, processes that die at any call or stand still, clocks that jump, cancels, configuration \
             changes. {} questions, {} records, {} calls of models and tools, {} of them repeated after an interruption.\n",
            self.seeds, self.failed, self.questions, self.records, self.calls, self.repeated
        )?;
        writeln!(f, "| what happened | times |\n|---|---|")?;
        self.counts.iter().try_for_each(|(what, count)| writeln!(f, "| {what} | {count} |"))?;
        self.ends.iter().try_for_each(|(reason, count)| writeln!(f, "| runs that ended as `{reason}` | {count} |"))?;
        let promises: Vec<_> = PROMISES.iter().map(|(name, _)| *name).collect();
        writeln!(f, "\nHeld against every finished world: {}.\n", promises.join("; "))?;
        writeln!(f, "Deliberate mistakes, to show that the checks can fail:\n")?;
        writeln!(f, "| mistake | first seed that notices | promise |\n|---|---|---|")?;
        self.caught.iter().try_for_each(|(name, seed, promise)| writeln!(f, "| {name} | {seed} | {promise} |"))
    }
}
