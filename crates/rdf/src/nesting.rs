//! How deep a file is nested, before the parser sees it: the parser remembers every level.

use crate::Format;

/// Levels of brackets or elements. Nobody writes nearly as many.
pub(crate) const DEEPEST: usize = 256;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Outside,
    Comment,
    Iri,
    /// In a string that ends with so many of these quotes.
    String {
        quote: u8,
        count: u8,
    },
    /// Behind quotes that may begin a string, or be an empty one.
    Opening {
        quote: u8,
        count: u8,
    },
    /// In a tag; whether it closes an element, and whether its last byte was a slash.
    Tag {
        closes: bool,
        slash: bool,
    },
    /// In a value inside a tag, which may hold anything.
    Attribute {
        quote: u8,
        closes: bool,
    },
    /// In what is neither element nor text: declarations, comments, instructions.
    Aside,
}

/// Follows a file byte by byte.
#[derive(Debug)]
pub(crate) struct Nesting {
    format: Format,
    state: State,
    escaped: bool,
    /// Quotes in a row inside a string.
    quotes: u8,
    /// The last bytes, where an end is made of several.
    tail: [u8; 3],
    depth: usize,
    /// Whether an `[` inside a declaration is open, so that its `>` ends nothing.
    subset: bool,
}

impl Nesting {
    pub(crate) fn new(format: Format) -> Self {
        let (state, tail) = (State::Outside, [0; 3]);
        Self { format, state, escaped: false, quotes: 0, tail, depth: 0, subset: false }
    }

    /// Takes bytes in. Whether the file is nested too deeply by now.
    pub(crate) fn goes_too_deep(&mut self, bytes: &[u8]) -> bool {
        match self.format {
            // A line has no levels.
            Format::NTriples | Format::NQuads => false,
            Format::Turtle | Format::TriG => bytes.iter().any(|byte| self.turtle(*byte)),
            Format::JsonLd => bytes.iter().any(|byte| self.json(*byte)),
            Format::RdfXml => bytes.iter().any(|byte| self.xml(*byte)),
        }
    }

    fn open(&mut self) -> bool {
        self.depth += 1;
        self.depth > DEEPEST
    }

    fn close(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    fn json(&mut self, byte: u8) -> bool {
        if let State::String { .. } = self.state {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.state = State::Outside,
                _ => {}
            }
            return false;
        }
        match byte {
            b'"' => self.state = State::String { quote: b'"', count: 1 },
            b'[' | b'{' => return self.open(),
            b']' | b'}' => self.close(),
            _ => {}
        }
        false
    }

    fn turtle(&mut self, byte: u8) -> bool {
        match self.state {
            State::Comment if byte == b'\n' || byte == b'\r' => self.state = State::Outside,
            State::Iri if byte == b'>' || byte.is_ascii_whitespace() => self.state = State::Outside,
            State::String { quote, count } => self.in_string(byte, quote, count),
            State::Opening { quote, count } if byte == quote => {
                self.state = match count {
                    1 => State::Opening { quote, count: 2 },
                    _ => State::String { quote, count: 3 },
                };
            }
            // Two quotes were an empty string.
            State::Opening { count: 2, .. } => {
                self.state = State::Outside;
                return self.turtle(byte);
            }
            State::Opening { quote, .. } => {
                self.state = State::String { quote, count: 1 };
                self.in_string(byte, quote, 1);
            }
            State::Outside => match byte {
                b'#' => self.state = State::Comment,
                b'<' => self.state = State::Iri,
                b'"' | b'\'' => self.state = State::Opening { quote: byte, count: 1 },
                b'[' | b'(' | b'{' => return self.open(),
                b']' | b')' | b'}' => self.close(),
                _ => {}
            },
            State::Comment | State::Iri | State::Tag { .. } | State::Attribute { .. } | State::Aside => {}
        }
        false
    }

    fn in_string(&mut self, byte: u8, quote: u8, count: u8) {
        let quotes = std::mem::take(&mut self.quotes);
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' => self.escaped = true,
            _ if byte == quote => {
                self.quotes = quotes + 1;
                if self.quotes == count {
                    self.quotes = 0;
                    self.state = State::Outside;
                }
            }
            _ => {}
        }
    }

    fn xml(&mut self, byte: u8) -> bool {
        let tail = self.tail;
        self.tail = [tail[1], tail[2], byte];
        match self.state {
            State::Outside if byte == b'<' => {
                self.state = State::Tag { closes: false, slash: false };
                self.tail = [0, 0, b'<'];
            }
            State::Tag { .. } if tail[2] == b'<' && (byte == b'!' || byte == b'?') => self.state = State::Aside,
            State::Tag { .. } if tail[2] == b'<' && byte == b'/' => {
                self.state = State::Tag { closes: true, slash: false };
            }
            State::Tag { closes, .. } if byte == b'"' || byte == b'\'' => {
                self.state = State::Attribute { quote: byte, closes };
            }
            State::Attribute { quote, closes } if byte == quote => self.state = State::Tag { closes, slash: false },
            State::Tag { closes, slash } if byte == b'>' => {
                self.state = State::Outside;
                match (closes, slash) {
                    (true, _) => self.close(),
                    (false, true) => {}
                    (false, false) => return self.open(),
                }
            }
            State::Tag { closes, .. } => self.state = State::Tag { closes, slash: byte == b'/' },
            // What is aside ends with the first `>`, or holds markup that makes it look deeper: at most one level each.
            State::Aside if byte == b'[' => self.subset = true,
            State::Aside if byte == b']' => self.subset = false,
            State::Aside if byte == b'>' && (!self.subset || tail[1..] == *b"]]") => {
                self.subset = false;
                self.state = State::Outside;
            }
            State::Outside
            | State::Comment
            | State::Iri
            | State::String { .. }
            | State::Opening { .. }
            | State::Attribute { .. }
            | State::Aside => {}
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn depth(format: Format, text: &str) -> usize {
        let mut nesting = Nesting::new(format);
        assert!(!nesting.goes_too_deep(text.as_bytes()), "{text}");
        nesting.depth
    }

    #[test]
    fn brackets_in_texts_comments_and_names_do_not_count() {
        for text in [
            ":s :p \"[[[\" .",
            ":s :p '(((' .",
            ":s :p \"\"\"[ \" [ \"\" [\"\"\" .",
            ":s :p \"\" ; :q [] .",
            ":s :p \"\\\"[\" .",
            "<urn:[[[> :p () . # [[[",
            ":s :p '''[''', \"[\", '[' .",
        ] {
            assert_eq!(depth(Format::Turtle, text), 0, "{text}");
        }
        assert_eq!(depth(Format::Turtle, ":s :p [ :q ( 1 [ "), 3);
        assert_eq!(depth(Format::JsonLd, r#"{"a": ["[[[", "\"{"#), 2);
        assert_eq!(depth(Format::RdfXml, "<?xml?><!DOCTYPE a [<!ENTITY b \"c\">]><a b=\"<<>>\"><c/><d>"), 2);
        assert_eq!(depth(Format::RdfXml, "<a><!-- no --><b></b></a>"), 0);
        assert_eq!(depth(Format::RdfXml, "<a><![CDATA[ <<<< ]]></a>"), 0);
    }

    #[test]
    fn what_is_too_deep_is_noticed_in_pieces_as_well() {
        for (format, level) in [(Format::Turtle, "[ :p "), (Format::JsonLd, "[{\"a\":"), (Format::RdfXml, "<a b='c'>")]
        {
            let mut nesting = Nesting::new(format);
            let deep = level.repeat(DEEPEST + 1);
            assert!(deep.as_bytes().chunks(3).any(|piece| nesting.goes_too_deep(piece)), "{format}");
        }
    }
}
