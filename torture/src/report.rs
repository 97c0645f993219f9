//! What was tried and what came of it, as a page of Markdown.

use anyhow::Result;
use std::collections::BTreeMap;
use std::fmt;
use torture::damage::{Fault, KINDS, Outcome};
use torture::kills::Tally;

#[derive(Debug, Default)]
pub(crate) struct Report {
    seed: u64,
    runs: usize,
    pub(crate) seconds: u64,
    kills: Tally,
    killed_loads: usize,
    full_disks: (usize, usize),
    failed_syncs: (usize, usize),
    /// Survived, and the most memory in MB.
    attacks: BTreeMap<&'static str, (usize, u64)>,
    /// By what was done: how often named, how often harmless.
    faults: BTreeMap<String, (usize, usize)>,
    total_faults: usize,
    pub(crate) wrong: Vec<String>,
}

impl Report {
    pub(crate) fn new(seed: u64, runs: usize) -> Self {
        Self { seed, runs, ..Self::default() }
    }

    pub(crate) const fn faults(&self) -> usize {
        self.total_faults
    }

    fn note(&mut self, what: String) {
        println!("WRONG {what}");
        self.wrong.push(what);
    }

    pub(crate) fn kills(&mut self, seed: u64, outcome: Result<Tally>) {
        match outcome {
            Ok(tally) => {
                self.kills.kills += tally.kills;
                self.kills.accepted += tally.accepted;
                self.kills.calls += tally.calls;
            }
            Err(error) => self.note(format!("kills, seed {seed}: {error:#}")),
        }
    }

    pub(crate) fn loads(&mut self, seed: u64, outcome: Result<usize>) {
        match outcome {
            Ok(killed) => self.killed_loads += killed,
            Err(error) => self.note(format!("loads, seed {seed}: {error:#}")),
        }
    }

    pub(crate) fn full_disk(&mut self, seed: u64, outcome: Result<usize>) {
        match outcome {
            Ok(accepted) => self.full_disks = (self.full_disks.0 + 1, self.full_disks.1 + accepted),
            Err(error) => self.note(format!("full disk, seed {seed}: {error:#}")),
        }
    }

    pub(crate) fn failed_sync(&mut self, seed: u64, lost: bool, outcome: Result<usize>) {
        match outcome {
            Ok(accepted) => self.failed_syncs = (self.failed_syncs.0 + 1, self.failed_syncs.1 + accepted),
            Err(error) => self.note(format!("failed sync, seed {seed}, data lost {lost}: {error:#}")),
        }
    }

    pub(crate) fn attack(&mut self, what: &'static str, peak_mb: Result<u64>) {
        match peak_mb {
            Ok(peak) => {
                let entry = self.attacks.entry(what).or_default();
                *entry = (entry.0 + 1, entry.1.max(peak));
            }
            Err(error) => self.note(format!("{error:#}")),
        }
    }

    pub(crate) fn fault(&mut self, how: &str, (faults, outcome): (Vec<Fault>, Outcome)) {
        self.total_faults += 1;
        let kind = match &faults[..] {
            [fault] => fault.kind.to_string(),
            _ => "two of these".to_owned(),
        };
        let counts = self.faults.entry(kind).or_default();
        match outcome {
            Outcome::Named => counts.0 += 1,
            Outcome::Harmless => counts.1 += 1,
            Outcome::Wrong(what) => {
                let faults = faults.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ");
                self.note(format!("{faults} in a folder that was {how}: {what}"));
            }
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "# What the program withstood\n")?;
        writeln!(
            f,
            "Written by `cargo xtask torture`: {} s, seed {}, the release binary, real files, real processes.\n",
            self.seconds, self.seed
        )?;
        writeln!(f, "## Damaged files\n")?;
        writeln!(
            f,
            "A folder of {} runs with documents and configuration, once closed in order and once left by a kill, \
             is copied and damaged at a random place. *Named*: `doctor` exits with 7 and says what is wrong, and no other \
             command crashes (a query, which derives a damaged view anew, is tried in every fifth trial). *Harmless*: `doctor` finds nothing, and every run, record, text, document, item, version, \
             log entry and quad reads back as it was.\n",
            self.runs
        )?;
        writeln!(f, "| fault | named | harmless |\n|---|---|---|")?;
        let kinds = KINDS.iter().map(ToString::to_string).chain(["two of these".to_owned()]);
        for kind in kinds {
            let (named, harmless) = self.faults.get(&kind).copied().unwrap_or_default();
            writeln!(f, "| {kind} | {named} | {harmless} |")?;
        }
        let Tally { kills, accepted, calls } = self.kills;
        writeln!(f, "\n{} trials in all.\n\n## Killed servers\n", self.total_faults)?;
        writeln!(
            f,
            "{kills} times SIGKILL under load, {accepted} accepted runs: each is there, answered, with one end. Of {calls} \
             calls none was made again after its outcome was on record. `doctor` is content, and checkpoints kept before \
             each kill still hold.\n"
        )?;
        writeln!(
            f,
            "{} times SIGKILL while a document with its facts was loaded or removed: loading it again brings each fact once, \
             asks nobody twice for what was noted, and leaves nothing unfinished.\n\n## Failing disks\n",
            self.killed_loads
        )?;
        writeln!(
            f,
            "- Full after a random number of bytes, three servers in a row: {} times, {} accepted runs, all there \
             afterwards.\n- A sync fails (EIO, once), with and without loss of what was not synced: {} times, {} accepted \
             runs. The server stops with exit code 7; the next start writes the log anew before it trusts it; all are \
             there.\n\n## Attacks on a server with 1 GB of addresses\n",
            self.full_disks.0, self.full_disks.1, self.failed_syncs.0, self.failed_syncs.1
        )?;
        writeln!(f, "| attack | survived | most memory so far |\n|---|---|---|")?;
        for (what, (times, peak)) in &self.attacks {
            writeln!(f, "| {what} | {times} | {peak} MB |")?;
        }
        writeln!(f, "\n## What went wrong\n")?;
        if self.wrong.is_empty() {
            return writeln!(f, "Nothing.");
        }
        self.wrong.iter().try_for_each(|what| writeln!(f, "- {}", what.replace('\n', " ")))
    }
}
