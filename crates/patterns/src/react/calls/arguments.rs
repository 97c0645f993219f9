//! The arguments of a call while they arrive: one JSON object, of which two members are texts to be shown at once.
//!
//! Pure, and the same however the text is cut into pieces.

use crate::react::functions::ANSWER;

/// What a member of the object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Thought,
    Answer,
    Argument,
}

/// Reads the object character by character.
#[derive(Debug)]
pub(super) struct Arguments {
    thought: String,
    has_answer: bool,
    state: State,
    /// Everything, for an object that turns out to be none.
    raw: String,
    key: String,
    part: Part,
    /// The value of the member that is being read, as it is written.
    value: String,
    /// The arguments so far, as they are written: `"name": value, "name": value`.
    members: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    BeforeObject,
    /// A key or the end of the object may follow.
    BeforeKey,
    InKey {
        escaped: bool,
    },
    BeforeColon,
    BeforeValue,
    /// In a text that is shown.
    InText(Escape),
    InString {
        depth: usize,
        escaped: bool,
    },
    InNested {
        depth: usize,
    },
    /// In a number or a word.
    InScalar,
    AfterValue,
    Complete,
    /// No object can come of it.
    Broken,
}

/// Where in an escape sequence of a text we are.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Escape {
    None { high: Option<u16> },
    Begun { high: Option<u16> },
    Hex { high: Option<u16>, digits: String },
}

impl Arguments {
    /// `thought` is the name of the member that holds the thought. A call that answers has an answer, too.
    pub(super) fn new(thought: &str, has_answer: bool) -> Self {
        Self {
            thought: thought.to_owned(),
            has_answer,
            state: State::BeforeObject,
            raw: String::new(),
            key: String::new(),
            part: Part::Argument,
            value: String::new(),
            members: String::new(),
        }
    }

    /// More of the object. Gives the text that belongs to thought or answer to `show`, as soon as it is known.
    pub(super) fn push(&mut self, text: &str, show: &mut dyn FnMut(Part, char)) {
        self.raw.push_str(text);
        for c in text.chars() {
            let state = std::mem::replace(&mut self.state, State::Broken);
            self.state = self.next(state, c, show);
        }
    }

    /// The object without thought and answer. What is no object is given as it is, for the reader to say so.
    pub(super) fn object(&self) -> String {
        if self.state == State::Complete {
            format!("{{{}}}", self.members)
        } else if self.raw.trim().is_empty() {
            "{}".to_owned()
        } else {
            self.raw.clone()
        }
    }

    fn next(&mut self, state: State, c: char, show: &mut dyn FnMut(Part, char)) -> State {
        match (state, c) {
            (State::InText(escape), c) => self.in_text(escape, c, show),
            (State::InKey { escaped: false }, '"') => {
                self.part = self.part_of(&self.key);
                State::BeforeColon
            }
            (State::InKey { escaped }, c) => {
                self.key.push(c);
                State::InKey { escaped: c == '\\' && !escaped }
            }
            (State::InString { depth, escaped }, c) => {
                self.value.push(c);
                match (c, escaped) {
                    ('"', false) if depth == 0 => self.end_value(show),
                    ('"', false) => State::InNested { depth },
                    (c, escaped) => State::InString { depth, escaped: c == '\\' && !escaped },
                }
            }
            (State::InNested { depth }, c) => {
                self.value.push(c);
                match c {
                    '"' => State::InString { depth, escaped: false },
                    '{' | '[' => State::InNested { depth: depth + 1 },
                    '}' | ']' if depth == 1 => self.end_value(show),
                    '}' | ']' => State::InNested { depth: depth - 1 },
                    _ => State::InNested { depth },
                }
            }
            (State::InScalar, ',' | '}') => {
                let ended = self.end_value(show);
                self.next(ended, c, show)
            }
            (State::InScalar, c) if c.is_whitespace() => self.end_value(show),
            (State::InScalar, c) => {
                self.value.push(c);
                State::InScalar
            }
            (state, c) if c.is_whitespace() => state,
            (State::BeforeObject, '{') => State::BeforeKey,
            (State::BeforeKey, '"') => {
                self.key.clear();
                State::InKey { escaped: false }
            }
            (State::BeforeKey | State::AfterValue, '}') => State::Complete,
            (State::BeforeColon, ':') => State::BeforeValue,
            (State::BeforeValue, c) => self.begin_value(c),
            (State::AfterValue, ',') => State::BeforeKey,
            // Whatever follows the object is ignored, as in a text.
            (State::Complete, _) => State::Complete,
            (State::BeforeObject | State::BeforeKey | State::BeforeColon | State::AfterValue | State::Broken, _) => {
                State::Broken
            }
        }
    }

    fn part_of(&self, key: &str) -> Part {
        let key: String = serde_json::from_str(&format!("\"{key}\"")).unwrap_or_default();
        match key.as_str() {
            key if key == self.thought => Part::Thought,
            ANSWER if self.has_answer => Part::Answer,
            _ => Part::Argument,
        }
    }

    fn begin_value(&mut self, c: char) -> State {
        self.value.clear();
        if c == '"' && self.part != Part::Argument {
            return State::InText(Escape::None { high: None });
        }
        self.value.push(c);
        match c {
            '"' => State::InString { depth: 0, escaped: false },
            '{' | '[' => State::InNested { depth: 1 },
            _ => State::InScalar,
        }
    }

    /// A thought or answer that is no text is shown as it is written; a null says nothing.
    fn end_value(&mut self, show: &mut dyn FnMut(Part, char)) -> State {
        let value = std::mem::take(&mut self.value);
        match self.part {
            Part::Argument => {
                let comma = if self.members.is_empty() { "" } else { ", " };
                self.members.extend([comma, "\"", &self.key, "\": ", &value]);
            }
            Part::Thought | Part::Answer if value == "null" => {}
            Part::Thought | Part::Answer => value.chars().for_each(|c| show(self.part, c)),
        }
        State::AfterValue
    }

    fn in_text(&mut self, escape: Escape, c: char, show: &mut dyn FnMut(Part, char)) -> State {
        let next = match (escape, c) {
            (Escape::None { high }, '\\') => Escape::Begun { high },
            (Escape::None { high }, c) => {
                self.alone(high, show);
                if c == '"' {
                    return State::AfterValue;
                }
                show(self.part, c);
                Escape::None { high: None }
            }
            (Escape::Begun { high }, 'u') => Escape::Hex { high, digits: String::new() },
            (Escape::Begun { high }, c) => {
                self.alone(high, show);
                show(self.part, escaped(c));
                Escape::None { high: None }
            }
            (Escape::Hex { high, mut digits }, c) => {
                digits.push(c);
                if digits.chars().count() < 4 {
                    Escape::Hex { high, digits }
                } else {
                    Escape::None { high: self.unit(high, &digits, show) }
                }
            }
        };
        State::InText(next)
    }

    /// One UTF-16 unit. The first half of a pair is kept until the second comes.
    fn unit(&mut self, high: Option<u16>, digits: &str, show: &mut dyn FnMut(Part, char)) -> Option<u16> {
        let broken = u16::try_from(u32::from(char::REPLACEMENT_CHARACTER)).unwrap_or(u16::MAX);
        let unit = u16::from_str_radix(digits, 16).unwrap_or(broken);
        match (high, unit) {
            (Some(high), 0xDC00..0xE000) => {
                let pair = char::decode_utf16([high, unit]).next().and_then(Result::ok);
                show(self.part, pair.unwrap_or(char::REPLACEMENT_CHARACTER));
                None
            }
            (high, 0xD800..0xDC00) => {
                self.alone(high, show);
                Some(unit)
            }
            (high, unit) => {
                self.alone(high, show);
                show(self.part, char::from_u32(unit.into()).unwrap_or(char::REPLACEMENT_CHARACTER));
                None
            }
        }
    }

    /// The first half of a pair whose second never came.
    fn alone(&mut self, high: Option<u16>, show: &mut dyn FnMut(Part, char)) {
        if high.is_some() {
            show(self.part, char::REPLACEMENT_CHARACTER);
        }
    }
}

/// What stands for the character behind a backslash.
fn escaped(c: char) -> char {
    match c {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'b' => '\u{8}',
        'f' => '\u{c}',
        other => other,
    }
}
