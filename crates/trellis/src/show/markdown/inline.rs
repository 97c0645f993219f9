//! Emphasis, code and links inside of a line.

use crate::show::wrap::Piece;

/// How words are shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Look {
    codes: [bool; 5],
}

const BOLD: usize = 0;
const ITALIC: usize = 1;
const STRUCK: usize = 2;
const LINK: usize = 3;
const CYAN: usize = 4;
const CODES: [&str; 5] = ["1", "3", "9", "4", "36"];

impl Look {
    pub(super) const HEADING: Self = Self { codes: [true, false, false, false, false] };
    pub(super) const CODE: Self = Self { codes: [false, false, false, false, true] };

    fn with(mut self, code: usize, on: bool) -> Self {
        self.codes[code] = on;
        self
    }

    fn has(self, code: usize) -> bool {
        self.codes[code]
    }

    /// What a terminal shows it with; nothing for usual text.
    pub(super) fn sequence(self) -> String {
        let codes: Vec<_> = CODES.iter().zip(self.codes).filter(|(_, on)| *on).map(|(code, _)| *code).collect();
        if codes.is_empty() { String::new() } else { format!("\u{1b}[{}m", codes.join(";")) }
    }
}

/// The marks that may stand around words, the longer ones first.
const MARKS: [(&str, usize); 5] = [("**", BOLD), ("__", BOLD), ("~~", STRUCK), ("*", ITALIC), ("_", ITALIC)];

/// A line as pieces. Marks that nothing closes are text.
pub(super) fn inline(line: &str, usual: Look) -> Vec<Piece> {
    let mut pieces = Pieces::default();
    let mut look = usual;
    let mut open: Vec<&str> = Vec::new();
    let mut rest = line;
    while let Some(letter) = rest.chars().next() {
        let before = line[..line.len() - rest.len()].chars().next_back();
        if let Some(escaped) = rest.strip_prefix('\\').and_then(|text| text.chars().next())
            && escaped.is_ascii_punctuation()
        {
            pieces.push(escaped.to_string(), look);
            rest = &rest[1 + escaped.len_utf8()..];
        } else if letter == '`'
            && let Some((code, behind)) = code(rest)
        {
            pieces.push(code.to_owned(), look.with(CYAN, true));
            rest = behind;
        } else if let Some((text, address, behind)) = link(rest) {
            pieces.push(text.to_owned(), look.with(LINK, true));
            if text != address {
                pieces.push(format!(" ({address})"), look);
            }
            rest = behind;
        } else if let Some((mark, code)) = MARKS.into_iter().find(|(mark, _)| rest.starts_with(mark)) {
            let behind = &rest[mark.len()..];
            if open.last() == Some(&mark) && before.is_some_and(|c| !c.is_whitespace()) {
                open.pop();
                look = look.with(code, usual.has(code));
            } else if !open.contains(&mark) && opens(mark, before, behind) {
                open.push(mark);
                look = look.with(code, true);
            } else {
                pieces.push(mark.to_owned(), look);
            }
            rest = behind;
        } else {
            pieces.push(letter.to_string(), look);
            rest = &rest[letter.len_utf8()..];
        }
    }
    pieces.0
}

/// Neighbours of one look are one piece.
#[derive(Default)]
struct Pieces(Vec<Piece>);

impl Pieces {
    fn push(&mut self, text: String, look: Look) {
        let look = look.sequence();
        match self.0.last_mut() {
            Some(last) if last.look == look => last.text.push_str(&text),
            _ => self.0.push(Piece { text, look }),
        }
    }
}

/// Whether a mark begins something: it stands before a word, and the same mark stands behind one later.
fn opens(mark: &str, before: Option<char>, behind: &str) -> bool {
    let inside_a_word = mark.starts_with('_') && before.is_some_and(char::is_alphanumeric);
    if inside_a_word || behind.chars().next().is_none_or(char::is_whitespace) {
        return false;
    }
    behind.match_indices(mark).any(|(place, _)| {
        let ends_word = behind[..place].chars().next_back().is_some_and(|c| !c.is_whitespace());
        // The single mark is not a half of the double one.
        let next = &behind[place + mark.len()..];
        let whole = mark.len() > 1 || !next.starts_with(mark) && !behind[..place].ends_with(mark);
        ends_word && whole
    })
}

/// What stands between the same number of backticks, and what is behind them.
fn code(text: &str) -> Option<(&str, &str)> {
    let ticks = text.bytes().take_while(|byte| *byte == b'`').count();
    let (fence, inside) = text.split_at(ticks);
    let end = inside
        .match_indices(fence)
        .map(|(place, _)| place)
        .find(|place| !inside[place + ticks..].starts_with('`') && !inside[..*place].ends_with('`'))?;
    let code = &inside[..end];
    let trimmed = code.strip_prefix(' ').and_then(|code| code.strip_suffix(' ')).filter(|code| !code.is_empty());
    Some((trimmed.unwrap_or(code), &inside[end + ticks..]))
}

/// `[text](address)`, an image of that form, or `<https://…>`: its text, its address, and what is behind it.
fn link(text: &str) -> Option<(&str, &str, &str)> {
    if let Some(inside) = text.strip_prefix('<') {
        let (address, behind) = inside.split_once('>')?;
        let is_address = ["http://", "https://", "mailto:"].iter().any(|scheme| address.starts_with(scheme));
        return (is_address && !address.contains(char::is_whitespace)).then_some((address, address, behind));
    }
    let inside = text.strip_prefix("![").or_else(|| text.strip_prefix('['))?;
    let (said, behind) = inside.split_once("](")?;
    let (address, behind) = behind.split_once(')')?;
    let plain = !said.contains(['[', ']', '\n']) && !address.is_empty() && !address.contains(char::is_whitespace);
    plain.then_some((if said.is_empty() { address } else { said }, address, behind))
}
