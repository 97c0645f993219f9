//! Tables: whole for programs, cut to what a terminal can hold.

use super::print_line;
use super::text::{cut, excerpt, one_line, padded, width};

/// Columns of the terminal that stdout is, if it is one.
pub(crate) fn columns() -> Option<usize> {
    use std::io::IsTerminal;
    let stdout = std::io::stdout();
    let size = || terminal_size::terminal_size_of(std::io::stdout());
    stdout.is_terminal().then(size).flatten().map(|(width, _)| usize::from(width.0))
}

/// Columns as wide as their widest cell, cells on one line. Only a terminal gets less than all of a cell.
pub(crate) fn table(heads: &[String], rows: &[Vec<String>]) -> std::io::Result<()> {
    const WIDEST: usize = 100;
    let terminal = columns().is_some();
    let cell = |text: &String| if terminal { excerpt(text, WIDEST) } else { one_line(text) };
    let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(cell).collect()).collect();
    let widths = widths(rows.iter().map(Vec::as_slice).chain([heads]), heads.len());
    print_line(&line(heads, &widths))?;
    print_line(&widths.iter().map(|width| "-".repeat(*width)).collect::<Vec<_>>().join("  "))?;
    rows.iter().try_for_each(|row| print_line(&line(row, &widths)))
}

/// Rows without heads; what does not fit into that many columns is cut, which is the end of the last cell.
pub(crate) fn aligned(rows: &[Vec<String>], columns: Option<usize>) -> Vec<String> {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths = widths(rows.iter().map(Vec::as_slice), count);
    let fitting = |row: &Vec<String>| cut(line(row, &widths), columns.unwrap_or(usize::MAX));
    rows.iter().map(fitting).collect()
}

fn widths<'a>(rows: impl Iterator<Item = &'a [String]>, count: usize) -> Vec<usize> {
    let mut widths = vec![0; count];
    for row in rows {
        for (widest, cell) in widths.iter_mut().zip(row) {
            *widest = (*widest).max(width(cell));
        }
    }
    widths
}

fn line(cells: &[String], widths: &[usize]) -> String {
    let padded: Vec<_> = cells.iter().zip(widths).map(|(cell, width)| padded(cell, *width)).collect();
    padded.join("  ").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::aligned;

    #[test]
    fn the_last_cell_is_cut_where_there_is_no_room_and_only_there() {
        let rows = [["a", "long name", "a text that goes on"], ["bcd", "x", "short"]];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(aligned(&rows, Some(24)), ["a    long name  a text …", "bcd  x          short"]);
        assert_eq!(aligned(&rows, None)[0], "a    long name  a text that goes on");
    }

    #[test]
    fn columns_line_up_below_wide_characters() {
        let rows = [["東京", "天気", "晴れ時々曇り"], ["a", "🚀 x", "short"]];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(aligned(&rows, None), ["東京  天気  晴れ時々曇り", "a     🚀 x  short"]);
        assert_eq!(aligned(&rows, Some(19)), ["東京  天気  晴れ時…", "a     🚀 x  short"]);
        assert_eq!(aligned(&rows, Some(18)), ["東京  天気  晴れ…", "a     🚀 x  short"], "half a character is none");
    }
}
