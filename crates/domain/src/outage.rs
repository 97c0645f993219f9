//! Times during which nobody served the store. They count neither as run time nor towards deadlines.

use crate::Timestamp;

/// One such time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outage {
    pub from: Timestamp,
    pub to: Timestamp,
}

impl Outage {
    pub fn ms(&self) -> u64 {
        self.to.ms_since(self.from)
    }
}

/// All of them that still matter to somebody, the first one first.
///
/// ```
/// use trellis_domain::outage::{Outage, Outages};
/// use trellis_domain::Timestamp;
///
/// let at = |ms: i64| Timestamp::from_micros(ms * 1000);
/// let outages: Outages = [Outage { from: at(10), to: at(30) }, Outage { from: at(50), to: at(60) }].into_iter().collect();
/// assert_eq!(outages.ms_between(at(0), at(100)), 30);
/// assert_eq!(outages.ms_between(at(20), at(55)), 15);
/// assert_eq!(outages.ms_between(at(31), at(49)), 0);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outages(Vec<Outage>);

impl FromIterator<Outage> for Outages {
    fn from_iter<I: IntoIterator<Item = Outage>>(outages: I) -> Self {
        Self(outages.into_iter().collect())
    }
}

impl Outages {
    /// For how long nobody served between two moments.
    pub fn ms_between(&self, from: Timestamp, to: Timestamp) -> u64 {
        let overlap = |outage: &Outage| outage.to.min(to).ms_since(outage.from.max(from));
        self.0.iter().map(overlap).sum()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Outage> {
        self.0.iter()
    }
}

/// Records leave out what did not happen.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
pub(crate) fn is_zero(ms: &u64) -> bool {
    *ms == 0
}
