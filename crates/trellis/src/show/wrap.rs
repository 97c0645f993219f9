//! Lines broken at words, whatever script they are in and however they are coloured.

use super::width;
use unicode_width::UnicodeWidthChar;

/// Text of one look: the escape sequence that a terminal shows it with, or none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) text: String,
    pub(crate) look: String,
}

/// What is never torn apart, and how many columns stand before it if it does not begin a line.
#[derive(Debug, Default)]
struct Word {
    before: usize,
    pieces: Vec<Piece>,
    is_break: bool,
}

impl Word {
    fn width(&self) -> usize {
        width(&self.pieces.iter().map(|piece| piece.text.as_str()).collect::<String>())
    }

    fn push(&mut self, letter: char, look: &str) {
        match self.pieces.last_mut() {
            Some(last) if last.look == look => last.text.push(letter),
            _ => self.pieces.push(Piece { text: letter.to_string(), look: look.to_owned() }),
        }
    }

    fn last(&self) -> Option<char> {
        self.pieces.last()?.text.chars().last()
    }
}

/// Lines of at most so many columns. A word that is longer than a line is cut where the line ends.
pub(crate) fn wrap(pieces: &[Piece], room: usize) -> Vec<String> {
    let room = room.max(2);
    let mut lines = Vec::new();
    let (mut line, mut taken) = (String::new(), 0);
    for word in words(pieces).into_iter().flat_map(|word| fitting(word, room)) {
        let needed = word.width();
        let before = if taken == 0 { 0 } else { word.before };
        if word.is_break || taken > 0 && taken + before + needed > room {
            lines.push(std::mem::take(&mut line));
            taken = 0;
        }
        if word.is_break {
            continue;
        }
        let before = if taken == 0 { 0 } else { before };
        line.push_str(&" ".repeat(before));
        line.extend(word.pieces.iter().map(shown));
        taken += before + needed;
    }
    lines.push(line);
    lines
}

/// Coloured text as pieces. Only what colours it may be in it: everything of others was made harmless before.
pub(crate) fn pieces(coloured: &str) -> Vec<Piece> {
    let mut found = Vec::new();
    let mut look = String::new();
    let mut rest = coloured;
    while let Some((plain, behind)) = rest.split_once("\u{1b}[") {
        found.push(Piece { text: plain.to_owned(), look: look.clone() });
        let (codes, text) = behind.split_once('m').unwrap_or((behind, ""));
        if matches!(codes, "0" | "39" | "") {
            look.clear();
        } else {
            look.extend(["\u{1b}[", codes, "m"]);
        }
        rest = text;
    }
    found.push(Piece { text: rest.to_owned(), look });
    found.retain(|piece| !piece.text.is_empty());
    found
}

pub(crate) fn shown(piece: &Piece) -> String {
    if piece.look.is_empty() { piece.text.clone() } else { format!("{}{}\u{1b}[0m", piece.look, piece.text) }
}

fn words(pieces: &[Piece]) -> Vec<Word> {
    let (mut all, mut word) = (Vec::new(), Word::default());
    let mut finish = |word: &mut Word, before: usize| {
        let whole = std::mem::replace(word, Word { before, ..Word::default() });
        if whole.pieces.is_empty() {
            word.before += whole.before;
        } else {
            all.push(whole);
        }
    };
    for piece in pieces {
        for letter in piece.text.chars() {
            match letter {
                '\n' => {
                    finish(&mut word, 0);
                    word = Word { is_break: true, ..Word::default() };
                    word.push(' ', "");
                    finish(&mut word, 0);
                }
                ' ' | '\t' => finish(&mut word, 1),
                _ => {
                    if word.last().is_some_and(|last| may_break(last, letter)) {
                        finish(&mut word, 0);
                    }
                    word.push(letter, &piece.look);
                }
            }
        }
    }
    finish(&mut word, 0);
    all
}

/// Chinese, Japanese and Korean have no spaces: lines break between their characters, but not before what closes.
fn may_break(last: char, next: char) -> bool {
    const CLOSES: &str = "、。，．！？：；）」』】〉》〕］｝ー…々ゝ）,.!?:;)";
    const OPENS: &str = "「『（【〈《〔［｛(";
    let wide = |c: char| c.width() == Some(2) && !is_pictograph(c);
    (wide(last) || wide(next)) && next.width() != Some(0) && !CLOSES.contains(next) && !OPENS.contains(last)
}

/// Emoji are put together of several characters, so nothing is torn beside them.
fn is_pictograph(c: char) -> bool {
    matches!(u32::from(c), 0x1_F000..=0x1_FAFF | 0x2600..=0x27BF | 0x200D | 0xFE0F)
}

/// The word itself, or the parts of one that no line can hold.
fn fitting(word: Word, room: usize) -> Vec<Word> {
    if word.is_break || word.width() <= room {
        return vec![word];
    }
    let mut parts = Vec::new();
    let mut part = Word { before: word.before, ..Word::default() };
    let mut taken = 0;
    for piece in &word.pieces {
        for letter in piece.text.chars() {
            let columns = letter.width().unwrap_or(0);
            if taken + columns > room && columns > 0 {
                parts.push(std::mem::take(&mut part));
                taken = 0;
            }
            part.push(letter, &piece.look);
            taken += columns;
        }
    }
    parts.push(part);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str, room: usize) -> Vec<String> {
        wrap(&pieces(text), room)
    }

    #[test]
    fn lines_break_at_words_and_only_words_that_are_too_long_are_cut() {
        assert_eq!(plain("one two  three", 8), ["one two", "three"]);
        assert_eq!(plain("a  b", 8), ["a  b"], "spaces inside of a line stay");
        assert_eq!(plain("abcdefghij k", 4), ["abcd", "efgh", "ij k"]);
        assert_eq!(plain("one\ntwo", 8), ["one", "two"]);
        assert_eq!(plain("", 8), [""]);
    }

    #[test]
    fn scripts_without_spaces_break_between_characters_and_not_before_what_closes() {
        assert_eq!(plain("東京の天気は晴れ。", 8), ["東京の天", "気は晴", "れ。"]);
        assert_eq!(plain("「東京」の天気", 6), ["「東", "京」の", "天気"]);
        assert_eq!(plain("go 🚀🚀 now", 6), ["go", "🚀🚀", "now"]);
        let family = "👨\u{200d}👩\u{200d}👧";
        assert_eq!(plain(&format!("a {family} b"), 4), [format!("a {family}"), "b".to_owned()]);
        assert_eq!(plain("né\u{301}e là", 4), ["né\u{301}e", "là"]);
    }

    #[test]
    fn colours_go_on_behind_a_break_and_end_before_it() {
        assert_eq!(
            plain("\u{1b}[36mone two\u{1b}[39m three", 5),
            ["\u{1b}[36mone\u{1b}[0m", "\u{1b}[36mtwo\u{1b}[0m", "three"]
        );
    }
}
