//! Sentences for people: wrapped where something limits a line, whole elsewhere.

use super::print_plain_or_coloured;
use super::wrap::{pieces, wrap};

/// Prints a text with what stands before it; lines that it goes on in begin below it.
pub(crate) fn print_said(before: &str, text: &str, columns: Option<usize>) -> std::io::Result<()> {
    let Some(columns) = columns else { return print_plain_or_coloured(&format!("{before}{text}")) };
    let hang = " ".repeat(super::width(before));
    for (number, line) in wrap(&pieces(text), columns.saturating_sub(hang.len())).iter().enumerate() {
        let before = if number == 0 { before } else { &hang };
        print_plain_or_coloured(format!("{before}{line}").trim_end())?;
    }
    Ok(())
}
