//! Cuts text into passages: along headings and paragraphs, of about a thousand characters.
//!
//! A passage is exactly what stands at its place in the text. Only pieces of a paragraph that is too long overlap:
//! whole paragraphs are understood without their neighbours.

use crate::sections::Section;
use std::ops::Range;
use trellis_orchestrator::ports::{Passage, Place};

/// Characters that a passage should have, and those that it has at most.
const USUAL: usize = 1_200;
const MOST: usize = 1_500;
/// Pieces with fewer are joined with what follows.
const FEW: usize = 300;
/// Characters that a piece of a long paragraph repeats of the one before.
const OVERLAP: usize = 150;

/// A part of the text that may become a passage.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Piece {
    bytes: Range<usize>,
    headings: Vec<String>,
    /// Nothing but a heading.
    is_heading: bool,
}

pub(crate) fn passages(text: &str, sections: &[Section]) -> Vec<Passage> {
    let pieces = sections.iter().flat_map(|section| pieces(text, section)).collect();
    let newlines: Vec<usize> = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at).collect();
    let line = |at: usize| newlines.partition_point(|newline| *newline < at) as u64 + 1;
    let passage = |piece: Piece| {
        let Range { start, end } = piece.bytes;
        Passage {
            text: text[start..end].to_owned(),
            place: Place {
                headings: piece.headings,
                bytes: start as u64..end as u64,
                // The last byte of what is no empty text.
                lines: (line(start), line(end - 1)),
            },
        }
    };
    joined(text, pieces).into_iter().map(passage).collect()
}

/// Joins small pieces with those behind them, as long as they belong together.
fn joined(text: &str, pieces: Vec<Piece>) -> Vec<Piece> {
    let mut joined: Vec<Piece> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        match joined.last_mut() {
            Some(last) if belong_together(text, last, &piece) => {
                last.headings = if last.is_heading { piece.headings } else { common(&last.headings, &piece.headings) };
                last.bytes.end = piece.bytes.end;
                last.is_heading &= piece.is_heading;
            }
            _ => joined.push(piece),
        }
    }
    joined
}

fn belong_together(text: &str, last: &Piece, next: &Piece) -> bool {
    if last.bytes.end > next.bytes.start || !has_at_most(text, last.bytes.start..next.bytes.end, USUAL) {
        return false;
    }
    let share = !common(&last.headings, &next.headings).is_empty() || last.headings.is_empty();
    let is_below = next.headings.starts_with(&last.headings);
    if last.is_heading { is_below } else { share && has_at_most(text, last.bytes.clone(), FEW) }
}

/// Whether a part of the text has at most so many characters. Much more is not even counted.
fn has_at_most(text: &str, bytes: Range<usize>, characters: usize) -> bool {
    bytes.len() <= 4 * characters && text[bytes].chars().count() <= characters
}

fn common(one: &[String], other: &[String]) -> Vec<String> {
    one.iter().zip(other).take_while(|(one, other)| one == other).map(|(heading, _)| heading.clone()).collect()
}

/// The pieces of a section: as many paragraphs as fit.
fn pieces(text: &str, section: &Section) -> Vec<Piece> {
    let mut places: Vec<Range<usize>> = Vec::new();
    let mut current: Option<Range<usize>> = None;
    for paragraph in paragraphs(text, section.bytes.clone()) {
        if let Some(bytes) = &mut current
            && has_at_most(text, bytes.start..paragraph.end, USUAL)
        {
            bytes.end = paragraph.end;
            continue;
        }
        places.extend(current.take());
        if has_at_most(text, paragraph.clone(), MOST) {
            current = Some(paragraph);
        } else {
            places.extend(cut(text, paragraph));
        }
    }
    places.extend(current);
    let piece = |bytes: Range<usize>| {
        let is_heading = bytes.end <= section.body;
        Piece { bytes, headings: section.headings.clone(), is_heading }
    };
    places.into_iter().map(piece).collect()
}

/// What stands between blank lines, without space around it. A fenced block is one paragraph, blank lines and all.
fn paragraphs(text: &str, within: Range<usize>) -> Vec<Range<usize>> {
    let mut paragraphs = Vec::new();
    let (mut start, mut end, mut fence) = (within.start, within.start, None);
    for line in text[within.clone()].split_inclusive('\n') {
        let words = line.trim();
        let mark = ["```", "~~~"].into_iter().find(|mark| words.starts_with(mark));
        fence = match fence {
            Some(open) if mark == Some(open) => None,
            None => mark,
            Some(_) => fence,
        };
        end += line.len();
        if fence.is_none() && words.is_empty() {
            paragraphs.extend(trimmed(text, start..end));
            start = end;
        }
    }
    paragraphs.extend(trimmed(text, start..within.end));
    paragraphs
}

/// None if nothing but space is there.
fn trimmed(text: &str, bytes: Range<usize>) -> Option<Range<usize>> {
    let is_space = |c: char| c.is_whitespace() || c == '\u{feff}';
    let own = &text[bytes.clone()];
    let start = bytes.start + (own.len() - own.trim_start_matches(is_space).len());
    let end = start + own.trim_matches(is_space).len();
    (start < end).then_some(start..end)
}

/// Cuts a long paragraph: where a line, else a sentence, else a word ends.
fn cut(text: &str, paragraph: Range<usize>) -> Vec<Range<usize>> {
    let mut pieces = Vec::new();
    let mut start = paragraph.start;
    loop {
        let rest = &text[start..paragraph.end];
        if rest.chars().nth(MOST).is_none() {
            pieces.extend(trimmed(text, start..paragraph.end));
            return pieces;
        }
        let limit = nth(rest, USUAL);
        let length = best_end(rest, nth(rest, USUAL / 2), limit);
        pieces.extend(trimmed(text, start..start + length));
        start += repeated_from(&rest[..length]);
    }
}

/// Where the character with that number begins.
fn nth(text: &str, number: usize) -> usize {
    text.char_indices().nth(number).map_or(text.len(), |(at, _)| at)
}

/// The best place to cut between two places; the later one if none is good.
fn best_end(text: &str, least: usize, most: usize) -> usize {
    let window = &text[least..most];
    let behind = |found: Option<(usize, &str)>| found.map(|(at, mark)| least + at + mark.len());
    let last_of = |marks: &[&'static str]| {
        marks.iter().filter_map(|mark| window.rmatch_indices(mark).next()).max_by_key(|(at, _)| *at)
    };
    behind(last_of(&["\n"]))
        .or_else(|| behind(last_of(&[". ", "! ", "? ", "。", "！", "？"])))
        .or_else(|| window.rfind(char::is_whitespace).map(|at| least + at))
        .filter(|end| *end > 0)
        .unwrap_or(most)
}

/// Where the next piece begins, so that it repeats some words. Always behind the beginning of the piece.
fn repeated_from(piece: &str) -> usize {
    let count = piece.chars().count();
    let from = nth(piece, count.saturating_sub(OVERLAP));
    let word = piece[from..].find(char::is_whitespace).map_or(piece.len(), |at| from + at);
    word.max(nth(piece, 1))
}

#[cfg(test)]
#[path = "split_tests.rs"]
mod tests;
