//! Chance that can be repeated.

/// The same seed gives the same numbers (`SplitMix64`).
#[derive(Debug, Clone)]
pub struct Chance(u64);

impl Chance {
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below this one, which is not 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.number() % end
    }

    /// One of several; `None` of none.
    pub fn one<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        let index = self.number().checked_rem(of.len() as u64)?;
        of.get(usize::try_from(index).ok()?)
    }

    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.number().to_le_bytes()[0]).collect()
    }
}
