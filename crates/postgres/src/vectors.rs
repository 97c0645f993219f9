//! Vectors in tables, and which of them are nearest.
//!
//! The server knows no vectors, but it can count bits. So beside each vector lie its signs: where there are very many
//! vectors, those whose signs differ least are compared exactly, in this process.

use trellis_domain::Hash;
use trellis_orchestrator::documents::normalised;

/// Vectors that are all compared exactly. Of more, so many are chosen by their signs.
pub(crate) const EXACTLY: usize = 10_000;
/// So many times as many as are wanted are chosen, if that is more.
const FOR_EACH: usize = 25;

/// What vectors of a model lie under: those of different models are never compared.
pub(crate) fn space_of(model: &str) -> Vec<u8> {
    Hash::of(model).as_bytes()[..16].to_vec()
}

/// How many vectors are compared exactly for so many that are wanted.
pub(crate) fn candidates(wanted: usize) -> i64 {
    i64::try_from(EXACTLY.max(wanted.saturating_mul(FOR_EACH))).unwrap_or(i64::MAX)
}

/// A vector as it is kept: of length one, so that a product tells the angle.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) numbers: Vec<u8>,
    /// As the server reads bits.
    pub(crate) signs: String,
}

impl Kept {
    pub(crate) fn of(vector: &[f32]) -> Self {
        let numbers = normalised(vector);
        Self { signs: signs(&numbers), numbers: numbers.iter().flat_map(|number| number.to_le_bytes()).collect() }
    }
}

/// A vector that is looked for.
#[derive(Debug)]
pub(crate) struct Aim {
    numbers: Vec<f32>,
    pub(crate) signs: String,
}

impl Aim {
    pub(crate) fn of(vector: &[f32]) -> Self {
        let numbers = normalised(vector);
        Self { signs: signs(&numbers), numbers }
    }

    /// How many numbers it has.
    pub(crate) fn dimensions(&self) -> i32 {
        i32::try_from(self.numbers.len()).unwrap_or(i32::MAX)
    }

    /// The cosine of the angle to a vector that was kept.
    pub(crate) fn similarity(&self, kept: &[u8]) -> f64 {
        let numbers = kept.as_chunks::<4>().0.iter().map(|number| f32::from_le_bytes(*number));
        numbers.zip(&self.numbers).map(|(one, other)| f64::from(one * other)).sum()
    }
}

fn signs(numbers: &[f32]) -> String {
    numbers.iter().map(|number| if *number < 0.0 { '1' } else { '0' }).collect()
}
