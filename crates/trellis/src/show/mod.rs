//! Text for people: clean, aligned, coloured where the stream is a terminal.

pub(crate) mod follow;
mod footer;
mod marks;
mod table;
mod text;
pub(crate) mod tree;

pub(crate) use footer::footer;
pub(crate) use marks::Marks;
pub(crate) use table::{aligned, columns, table};
pub(crate) use text::{clean, cut, decide_marks, excerpt, grouped, one_line, seconds, short, tokens};

use crate::cli::Colour;
use anstream::ColorChoice;
use std::io::Write;

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

/// One line on stdout, coloured if it may be.
pub(crate) fn print_coloured(line: &str) -> std::io::Result<()> {
    writeln!(anstream::stdout().lock(), "{line}")
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
