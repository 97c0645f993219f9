//! Shares with their uncertainty, means and percentiles.

use serde::{Deserialize, Serialize};

/// So many standard errors on both sides hold 95 %.
const Z: f64 = 1.959_963_984_540_054;

/// How many of how many, with the 95 % interval that the true rate lies in.
///
/// The interval is Wilson's, which stays inside 0 and 1 and is honest for few trials. It takes trials as independent;
/// repetitions of one question are not quite, so with many of them it is too narrow.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Share {
    pub count: u64,
    pub of: u64,
    pub rate: f64,
    pub low: f64,
    pub high: f64,
}

impl Share {
    /// None if there is nothing to take a share of.
    ///
    /// ```
    /// use trellis_evaluation::Share;
    ///
    /// let share = Share::new(9, 10).expect("there are ten");
    /// assert_eq!(share.to_string(), "90 % [60–98]");
    /// assert_eq!(Share::new(0, 0), None);
    /// ```
    pub fn new(count: u64, of: u64) -> Option<Self> {
        if of == 0 {
            return None;
        }
        let (n, rate) = (float_of(of), float_of(count) / float_of(of));
        let scale = 1.0 + Z * Z / n;
        let centre = (rate + Z * Z / (2.0 * n)) / scale;
        let spread = Z / scale * (rate * (1.0 - rate) / n + Z * Z / (4.0 * n * n)).sqrt();
        // At the ends the interval reaches the rate but for rounding.
        let (low, high) = ((centre - spread).clamp(0.0, rate), (centre + spread).clamp(rate, 1.0));
        Some(Self { count, of, rate, low, high })
    }

    /// The share of the values that are true, of those that are known.
    pub(crate) fn of_known(values: impl IntoIterator<Item = Option<bool>>) -> Option<Self> {
        let (count, of) = values.into_iter().flatten().fold((0, 0), |(count, of), is| (count + u64::from(is), of + 1));
        Self::new(count, of)
    }
}

impl std::fmt::Display for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let percent = |rate: f64| rate * 100.0;
        write!(f, "{:.0} % [{:.0}–{:.0}]", percent(self.rate), percent(self.low), percent(self.high))
    }
}

/// Where the true value lies with 95 %.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
}

impl Interval {
    /// Around the mean of these values, by the normal approximation: too narrow for few values. None for less than two.
    pub(crate) fn of_mean(values: &[f64]) -> Option<Self> {
        let n = float(values.len());
        if values.len() < 2 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let spread = Z * (variance / n).sqrt();
        Some(Self { low: mean - spread, high: mean + spread })
    }

    /// Around a percentile, between two of the values: whatever they are distributed like. None for less than two.
    pub(crate) fn of_percentile(values: &[u64], percent: usize) -> Option<Self> {
        if values.len() < 2 {
            return None;
        }
        let mut sorted = values.to_vec();
        sorted.sort_unstable();
        let (n, share) = (float(sorted.len()), float(percent.min(100)) / 100.0);
        let (rank, spread) = (n * share, Z * (n * share * (1.0 - share)).sqrt());
        let at = |rank: f64| sorted.get(index(rank, sorted.len())).copied().map(float_of);
        Some(Self { low: at((rank - spread).floor() - 1.0)?, high: at((rank + spread).ceil() - 1.0)? })
    }
}

/// The nearest place in a list of this length, which is not empty.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is between 0 and the length")]
fn index(place: f64, length: usize) -> usize {
    place.clamp(0.0, float(length - 1)) as usize
}

impl std::fmt::Display for Interval {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "[{:.0}–{:.0}]", self.low, self.high)
    }
}

/// None for no values.
pub fn mean(values: impl IntoIterator<Item = u64>) -> Option<f64> {
    let (sum, count) = values.into_iter().fold((0.0, 0_u64), |(sum, count), value| (sum + float_of(value), count + 1));
    (count > 0).then(|| sum / float_of(count))
}

/// The smallest value that at least so many percent of all values do not exceed; none for no values.
pub fn percentile(values: &[u64], percent: usize) -> Option<u64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let rank = (sorted.len() * percent.min(100)).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied()
}

#[allow(clippy::cast_precision_loss, reason = "counts and milliseconds are far below 2^53")]
pub(crate) fn float(count: usize) -> f64 {
    count as f64
}

#[allow(clippy::cast_precision_loss, reason = "counts, tokens and milliseconds are far below 2^53")]
pub(crate) fn float_of(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn intervals_are_those_of_the_textbook() {
        let close = |count, of, low: f64, high: f64| {
            let share = Share::new(count, of).unwrap();
            (share.low - low).abs() < 1e-4 && (share.high - high).abs() < 1e-4
        };
        assert!(close(0, 10, 0.0, 0.2775) && close(10, 10, 0.7225, 1.0) && close(5, 10, 0.2366, 0.7634));
        assert!(close(81, 263, 0.2553, 0.3662));
    }

    #[test]
    fn percentiles_are_values_that_occurred() {
        let values = [40, 10, 30, 20];
        assert_eq!([0, 25, 50, 51, 95, 100].map(|p| percentile(&values, p)), [10, 10, 20, 30, 40, 40].map(Some));
        assert_eq!((percentile(&[], 50), mean([])), (None, None));
        assert_eq!((mean([1, 2]), Share::of_known([None, Some(true), Some(false)])), (Some(1.5), Share::new(1, 2)));
    }

    #[test]
    fn intervals_of_means_and_percentiles_are_those_of_the_textbook() {
        let mean = Interval::of_mean(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert!((mean.low - 3.5184).abs() < 1e-3 && (mean.high - 6.4816).abs() < 1e-3, "{mean:?}");
        let hundred: Vec<u64> = (1..=100).collect();
        let interval = |percent| Interval::of_percentile(&hundred, percent).unwrap();
        assert_eq!(interval(50), Interval { low: 40.0, high: 60.0 });
        assert_eq!(interval(95), Interval { low: 90.0, high: 100.0 });
        assert_eq!((Interval::of_mean(&[1.0]), Interval::of_percentile(&[1], 50)), (None, None));
    }

    proptest! {
        #[test]
        fn any_share_lies_in_its_interval(of in 1_u64..5000, part in 0.0..=1.0_f64) {
            let count = (0..=of).find(|count| float_of(*count) >= part * float_of(of)).unwrap_or(of);
            let share = Share::new(count, of).unwrap();
            prop_assert!(0.0 <= share.low && share.low <= share.rate && share.rate <= share.high && share.high <= 1.0);
        }

        #[test]
        fn any_percentile_has_so_many_values_at_or_below_it(
            values in proptest::collection::vec(0_u64..100, 1..50), percent in 1_usize..=100,
        ) {
            let value = percentile(&values, percent).unwrap();
            let (below, least) = (values.iter().filter(|v| **v < value).count(), values.len() * percent);
            prop_assert!(values.iter().filter(|v| **v <= value).count() * 100 >= least && below * 100 < least);
        }
    }
}
