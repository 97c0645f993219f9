//! The pages of the documentation, and the command lines in them.

use std::iter::Peekable;
use std::path::{Path, PathBuf};
use std::str::Chars;

/// What a command in a sentence may call any command.
const ANY: &str = "COMMAND";

/// A page, by its path in the project.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) name: String,
    text: String,
}

/// A block of code.
#[derive(Debug)]
pub(crate) struct Block {
    /// Where it begins.
    pub(crate) line: usize,
    /// What it stands under.
    pub(crate) heading: String,
    pub(crate) text: String,
    /// What it says that it is written in; empty if it does not.
    language: String,
}

/// A program with its arguments, as a shell reads them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) number: usize,
    pub(crate) words: Vec<String>,
    /// Whether it can be typed as it stands; else it is part of a sentence, which may leave something out.
    pub(crate) is_whole: bool,
}

pub(crate) fn project() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let above = package.ancestors().find(|folder| folder.join("Cargo.lock").exists());
    above.expect("the package lies in the project").to_owned()
}

/// The pages for users, in the order of their names.
pub(crate) fn all() -> Vec<Page> {
    let project = project();
    let mut files = vec![project.join("README.md")];
    for folder in ["docs", "docs/guides", "examples"] {
        files.extend(
            entries(&project.join(folder)).into_iter().filter(|file| file.extension().is_some_and(|e| e == "md")),
        );
    }
    files.extend(entries(&project.join("examples")).iter().map(|folder| folder.join("README.md")));
    files.retain(|file| file.is_file());
    files.iter().map(|file| Page::read(file.strip_prefix(&project).expect("it lies in the project"))).collect()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut entries: Vec<_> = entries.map(|entry| entry.expect("a folder can be read").path()).collect();
    entries.sort();
    entries
}

impl Page {
    /// A page of the project.
    pub(crate) fn read(name: &Path) -> Self {
        let text = std::fs::read_to_string(project().join(name));
        let text = text.unwrap_or_else(|error| panic!("{}: {error}", name.display()));
        Self { name: name.display().to_string(), text }
    }

    /// Every command line: those to be typed, then those in sentences.
    pub(crate) fn lines(&self) -> Vec<Line> {
        let (blocks, prose) = self.parts();
        let typed = blocks.iter().filter(|block| block.is_shell()).flat_map(|block| lines(&block.text, block.line));
        let told = prose.iter().flat_map(|(first, text)| in_sentences(text, *first));
        typed.chain(told).collect()
    }

    pub(crate) fn blocks(&self) -> Vec<Block> {
        self.parts().0
    }

    /// Blocks of code, and paragraphs with where they begin.
    fn parts(&self) -> (Vec<Block>, Vec<(usize, String)>) {
        let (mut blocks, mut prose): (Vec<Block>, Vec<(usize, String)>) = (Vec::new(), Vec::new());
        let (mut heading, mut fenced, mut was_empty) = (String::new(), false, true);
        for (number, line) in (1..).zip(self.text.lines()) {
            let is_empty = line.trim().is_empty();
            let is_open = blocks.last().is_some_and(|block| block.line + block.text.lines().count() == number);
            if let Some(language) = line.trim_start().strip_prefix("```") {
                fenced = !fenced;
                if fenced {
                    blocks.push(Block::at(number + 1, &heading, language));
                }
            } else if fenced {
                add(&mut blocks.last_mut().expect("a fence opens a block").text, line);
            } else if let Some(code) = line.strip_prefix("    ").filter(|_| was_empty || is_open) {
                if was_empty {
                    blocks.push(Block::at(number, &heading, ""));
                }
                add(&mut blocks.last_mut().expect("the first line opens a block").text, code);
            } else if let Some(title) = line.strip_prefix('#') {
                title.trim_start_matches('#').trim().clone_into(&mut heading);
            } else if !is_empty {
                match prose.last_mut().filter(|(first, text)| first + text.lines().count() == number) {
                    Some((_, text)) => add(text, line),
                    None => prose.push((number, format!("{line}\n"))),
                }
            }
            was_empty = is_empty;
        }
        (blocks, prose)
    }
}

impl Block {
    fn at(line: usize, heading: &str, language: &str) -> Self {
        Self { line, heading: heading.to_owned(), text: String::new(), language: language.to_owned() }
    }

    /// Whether it is to be typed. One that says nothing of its language may be, too.
    pub(crate) fn is_shell(&self) -> bool {
        const PROGRAMS: [&str; 3] = ["cargo", "curl", "trellis"];
        let is_known = |line: &Line| PROGRAMS.contains(&line.words[0].as_str());
        self.language == "sh" || self.language.is_empty() && lines(&self.text, 1).iter().any(is_known)
    }
}

fn add(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

/// Code between backticks that begins with a program.
fn in_sentences(text: &str, first: usize) -> Vec<Line> {
    let mut found = Vec::new();
    let mut at = first;
    for (place, part) in text.split('`').enumerate() {
        if place % 2 == 1 {
            let code = part.replace('\n', " ");
            for line in lines(&code, at) {
                let words: Vec<_> = line.words.iter().map(|word| without_brackets(word).replace(ANY, "ask")).collect();
                found.extend(alternatives(&words).into_iter().map(|words| Line { words, is_whole: false, ..line }));
            }
        }
        at += part.matches('\n').count();
    }
    found
}

/// One line for each word of those with strokes between them.
fn alternatives(words: &[String]) -> Vec<Vec<String>> {
    let Some(place) = words.iter().position(|word| word.contains('|')) else { return vec![words.to_vec()] };
    let one = |word: &str| [&words[..place], &[word.to_owned()], &words[place + 1..]].concat();
    words[place].split('|').flat_map(|word| alternatives(&one(word))).collect()
}

/// What may be left out stands in brackets.
fn without_brackets(word: &str) -> &str {
    if word.contains('"') { word } else { word.trim_start_matches('[').trim_end_matches(']') }
}

/// The programs of a script with their arguments, as a shell reads them, without what is done with their output.
pub(crate) fn lines(text: &str, first: usize) -> Vec<Line> {
    let mut shell = Shell { text: text.chars().peekable(), number: first, found: Vec::new() };
    shell.read(false);
    shell.found
}

struct Shell<'a> {
    text: Peekable<Chars<'a>>,
    number: usize,
    found: Vec<Line>,
}

impl Shell<'_> {
    /// Reads to the end, or to the bracket that ends a command within another.
    fn read(&mut self, is_within: bool) {
        let (mut words, mut word): (Vec<String>, Option<String>) = (Vec::new(), None);
        let (mut number, mut is_file) = (self.number, false);
        while let Some(next) = self.text.next() {
            let is_last = is_within && next == ')';
            let ends_word = is_last || matches!(next, ' ' | '\t' | '\n' | ';' | '&' | '>' | '<');
            if ends_word && let Some(whole) = word.take() {
                // The target of a redirection is no argument.
                if !std::mem::take(&mut is_file) {
                    words.push(whole);
                }
            }
            match next {
                '\n' | ';' | '&' => {
                    self.end(&mut words, number);
                    self.number += usize::from(next == '\n');
                }
                '|' if word.is_none() => self.end(&mut words, number),
                ')' if is_last => break,
                '>' | '<' => is_file = true,
                ' ' | '\t' => {}
                '#' if word.is_none() => while self.text.next_if(|next| *next != '\n').is_some() {},
                '\\' if self.text.next_if_eq(&'\n').is_some() => self.number += 1,
                _ => {
                    if words.is_empty() && word.is_none() {
                        number = self.number;
                    }
                    self.piece(next, word.get_or_insert_default());
                }
            }
        }
        words.extend(word.filter(|_| !is_file));
        self.end(&mut words, number);
    }

    /// A part of a word.
    fn piece(&mut self, first: char, word: &mut String) {
        match first {
            '\'' => {
                while let Some(next) = self.text.next_if(|next| *next != '\'') {
                    self.number += usize::from(next == '\n');
                    word.push(next);
                }
                self.text.next();
            }
            '"' => {
                while let Some(next) = self.text.next_if(|next| *next != '"') {
                    self.number += usize::from(next == '\n');
                    match next {
                        '\\' => word.extend(self.text.next()),
                        '$' => self.expanded(word),
                        _ => word.push(next),
                    }
                }
                self.text.next();
            }
            '\\' => word.extend(self.text.next()),
            '$' => self.expanded(word),
            _ => word.push(first),
        }
    }

    /// What stands behind a dollar sign: a command within this one, or a name.
    fn expanded(&mut self, word: &mut String) {
        word.push('$');
        if self.text.next_if_eq(&'(').is_some() {
            self.read(true);
        }
    }

    /// A program is what comes after the variables that are set for it.
    fn end(&mut self, words: &mut Vec<String>, number: usize) {
        let sets = |word: &&String| word.split_once('=').is_some_and(|(name, _)| is_name(name));
        let variables = words.iter().take_while(sets).count();
        let words: Vec<String> = std::mem::take(words).split_off(variables);
        if !words.is_empty() {
            self.found.push(Line { number, words, is_whole: true });
        }
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c == '_' || c.is_ascii_alphanumeric())
}
