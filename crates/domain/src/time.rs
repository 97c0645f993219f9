//! Points in time, handed in from outside: this crate has no clock.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Microseconds since 1970-01-01 UTC.
///
/// ```
/// use trellis_domain::Timestamp;
///
/// assert_eq!(Timestamp::from_micros(1_776_093_402_123_456).to_string(), "2026-04-13T15:16:42.123456Z");
/// assert_eq!(Timestamp::from_micros(0).to_string(), "1970-01-01T00:00:00Z");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct Timestamp(i64);

impl Timestamp {
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// The beginning of a day; None if there is no such day.
    pub(crate) fn of_day(year: i64, month: i64, day: i64) -> Option<Self> {
        let days = days_from_civil(year, month, day);
        (civil_from_days(days) == (year, month, day)).then_some(Self(days.checked_mul(86_400_000_000)?))
    }

    #[must_use]
    pub const fn plus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add_unsigned(ms.saturating_mul(1000)))
    }

    /// Milliseconds from `earlier` to here, zero if it lies ahead.
    pub fn ms_since(self, earlier: Self) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0) / 1000).unwrap_or(0)
    }
}

impl fmt::Display for Timestamp {
    /// ISO-8601 in UTC with a trailing `Z`; microseconds only when there are any, as the original writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, rest) = (self.0.div_euclid(86_400_000_000), self.0.rem_euclid(86_400_000_000));
        let (year, month, day) = civil_from_days(days);
        let (seconds, micros) = (rest / 1_000_000, rest % 1_000_000);
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        if micros != 0 {
            write!(f, ".{micros:06}")?;
        }
        f.write_str("Z")
    }
}

/// Gregorian date of a day number counted from 1970-01-01 (days are counted from 1 March, so that the leap day ends a year).
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// The number of a day, the other way round. A day that no month has gets the number of another.
const fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let (year_from_march, month_from_march) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, year_of_era) = (year_from_march.div_euclid(400), year_from_march.rem_euclid(400));
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}
