//! Tables: as wide as they need, and no wider than the terminal.

use super::inline::{Look, inline};
use crate::show::width;
use crate::show::wrap::wrap;

/// A column has at least so many columns of the terminal.
const NARROWEST: usize = 3;

/// The lines of a table; its rows as they are if it is none, or if the terminal is too narrow for it.
pub(super) fn lines(rows: &[String], columns: usize, ascii: bool) -> Vec<String> {
    let [head, rule, body @ ..] = rows else { return rows.to_vec() };
    let aligns = cells(rule);
    if !aligns.iter().all(|cell| is_rule(cell)) {
        return rows.to_vec();
    }
    let table: Vec<Vec<String>> = std::iter::once(head).chain(body).map(|row| cells(row)).collect();
    let count = table.iter().map(Vec::len).max().unwrap_or(0);
    let Some(widths) = widths(&table, count, columns) else { return rows.to_vec() };
    let (bar, across, cross) = if ascii { (" | ", "-", "-+-") } else { (" │ ", "─", "─┼─") };
    let mut drawn = Vec::new();
    for (number, row) in table.iter().enumerate() {
        let look = if number == 0 { Look::HEADING } else { Look::default() };
        drawn.extend(row_lines(row, &widths, &aligns, look, bar));
        if number == 0 {
            drawn.push(widths.iter().map(|width| across.repeat(*width)).collect::<Vec<_>>().join(cross));
        }
    }
    drawn
}

fn row_lines(row: &[String], widths: &[usize], aligns: &[String], look: Look, bar: &str) -> Vec<String> {
    let empty = String::new();
    let columns: Vec<Vec<String>> = widths
        .iter()
        .enumerate()
        .map(|(place, width)| wrap(&inline(row.get(place).unwrap_or(&empty), look), *width))
        .collect();
    let height = columns.iter().map(Vec::len).max().unwrap_or(0);
    let line = |number: usize| {
        let cells = columns.iter().zip(widths).enumerate().map(|(place, (cell, room))| {
            let text = cell.get(number).map_or("", String::as_str);
            let left = " ".repeat(room.saturating_sub(width(&anstream::adapter::strip_str(text).to_string())));
            let right = aligns.get(place).is_some_and(|align| align.ends_with(':') && !align.starts_with(':'));
            if right { format!("{left}{text}") } else { format!("{text}{left}") }
        });
        cells.collect::<Vec<_>>().join(bar).trim_end().to_owned()
    };
    (0..height).map(line).collect()
}

/// As wide as the widest cell; the widest give way until all fit.
fn widths(table: &[Vec<String>], count: usize, columns: usize) -> Option<Vec<usize>> {
    let room = columns.checked_sub(3 * count.saturating_sub(1)).filter(|room| *room >= NARROWEST * count)?;
    let shown = |cell: &String| {
        let text: String = inline(cell, Look::default()).into_iter().map(|piece| piece.text).collect();
        width(&text)
    };
    let widest = |place: usize| table.iter().filter_map(|row| row.get(place)).map(shown).max().unwrap_or(0);
    let mut widths: Vec<usize> = (0..count).map(|place| widest(place).max(NARROWEST)).collect();
    while widths.iter().sum::<usize>() > room {
        let widest = widths.iter_mut().max()?;
        *widest -= 1;
    }
    Some(widths)
}

/// What stands between the bars; a bar behind a backslash is text.
fn cells(row: &str) -> Vec<String> {
    let inner = row.strip_prefix('|').unwrap_or(row);
    let inner = inner.strip_suffix('|').filter(|cut| !cut.ends_with('\\')).unwrap_or(inner);
    let mut cells = vec![String::new()];
    let mut escaped = false;
    for letter in inner.chars() {
        let last = cells.last_mut().expect("it begins with one cell and never loses one");
        match letter {
            '|' if escaped => {
                last.pop();
                last.push('|');
            }
            '|' => cells.push(String::new()),
            _ => last.push(letter),
        }
        escaped = letter == '\\' && !escaped;
    }
    cells.into_iter().map(|cell| cell.trim().to_owned()).collect()
}

fn is_rule(cell: &str) -> bool {
    let dashes = cell.trim_start_matches(':').trim_end_matches(':');
    !dashes.is_empty() && dashes.bytes().all(|byte| byte == b'-')
}
