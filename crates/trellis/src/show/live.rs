//! Lines below everything else that are drawn again and again while something is at work.
//!
//! Whatever is written meanwhile goes above them. They are taken away before anything is written and before they are
//! drawn anew, as many rows as they take in the terminal as it is now: nothing of them stays, also if the terminal has
//! become narrower.

use anstream::ColorChoice;
use parking_lot::Mutex;
use std::io::Write;
use std::time::Duration;
use tokio::task::JoinHandle;

/// How often they are drawn.
const EVERY: Duration = Duration::from_millis(100);

/// Rows that are left to what is above.
const ABOVE: usize = 2;

/// What a terminal has room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Room {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
}

type Lines = Box<dyn Fn(Room) -> Vec<String> + Send>;

struct Shown {
    lines: Option<Lines>,
    /// Columns of each line that is on the terminal.
    drawn: Vec<usize>,
}

static SHOWN: Mutex<Shown> = Mutex::new(Shown { lines: None, drawn: Vec::new() });

/// Lines are shown for as long as this is there.
#[derive(Debug)]
pub(crate) struct LiveBlock {
    ticks: JoinHandle<()>,
}

impl LiveBlock {
    /// The lines are asked for each time; they hold no line breaks. Longer ones are not shown whole.
    pub(crate) fn show(lines: impl Fn(Room) -> Vec<String> + Send + 'static) -> Self {
        SHOWN.lock().lines = Some(Box::new(lines));
        let ticks = async {
            loop {
                beside(|| ());
                tokio::time::sleep(EVERY).await;
            }
        };
        Self { ticks: tokio::spawn(ticks) }
    }
}

impl Drop for LiveBlock {
    fn drop(&mut self) {
        self.ticks.abort();
        let mut shown = SHOWN.lock();
        shown.lines = None;
        let gone = erased(&std::mem::take(&mut shown.drawn), room().columns);
        put(&gone);
    }
}

/// Writes whole lines to the terminal, above the live ones if there are any.
pub(crate) fn beside<T>(write: impl FnOnce() -> T) -> T {
    let mut shown = SHOWN.lock();
    if shown.lines.is_none() {
        return write();
    }
    let room = room();
    put(&erased(&std::mem::take(&mut shown.drawn), room.columns));
    let written = write();
    let mut text = String::new();
    for line in shown.lines.iter().flat_map(|lines| lines(room)).collect::<Vec<_>>() {
        shown.drawn.push(super::width(&anstream::adapter::strip_str(&line).to_string()));
        text.push_str(&line);
        text.push('\n');
    }
    if anstream::AutoStream::choice(&std::io::stderr()) == ColorChoice::Never {
        text = anstream::adapter::strip_str(&text).to_string();
    }
    put(&text);
    written
}

/// What takes lines of so many columns away. The cursor stands below them.
fn erased(drawn: &[usize], columns: usize) -> String {
    let rows: usize = drawn.iter().map(|taken| taken.div_ceil(columns.max(1)).max(1)).sum();
    // Row by row: what is cleared to the end of the screen is kept by some terminals as something that was shown.
    if rows == 0 { String::new() } else { format!("\r\u{1b}[2K{}", "\u{1b}[1A\u{1b}[2K".repeat(rows)) }
}

/// Nobody there to see it is no failure.
fn put(text: &str) {
    if !text.is_empty() {
        let mut stderr = std::io::stderr().lock();
        drop(stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush()));
    }
}

fn room() -> Room {
    let (usual_columns, usual_rows) = (80, 24);
    let size = terminal_size::terminal_size_of(std::io::stderr());
    let (columns, rows) = size.map_or((usual_columns, usual_rows), |(columns, rows)| (columns.0, rows.0));
    let (columns, rows) = (usize::from(columns), usize::from(rows));
    Room { columns: columns.max(1), rows: rows.saturating_sub(ABOVE).max(1) }
}

/// Where the log goes: to stderr, above what is live.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LogLines;

impl Write for LogLines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        beside(|| std::io::stderr().lock().write_all(bytes)).map(|()| bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        std::io::stderr().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::erased;

    #[test]
    fn as_many_rows_are_taken_away_as_the_terminal_has_made_of_the_lines() {
        let rows = |drawn: &[usize], columns| erased(drawn, columns).matches("\u{1b}[1A\u{1b}[2K").count();
        assert_eq!(rows(&[79, 40], 80), 2);
        assert_eq!(rows(&[79, 40], 40), 3, "the first takes two rows now");
        assert_eq!(rows(&[0], 40), 1);
        assert_eq!(erased(&[], 40), "");
    }
}
