//! Lines on stderr, and those below them that move while something is at work.

use super::cast::{Label, name_columns};
use super::team::Team;
use crate::cli::{Global, Output};
use crate::show::live::LiveBlock;
use crate::show::{Marks, clean, excerpt, note, width};
use owo_colors::OwoColorize;
use parking_lot::Mutex;
use std::cell::Cell;
use std::io::IsTerminal;
use std::sync::Arc;
use trellis_orchestrator::ports::{RealWorld, World};

/// How much of a result or a call is shown on its line.
pub(super) const WIDTH: usize = 96;
/// How much of the root's thought is shown.
pub(super) const THOUGHT: usize = 400;
const WORD: usize = 8;

/// Whose line it is, a mark, a word, what happened, what it took.
#[derive(Default)]
pub(super) struct Line<'a> {
    label: Label,
    mark: &'a str,
    word: &'a str,
    text: String,
    cost: String,
    dimmed: bool,
}

impl<'a> Line<'a> {
    pub(super) fn new(mark: &'a str, word: &'a str) -> Self {
        Self { mark, word, ..Self::default() }
    }

    /// Of one among several that work at once; empty for the root.
    pub(super) fn of(self, label: Label) -> Self {
        Self { label, ..self }
    }

    pub(super) fn text(self, text: impl Into<String>) -> Self {
        Self { text: text.into(), ..self }
    }

    pub(super) fn cost(self, cost: impl Into<String>) -> Self {
        Self { cost: cost.into(), ..self }
    }

    pub(super) fn dimmed(self) -> Self {
        Self { dimmed: true, ..self }
    }
}

pub(super) struct Screen {
    pub(super) marks: &'static Marks,
    pub(super) quiet: bool,
    /// What is below everything else, where a person watches.
    live: Option<LiveBlock>,
    /// Whether the terminal limits lines.
    watched: bool,
    /// The last line of somebody was not shown, and so is nothing that belongs to it.
    hidden: Cell<bool>,
}

impl Screen {
    /// The hint says what Ctrl-C does.
    pub(super) fn new(global: &Global, hint: &'static str, team: &Arc<Mutex<Team>>) -> Self {
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let watched = std::io::stderr().is_terminal() && !global.quiet && global.output == Output::Text;
        let marks = Marks::of(global.ascii);
        let live = watched && !global.plain && !dumb;
        Self {
            marks,
            quiet: global.quiet || global.output == Output::Ndjson,
            live: live.then(|| show_team(team, marks, hint, global.ascii)),
            watched,
            hidden: Cell::new(false),
        }
    }

    /// Nothing is at work any more.
    pub(super) fn clear(&mut self) {
        self.live = None;
    }

    /// Whether a line says what the live ones say already.
    fn is_live(&self, line: &Line<'_>) -> bool {
        let bad = line.mark == self.marks.bad || line.mark == self.marks.partly;
        let own = match line.word {
            "thought" | "tool" => true,
            "result" => !line.label.is_step(),
            _ => false,
        };
        self.live.is_some() && !line.label.is_root() && own && !bad
    }

    pub(super) fn line(&self, line: &Line<'_>) {
        self.hidden.set(self.is_live(line));
        if self.hidden.get() {
            return;
        }
        let marks = self.marks;
        let mark = match line.mark {
            mark if mark == marks.bad => mark.red().to_string(),
            mark if mark == marks.partly => mark.yellow().to_string(),
            mark => mark.cyan().to_string(),
        };
        let label = self.label(&line.label);
        let cost = line.cost.trim();
        let mut text = format!("{}{mark} {:<WORD$} ", label.dimmed(), line.word.bold());
        if cost.is_empty() && label.is_empty() {
            text.push_str(&clean(&line.text));
        } else {
            // A line with a cost, or one among several, is one line: what does not fit is cut.
            let taken = width(&label) + width(marks.tool) + 1 + WORD + 1 + width(cost) + 2;
            let parts = [excerpt(&line.text, self.room(taken)), cost.dimmed().to_string()];
            let filled: Vec<_> = parts.iter().zip([&line.text, cost]).filter(|(_, plain)| !plain.is_empty()).collect();
            text.push_str(&filled.iter().map(|(part, _)| part.as_str()).collect::<Vec<_>>().join("  "));
        }
        self.print(&text, line.dimmed);
    }

    /// More on the line above, below its text.
    pub(super) fn under(&self, label: &Label, text: &str) {
        self.entry(label, text, "");
    }

    /// One entry of a list below a line. What stands behind it is never cut.
    pub(super) fn entry(&self, label: &Label, text: &str, behind: &str) {
        if self.hidden.get() {
            return;
        }
        let indent = width(&self.label(label)) + width(self.marks.tool) + 1 + WORD + 1;
        let taken = indent + if behind.is_empty() { 0 } else { width(behind) + 2 };
        let mut line = " ".repeat(indent) + &excerpt(text, self.room(taken));
        if !behind.is_empty() {
            line.extend(["  ".to_owned(), clean(behind).dimmed().to_string()]);
        }
        self.print(&line, /* dimmed */ false);
    }

    fn print(&self, line: &str, dimmed: bool) {
        if self.quiet {
            return;
        }
        let plain = || anstream::adapter::strip_str(line.trim_end()).to_string().dimmed().to_string();
        let line = if dimmed { plain() } else { line.trim_end().to_owned() };
        note(&line);
    }

    /// Columns of the terminal, if there is one: it may have become wider.
    fn columns(&self) -> Option<usize> {
        self.watched.then(terminal_columns).flatten()
    }

    fn room(&self, taken: usize) -> usize {
        const LEAST: usize = 20;
        self.columns().map_or(WIDTH, |columns| columns.saturating_sub(taken)).max(LEAST)
    }

    /// A column of its own where the terminal is wide enough, else the number alone.
    fn label(&self, label: &Label) -> String {
        if label.is_root() {
            return String::new();
        }
        format!("  {} ", label.within(name_columns(self.columns().unwrap_or(usize::MAX))))
    }
}

/// One line for each who is at work, drawn again and again.
fn show_team(team: &Arc<Mutex<Team>>, marks: &'static Marks, hint: &'static str, ascii: bool) -> LiveBlock {
    let team = Arc::clone(team);
    let turns: &[&str] = if ascii {
        &["-", "\\", "|", "/"]
    } else {
        &["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"]
    };
    LiveBlock::show(move |room| {
        let now = RealWorld.now();
        let tenth = usize::try_from(now.as_micros() / 100_000).unwrap_or(0);
        team.lock().lines(now, room, marks, turns[tenth % turns.len()], hint)
    })
}

fn terminal_columns() -> Option<usize> {
    let (terminal_size::Width(columns), _) = terminal_size::terminal_size_of(std::io::stderr())?;
    Some(usize::from(columns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_take_the_same_columns_whatever_they_are_written_in() {
        let marks = Marks::of(/* ascii */ false);
        let screen = Screen { marks, quiet: true, live: None, watched: false, hidden: Cell::new(false) };
        for name in ["Company X", "東京の天気", "東京の天気と大阪の天気と京都", "🚀 lift-off"] {
            let label = screen.label(&Label { number: "#0".to_owned(), name: name.to_owned() });
            assert_eq!(width(&label), 27 + 3, "{label}");
        }
    }
}
