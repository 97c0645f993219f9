//! Chance from a seed: the same seed, the same course of events.

/// A small generator (splitmix64). Good enough for disorder, useless for secrets.
#[derive(Debug, Clone)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `most`; 0 if there is none.
    pub(crate) fn below(&mut self, most: u64) -> u64 {
        self.next() % most.max(1)
    }

    /// Both ends included.
    pub(crate) fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most.saturating_sub(least) + 1)
    }

    /// True in so many of a thousand cases.
    pub(crate) fn per_mille(&mut self, rate: u32) -> bool {
        rate > 0 && self.below(1_000) < u64::from(rate)
    }

    /// True in one of so many cases.
    pub(crate) fn one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }

    pub(crate) fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        let place = usize::try_from(self.below(of.len() as u64)).unwrap_or(0);
        &of[place]
    }
}
