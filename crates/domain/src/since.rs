//! From when on something is wanted, as people write it.

use crate::Timestamp;
use std::str::FromStr;

/// A span back from now, or a moment.
///
/// ```
/// use trellis_domain::{Since, Timestamp};
///
/// let now = Timestamp::from_micros(1_776_093_402_123_456);
/// let seen = |text: &str| text.parse::<Since>().map(|since| since.seen_at(now).to_string());
/// assert_eq!(seen("2h").as_deref(), Ok("2026-04-13T13:16:42.123456Z"));
/// assert_eq!(seen("2026-04-01").as_deref(), Ok("2026-04-01T00:00:00Z"));
/// assert!(seen("2026-02-30").is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    Back { seconds: u32 },
    Moment(Timestamp),
}

/// A text that names no time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no time: give a span back from now such as 90s, 30m, 2h, 7d or 4w, a day such as 2026-11-01, or a moment in \
     UTC such as 2026-11-01T10:30Z"
)]
pub struct NotSince(String);

impl Since {
    /// The moment that is meant by somebody who says it now. Never before 1970, with which our time begins.
    pub fn seen_at(self, now: Timestamp) -> Timestamp {
        let moment = match self {
            Self::Back { seconds } => now.as_micros().saturating_sub(i64::from(seconds) * 1_000_000),
            Self::Moment(moment) => moment.as_micros(),
        };
        Timestamp::from_micros(moment.max(0))
    }
}

impl FromStr for Since {
    type Err = NotSince;

    fn from_str(text: &str) -> Result<Self, NotSince> {
        let back = seconds(text).map(|seconds| Self::Back { seconds });
        back.or_else(|| moment(text).map(Self::Moment)).ok_or_else(|| NotSince(text.to_owned()))
    }
}

/// Seconds of a span such as `2h`.
fn seconds(text: &str) -> Option<u32> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let factor = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 24 * 3600,
        "w" => 7 * 24 * 3600,
        _ => return None,
    };
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| number.parse::<u32>().ok())??.checked_mul(factor)
}

/// A day, or a moment of it: `2026-11-01`, `2026-11-01T10:30`, `2026-11-01T10:30:05.25Z`.
fn moment(text: &str) -> Option<Timestamp> {
    let (day, time) = text.split_once('T').unwrap_or((text, "00:00"));
    let [year, month, day] = numbers(day, '-', [4, 2, 2])?;
    let time = time.strip_suffix('Z').unwrap_or(time);
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let without_seconds = || numbers(time, ':', [2, 2]).map(|[hour, minute]| [hour, minute, 0]);
    let [hour, minute, second] = numbers(time, ':', [2, 2, 2]).or_else(without_seconds)?;
    let is_time = hour < 24 && minute < 60 && second < 60;
    let is_fraction = (1..=6).contains(&fraction.len()) && fraction.bytes().all(|byte| byte.is_ascii_digit());
    if !is_time || !is_fraction {
        return None;
    }
    let micros = format!("{fraction:0<6}").parse::<i64>().ok()?;
    let midnight = Timestamp::of_day(year, month, day)?.as_micros();
    Some(Timestamp::from_micros(midnight + ((hour * 60 + minute) * 60 + second) * 1_000_000 + micros))
}

/// Numbers of so many digits each, and nothing else, with that sign between them.
fn numbers<const N: usize>(text: &str, between: char, digits: [usize; N]) -> Option<[i64; N]> {
    let mut parts = text.split(between);
    let mut found = [0; N];
    for (number, length) in found.iter_mut().zip(digits) {
        let part = parts.next()?;
        let is_number = part.len() == length && part.bytes().all(|byte| byte.is_ascii_digit());
        *number = is_number.then(|| part.parse().ok())??;
    }
    parts.next().is_none().then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(1_776_093_402_123_456);

    fn seen(text: &str) -> Result<String, String> {
        let since = text.parse::<Since>().map_err(|error| error.to_string())?;
        Ok(since.seen_at(NOW).to_string())
    }

    #[test]
    fn spans_and_moments_are_read() {
        for (text, moment) in [
            ("0s", "2026-04-13T15:16:42.123456Z"),
            ("90s", "2026-04-13T15:15:12.123456Z"),
            ("30m", "2026-04-13T14:46:42.123456Z"),
            ("24h", "2026-04-12T15:16:42.123456Z"),
            ("1d", "2026-04-12T15:16:42.123456Z"),
            ("2w", "2026-03-30T15:16:42.123456Z"),
            ("5000w", "1970-01-01T00:00:00Z"),
            ("1960-01-01", "1970-01-01T00:00:00Z"),
            ("2024-02-29", "2024-02-29T00:00:00Z"),
            ("2026-11-01T10:30", "2026-11-01T10:30:00Z"),
            ("2026-11-01T10:30:59Z", "2026-11-01T10:30:59Z"),
            ("2026-11-01T10:30:05.25Z", "2026-11-01T10:30:05.250000Z"),
        ] {
            assert_eq!(seen(text).as_deref(), Ok(moment), "{text}");
        }
    }

    #[test]
    fn what_a_moment_writes_is_read_as_the_same_moment() {
        for micros in [0, 1, 951_827_199_999_999, 1_776_093_402_123_456, 4_107_542_399_000_000] {
            let moment = Timestamp::from_micros(micros);
            assert_eq!(moment.to_string().parse::<Since>(), Ok(Since::Moment(moment)));
        }
    }

    #[test]
    fn what_names_no_time_is_refused_with_examples() {
        let spans = ["", "h", "2", "-2h", "+2h", "2 h", "2y", "2ü", "99999999999s", "4294967295w", "yesterday"];
        let days =
            ["2026", "2026-11", "2026-13-01", "2026-00-10", "2026-02-29", "2026-1-1", "2026-11-01-01", "2026-11-01Z"];
        let times = ["", "24:00", "10:60", "10:30:60", "10:30:00.", "10:30:00.1234567", "10:30+01:00"];
        let moments = times.map(|time| format!("2026-11-01T{time}"));
        for text in spans.into_iter().chain(days).chain(moments.iter().map(String::as_str)) {
            let error = seen(text).expect_err(text);
            assert!(error.starts_with(&format!("`{text}` is no time")) && error.contains("2h"), "{error}");
        }
    }
}
