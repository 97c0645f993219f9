//! A disk that is full, or fails to keep what it was given: `disk/failing_disk.c` is loaded into the program.

use crate::folder::{files, settled};
use crate::{Chance, Programs, Server};
use anyhow::{Context, Result, ensure};
use serde_json::json;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// The library that makes a disk fail, compiled for this machine.
#[derive(Debug)]
pub struct FailingDisk {
    _folder: TempDir,
    library: PathBuf,
}

impl FailingDisk {
    /// Needs a C compiler, as building any of this does.
    pub fn compile() -> Result<Self> {
        let folder = TempDir::new()?;
        let library = folder.path().join("failing_disk.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("disk/failing_disk.c");
        let mut compile = Command::new("cc");
        compile.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source).arg("-ldl");
        ensure!(compile.status().context("cannot start `cc`")?.success(), "`cc` cannot compile disk/failing_disk.c");
        Ok(Self { _folder: folder, library })
    }

    /// Has a command work on this disk.
    fn under(&self, command: &mut Command, folder: &Path, setting: &str, value: u64) {
        command.env("LD_PRELOAD", &self.library).env("FAILING_DISK_FOLDER", folder);
        command.env(setting, value.to_string());
    }
}

/// The disk is full after some bytes. Whatever was accepted until then is there once it has room again.
pub fn full(programs: &Programs, disk: &FailingDisk, seed: u64) -> Result<usize> {
    let mut chance = Chance::new(seed);
    let (data, traces) = (TempDir::new()?, TempDir::new()?);
    let mut accepted = BTreeSet::new();
    for number in 0..3 {
        let trace = traces.path().join(number.to_string());
        let mut command = programs.serve(data.path());
        // The second has hardly any room, and does not serve at all perhaps.
        let space = if number == 1 { chance.below(100_000) } else { 400_000 + chance.below(4_000_000) };
        disk.under(&mut command, data.path(), "FAILING_DISK_SPACE", space);
        command.env("FAILING_DISK_TRACE", &trace);
        match Server::start(command) {
            Ok(mut server) => {
                let refused = ask(&server, number, 5_000, &mut accepted);
                ensure!(refused.is_none_or(|status| status >= 500), "a full disk is refused with {refused:?}");
                ensure!(syncs(&trace)?.iter().any(|sync| sync.outcome == "full"), "the disk was never full");
                // It may stop by itself, and then says so.
                ensure!(server.is_alive() || server.ended()?.0 == Some(7), "it did not end in order");
            }
            Err(error) => refused_to_start(&error)?,
        }
    }
    ensure!(!accepted.is_empty(), "nothing was accepted before the disk was full");
    all_there(programs, data.path(), &accepted)
}

/// A server that cannot start says why and ends in order.
fn refused_to_start(error: &anyhow::Error) -> Result<()> {
    let told = error.to_string();
    ensure!(told.contains("(exit 7)") && !told.contains("panicked"), "{told}");
    Ok(())
}

/// A sync fails: the program stops, with the exit code of a broken folder. The next start does not trust what the
/// failed sync left: it writes it anew. `lost` takes the data away, as a power cut does.
pub fn failed_sync(programs: &Programs, disk: &FailingDisk, number: u64, lost: bool) -> Result<usize> {
    let (data, traces) = (TempDir::new()?, TempDir::new()?);
    let [first, second] = ["first", "second"].map(|name| traces.path().join(name));
    let mut accepted = BTreeSet::new();
    let mut command = programs.serve(data.path());
    disk.under(&mut command, data.path(), "FAILING_DISK_SYNC", number);
    command.env("FAILING_DISK_TRACE", &first);
    match Server::start(command) {
        Ok(server) => {
            ask(&server, 0, 2_000, &mut accepted);
            let (code, log) = server.ended()?;
            ensure!(code == Some(7), "after a failed sync the server ends with {code:?}: {}", log.join("\n"));
        }
        // Then it failed before it served.
        Err(error) => refused_to_start(&error)?,
    }
    let syncs = syncs(&first)?;
    ensure!(syncs.iter().any(|sync| sync.outcome == "failed"), "sync {number} failed");
    if lost {
        lose_unsynced(&syncs)?;
    }
    let mut command = programs.serve(data.path());
    disk.under(&mut command, data.path(), "FAILING_DISK_SPACE", u64::MAX >> 1);
    command.env("FAILING_DISK_TRACE", &second);
    let server = Server::start(command)?;
    let syncs = self::syncs(&second)?;
    let is_log = |sync: &Sync| sync.path.extension().is_some_and(|extension| extension == "jnl");
    let anew = |sync: &Sync| sync.outcome == "ok" && sync.path.ends_with("log-anew");
    ensure!(
        syncs.iter().take_while(|sync| !is_log(sync)).any(anew),
        "the log was not written anew before it was trusted: {:?}",
        syncs.iter().map(|sync| &sync.path).collect::<Vec<_>>()
    );
    settled(&server)?;
    ensure!(server.stop()? == Some(0), "the server stops in order");
    all_there(programs, data.path(), &accepted)
}

struct Sync {
    outcome: String,
    /// How far the file was written.
    end: u64,
    path: PathBuf,
}

fn syncs(trace: &Path) -> Result<Vec<Sync>> {
    let text = fs::read_to_string(trace).context("the disk is used")?;
    let parse = |line: &str| -> Option<Sync> {
        let mut words = line.splitn(4, ' ').skip(1);
        let (outcome, end) = (words.next()?.to_owned(), words.next()?.parse().ok()?);
        Some(Sync { outcome, end, path: words.next()?.into() })
    };
    text.lines().map(|line| parse(line).with_context(|| format!("a line of the trace: {line}"))).collect()
}

/// What was appended to logs after their last good sync is gone.
fn lose_unsynced(syncs: &[Sync]) -> Result<()> {
    for file in syncs.iter().map(|sync| &sync.path).collect::<BTreeSet<_>>() {
        if !file.exists() || file.extension().is_none_or(|extension| extension != "jnl") {
            continue;
        }
        let kept = syncs.iter().rfind(|sync| sync.outcome == "ok" && sync.path == *file).map_or(0, |sync| sync.end);
        let length = fs::metadata(file)?.len();
        if kept < length {
            let file = fs::OpenOptions::new().write(true).open(file)?;
            file.set_len(kept)?;
            file.set_len(length)?;
        }
    }
    Ok(())
}

/// Asks until something is refused, or so many were accepted. Gives the status of what was refused.
fn ask(server: &Server, part: usize, most: usize, accepted: &mut BTreeSet<String>) -> Option<u16> {
    for number in 0..most {
        let run = format!("run-{part}-{number}");
        let body = json!({"question": "Who owns Company X?", "pattern": "react", "session_id": run}).to_string();
        match server.reply("POST", "/api/v1/runs", "", &body) {
            Ok((status, _)) if status < 300 => accepted.insert(run),
            Ok((status, _)) => return Some(status),
            Err(_) => return None,
        };
    }
    None
}

/// With room and without faults, everything that was accepted is there and ends, and nothing is damaged.
fn all_there(programs: &Programs, data: &Path, accepted: &BTreeSet<String>) -> Result<usize> {
    let server = Server::start(programs.serve(data))?;
    settled(&server)?;
    for run in accepted {
        let (status, shown) = server.reply("GET", &format!("/api/v1/runs/{run}"), "", "")?;
        ensure!(status == 200 && shown["state"] == "answered", "run {run} was accepted, and now: {status} {shown}");
    }
    ensure!(server.stop()? == Some(0), "the server stops in order");
    programs.ok(data, &["doctor"])?;
    ensure!(!files(data)?.is_empty(), "the folder has files");
    Ok(accepted.len())
}
