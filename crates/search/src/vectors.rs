//! Vectors of one model in a flat file, in half precision: row after row, found by looking at all of them.
//!
//! Of many, their sketches say first which are likely, and only those are compared.
//!
//! Nothing of it is held in memory: what is looked at often is in the operating system's cache. Rows are written before
//! the index names them, so a row that the index does not name is free, whatever is in it.

use crate::sketches::{Sketches, best};
use half::f16;
use half::slice::HalfFloatSliceExt;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::thread;
use trellis_domain::Hash;
use trellis_orchestrator::documents::normalised;

/// Bytes that are read at once.
const BLOCK: usize = 256 << 10;
/// Threads of one search, and how many rows are worth one.
const THREADS: usize = 4;
const ROWS_PER_THREAD: usize = 16 << 10;
/// So many rows are all compared. Of more, this many times as many as are wanted are, but not fewer than one in so many.
const EXACT: usize = 40_000;
const LIKELY: usize = 25;
const ONE_IN: usize = 25;
/// More are not needed, however many rows there are.
const ENOUGH: usize = 10_000;
/// Rows that lie this close to each other are read together.
const TOGETHER: u64 = 8;

/// The vectors of one model and length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Space {
    pub(crate) dimensions: usize,
    /// What passages are marked with.
    pub(crate) id: u64,
    path: PathBuf,
    sketches: Sketches,
}

/// A row and how similar it is to what was asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Similar {
    pub(crate) similarity: f32,
    pub(crate) row: u64,
}

impl Eq for Similar {}

impl Ord for Similar {
    /// The more similar is the greater; of equals the one in front.
    fn cmp(&self, other: &Self) -> Ordering {
        self.similarity.total_cmp(&other.similarity).then_with(|| other.row.cmp(&self.row))
    }
}

impl PartialOrd for Similar {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Space {
    pub(crate) fn new(folder: &Path, model: &str, dimensions: usize) -> Self {
        let hash = Hash::of_parts([model.as_bytes(), &(dimensions as u64).to_be_bytes()]);
        let (first, _) = hash.as_bytes().split_first_chunk().expect("a hash has more than 8 bytes");
        let path = folder.join(format!("vectors-{}", &hash.to_string()[..32]));
        let sketches = Sketches::beside(&path, dimensions);
        Self { dimensions, id: u64::from_be_bytes(*first), path, sketches }
    }

    fn row_bytes(&self) -> usize {
        self.dimensions * size_of::<f16>()
    }

    /// Writes vectors into rows, with their sketches, and waits until they are on disk.
    pub(crate) fn write(&self, rows: &[(u64, &[f32])]) -> io::Result<()> {
        self.make_sketches()?;
        self.write_vectors(rows)?;
        self.sketches.write(rows)?;
        self.sketches.note(&std::fs::metadata(&self.path)?)
    }

    /// Of vectors that have none or have changed since: a version before wrote them, or it was cut off behind them. That
    /// reads all vectors, beside others who read them.
    pub(crate) fn make_sketches(&self) -> io::Result<()> {
        let Some(vectors) = self.metadata()? else { return Ok(()) };
        let rows = vectors.len() / self.row_bytes() as u64;
        if rows <= self.sketches.rows()? && self.sketches.are_of(&vectors)? {
            return Ok(());
        }
        let mut file = io::BufReader::with_capacity(BLOCK, File::open(&self.path)?);
        let mut bytes = vec![0; self.row_bytes()];
        self.sketches.make((0..rows).map(move |_| {
            file.read_exact(&mut bytes)?;
            Ok(bytes.chunks_exact(2).map(|half| f16::from_le_bytes([half[0], half[1]]).to_f32()).collect())
        }))?;
        self.sketches.note(&vectors)
    }

    /// None if there is no such file.
    fn metadata(&self) -> io::Result<Option<Metadata>> {
        match std::fs::metadata(&self.path) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// What is wrong with the file, if all rows up to this one are to be in it.
    pub(crate) fn fault(&self, last: u64) -> io::Result<Option<String>> {
        let path = self.path.display();
        let Some(file) = self.metadata()? else { return Ok(Some(format!("{path} is missing"))) };
        let needed = (last + 1) * self.row_bytes() as u64;
        let is_cut = file.len() < needed;
        Ok(is_cut.then(|| format!("{path} is cut off: it has {} bytes of {needed}", file.len())))
    }

    fn write_vectors(&self, rows: &[(u64, &[f32])]) -> io::Result<()> {
        let mut file = OpenOptions::new().create(true).truncate(false).write(true).open(&self.path)?;
        let mut at = None;
        for (row, vector) in rows {
            let place = row * self.row_bytes() as u64;
            if at != Some(place) {
                file.seek(SeekFrom::Start(place))?;
            }
            let bytes: Vec<u8> =
                normalised(vector).into_iter().flat_map(|number| f16::from_f32(number).to_le_bytes()).collect();
            file.write_all(&bytes)?;
            at = Some(place + bytes.len() as u64);
        }
        file.sync_data()
    }

    /// The rows most similar to a vector, the best first. `live` says in rising order which rows count.
    pub(crate) fn nearest(&self, vector: &[f32], live: &[u64], most: usize) -> io::Result<Vec<Similar>> {
        let normalised = normalised(vector);
        let wanted = normalised.as_slice();
        if let Some(likely) = self.likely(wanted, live, (most * LIKELY).max((live.len() / ONE_IN).min(ENOUGH)))? {
            return self.compare(wanted, &likely, most, TOGETHER);
        }
        self.compare(wanted, live, most, (BLOCK / self.row_bytes()).max(1) as u64)
    }

    /// Of very many rows those that are likely, in rising order; none if all are to be compared.
    fn likely(&self, wanted: &[f32], live: &[u64], most: usize) -> io::Result<Option<Vec<u64>>> {
        let Some(last) = live.last().filter(|_| live.len() > EXACT) else { return Ok(None) };
        let are_known = self.metadata()?.map_or(Ok(false), |vectors| self.sketches.are_of(&vectors))?;
        if !are_known || self.sketches.rows()? <= *last {
            return Ok(None);
        }
        let found = on_threads(live, |rows| self.sketches.likely(wanted, rows, most))?;
        Ok(Some(best(found, most).into_iter().map(|(_, row)| row).collect()))
    }

    fn compare(&self, wanted: &[f32], rows: &[u64], most: usize, together: u64) -> io::Result<Vec<Similar>> {
        let mut found = on_threads(rows, |rows| self.scan(wanted, rows, most, together))?;
        found.sort_unstable_by(|one, other| other.cmp(one));
        found.truncate(most);
        Ok(found)
    }

    /// Rows are read together that lie in a row of so many.
    fn scan(&self, wanted: &[f32], live: &[u64], most: usize, together: u64) -> io::Result<Vec<Similar>> {
        let mut best: BinaryHeap<Reverse<Similar>> = BinaryHeap::with_capacity(most + 1);
        let mut file = File::open(&self.path)?;
        let mut bytes = Vec::new();
        let mut halves = vec![f16::ZERO; self.dimensions];
        let mut numbers = vec![0.0_f32; self.dimensions];
        let mut rest = live;
        while let Some(first) = rest.first().copied() {
            let here = rest.partition_point(|row| *row < first + together);
            let (block, behind) = rest.split_at(here);
            rest = behind;
            let rows = block.last().map_or(0, |last| last - first + 1);
            bytes.resize(usize::try_from(rows).unwrap_or(usize::MAX) * self.row_bytes(), 0);
            file.seek(SeekFrom::Start(first * self.row_bytes() as u64))?;
            file.read_exact(&mut bytes)?;
            for row in block {
                let start = usize::try_from(row - first).unwrap_or(usize::MAX) * self.row_bytes();
                let own = bytes[start..start + self.row_bytes()].chunks_exact(2);
                halves.iter_mut().zip(own).for_each(|(half, bytes)| *half = f16::from_le_bytes([bytes[0], bytes[1]]));
                halves.convert_to_f32_slice(&mut numbers);
                best.push(Reverse(Similar { similarity: product(&numbers, wanted), row: *row }));
                if best.len() > most {
                    best.pop();
                }
            }
        }
        Ok(best.into_iter().map(|Reverse(similar)| similar).collect())
    }
}

/// Has several threads look at the rows, if there are many. What they find comes in the order of the rows.
fn on_threads<T: Send>(rows: &[u64], look: impl Fn(&[u64]) -> io::Result<Vec<T>> + Sync) -> io::Result<Vec<T>> {
    let threads = (rows.len() / ROWS_PER_THREAD).clamp(1, THREADS);
    let share = rows.len().div_ceil(threads).max(1);
    let look = &look;
    let found: io::Result<Vec<Vec<T>>> = thread::scope(|scope| {
        let looking: Vec<_> = rows.chunks(share).map(|rows| scope.spawn(move || look(rows))).collect();
        let failed = |_| io::Error::other("a thread of the search failed");
        looking.into_iter().map(|thread| thread.join().map_err(failed)?).collect()
    });
    Ok(found?.into_iter().flatten().collect())
}

/// In eight sums, which the processor makes side by side. The order is fixed, so that the result is always the same.
fn product(one: &[f32], other: &[f32]) -> f32 {
    const LANES: usize = 8;
    let mut sums = [0.0_f32; LANES];
    let (pairs, others) = (one.chunks_exact(LANES), other.chunks_exact(LANES));
    let rest: f32 = pairs.remainder().iter().zip(others.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in pairs.zip(others) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    sums.iter().sum::<f32>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_by_similarity_from_any_places() {
        let folder = tempfile::tempdir().unwrap();
        let space = Space::new(folder.path(), "m", 20);
        let vector = |n: u64| -> Vec<f32> {
            let angle = f32::from(u16::try_from(n).unwrap()) / 1000.0;
            let mut vector = vec![0.0; 20];
            (vector[0], vector[19]) = (angle.cos(), angle.sin());
            vector
        };
        let vectors: Vec<(u64, Vec<f32>)> = (0..1500).map(|n| (n * 3, vector(n))).collect();
        let rows: Vec<(u64, &[f32])> = vectors.iter().map(|(row, vector)| (*row, vector.as_slice())).collect();
        space.write(&rows).unwrap();
        let live: Vec<u64> = vectors.iter().map(|(row, _)| *row).filter(|row| *row != 1500).collect();
        let found: Vec<u64> =
            space.nearest(&vector(500), &live, 2).unwrap().iter().map(|found| found.row / 3).collect();
        // Half precision cannot tell closer ones apart.
        assert!(found.iter().all(|n| (460..=540).contains(n) && *n != 500), "{found:?}");
        assert!(space.nearest(&vector(0), &[], 5).unwrap().is_empty());
        let beyond = space.nearest(&vector(0), &[5000], 5).unwrap_err();
        assert_eq!(beyond.kind(), io::ErrorKind::UnexpectedEof, "a row that is not there is damage");
    }

    /// Vectors that lie in clusters, as those of texts do.
    fn clustered(row: u64) -> Vec<f32> {
        let mut state = row.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            f32::from(u16::try_from(state % 2_001).unwrap()) / 1_000.0 - 1.0
        };
        let angle = |d: u64| f32::from(u16::try_from((row % 500) * 37 * (d + 1) % 628).unwrap()) / 100.0;
        (0..64).map(|d| angle(d).sin() + 0.5 * next()).collect()
    }

    #[test]
    fn of_very_many_rows_the_likely_ones_are_compared() {
        const ROWS: u64 = 210_000;
        let folder = tempfile::tempdir().unwrap();
        let space = Space::new(folder.path(), "m", 64);
        for start in (0..ROWS).step_by(10_000) {
            let vectors: Vec<(u64, Vec<f32>)> = (start..start + 10_000).map(|row| (row, clustered(row))).collect();
            let rows: Vec<(u64, &[f32])> = vectors.iter().map(|(row, vector)| (*row, vector.as_slice())).collect();
            space.write(&rows).unwrap();
        }
        let all: Vec<u64> = (0..ROWS).collect();
        let exact = |wanted: &[f32], live: &[u64]| space.compare(&normalised(wanted), live, 40, 1_000).unwrap();
        let mut same = 0;
        for question in 0..20 {
            let wanted = clustered(ROWS + question * 17);
            assert!(space.likely(&normalised(&wanted), &all, 1_000).unwrap().is_some_and(|rows| rows.len() == 1_000));
            let found = space.nearest(&wanted, &all, 40).unwrap();
            let expected = exact(&wanted, &all);
            same += expected.iter().filter(|row| found.contains(row)).count();
            // What is not there any more is not found, and leaves its place to others.
            let live: Vec<u64> = all.iter().copied().filter(|row| *row != found[0].row).collect();
            let without = space.nearest(&wanted, &live, 40).unwrap();
            assert!(without.len() == 40 && without.iter().all(|other| other.row != found[0].row));
        }
        assert!(same >= 780, "{same} of 800 are those that an exact search finds");
        // As a version before left it: all are compared, until something is written.
        let signs = space.path.with_extension("signs");
        let before = std::fs::read(&signs).unwrap();
        std::fs::remove_file(&signs).unwrap();
        let wanted = clustered(ROWS);
        assert_eq!(space.nearest(&wanted, &all, 40).unwrap(), exact(&wanted, &all));
        space.write(&[(0, &clustered(0))]).unwrap();
        assert_eq!(space.sketches.rows().unwrap(), ROWS);
        let differs = std::fs::read(&signs).unwrap().iter().zip(&before).filter(|(one, other)| one != other).count();
        assert!(differs < before.len() / 1_000, "half precision has nearly the same signs: {differs}");
        // As a version before overwrites rows that are free: it does not know that they have signs.
        let other: Vec<f32> = clustered(77).iter().map(|number| -number).collect();
        space.write_vectors(&[(77, &other)]).unwrap();
        assert_eq!(space.nearest(&other, &all, 1).unwrap()[0].row, 77);
        space.write(&[(0, &clustered(0))]).unwrap();
        assert!(space.likely(&normalised(&other), &all, 1_000).unwrap().is_some_and(|rows| rows.contains(&77)));
    }

    #[test]
    fn models_and_lengths_have_files_of_their_own() {
        let space = |model, dimensions| Space::new(Path::new("/x"), model, dimensions);
        assert_ne!(space("a", 3).id, space("b", 3).id);
        assert_ne!(space("a", 3).path, space("a", 4).path);
        assert_eq!(space("a", 3), space("a", 3));
    }
}
