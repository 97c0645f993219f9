//! Several rankings as one.

use std::collections::BTreeMap;

/// How little the first ranks differ from those behind them; the value that is usual.
const FLATNESS: f64 = 60.0;

/// Joins rankings by reciprocal rank: an item gets 1 / (60 + rank) from each ranking that has it. Scores of different
/// kinds need not be comparable for that. Items with equal scores come in their own order.
///
/// ```
/// use trellis_orchestrator::documents::fuse;
///
/// let by_words = vec!["a", "b", "c"];
/// let by_meaning = vec!["c", "b", "d"];
/// let order: Vec<_> = fuse([by_words, by_meaning]).into_iter().map(|(item, _)| item).collect();
/// assert_eq!(order, ["c", "b", "a", "d"]);
/// ```
pub fn fuse<K: Ord>(rankings: impl IntoIterator<Item = Vec<K>>) -> Vec<(K, f64)> {
    let mut scores: BTreeMap<K, f64> = BTreeMap::new();
    for ranking in rankings {
        for (rank, item) in (1_u32..).zip(ranking) {
            *scores.entry(item).or_default() += 1.0 / (FLATNESS + f64::from(rank));
        }
    }
    let mut fused: Vec<_> = scores.into_iter().collect();
    // Stable: the map's order stays among equals.
    fused.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    fused
}
