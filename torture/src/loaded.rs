//! Harm to what was loaded and to what is derived from it. Runs do not depend on it: they and their proofs stay as they
//! were, `doctor` names the damage and what to do, and nothing panics or goes on without end.

use crate::folder::{copy, files};
use crate::{Chance, Ended, Programs};
use anyhow::{Context, Result, ensure};
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Where it lies in a data folder.
pub const FOLDERS: [&str; 4] = ["knowledge", "search", "tables", "entities"];

/// What can happen to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Harm {
    Bit,
    Truncated,
    Emptied,
    Missing,
}

pub const HARMS: [Harm; 4] = [Harm::Bit, Harm::Truncated, Harm::Emptied, Harm::Missing];

/// Commands that read what was loaded.
const READ: [&[&str]; 4] = [
    &["knowledge", "list"],
    &["sparql", "SELECT ?o { <https://example.org/bridge> ?p ?o }"],
    &["tables", "query", "{ cities { name people } }"],
    &["tools", "test", "find", "question=tonnes"],
];

/// A folder with a run, knowledge, documents and rows, and what is read from it.
#[derive(Debug)]
pub struct Loaded {
    folder: TempDir,
    runs: String,
    read: Vec<String>,
}

impl Loaded {
    pub fn new(programs: &Programs) -> Result<Self> {
        let (folder, files) = (TempDir::new()?, TempDir::new()?);
        let label = "<http://www.w3.org/2000/01/rdf-schema#label>";
        for (name, text) in [
            ("bridges.md", "# Bridges\n\nThe old bridge carries 24 tonnes.\n".to_owned()),
            ("bridges.ttl", format!("<https://example.org/bridge> {label} \"The old bridge\" .")),
            ("cities.csv", "name,people\nOslo,700000\nBergen,280000\n".to_owned()),
        ] {
            fs::write(files.path().join(name), text)?;
        }
        let data = folder.path();
        programs.ok(data, &["ask", "What is a trellis?"])?;
        programs.ok(data, &["load", files.path().to_str().context("a temporary folder has a plain name")?])?;
        programs.ok(data, &["tools", "add", "find", r#"{"type": "document-rag", "description": "finds"}"#])?;
        let runs = programs.ok(data, &["runs", "--output", "json"])?;
        let read = READ.iter().map(|command| programs.ok(data, command)).collect::<Result<_>>()?;
        programs.ok(data, &["doctor"])?;
        Ok(Self { folder, runs, read })
    }

    /// Does harm to one file below one of the folders. Gives what was done; an error is what must never be.
    pub fn trial(&self, programs: &Programs, folder: &str, harm: Harm, seed: u64) -> Result<String> {
        let data = copy(self.folder.path())?;
        let done = inflict(data.path(), folder, harm, &mut Chance::new(seed))?;
        self.examine(programs, data.path(), folder).with_context(|| done.clone())?;
        Ok(done)
    }

    /// All of a folder is gone.
    pub fn without(&self, programs: &Programs, folder: &str) -> Result<()> {
        let data = copy(self.folder.path())?;
        fs::remove_dir_all(data.path().join(folder))?;
        for command in READ {
            in_order(&programs.run(data.path(), command)?)?;
        }
        self.runs_are_unaffected(programs, data.path())
    }

    fn examine(&self, programs: &Programs, data: &Path, folder: &str) -> Result<()> {
        let doctor = programs.run(data, &["doctor"])?;
        match doctor.code() {
            Some(7) => ensure!(names(&doctor, data, folder), "doctor does not name {folder}: {doctor}"),
            Some(0) => {
                for (command, before) in READ.iter().zip(&self.read) {
                    let now = programs.run(data, command)?;
                    ensure!(now.said == *before, "doctor finds nothing, but `{}`: {now}", command.join(" "));
                }
            }
            _ => ensure!(false, "doctor ends with {doctor}"),
        }
        for command in READ {
            in_order(&programs.run(data, command)?)?;
        }
        self.runs_are_unaffected(programs, data)
    }

    fn runs_are_unaffected(&self, programs: &Programs, data: &Path) -> Result<()> {
        let runs = programs.ok(data, &["runs", "--output", "json"])?;
        ensure!(runs == self.runs, "other runs than before: {runs}");
        programs.ok(data, &["verify", "last"])?;
        programs.ok(data, &["ask", "What is a trellis?"])?;
        programs.ok(data, &["verify", "last"]).map(drop)
    }
}

/// It may fail, and says so in order.
fn in_order(ended: &Ended) -> Result<()> {
    ensure!(ended.code().is_some_and(|code| code <= 13) && !ended.said.contains("panicked"), "{ended}");
    Ok(())
}

/// Whether a fault names something below the folder, and more is said than that.
fn names(doctor: &Ended, data: &Path, folder: &str) -> bool {
    let path = data.join(folder).display().to_string();
    let advice = ["restore", "load"];
    let faults: Vec<_> = doctor.said.lines().skip_while(|line| !line.starts_with("fault")).collect();
    faults.iter().any(|line| line.contains(&path))
        && faults.iter().any(|line| advice.iter().any(|word| line.contains(word)))
}

fn inflict(data: &Path, folder: &str, harm: Harm, chance: &mut Chance) -> Result<String> {
    let root = data.join(folder);
    let mut filled = Vec::new();
    for file in files(&root)? {
        if fs::metadata(root.join(&file))?.len() > 0 {
            filled.push(file);
        }
    }
    let file: &PathBuf = chance.one(&filled).with_context(|| format!("{folder} has no files"))?;
    let path = root.join(file);
    let length = fs::metadata(&path)?.len();
    match harm {
        Harm::Bit => {
            let mut bytes = fs::read(&path)?;
            // Engines reserve large files, of which most is never written.
            let at = usize::try_from(chance.below(length.min(4096)))?;
            bytes[at] ^= 1 << chance.below(8);
            fs::write(&path, bytes)?;
        }
        Harm::Truncated => OpenOptions::new().write(true).open(&path)?.set_len(length / 2)?,
        Harm::Emptied => OpenOptions::new().write(true).open(&path)?.set_len(0)?,
        Harm::Missing => fs::remove_file(&path)?,
    }
    Ok(format!("{folder}/{} {harm:?} of {length} bytes", file.display()))
}
