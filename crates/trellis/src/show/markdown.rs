//! Answers as people read them on a terminal: Markdown without its marks, wrapped at words.
//!
//! Text comes in pieces. What is complete is given out, which is a block of it: whether a line goes on in the next one is not known
//! before.

mod inline;
mod tabular;

use super::wrap::{Piece, shown, wrap};
use super::{clean, width};
use inline::{Look, inline};

/// Longer lines are hard to read, however wide the terminal is.
const WIDEST: usize = 100;

#[derive(Debug)]
pub(crate) struct Markdown {
    columns: usize,
    ascii: bool,
    /// A line that has no end yet.
    line: String,
    block: Block,
    /// An empty line is due before whatever comes next.
    gap: bool,
    /// What is complete and was not given out.
    done: String,
    begun: bool,
}

#[derive(Debug)]
enum Block {
    None,
    Text(Text),
    /// What closes it.
    Code(String),
    Table(Vec<String>),
}

/// Words that are wrapped together, with what stands before the first line and before the others.
#[derive(Debug)]
struct Text {
    first: String,
    rest: String,
    words: String,
    quoted: bool,
}

impl Markdown {
    pub(crate) fn new(columns: usize, ascii: bool) -> Self {
        Self {
            columns: columns.clamp(10, WIDEST),
            ascii,
            line: String::new(),
            block: Block::None,
            gap: false,
            done: String::new(),
            begun: false,
        }
    }

    /// For another text in the same place.
    pub(crate) fn fresh(&self) -> Self {
        Self::new(self.columns, self.ascii)
    }

    /// Takes more of the text and gives the lines that are complete, each with its end.
    pub(crate) fn push(&mut self, text: &str) -> String {
        for letter in clean(text).chars() {
            if letter == '\n' {
                let line = std::mem::take(&mut self.line);
                self.take(&line);
            } else {
                self.line.push(letter);
            }
        }
        std::mem::take(&mut self.done)
    }

    /// The rest of it.
    pub(crate) fn finish(&mut self) -> String {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.take(&line);
        }
        self.flush();
        std::mem::take(&mut self.done)
    }

    fn take(&mut self, line: &str) {
        let trimmed = line.trim();
        if let Block::Code(fence) = &self.block {
            if trimmed.starts_with(fence.as_str()) && trimmed.chars().all(|c| fence.starts_with(c)) {
                self.flush();
            } else {
                let code = Piece { text: line.replace('\t', "    "), look: Look::CODE.sequence() };
                self.put(&format!("    {}", shown(&code)));
            }
            return;
        }
        if trimmed.starts_with('|') {
            if let Block::Table(rows) = &mut self.block {
                rows.push(trimmed.to_owned());
            } else {
                self.flush();
                self.block = Block::Table(vec![trimmed.to_owned()]);
            }
            return;
        }
        if matches!(self.block, Block::Table(_)) {
            self.flush();
        }
        if trimmed.is_empty() {
            self.flush();
            self.gap = self.begun;
        } else if let Some(fence) = ["```", "~~~"].into_iter().find(|fence| trimmed.starts_with(fence)) {
            self.flush();
            self.block = Block::Code(fence.to_owned());
        } else if let Some((level, title)) = heading(trimmed) {
            self.flush();
            self.heading(level, title);
        } else if is_rule(trimmed) {
            self.flush();
            self.put(&self.bar().repeat(self.columns.min(40)));
        } else if let Some(quoted) = trimmed.strip_prefix('>') {
            self.quote(quoted.trim());
        } else if let Some((indent, mark, text)) = self.item(line) {
            self.flush();
            let first = format!("{}{mark} ", " ".repeat(indent));
            let rest = " ".repeat(width(&first));
            self.block = Block::Text(Text { first, rest, words: text, quoted: false });
        } else {
            self.more(line);
        }
    }

    /// A line that goes on with the block before it, or begins one.
    fn more(&mut self, line: &str) {
        let hard = line.ends_with("  ") || line.ends_with('\\');
        let words = line.trim().trim_end_matches('\\');
        match &mut self.block {
            Block::Text(text) if !text.quoted => {
                if !text.words.ends_with('\n') {
                    text.words.push(' ');
                }
                text.words.push_str(words);
            }
            Block::Text(_) | Block::None | Block::Code(_) | Block::Table(_) => {
                self.flush();
                // What goes on with an item behind an empty line stays below it.
                let indent = " ".repeat((line.len() - line.trim_start().len()).min(8));
                let words = words.to_owned();
                self.block = Block::Text(Text { first: indent.clone(), rest: indent, words, quoted: false });
            }
        }
        if let (Block::Text(text), true) = (&mut self.block, hard) {
            text.words.push('\n');
        }
    }

    fn quote(&mut self, words: &str) {
        if let Block::Text(Text { quoted: true, words: before, .. }) = &mut self.block {
            before.push(if words.is_empty() { '\n' } else { ' ' });
            before.push_str(words);
            return;
        }
        self.flush();
        let mark = if self.ascii { "| " } else { "│ " }.to_owned();
        self.block = Block::Text(Text { first: mark.clone(), rest: mark, words: words.to_owned(), quoted: true });
    }

    /// How far in it stands, its mark, and what it says.
    fn item(&self, line: &str) -> Option<(usize, String, String)> {
        let text = line.trim_start();
        let indent = (line.len() - text.len()).min(12);
        if let Some(said) = ["- ", "* ", "+ "].into_iter().find_map(|mark| text.strip_prefix(mark)) {
            let mark = if self.ascii { "*" } else { "•" };
            return Some((indent, mark.to_owned(), said.trim().to_owned()));
        }
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let said = text.get(digits..)?.strip_prefix(['.', ')'])?.strip_prefix(' ')?;
        let mark = text.get(..=digits)?.to_owned();
        (1..=9).contains(&digits).then(|| (indent, mark, said.trim().to_owned()))
    }

    fn heading(&mut self, level: usize, title: &str) {
        self.gap = self.begun;
        let pieces = inline(title, Look::HEADING);
        let lines = wrap(&pieces, self.columns);
        let longest = lines.iter().map(|line| width(&anstream::adapter::strip_str(line).to_string())).max();
        for line in &lines {
            self.put(line);
        }
        if level <= 2 {
            self.put(&self.bar().repeat(longest.unwrap_or(0)));
        }
    }

    fn flush(&mut self) {
        match std::mem::replace(&mut self.block, Block::None) {
            Block::None | Block::Code(_) => {}
            Block::Text(text) => {
                let words = text.words.trim_end_matches('\n');
                let lines = wrap(&inline(words, Look::default()), self.columns.saturating_sub(width(&text.rest)));
                for (number, line) in lines.iter().enumerate() {
                    let before = if number == 0 { &text.first } else { &text.rest };
                    self.put(format!("{before}{line}").trim_end());
                }
            }
            Block::Table(rows) => {
                for line in tabular::lines(&rows, self.columns, self.ascii) {
                    self.put(&line);
                }
            }
        }
    }

    fn put(&mut self, line: &str) {
        if std::mem::take(&mut self.gap) {
            self.done.push('\n');
        }
        self.begun = true;
        self.done.push_str(line);
        self.done.push('\n');
    }

    fn bar(&self) -> &'static str {
        if self.ascii { "-" } else { "─" }
    }
}

/// How deep it is, and what it says.
fn heading(line: &str) -> Option<(usize, &str)> {
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    let title = line.get(level..)?.strip_prefix(' ')?;
    (1..=6).contains(&level).then(|| (level, title.trim().trim_end_matches('#').trim_end()))
}

fn is_rule(line: &str) -> bool {
    let marks: String = line.chars().filter(|c| *c != ' ').collect();
    marks.len() >= 3 && ['-', '*', '_'].iter().any(|mark| marks.chars().all(|c| c == *mark))
}

#[cfg(test)]
#[path = "markdown_tests.rs"]
mod tests;
