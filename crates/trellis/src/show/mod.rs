//! Text for people: clean, aligned, coloured where the stream is a terminal.

pub(crate) mod follow;
mod footer;
pub(crate) mod live;
pub(crate) mod markdown;
mod marks;
pub(crate) mod run_text;
mod said;
mod table;
mod text;
pub(crate) mod tree;
pub(crate) mod wrap;

pub(crate) use footer::footer;
pub(crate) use marks::Marks;
pub(crate) use said::print_said;
pub(crate) use table::{aligned, columns, table};
pub(crate) use text::{clean, cut, decide_marks, excerpt, grouped, one_line, padded, seconds, short, tokens, width};

use crate::cli::{Colour, Global};
use anstream::ColorChoice;
use std::io::Write;
use trellis_domain::marks::with_visible_marks;

/// The columns that were asked for, else those of the terminal; none where nothing limits a line.
pub(crate) fn columns_for(global: &Global) -> Option<usize> {
    global.width.map(usize::from).or_else(columns)
}

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
    drop(live::beside(|| writeln!(anstream::stderr().lock(), "{line}")));
}

/// One line on stdout. A reader that has gone away ends the command quietly.
pub(crate) fn print_line(line: &str) -> std::io::Result<()> {
    live::beside(|| writeln!(std::io::stdout().lock(), "{line}"))
}

/// One line on stdout, coloured if it may be.
pub(crate) fn print_coloured(line: &str) -> std::io::Result<()> {
    live::beside(|| writeln!(anstream::stdout().lock(), "{line}"))
}

/// One line that was coloured whoever reads it, without its colours where they are not wanted.
pub(crate) fn print_plain_or_coloured(line: &str) -> std::io::Result<()> {
    if anstream::AutoStream::choice(&std::io::stdout()) == ColorChoice::Never {
        return print_line(&anstream::adapter::strip_str(line).to_string());
    }
    print_line(line)
}

/// One line of JSON on stdout. JSON may hold controls and direction marks that a terminal obeys; escaped, they
/// mean the same to a program and nothing to a terminal.
pub(crate) fn print_json(json: &str) -> std::io::Result<()> {
    print_line(&with_visible_marks(json))
}
