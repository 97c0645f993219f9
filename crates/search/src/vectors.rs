//! Vectors of one model in a flat file, in half precision: row after row, found by looking at all of them.
//!
//! Nothing of it is held in memory: what is looked at often is in the operating system's cache. Rows are written before
//! the index names them, so a row that the index does not name is free, whatever is in it.

use half::f16;
use half::slice::HalfFloatSliceExt;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::fs::{File, OpenOptions};
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

/// The vectors of one model and length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Space {
    pub(crate) dimensions: usize,
    /// What passages are marked with.
    pub(crate) id: u64,
    path: PathBuf,
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
        Self { dimensions, id: u64::from_be_bytes(*first), path }
    }

    fn row_bytes(&self) -> usize {
        self.dimensions * size_of::<f16>()
    }

    /// Writes vectors into rows and waits until they are on disk.
    pub(crate) fn write(&self, rows: &[(u64, &[f32])]) -> io::Result<()> {
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
        let threads = (live.len() / ROWS_PER_THREAD).clamp(1, THREADS);
        let share = live.len().div_ceil(threads).max(1);
        let found: io::Result<Vec<_>> = thread::scope(|scope| {
            let scan = |rows| scope.spawn(move || self.scan(wanted, rows, most));
            let scanning: Vec<_> = live.chunks(share).map(scan).collect();
            let failed = |_| io::Error::other("a thread of the search failed");
            scanning.into_iter().map(|thread| thread.join().map_err(failed)?).collect()
        });
        let mut found = found?.concat();
        found.sort_unstable_by(|one, other| other.cmp(one));
        found.truncate(most);
        Ok(found)
    }

    fn scan(&self, wanted: &[f32], live: &[u64], most: usize) -> io::Result<Vec<Similar>> {
        let mut best: BinaryHeap<Reverse<Similar>> = BinaryHeap::with_capacity(most + 1);
        let mut file = File::open(&self.path)?;
        let rows_at_once = (BLOCK / self.row_bytes()).max(1) as u64;
        let mut bytes = Vec::new();
        let mut halves = vec![f16::ZERO; self.dimensions];
        let mut numbers = vec![0.0_f32; self.dimensions];
        let mut rest = live;
        while let Some(first) = rest.first().copied() {
            let here = rest.partition_point(|row| *row < first + rows_at_once);
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

    #[test]
    fn models_and_lengths_have_files_of_their_own() {
        let space = |model, dimensions| Space::new(Path::new("/x"), model, dimensions);
        assert_ne!(space("a", 3).id, space("b", 3).id);
        assert_ne!(space("a", 3).path, space("a", 4).path);
        assert_eq!(space("a", 3), space("a", 3));
    }
}
