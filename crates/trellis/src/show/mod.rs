//! Text for people: clean, aligned, coloured where the stream is a terminal.

pub(crate) mod follow;
pub(crate) mod tree;

use crate::cli::Colour;
use anstream::ColorChoice;
use owo_colors::OwoColorize;
use std::io::Write;
use trellis_domain::record::Ended;
use trellis_domain::run::{RunState, RunSummary};
use trellis_domain::{RunId, Timestamp};

/// `auto` looks at each stream, `NO_COLOR` and `TERM`.
pub(crate) fn decide_colour(colour: Colour) {
    match colour {
        Colour::Auto => {}
        Colour::Always => ColorChoice::Always.write_global(),
        Colour::Never => ColorChoice::Never.write_global(),
    }
}

/// The marks in front of lines; a word follows each, so that none has to be understood.
pub(crate) struct Marks {
    pub(crate) routing: &'static str,
    pub(crate) thought: &'static str,
    pub(crate) tool: &'static str,
    pub(crate) good: &'static str,
    pub(crate) bad: &'static str,
    /// Between two choices, one of which led to the other.
    pub(crate) then: &'static str,
    pub(crate) between: &'static str,
    pub(crate) branch: &'static str,
    pub(crate) last: &'static str,
    pub(crate) beside: &'static str,
    pub(crate) chosen: &'static str,
    pub(crate) offered: &'static str,
}

impl Marks {
    pub(crate) const fn of(ascii: bool) -> &'static Self {
        const SYMBOLS: Marks = Marks {
            routing: "◆",
            thought: "·",
            tool: "→",
            good: "✓",
            bad: "✕",
            then: " → ",
            between: " · ",
            branch: "├─",
            last: "└─",
            beside: "│  ",
            chosen: "●",
            offered: "○",
        };
        const PLAIN: Marks = Marks {
            routing: "*",
            thought: "-",
            tool: ">",
            good: "+",
            bad: "x",
            then: " -> ",
            between: " - ",
            branch: "|-",
            last: "`-",
            beside: "|  ",
            chosen: "(x)",
            offered: "( )",
        };
        if ascii { &PLAIN } else { &SYMBOLS }
    }
}

/// One line on stderr, coloured if it may be. Nobody there to read it is no failure.
pub(crate) fn note(line: &str) {
    drop(writeln!(anstream::stderr().lock(), "{line}"));
}

/// One line on stdout. A reader that has gone away ends the command quietly.
pub(crate) fn print_line(line: &str) -> std::io::Result<()> {
    writeln!(std::io::stdout().lock(), "{line}")
}

/// One line of JSON on stdout. JSON may hold controls and direction marks that a terminal obeys; escaped, they
/// mean the same to a program and nothing to a terminal.
pub(crate) fn print_json(json: &str) -> std::io::Result<()> {
    let mut line = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '\u{7f}'..='\u{9f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' => {
                line.extend(["\\u".to_owned(), format!("{:04x}", u32::from(c))]);
            }
            other => line.push(other),
        }
    }
    print_line(&line)
}

/// Text from a model or a tool, made safe for a terminal: escapes and other controls are shown, not obeyed.
///
/// Bidirectional overrides go too: they can make a line read as something else.
pub(crate) fn clean(text: &str) -> String {
    let safe = |c: char| match c {
        '\n' | '\t' => c,
        '\0'..='\u{1f}' => char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}'),
        '\u{7f}' => '\u{2421}',
        '\u{80}'..='\u{9f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' => '\u{fffd}',
        other => other,
    };
    text.chars().map(safe).collect()
}

/// The first words of a text, on one line.
pub(crate) fn excerpt(text: &str, width: usize) -> String {
    let line = clean(text).split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= width {
        return line;
    }
    line.chars().take(width.saturating_sub(1)).chain(['…']).collect()
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

/// The last lines of `ask`: what it was, and how to look further.
pub(crate) fn closing(summary: &RunSummary, ended: &Ended, now: Timestamp, marks: &Marks) {
    let id = short(&summary.run);
    let parts = [
        format!("run {}", id.bold()),
        state(summary.state),
        seconds(summary.ms(now)),
        tokens(summary.usage.in_token, summary.usage.out_token),
        clean(summary.usage.model.as_deref().unwrap_or_default()),
    ];
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    note("");
    note(&parts.join(marks.between));
    if let Some(error) = &ended.error {
        note(&format!("{} {}", "reason:".red(), clean(error)));
    }
    note(&format!("see how: trellis run show {id}     check it: trellis verify {id}"));
}

fn state(state: RunState) -> String {
    let word = state.as_str();
    match state {
        RunState::Answered => word.green().to_string(),
        RunState::Failed => word.red().to_string(),
        RunState::AnsweredPartial | RunState::Limit | RunState::Cancelled => word.yellow().to_string(),
        RunState::Queued | RunState::Running | RunState::Waiting => word.cyan().to_string(),
    }
}

/// Columns as wide as their widest cell, cells on one line.
pub(crate) fn table(heads: &[String], rows: &[Vec<String>]) -> std::io::Result<()> {
    const WIDEST: usize = 100;
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|cell| excerpt(cell, WIDEST)).collect()).collect();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).chain(heads.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<_> = (0..heads.len()).map(width).collect();
    let line = |cells: &[String]| {
        let padded: Vec<_> = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        padded.join("  ").trim_end().to_owned()
    };
    print_line(&line(heads))?;
    print_line(&widths.iter().map(|width| "-".repeat(*width)).collect::<Vec<_>>().join("  "))?;
    rows.iter().try_for_each(|row| print_line(&line(row)))
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
}
