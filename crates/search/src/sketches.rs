//! The signs of the numbers of vectors, a bit for each: small enough that all of a large collection are looked at for every
//! question. What they find likely is compared exactly.
//!
//! They follow from the vectors, row by row. Files of older versions have none: those are made when something is written. So
//! are those of vectors that an older version has written to since, which does not know of them: beside the signs it is
//! noted which state of the vectors they are those of.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Bytes that are read at once.
const BLOCK: usize = 256 << 10;
const WORD: usize = size_of::<u64>();

/// The sketches of the vectors of one model and length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sketches {
    path: PathBuf,
    /// Says of which vectors they are.
    note: PathBuf,
    dimensions: usize,
}

/// A row, and in how many signs it differs from what was asked for.
type Likely = (u32, u64);

impl Sketches {
    pub(crate) fn beside(vectors: &Path, dimensions: usize) -> Self {
        Self { path: vectors.with_extension("signs"), note: vectors.with_extension("signs-of"), dimensions }
    }

    /// Whether they are those of the vectors as they are now.
    pub(crate) fn are_of(&self, vectors: &Metadata) -> io::Result<bool> {
        match fs::read_to_string(&self.note) {
            Ok(noted) => Ok(noted == state(vectors)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Notes that they are. A note that is lost or torn costs that they are made once more.
    pub(crate) fn note(&self, vectors: &Metadata) -> io::Result<()> {
        fs::write(&self.note, state(vectors)?)
    }

    fn row_bytes(&self) -> usize {
        self.dimensions.div_ceil(u64::BITS as usize) * WORD
    }

    /// Rows that have one, counted from the first.
    pub(crate) fn rows(&self) -> io::Result<u64> {
        match fs::metadata(&self.path) {
            Ok(file) => Ok(file.len() / self.row_bytes() as u64),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
            Err(error) => Err(error),
        }
    }

    /// Writes those of some rows and waits until they are on disk.
    pub(crate) fn write(&self, rows: &[(u64, &[f32])]) -> io::Result<()> {
        let mut file = OpenOptions::new().create(true).truncate(false).write(true).open(&self.path)?;
        for (row, vector) in rows {
            file.seek(SeekFrom::Start(row * self.row_bytes() as u64))?;
            file.write_all(&bytes(&signs(vector)))?;
        }
        file.sync_data()
    }

    /// Makes all of them anew, of vectors row by row: all are there afterwards, or none is touched.
    pub(crate) fn make(&self, vectors: impl Iterator<Item = io::Result<Vec<f32>>>) -> io::Result<()> {
        let beside = self.path.with_extension("signs-new");
        let mut file = BufWriter::with_capacity(BLOCK, File::create(&beside)?);
        for vector in vectors {
            file.write_all(&bytes(&signs(&vector?)))?;
        }
        file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_data()?;
        fs::rename(&beside, &self.path)
    }

    /// The rows that differ in the fewest signs, at most so many, in rising order; of equals those in front. `live` says in
    /// rising order which rows count.
    pub(crate) fn likely(&self, wanted: &[f32], live: &[u64], most: usize) -> io::Result<Vec<Likely>> {
        let wanted = signs(wanted);
        let (Some(first), Some(last)) = (live.first(), live.last()) else { return Ok(Vec::new()) };
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(first * self.row_bytes() as u64))?;
        let mut kept: Vec<Likely> = Vec::with_capacity(2 * most);
        // Rows that differ more than this are of no use any more.
        let mut worst = u32::MAX;
        let rows_at_once = (BLOCK / self.row_bytes()).max(1) as u64;
        let mut block = vec![0; self.row_bytes() * usize::try_from(rows_at_once).unwrap_or(1)];
        let (mut rest, mut begin) = (live, *first);
        while begin <= *last {
            let end = (begin + rows_at_once).min(last + 1);
            let size = self.row_bytes() * usize::try_from(end - begin).unwrap_or(usize::MAX);
            let read = &mut block[..size];
            file.read_exact(read)?;
            let (here, behind) = rest.split_at(rest.partition_point(|row| *row < end));
            rest = behind;
            for row in here {
                let start = usize::try_from(row - begin).unwrap_or(usize::MAX) * self.row_bytes();
                let differs = difference(&read[start..start + self.row_bytes()], &wanted);
                if differs < worst {
                    kept.push((differs, *row));
                    if kept.len() == 2 * most {
                        kept.select_nth_unstable(most - 1);
                        kept.truncate(most);
                        worst = kept.iter().map(|(differs, _)| *differs).max().unwrap_or(worst);
                    }
                }
            }
            begin = end;
        }
        Ok(best(kept, most))
    }
}

/// The best of what several searches found.
pub(crate) fn best(mut found: Vec<Likely>, most: usize) -> Vec<Likely> {
    if found.len() > most {
        found.select_nth_unstable(most);
        found.truncate(most);
    }
    found.sort_unstable_by_key(|(_, row)| *row);
    found
}

/// What changes whenever somebody writes into a file.
fn state(file: &Metadata) -> io::Result<String> {
    let written = file.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(format!("{} {}\n", file.len(), written.as_nanos()))
}

fn signs(vector: &[f32]) -> Vec<u64> {
    let word = |numbers: &[f32]| {
        let bits = numbers.iter().zip(0..).filter(|(number, _)| **number > 0.0);
        bits.fold(0_u64, |word, (_, bit)| word | 1 << bit)
    };
    vector.chunks(u64::BITS as usize).map(word).collect()
}

fn bytes(signs: &[u64]) -> Vec<u8> {
    signs.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn difference(row: &[u8], wanted: &[u64]) -> u32 {
    let words = row.chunks_exact(WORD).map(|word| u64::from_le_bytes(word.try_into().expect("it has eight bytes")));
    words.zip(wanted).map(|(one, other)| (one ^ other).count_ones()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(n: u64, dimensions: usize) -> Vec<f32> {
        (0..dimensions as u64)
            .map(|d| if (n * 7919 + d * d * (n + 3)).is_multiple_of(3) { 1.0 } else { -0.5 })
            .collect()
    }

    #[test]
    fn the_likeliest_rows_are_those_with_the_fewest_other_signs() {
        let folder = tempfile::tempdir().unwrap();
        for dimensions in [1, 64, 65, 384] {
            let sketches = Sketches::beside(&folder.path().join(format!("vectors-{dimensions}")), dimensions);
            assert_eq!(sketches.rows().unwrap(), 0);
            let all: Vec<Vec<f32>> = (0..3000).map(|n| vector(n, dimensions)).collect();
            sketches.make(all[..1000].iter().map(|vector| Ok(vector.clone()))).unwrap();
            let rest: Vec<(u64, &[f32])> = (1000..).zip(all[1000..].iter().map(Vec::as_slice)).collect();
            sketches.write(&rest).unwrap();
            assert_eq!(sketches.rows().unwrap(), 3000);
            let live: Vec<u64> = (0..3000).filter(|row| row % 5 != 2).collect();
            let differs = |row: &u64| {
                let other = &all[usize::try_from(*row).unwrap()];
                let signs = other.iter().zip(&all[77]).filter(|(one, other)| (**one > 0.0) != (**other > 0.0));
                u32::try_from(signs.count()).unwrap()
            };
            let mut expected: Vec<Likely> = live.iter().map(|row| (differs(row), *row)).collect();
            expected.sort_unstable();
            expected.truncate(50);
            let mut found = sketches.likely(&all[77], &live, 50).unwrap();
            assert!(found.is_sorted_by_key(|(_, row)| *row));
            found.sort_unstable();
            assert_eq!(found, expected, "{dimensions} dimensions");
        }
    }
}
