//! Folders to do harm to.

use crate::read_back::read_back;
use crate::{Programs, Server};
use anyhow::{Context, Result, ensure};
use serde_json::json;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Questions of different shapes: a team, a plan, an agent with tools, and mostly one that answers at once.
const fn question(number: usize) -> (&'static str, &'static str) {
    match number % 20 {
        0 => ("supervisor", "Assess the risk profile of Company X as a potential partner"),
        5 => ("plan-then-execute", "Trace step by step how Company X came to its present owners"),
        10 | 15 => ("react", "Assess the risk profile of Company X as a potential partner"),
        _ => ("react", "What is a trellis?"),
    }
}

/// A folder as it was left, and what it held.
#[derive(Debug)]
pub struct Specimen {
    pub how: &'static str,
    pub folder: TempDir,
    /// Copies of the same folder from earlier, oldest first.
    pub older: Vec<TempDir>,
    pub holds: BTreeSet<String>,
    /// The same folder after `doctor` has looked at it and found nothing.
    pub looked_at: TempDir,
}

impl Specimen {
    /// A folder of so many runs, documents and configuration, once closed in order and once left by a kill.
    pub fn pair(programs: &Programs, runs: usize) -> Result<[Self; 2]> {
        let data = TempDir::new()?;
        let mut older = Vec::new();
        let portions = 3;
        for portion in 0..portions {
            let server = Server::start(programs.serve(data.path()))?;
            fill(&server, portion * runs / portions..(portion + 1) * runs / portions)?;
            settled(&server)?;
            if portion + 1 < portions {
                ensure!(server.stop()? == Some(0), "the server stops in order");
                programs.ok(data.path(), &["sparql", "ASK { ?s ?p ?o }"])?;
                older.push(copy(data.path())?);
            } else {
                server.kill()?;
            }
        }
        let left = copy(data.path())?;
        programs.ok(data.path(), &["sparql", "ASK { ?s ?p ?o }"])?;
        // What was read from a copy is not what the trials work on.
        let holds = |folder: &TempDir| read_back(programs, copy(folder.path())?.path());
        let older_too = older.iter().map(|folder| copy(folder.path())).collect::<Result<Vec<_>>>()?;
        let (closed_holds, left_holds) = (holds(&data)?, holds(&left)?);
        let looked_at = |folder: &TempDir| -> Result<TempDir> {
            let folder = copy(folder.path())?;
            programs.ok(folder.path(), &["doctor"])?;
            Ok(folder)
        };
        let (closed, killed) = (looked_at(&data)?, looked_at(&left)?);
        Ok([
            Self { how: "closed", folder: data, older, holds: closed_holds, looked_at: closed },
            Self { how: "killed", folder: left, older: older_too, holds: left_holds, looked_at: killed },
        ])
    }

    /// Whether a folder has the same bytes in all files: whoever reads it cannot tell it from this one.
    pub fn has_same_files(&self, folder: &Path) -> Result<bool> {
        let all = files(folder)?;
        if all != files(self.looked_at.path())? {
            return Ok(false);
        }
        for file in all.iter().filter(|file| file.as_path() != Path::new("lock")) {
            if fs::read(folder.join(file))? != fs::read(self.looked_at.path().join(file))? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Asks questions, puts configuration and documents, from a few clients at once.
fn fill(server: &Server, numbers: std::ops::Range<usize>) -> Result<()> {
    let next = AtomicUsize::new(numbers.start);
    let work = || -> Result<()> {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= numbers.end {
                return Ok(());
            }
            let (pattern, question) = question(number);
            let body = json!({"question": question, "pattern": pattern, "session_id": format!("run-{number}")});
            let (status, reply) = server.reply("POST", "/api/v1/runs", "", &body.to_string())?;
            ensure!(status < 300, "{status} {reply}");
            if number.is_multiple_of(50) {
                document(server, number)?;
                item(server, number)?;
            }
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..8).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("clients do not panic"))
    })
}

fn document(server: &Server, number: usize) -> Result<()> {
    let about = json!({"id": format!("urn:document:{number}"), "kind": "text/plain", "title": "A document"});
    let content = "ZG9jdW1lbnQg".repeat(200 + number % 1000);
    let body = json!({"operation": "add-document", "document-metadata": about, "content": content}).to_string();
    let (status, reply) = server.reply("POST", "/api/v1/librarian", "", &body)?;
    ensure!(status == 200, "{status} {reply}");
    Ok(())
}

fn item(server: &Server, number: usize) -> Result<()> {
    let value = json!({"name": format!("type-{number}"), "description": "A type", "framing": ""}).to_string();
    let item = json!({"type": "agent-task-type", "key": format!("type-{}", number % 400), "value": value});
    let body = json!({"operation": "put", "values": [item]}).to_string();
    let (status, reply) = server.reply("POST", "/api/v1/config", "", &body)?;
    ensure!(status == 200, "{status} {reply}");
    Ok(())
}

/// Waits until no run is open.
pub(crate) fn settled(server: &Server) -> Result<()> {
    let begun = Instant::now();
    for state in ["queued", "running", "waiting"] {
        loop {
            let (_, page) = server.reply("GET", &format!("/api/v1/runs?limit=1&state={state}"), "", "")?;
            if page["runs"].as_array().with_context(|| format!("a list: {page}"))?.is_empty() {
                break;
            }
            ensure!(begun.elapsed() < Duration::from_mins(5), "runs do not end: {page}");
            thread::sleep(Duration::from_millis(20));
        }
    }
    Ok(())
}

/// A copy in a folder of its own.
pub fn copy(folder: &Path) -> Result<TempDir> {
    let target = TempDir::new()?;
    let (folders, files) = below(folder)?;
    for folder in folders {
        fs::create_dir_all(target.path().join(folder))?;
    }
    for file in files {
        fs::copy(folder.join(&file), target.path().join(&file))?;
    }
    Ok(target)
}

/// All files below a folder, as paths within it, sorted.
pub fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    Ok(below(folder)?.1)
}

/// All folders and all files, as paths within the folder, sorted.
fn below(folder: &Path) -> Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    let (mut folders, mut files) = (vec![PathBuf::new()], Vec::new());
    let mut next = 0;
    while let Some(inner) = folders.get(next).cloned() {
        next += 1;
        for entry in fs::read_dir(folder.join(&inner))? {
            let entry = entry?;
            let path = inner.join(entry.file_name());
            if entry.file_type()?.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    Ok((folders, files))
}
