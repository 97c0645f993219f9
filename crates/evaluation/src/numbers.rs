//! The numbers in a text, whatever habits of writing it has.
//!
//! `1.234` is a fraction for some and more than a thousand for others, so a number may have several readings; whoever
//! looks for a value takes any of them. Digits that follow a letter belong to a name (`Q4`), not to a number.

/// A number as it stands in a text, with every value that it may mean.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Number {
    readings: Vec<f64>,
    /// Which sentence it is in.
    sentence: usize,
}

impl Number {
    fn is(&self, value: f64) -> bool {
        self.readings.iter().any(|reading| same(*reading, value))
    }
}

/// Equal up to a millionth, because models round.
pub(crate) fn same(one: f64, other: f64) -> bool {
    const RELATIVE: f64 = 1e-6;
    (one - other).abs() <= (RELATIVE * one.abs().max(other.abs())).max(f64::EPSILON)
}

/// Whether a text gives this value as its number: it occurs in the last sentence that has a number at all. That is where
/// answers stand; what comes before may be how they were found. A text with one number only is a case of this.
pub(crate) fn gives(text: &str, value: f64) -> bool {
    let numbers = numbers(text);
    let last = numbers.last().map(|number| number.sentence);
    numbers.iter().any(|number| Some(number.sentence) == last && number.is(value))
}

fn numbers(text: &str) -> Vec<Number> {
    // As formulas are set.
    let text: Vec<char> = text.replace("{,}", ",").replace("\\,", "\u{202f}").chars().collect();
    let (mut found, mut sentence, mut at) = (Vec::new(), 0, 0);
    while at < text.len() {
        let before = at.checked_sub(1).map(|before| text[before]);
        if !text[at].is_ascii_digit() {
            sentence += usize::from(ends_sentence(&text, at));
            at += 1;
            continue;
        }
        let end = end_of_number(&text, at);
        if !before.is_some_and(char::is_alphabetic) {
            let readings = readings(&text[at..end], sign(&text, at));
            found.push(Number { readings, sentence });
        }
        at = end;
    }
    found
}

fn ends_sentence(text: &[char], at: usize) -> bool {
    let is_last_of_words = || text.get(at + 1).is_none_or(|next| next.is_whitespace());
    text[at] == '\n' || (matches!(text[at], '.' | '!' | '?') && is_last_of_words())
}

/// A minus, unless it joins the number to what stands before: `2020-2023`, `q-14`.
fn sign(text: &[char], at: usize) -> f64 {
    let is_minus = |place: usize| matches!(text[place], '-' | '−');
    let joins = |place: usize| place > 0 && text[place - 1].is_alphanumeric();
    let minus = at.checked_sub(1).is_some_and(|place| is_minus(place) && !joins(place));
    if minus { -1.0 } else { 1.0 }
}

const BLANKS: [char; 4] = [' ', '\u{a0}', '\u{2009}', '\u{202f}'];

/// Where the digits end, with the separators between them and an exponent behind them.
fn end_of_number(text: &[char], start: usize) -> usize {
    let digits = |from: usize| text[from.min(text.len())..].iter().take_while(|c| c.is_ascii_digit()).count();
    let mut end = start + digits(start);
    while let Some(separator) = text.get(end) {
        let next = digits(end + 1);
        let goes_on = match separator {
            '.' | ',' => next > 0,
            '\'' | '’' => next == 3,
            // Two numbers beside each other are not one, if they cannot be groups of one.
            blank if BLANKS.contains(blank) => next == 3 && (end - start <= 3 || is_grouped(&text[start..end])),
            _ => false,
        };
        if !goes_on {
            break;
        }
        end += 1 + next;
    }
    let signed = usize::from(text.get(end + 1).is_some_and(|sign| matches!(sign, '+' | '-')));
    let is_exponent = text.get(end).is_some_and(|mark| matches!(mark, 'e' | 'E')) && digits(end + 1 + signed) > 0;
    if is_exponent { end + 1 + signed + digits(end + 1 + signed) } else { end }
}

/// Whether blanks have separated groups in it already.
fn is_grouped(number: &[char]) -> bool {
    number.iter().any(|c| BLANKS.contains(c))
}

fn readings(number: &[char], sign: f64) -> Vec<f64> {
    let text: String = number.iter().filter(|c| !BLANKS.contains(c) && !matches!(c, '\'' | '’')).collect();
    let plain = |fraction: Option<char>| -> Option<f64> {
        let kept = text.chars().filter(|c| !matches!(c, '.' | ',') || Some(*c) == fraction);
        kept.map(|c| if c == ',' { '.' } else { c }).collect::<String>().parse::<f64>().ok()
    };
    let groups = |separator: char| {
        let digits = text.split(['e', 'E']).next().unwrap_or_default();
        let whole = digits.split(if separator == ',' { '.' } else { ',' }).next().unwrap_or_default();
        let (first, groups) = whole.split_once(separator).unwrap_or((whole, ""));
        // No number of thousands begins with a nought.
        let is_first = groups.is_empty() || (first.len() <= 3 && !first.starts_with('0'));
        is_first && groups.split(separator).all(|group| groups.is_empty() || group.len() == 3)
    };
    let mut readings = Vec::new();
    for fraction in ['.', ','] {
        let thousands = if fraction == '.' { ',' } else { '.' };
        if text.matches(fraction).count() <= 1 && groups(thousands) && precedes(&text, thousands, fraction) {
            readings.extend(plain(Some(fraction)));
        }
    }
    if !(text.contains('.') && text.contains(',')) && groups('.') && groups(',') {
        readings.extend(plain(None));
    }
    readings.iter().map(|reading| sign * reading).collect()
}

/// Groups are never behind the fraction.
fn precedes(text: &str, thousands: char, fraction: char) -> bool {
    text.rfind(thousands).zip(text.find(fraction)).is_none_or(|(last, first)| last < first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn habits_of_writing_do_not_matter() {
        for text in [
            "66224.4",
            "66,224.40 euros",
            "66.224,40 €",
            "66'224.4",
            "€66 224,40",
            "66\u{202f}224.4",
            "**66224.40**",
            "$66{,}224.40$",
            "6.62244e4",
            "1384 × 47.85 = 66,224.4.",
            "First I searched 3 documents. The total is 66224.4 crowns.",
            "66224.4 euros.\n\nAsk if you need more.",
        ] {
            assert!(gives(text, 66224.4), "{text}");
        }
        for text in ["662244", "66224", "The total is 66224.4. No, it is 7.", "-66224.4", "", "A66224.4", "sixty"] {
            assert!(!gives(text, 66224.4), "{text}");
        }
    }

    #[test]
    fn a_number_that_may_mean_two_things_is_either() {
        assert!(gives("1.234", 1234.0) && gives("1.234", 1.234) && gives("1,234", 1234.0) && gives("1,234", 1.234));
        assert!(gives("1,234,567", 1_234_567.0) && gives("30 429 567", 30_429_567.0));
        assert!(!gives("12,34", 1234.0) && !gives("2023 100", 2_023_100.0) && gives("2023 100", 100.0));
        assert!(gives("It fell by −7.5 %.", -7.5) && gives("from 2020-2023", 2023.0) && gives("(-3)", -3.0));
        assert!(gives("0", 0.0) && !gives("0.1", 0.0) && !gives("0.641", 641.0) && !gives("1234.567", 1_234_567.0));
    }

    proptest! {
        #[test]
        fn any_integer_is_found_with_any_separator(value in -9_999_999_999_i64..9_999_999_999, separator in 0_usize..6) {
            let separator = [",", ".", "'", "\u{202f}", " ", ""][separator];
            let digits = value.unsigned_abs().to_string();
            let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(|group| str::from_utf8(group).unwrap()).collect();
            let text = format!("It is {}{} km.", if value < 0 { "-" } else { "" }, groups.join(separator));
            prop_assert!(gives(&text, value.to_string().parse().unwrap()), "{text}");
        }

        #[test]
        fn any_text_can_be_searched(text in "[0-9.,' eE+\\-\u{202f}\n]{0,40}|\\PC{0,40}", value: f64) {
            gives(&text, value);
        }
    }
}
