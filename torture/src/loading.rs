//! A load of a document with facts, and its removal, are killed again and again. What is loaded in the end is what is there
//! after a load that nobody disturbed, each fact once, and nobody is asked for it again.

use crate::program::finish;
use crate::{Chance, Programs};
use anyhow::{Context, Result, ensure};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

/// Passages of about 1,200 characters.
const PASSAGES: usize = 60;
const SENTENCES: usize = 16;
const EACH_FACT: &str = "SELECT ?passage ?s ?o { GRAPH ?passage { ?s <http://trustgraph.ai/e/stands-beside> ?o } } \
    ORDER BY ?passage ?s ?o";

/// Kills so many loads and as many removals, each time in another place, and looks at what is there afterwards.
pub fn trial(programs: &Programs, kills: usize, seed: u64) -> Result<usize> {
    let mut chance = Chance::new(seed);
    let files = TempDir::new()?;
    let path = files.path().join("people.txt");
    fs::write(&path, text())?;
    let file = path.to_str().context("a temporary folder has a plain name")?;
    let undisturbed = TempDir::new()?;
    whole(programs, undisturbed.path(), file)?;
    let expected = programs.ok(undisturbed.path(), &["sparql", EACH_FACT])?;
    ensure!(expected.lines().count() > PASSAGES, "the model finds facts: {expected}");
    let data = TempDir::new()?;
    let mut killed = 0;
    for number in 0..kills {
        // The first ones before anything is there.
        for arguments in [["load", file], ["documents", "remove"]] {
            let mut arguments = arguments.to_vec();
            if arguments[0] == "documents" {
                arguments.push(file);
            }
            killed += usize::from(is_killed(loading(programs, data.path(), &arguments), &mut chance)?);
        }
        if number % 4 == 3 {
            same(programs, data.path(), file, &expected)?;
        }
    }
    same(programs, data.path(), file, &expected)?;
    let again = whole(programs, data.path(), file)?;
    ensure!(again.contains("\"asked\":0"), "it is asked for again: {again}");
    Ok(killed)
}

/// Loads it to its end and compares.
fn same(programs: &Programs, data: &Path, file: &str, expected: &str) -> Result<()> {
    whole(programs, data, file)?;
    let found = programs.ok(data, &["sparql", EACH_FACT])?;
    ensure!(found == expected, "other facts than without kills: {found}");
    let listed = programs.ok(data, &["knowledge", "list", "--output", "json"])?;
    ensure!(listed.contains("\"sources\":1,\"unfinished\":[]"), "more or less than one source: {listed}");
    programs.ok(data, &["doctor"]).map(drop)
}

fn whole(programs: &Programs, data: &Path, file: &str) -> Result<String> {
    let ended = finish(loading(programs, data, &["load", file, "--output", "json"]))?;
    ensure!(ended.code() == Some(0), "a load that nobody disturbs: {ended}");
    Ok(ended.said)
}

fn loading(programs: &Programs, data: &Path, arguments: &[&str]) -> Command {
    let mut command = programs.command(data, arguments);
    command.env("TRELLIS_EXTRACTION_MODEL", "rehearsal").env("TRELLIS_REHEARSAL_DELAY_MS", "1");
    command
}

/// Whether it had not come to its end before.
fn is_killed(mut command: Command, chance: &mut Chance) -> Result<bool> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    thread::sleep(Duration::from_millis(20 + chance.below(700)));
    let ended = child.try_wait()?.is_some();
    if !ended {
        child.kill()?;
        child.wait()?;
    }
    Ok(!ended)
}

/// Each sentence names two people that no other one does.
fn text() -> String {
    let mut text = String::new();
    for passage in 0..PASSAGES {
        for sentence in 0..SENTENCES {
            let (one, other) = (passage * SENTENCES + sentence, (passage * 7 + sentence) % 50);
            write!(text, "In that year Ada{one} went along the long road beside Bob{other} for a while. ")
                .expect("a text takes everything");
        }
        text.push_str("\n\n");
    }
    text
}
