//! Chance that can be repeated.

/// Numbers that follow from a seed (`SplitMix64`).
#[derive(Debug)]
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `end`.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let end = u64::try_from(end).expect("numbers of 64 bits");
        usize::try_from((mixed ^ (mixed >> 31)) % end).expect("it is below a number of this kind")
    }
}
