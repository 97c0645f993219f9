//! A folder of texts and a search in them: what the tool `search` looks into.
//!
//! Documents are cut into passages, and passages are ranked by BM25. A word that most documents have tells nothing and
//! does not count, so that a question about something else finds nothing instead of anything.

use crate::statistics::float;
use crate::words::words;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// How many documents an answer shows.
const SHOWN: usize = 3;
/// How long a passage may be before it is cut at the end of a sentence.
const PASSAGE_BYTES: usize = 900;
/// With fewer documents than this, words that most of them have still count.
const FEW: usize = 4;
/// The usual constants of BM25: how soon repetitions stop counting, and how much length does.
const SATURATION: f64 = 1.2;
const LENGTH: f64 = 0.75;

/// Why there is nothing to search in.
#[derive(Debug, thiserror::Error)]
pub enum DocumentsError {
    #[error("the documents in {} cannot be read: {source}; name a folder of text files", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("there are no .md or .txt files in {}; `search` needs some", path.display())]
    None { path: PathBuf },
}

/// Texts with an index over their passages.
#[derive(Debug, Clone, Default)]
pub struct Documents {
    titles: Vec<String>,
    passages: Vec<Passage>,
    /// In how many passages each word occurs, and in how many documents.
    spread: BTreeMap<String, (usize, usize)>,
}

#[derive(Debug, Clone)]
struct Passage {
    document: usize,
    text: String,
    counts: BTreeMap<String, usize>,
    length: usize,
}

impl Documents {
    /// Reads the `.md` and `.txt` files of a folder, in the order of their names.
    pub fn load(folder: &Path) -> Result<Self, DocumentsError> {
        let unreadable = |path: &Path| {
            let path = path.to_owned();
            move |source| DocumentsError::Unreadable { path, source }
        };
        let mut paths = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(unreadable(folder))? {
            let path = entry.map_err(unreadable(folder))?.path();
            if path.extension().is_some_and(|extension| extension == "md" || extension == "txt") {
                paths.push(path);
            }
        }
        paths.sort();
        let mut texts = Vec::new();
        for path in &paths {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            texts.push((name, std::fs::read_to_string(path).map_err(unreadable(path))?));
        }
        if texts.is_empty() { Err(DocumentsError::None { path: folder.to_owned() }) } else { Ok(Self::new(texts)) }
    }

    /// Documents by name and text. A first line that begins with `#` is the title; without one, the name is.
    pub fn new(texts: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut documents = Self::default();
        for (name, text) in texts {
            let heading = text.trim_start().lines().next().filter(|line| line.starts_with('#'));
            let title = heading.map_or(name, |line| line.trim_start_matches('#').trim().to_owned());
            let body = heading.map_or(text.as_str(), |line| &text.trim_start()[line.len()..]).trim();
            documents.add(title, body);
        }
        documents
    }

    fn add(&mut self, title: String, body: &str) {
        let document = self.titles.len();
        let mut in_document = BTreeSet::new();
        for text in passages(body) {
            let mut counts = BTreeMap::new();
            for word in stems(&title).into_iter().chain(stems(text)) {
                *counts.entry(word).or_insert(0) += 1;
            }
            for word in counts.keys() {
                self.spread.entry(word.clone()).or_default().0 += 1;
                in_document.insert(word.clone());
            }
            let length = counts.values().sum();
            self.passages.push(Passage { document, text: text.to_owned(), counts, length });
        }
        for word in in_document {
            self.spread.entry(word).or_default().1 += 1;
        }
        self.titles.push(title);
    }

    /// The best passage of each of the best documents under its title, or that there is none.
    pub fn search(&self, query: &str) -> String {
        let mut asked = stems(query);
        // A single letter is in every other text.
        asked.retain(|word| word.chars().count() > 1 || word.chars().all(char::is_numeric));
        asked.sort();
        asked.dedup();
        let mean = float(self.passages.iter().map(|passage| passage.length).sum()) / float(self.passages.len().max(1));
        let mut best: BTreeMap<usize, (f64, &Passage)> = BTreeMap::new();
        for passage in &self.passages {
            let score: f64 = asked.iter().map(|word| self.score(word, passage, mean)).sum();
            let known = best.get(&passage.document).map_or(0.0, |(score, _)| *score);
            if score > known {
                best.insert(passage.document, (score, passage));
            }
        }
        let mut ranked: Vec<_> = best.into_values().collect();
        // The order of the folder decides between equals.
        ranked.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        if ranked.is_empty() {
            return format!("No document matches {:?}. Try other words, or fewer.", query.trim());
        }
        let shown = ranked.iter().take(SHOWN).map(|(_, passage)| (&self.titles[passage.document], &passage.text));
        shown.map(|(title, text)| format!("## {title}\n{text}")).collect::<Vec<_>>().join("\n\n")
    }

    fn score(&self, word: &str, passage: &Passage, mean: f64) -> f64 {
        let Some(count) = passage.counts.get(word) else { return 0.0 };
        let (in_passages, in_documents) = self.spread.get(word).copied().unwrap_or_default();
        if self.titles.len() >= FEW && in_documents * 2 > self.titles.len() {
            return 0.0;
        }
        let (count, all, having) = (float(*count), float(self.passages.len()), float(in_passages));
        let rarity = (1.0 + (all - having + 0.5) / (having + 0.5)).ln();
        let length = 1.0 - LENGTH + LENGTH * float(passage.length) / mean;
        rarity * count * (SATURATION + 1.0) / (count + SATURATION * length)
    }
}

/// Words without the ending of the plural, which questions and documents often differ in.
fn stems(text: &str) -> Vec<String> {
    const SHORTEST: usize = 4;
    let stem = |word: String| match word.strip_suffix('s') {
        Some(stem) if word.len() >= SHORTEST && !stem.ends_with('s') => stem.to_owned(),
        Some(_) | None => word,
    };
    words(text).into_iter().map(stem).collect()
}

/// Cuts a text at blank lines, and what is still long at the ends of sentences.
fn passages(text: &str) -> Vec<&str> {
    let mut passages = Vec::new();
    for paragraph in text.split("\n\n") {
        let mut rest = paragraph.trim();
        while rest.len() > PASSAGE_BYTES {
            let most = rest.floor_char_boundary(PASSAGE_BYTES);
            let end =
                rest[..most].rfind(". ").map(|at| at + 1).or_else(|| rest[..most].rfind(' ')).filter(|at| *at > 0);
            let (passage, behind) = rest.split_at(end.unwrap_or(most));
            passages.push(passage.trim());
            rest = behind.trim();
        }
        passages.push(rest);
    }
    passages.retain(|passage| !passage.is_empty());
    passages
}

#[cfg(test)]
#[path = "documents_tests.rs"]
mod tests;
