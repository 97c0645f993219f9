//! The files of one of the engine's trees, each against the checksum that was noted when it was written.
//!
//! `current` names a version and its checksum, the version names the tables and theirs. The engine looks at none of them
//! when it opens a tree, and takes sizes from what it has not checked: one flipped bit can ask for more memory than
//! there is, and that ends the process. So they are looked at here, before the engine does.

use crate::engine_fault::EngineFault;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;
use xxhash_rust::xxh3::{Xxh3Default, xxh3_128};

const CURRENT: &str = "current";

/// What a file ends with: two marks, the checksum of its contents list, where that is, and how long.
const TRAILER_BYTES: usize = 4 + 2 + 16 + 8 + 8;
const TRAILER_MARK: &[u8; 4] = b"SFA!";
const CONTENTS_MARK: &[u8; 4] = b"TOC!";
/// No contents list is nearly as long.
const LONGEST_CONTENTS: u64 = 1 << 20;

/// How closely to look at tables, which may be large.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scrutiny {
    /// What the engine reads before it checks anything.
    Opening,
    Everything,
}

/// Whether the engine can open a tree without harm. What it reads later it checks by itself.
pub(crate) fn openable(tree: &Path) -> Result<(), EngineFault> {
    files(tree)?.iter().try_for_each(|file| file.check(tree, Scrutiny::Opening))
}

/// Every file of a tree against its checksum: what is wrong with which. The engine may merge tables meanwhile: then what was
/// looked for is somewhere else.
pub(crate) fn damages(tree: &Path) -> Result<Vec<String>, std::io::Error> {
    let version = || std::fs::read(tree.join(CURRENT)).ok();
    let mut before = version();
    loop {
        let found = damages_now(tree)?;
        let now = version();
        if found.is_empty() || now == before {
            return Ok(found);
        }
        before = now;
    }
}

fn damages_now(tree: &Path) -> Result<Vec<String>, std::io::Error> {
    let mut found = Vec::new();
    let mut note = |result: Result<(), EngineFault>| match result {
        Err(EngineFault::Damaged(what)) => {
            found.push(what);
            Ok(())
        }
        Err(EngineFault::Io(error)) => Err(error),
        Ok(()) => Ok(()),
    };
    match files(tree) {
        Ok(files) => files.iter().try_for_each(|file| note(file.check(tree, Scrutiny::Everything)))?,
        Err(fault) => note(Err(fault))?,
    }
    Ok(found)
}

fn damaged(path: &Path, what: &str) -> EngineFault {
    EngineFault::Damaged(format!("{} {what}", path.display()))
}

/// A file that cannot be opened because it is gone is damage; anything else is the machine's.
fn opened<T>(path: &Path, result: std::io::Result<T>) -> Result<T, EngineFault> {
    result.map_err(|error| {
        if error.kind() == ErrorKind::NotFound { damaged(path, "is missing") } else { EngineFault::Io(error) }
    })
}

/// A table, or a file of large values, as its version knows it.
struct ListedFile {
    folder: &'static str,
    id: u64,
    checksum: u128,
}

impl ListedFile {
    fn check(&self, tree: &Path, look: Scrutiny) -> Result<(), EngineFault> {
        let path = tree.join(self.folder).join(self.id.to_string());
        let mut file = opened(&path, File::open(&path))?;
        let good = match look {
            Scrutiny::Opening => has_contents(&mut file)?,
            Scrutiny::Everything => checksum(&mut file)? == self.checksum,
        };
        if good { Ok(()) } else { Err(damaged(&path, "is not what was written")) }
    }
}

fn checksum(file: &mut File) -> std::io::Result<u128> {
    let (mut hasher, mut buffer) = (Xxh3Default::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.digest128()),
            count => hasher.update(&buffer[..count]),
        }
    }
}

/// Whether a file's contents list is what its trailer says.
fn has_contents(file: &mut File) -> std::io::Result<bool> {
    let length = file.metadata()?.len();
    let Some(end) = length.checked_sub(TRAILER_BYTES as u64) else { return Ok(false) };
    let mut bytes = [0; TRAILER_BYTES];
    file.seek(SeekFrom::Start(end))?;
    file.read_exact(&mut bytes)?;
    let Some(trailer) = Trailer::of(&bytes) else { return Ok(false) };
    if trailer.length > LONGEST_CONTENTS || trailer.start.checked_add(trailer.length) != Some(end) {
        return Ok(false);
    }
    let mut contents = vec![0; usize::try_from(trailer.length).unwrap_or_default()];
    file.seek(SeekFrom::Start(trailer.start))?;
    file.read_exact(&mut contents)?;
    Ok(xxh3_128(&contents) == trailer.checksum)
}

struct Trailer {
    checksum: u128,
    start: u64,
    length: u64,
}

impl Trailer {
    fn of(bytes: &[u8]) -> Option<Self> {
        let mut reading = NumberReader(bytes);
        (reading.take(4)? == TRAILER_MARK && reading.take(2)? == [1, 0]).then_some(())?;
        Some(Self { checksum: reading.u128()?, start: reading.u64()?, length: reading.u64()? })
    }
}

/// The files of the version that counts.
fn files(tree: &Path) -> Result<Vec<ListedFile>, EngineFault> {
    let path = tree.join(CURRENT);
    let current = opened(&path, std::fs::read(&path))?;
    let named = NumberReader(&current).version().filter(|_| current.len() == 8 + 16 + 1);
    let (number, checksum) = named.ok_or_else(|| damaged(&path, "cannot be read"))?;
    // Either of the two may be the damaged one.
    let (path, named_by) = (tree.join(format!("v{number}")), path);
    let bytes = match std::fs::read(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(damaged(&path, &format!("is missing, which {} names", named_by.display())));
        }
        read => read?,
    };
    if xxh3_128(&bytes) != checksum {
        return Err(damaged(&path, &format!("is not what {} says", named_by.display())));
    }
    let listed = || {
        let mut files = tables(section(&bytes, b"tables")?)?;
        files.extend(blobs(section(&bytes, b"blob_files")?)?);
        Some(files)
    };
    listed().ok_or_else(|| damaged(&path, "cannot be read"))
}

/// A part of a file that was found to be what was written.
fn section<'a>(file: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let end = file.len().checked_sub(TRAILER_BYTES)?;
    let trailer = Trailer::of(&file[end..])?;
    let mut contents = NumberReader(file.get(usize::try_from(trailer.start).ok()?..end)?);
    (contents.take(4)? == CONTENTS_MARK).then_some(())?;
    for _ in 0..contents.u32()? {
        let (start, length) = (usize::try_from(contents.u64()?).ok()?, usize::try_from(contents.u64()?).ok()?);
        let length_of_name = usize::from(contents.u16()?);
        if contents.take(length_of_name)? == name {
            return file.get(start..start.checked_add(length)?);
        }
    }
    None
}

/// Levels of runs of tables.
fn tables(bytes: &[u8]) -> Option<Vec<ListedFile>> {
    let (mut reading, mut tables) = (NumberReader(bytes), Vec::new());
    for _ in 0..reading.u8()? {
        for _ in 0..reading.u8()? {
            for _ in 0..reading.u32()? {
                tables.push(reading.listed("tables")?);
                // From which number on its rows are seen.
                reading.u64()?;
            }
        }
    }
    Some(tables)
}

fn blobs(bytes: &[u8]) -> Option<Vec<ListedFile>> {
    let mut reading = NumberReader(bytes);
    (0..reading.u32()?).map(|_| reading.listed("blobs")).collect()
}

/// Reads numbers as the engine writes them: the lowest byte first.
struct NumberReader<'a>(&'a [u8]);

impl<'a> NumberReader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn u8(&mut self) -> Option<u8> {
        self.bytes().map(u8::from_le_bytes)
    }

    fn u16(&mut self) -> Option<u16> {
        self.bytes().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.bytes().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.bytes().map(u64::from_le_bytes)
    }

    fn u128(&mut self) -> Option<u128> {
        self.bytes().map(u128::from_le_bytes)
    }

    fn listed(&mut self, folder: &'static str) -> Option<ListedFile> {
        let id = self.u64()?;
        // There is one kind of checksum.
        (self.u8()? == 0).then_some(())?;
        Some(ListedFile { folder, id, checksum: self.u128()? })
    }

    /// A version's number and checksum.
    fn version(&mut self) -> Option<(u64, u128)> {
        let named = (self.u64()?, self.u128()?);
        (self.u8()? == 0).then_some(named)
    }
}
