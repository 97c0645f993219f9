//! Words, numbers and times as people read them, safe for a terminal.

use std::sync::atomic::{AtomicBool, Ordering};
use trellis_domain::RunId;
use trellis_domain::marks::is_direction_mark;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Whether our own marks are plain ASCII. One choice for the whole process, as colour is.
static PLAIN: AtomicBool = AtomicBool::new(false);

/// `--ascii`: marks of ours that any terminal and any log can show. Text of others stays as it is.
pub(crate) fn decide_marks(ascii: bool) {
    PLAIN.store(ascii, Ordering::Relaxed);
}

/// What stands where something was cut.
fn ellipsis() -> &'static str {
    if PLAIN.load(Ordering::Relaxed) { "..." } else { "…" }
}

/// Text from a model or a tool, made safe for a terminal: escapes and other controls are shown, not obeyed.
///
/// Bidirectional overrides go too: they can make a line read as something else.
pub(crate) fn clean(text: &str) -> String {
    let plain = PLAIN.load(Ordering::Relaxed);
    let safe = |c: char| match c {
        '\n' | '\t' => c,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' if plain => '?',
        c if is_direction_mark(c) && plain => '?',
        '\0'..='\u{1f}' => char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}'),
        '\u{7f}' => '\u{2421}',
        '\u{80}'..='\u{9f}' => '\u{fffd}',
        c if is_direction_mark(c) => '\u{fffd}',
        other => other,
    };
    text.chars().map(safe).collect()
}

/// The first words of a text, on one line.
pub(crate) fn excerpt(text: &str, width: usize) -> String {
    cut(one_line(text), width)
}

/// A text without line breaks, safe for a terminal.
pub(crate) fn one_line(text: &str) -> String {
    clean(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Columns that a text takes on a terminal: most Chinese, Japanese and Korean characters and emoji take two.
pub(crate) fn width(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}

/// At most so many columns; what was cut can be seen.
pub(crate) fn cut(line: String, columns: usize) -> String {
    if width(&line) <= columns {
        return line;
    }
    let mark = ellipsis();
    let mut left = columns.saturating_sub(width(mark));
    let fits = |c: &char| {
        let rest = left.checked_sub(c.width().unwrap_or(0));
        left = rest.unwrap_or(left);
        rest.is_some()
    };
    line.chars().take_while(fits).chain(mark.chars()).collect()
}

/// A text with as many spaces behind it as a column of this width needs.
pub(crate) fn padded(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

pub(crate) fn seconds(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms} ms"),
        1000..60_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        _ => format!("{} m {} s", ms / 60_000, ms / 1000 % 60),
    }
}

/// Enough of a run's id to find it again.
pub(crate) fn short(run: &RunId) -> String {
    run.as_str().chars().take(8).collect()
}

/// 12345 as 12,345.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `812 in / 96 out`, or nothing if the provider did not say.
pub(crate) fn tokens(in_token: Option<u64>, out_token: Option<u64>) -> String {
    let count = |count: Option<u64>| count.map_or("?".to_owned(), grouped);
    match (in_token, out_token) {
        (None, None) => String::new(),
        (given, taken) => format!("{} in / {} out", count(given), count(taken)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_in_model_text_are_shown_and_not_obeyed() {
        assert_eq!(clean("a\u{1b}[2Jb\u{9b}c\u{202e}d\u{7f}\n\te"), "a␛[2Jb\u{fffd}c\u{fffd}d␡\n\te");
    }

    #[test]
    fn numbers_are_grouped_and_times_are_readable() {
        assert_eq!((grouped(999), grouped(1_234_567)), ("999".into(), "1,234,567".into()));
        assert_eq!(
            (seconds(950), seconds(6_340), seconds(125_000)),
            ("950 ms".into(), "6.3 s".into(), "2 m 5 s".into())
        );
        assert_eq!((tokens(None, None), tokens(Some(1200), None)), (String::new(), "1,200 in / ? out".into()));
    }

    #[test]
    fn an_excerpt_is_one_line() {
        assert_eq!(excerpt("one\n  two three", 9), "one two …");
    }

    #[test]
    fn text_is_cut_by_columns_and_not_by_characters() {
        for (text, columns, expected) in [
            ("東京の天気", 10, "東京の天気"),
            ("東京の天気", 9, "東京の天…"),
            ("東京の天気", 8, "東京の…"),
            ("né\u{301}e là-bas", 4, "né\u{301}e…"),
            ("🚀🚀🚀", 5, "🚀🚀…"),
            ("東京", 0, "…"),
        ] {
            assert_eq!(excerpt(text, columns), expected, "{text} in {columns}");
        }
        assert_eq!(padded("東京", 6), "東京  ");
    }
}
