//! Text for people: clean, aligned, coloured where the stream is a terminal.

pub(crate) mod follow;
mod marks;
mod text;
pub(crate) mod tree;

pub(crate) use marks::Marks;
pub(crate) use text::{clean, excerpt, grouped, seconds, short, tokens};

use crate::cli::Colour;
use anstream::ColorChoice;
use owo_colors::OwoColorize;
use std::io::Write;
use trellis_domain::Timestamp;
use trellis_domain::record::Ended;
use trellis_domain::run::{RunState, RunSummary, Termination};

/// `auto` looks at each stream, `NO_COLOR` and `TERM`.
pub(crate) fn decide_colour(colour: Colour) {
    match colour {
        Colour::Auto => {}
        Colour::Always => ColorChoice::Always.write_global(),
        Colour::Never => ColorChoice::Never.write_global(),
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
    if !ended.missing.is_empty() {
        let missing: Vec<_> = ended.missing.iter().map(u32::to_string).collect();
        let what = if ended.reason == Termination::PlanPartial { "step" } else { "finding" };
        note(&format!("{} {what} {}", "the answer does without".yellow(), missing.join(", ")));
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
