//! Files are damaged at random. `doctor` names the damage, or there is none: everything reads back as it was.

use crate::folder::{Specimen, copy, files};
use crate::read_back::{difference, read_back};
use crate::{Chance, Ended, Programs};
use anyhow::{Context, Result};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// What can happen to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Bit,
    Block,
    Truncated,
    Missing,
    Older,
}

pub const KINDS: [Kind; 5] = [Kind::Bit, Kind::Block, Kind::Truncated, Kind::Missing, Kind::Older];

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bit => "one bit",
            Self::Block => "one block",
            Self::Truncated => "truncated",
            Self::Missing => "missing file",
            Self::Older => "older copy of a file",
        })
    }
}

/// What was done to a file.
#[derive(Debug)]
pub struct Fault {
    pub kind: Kind,
    pub file: PathBuf,
    how: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.file.display(), self.kind, self.how)
    }
}

/// What came of it.
#[derive(Debug)]
pub enum Outcome {
    /// `doctor` exits with 7 and says what is wrong.
    Named,
    /// `doctor` finds nothing wrong, and there is nothing wrong.
    Harmless,
    /// What must never be.
    Wrong(String),
}

/// Does one or two faults to a copy of the specimen, and looks what `doctor` says.
pub fn trial(programs: &Programs, specimen: &Specimen, faults: usize, seed: u64) -> Result<(Vec<Fault>, Outcome)> {
    let mut chance = Chance::new(seed);
    let folder = copy(specimen.folder.path())?;
    let mut done = Vec::new();
    while done.len() < faults {
        done.extend(inflict(specimen, folder.path(), &mut chance)?);
    }
    let outcome = examined(programs, specimen, folder.path(), &done, seed.is_multiple_of(5))?;
    Ok((done, outcome))
}

fn examined(programs: &Programs, specimen: &Specimen, folder: &Path, faults: &[Fault], every: bool) -> Result<Outcome> {
    let doctor = programs.run(folder, &["doctor"])?;
    Ok(match doctor.code() {
        Some(0) if specimen.has_same_files(folder)? => Outcome::Harmless,
        Some(0) => match read_back(programs, folder) {
            Ok(holds) => difference(&specimen.holds, &holds).map_or(Outcome::Harmless, |difference| {
                Outcome::Wrong(format!("doctor finds nothing, but {difference}"))
            }),
            Err(error) => Outcome::Wrong(format!("doctor finds nothing, but {error:#}")),
        },
        Some(7) if names_something(&doctor, faults) => match aborts(programs, folder, every)? {
            None => Outcome::Named,
            Some(ended) => Outcome::Wrong(format!("doctor names it, but a command ends with {ended}")),
        },
        _ => Outcome::Wrong(format!("doctor ends with {doctor}")),
    })
}

/// Whether it says where the damage is: the file, or what lies in it. What it found in order does not count.
fn names_something(doctor: &Ended, faults: &[Fault]) -> bool {
    let (mut is_fault, mut told) = (false, String::new());
    for line in doctor.said.lines() {
        // What continues a line is indented.
        is_fault = if line.starts_with(' ') { is_fault } else { !line.starts_with("ok ") };
        if is_fault {
            told.push_str(line);
            told.push('\n');
        }
    }
    let of_file = |fault: &Fault| {
        let name = fault.file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        told.contains(&fault.file.display().to_string()) || (name.len() > 3 && told.contains(&name))
    };
    let things = [
        "run ",
        "record ",
        "session ",
        "entry ",
        "entries of",
        "document ",
        "item ",
        "groups of commits",
        "the log's head",
    ];
    faults.iter().any(of_file) || things.iter().any(|thing| told.contains(thing))
}

/// Other commands may fail on a damaged folder, in order: none may crash. Queries derive a damaged view anew, which
/// takes long: not every trial does that.
fn aborts(programs: &Programs, folder: &Path, every: bool) -> Result<Option<Ended>> {
    let all = [&["runs"][..], &["ask", "Who owns Company X?"], &["sparql", "ASK { ?s ?p ?o }"]];
    for arguments in &all[..if every { 3 } else { 2 }] {
        let ended = programs.run(folder, arguments)?;
        if ended.code().is_none_or(|code| code > 13) || ended.said.contains("panicked") {
            return Ok(Some(ended));
        }
    }
    Ok(None)
}

/// Damages a file that chance picks; none if that file cannot be damaged so.
fn inflict(specimen: &Specimen, folder: &Path, chance: &mut Chance) -> Result<Option<Fault>> {
    let kind = *chance.one(&KINDS).context("there are kinds")?;
    let Some(file) = picked(folder, kind, chance)? else { return Ok(None) };
    let path = folder.join(&file);
    let mut bytes = fs::read(&path)?;
    let length = bytes.len();
    let at = |chance: &mut Chance| usize::try_from(chance.below(length.max(1) as u64)).unwrap_or(0);
    let how = match kind {
        Kind::Bit => {
            let (at, bit) = (at(chance), chance.below(8));
            bytes[at] ^= 1 << bit;
            fs::write(&path, bytes)?;
            format!("{bit} of byte {at} of {length}")
        }
        Kind::Block => {
            // As disks lose them: a sector or a page, of zeros or of something else.
            let size = *chance.one(&[512, 4096]).context("there are sizes")?;
            let start = at(chance) / size * size;
            let end = (start + size).min(length);
            let zeros = chance.below(2) == 0;
            let with = if zeros { vec![0; end - start] } else { chance.bytes(end - start) };
            if bytes[start..end] == with[..] {
                return Ok(None);
            }
            bytes[start..end].copy_from_slice(&with);
            fs::write(&path, bytes)?;
            format!("{start}..{end} of {length}, {}", if zeros { "zeros" } else { "noise" })
        }
        Kind::Truncated => {
            let left = at(chance);
            fs::OpenOptions::new().write(true).open(&path)?.set_len(left as u64)?;
            format!("to {left} of {length}")
        }
        Kind::Missing => {
            fs::remove_file(&path)?;
            format!("of {length}")
        }
        Kind::Older => {
            let number = usize::try_from(chance.below(specimen.older.len().max(1) as u64)).unwrap_or(0);
            let Some(older) = specimen.older.get(number).map(|older| older.path().join(&file)) else { return Ok(None) };
            if !older.exists() || fs::read(&older)? == bytes {
                return Ok(None);
            }
            fs::copy(&older, &path)?;
            format!("{number}")
        }
    };
    Ok(Some(Fault { kind, file, how }))
}

/// Half of the time any file, else one by its size: small files matter as much as large ones.
fn picked(folder: &Path, kind: Kind, chance: &mut Chance) -> Result<Option<PathBuf>> {
    let mut sized = Vec::new();
    for file in files(folder)? {
        let length = fs::metadata(folder.join(&file))?.len();
        if length > 0 || kind == Kind::Missing {
            sized.push((file, length));
        }
    }
    if chance.below(2) == 0 {
        return Ok(chance.one(&sized).map(|(file, _)| file.clone()));
    }
    let total: u64 = sized.iter().map(|(_, length)| length).sum();
    let mut left = chance.below(total.max(1));
    Ok(sized.into_iter().find_map(|(file, length)| {
        let here = left < length;
        left = left.saturating_sub(length);
        here.then_some(file)
    }))
}
