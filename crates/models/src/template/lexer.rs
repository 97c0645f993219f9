//! From the text of a template to its words.

use super::fault::{Fault, Outcome};

/// Parts of one template; a long prompt has some hundreds.
const MOST_PARTS: usize = 50_000;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token<'s> {
    Text(&'s str),
    PrintStart,
    PrintEnd,
    BlockStart,
    BlockEnd,
    Name(&'s str),
    Quoted(String),
    Int(i128),
    Float(f64),
    Sign(&'static str),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Placed<'s> {
    pub(super) token: Token<'s>,
    pub(super) line: usize,
}

/// The longest first, so that `**` is not read as `*`.
const SIGNS: [&str; 28] = [
    "**", "//", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "~", "<", ">", "=", "(", ")", "[", "]", "{", "}", ",",
    ".", ":", "|", "!", ";", "@",
];

pub(super) fn tokens(source: &str) -> Outcome<Vec<Placed<'_>>> {
    // As Jinja does: one newline at the very end is not part of the text.
    let source = source.strip_suffix('\n').map_or(source, |rest| rest.strip_suffix('\r').unwrap_or(rest));
    let mut lexer = Lexer { rest: source, line: 1, tokens: Vec::new(), trim_next: false };
    lexer.read_all()?;
    Ok(lexer.tokens)
}

struct Lexer<'s> {
    rest: &'s str,
    line: usize,
    tokens: Vec<Placed<'s>>,
    /// The tag before ended in `-`.
    trim_next: bool,
}

impl<'s> Lexer<'s> {
    fn read_all(&mut self) -> Outcome<()> {
        while !self.rest.is_empty() {
            let Some((start, open)) = next_tag(self.rest) else {
                let text = self.take(self.rest.len());
                self.text(text, false)?;
                break;
            };
            let text = self.take(start);
            let trims = self.rest[open.len()..].starts_with('-');
            self.text(text, trims)?;
            match open {
                "{#" => self.comment()?,
                "{{" => self.tag(open, "}}", Token::PrintStart, Token::PrintEnd)?,
                _ => self.block(open)?,
            }
        }
        Ok(())
    }

    fn text(&mut self, text: &'s str, trims_end: bool) -> Outcome<()> {
        let text = if std::mem::take(&mut self.trim_next) { text.trim_start() } else { text };
        let text = if trims_end { text.trim_end() } else { text };
        if text.is_empty() { Ok(()) } else { self.push(Token::Text(text)) }
    }

    fn comment(&mut self) -> Outcome<()> {
        let line = self.line;
        let end = self.rest.find("#}").ok_or_else(|| Fault::new("a comment does not end; write #}").at(line))?;
        let comment = self.take(end + 2);
        self.trim_next = comment.len() > 4 && comment.ends_with("-#}");
        Ok(())
    }

    fn block(&mut self, open: &'static str) -> Outcome<()> {
        let Some(after) = raw_tag(self.rest, "raw") else {
            return self.tag(open, "%}", Token::BlockStart, Token::BlockEnd);
        };
        let line = self.line;
        let trims_start = self.rest[..after].ends_with("-%}");
        self.take(after);
        let mut from = 0;
        while let Some(found) = self.rest[from..].find("{%") {
            let start = from + found;
            if let Some(length) = raw_tag(&self.rest[start..], "endraw") {
                let text = self.take(start);
                let tag = self.take(length);
                self.trim_next = trims_start;
                self.text(text, tag.starts_with("{%-"))?;
                self.trim_next = tag.ends_with("-%}");
                return Ok(());
            }
            from = start + 2;
        }
        Err(Fault::new("{% raw %} does not end; write {% endraw %}").at(line))
    }

    fn tag(&mut self, open: &str, close: &str, start: Token<'s>, end: Token<'s>) -> Outcome<()> {
        let line = self.line;
        self.take(open.len());
        if self.rest.starts_with(['-', '+']) {
            self.take(1);
        }
        self.push(start)?;
        // Braces of a map may stand right before the end of the tag.
        let mut braces = 0_usize;
        loop {
            let spaces = self.rest.len() - self.rest.trim_start().len();
            self.take(spaces);
            if self.rest.is_empty() {
                return Err(Fault::new(format!("a tag does not end; write {close}")).at(line));
            }
            let sign = usize::from(self.rest.starts_with(['-', '+']));
            if braces == 0 && self.rest[sign..].starts_with(close) {
                self.trim_next = self.rest.starts_with('-');
                self.push(end)?;
                self.take(sign + close.len());
                return Ok(());
            }
            let token = self.word()?;
            match &token {
                Token::Sign("{") => braces += 1,
                Token::Sign("}") => braces = braces.saturating_sub(1),
                _ => {}
            }
            self.push(token)?;
        }
    }

    fn word(&mut self) -> Outcome<Token<'s>> {
        let first = self.rest.chars().next().unwrap_or_default();
        if first.is_alphabetic() || first == '_' {
            let end = self.rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(self.rest.len());
            return Ok(Token::Name(self.take(end)));
        }
        if first.is_ascii_digit() {
            return self.number();
        }
        if first == '"' || first == '\'' {
            return self.quoted(first);
        }
        match SIGNS.iter().find(|sign| self.rest.starts_with(**sign)) {
            Some(sign) => {
                self.take(sign.len());
                Ok(Token::Sign(sign))
            }
            None => Err(Fault::new(format!("{first:?} means nothing here")).at(self.line)),
        }
    }

    fn number(&mut self) -> Outcome<Token<'s>> {
        let digits = |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '_').len();
        let whole = digits(self.rest);
        let mut end = whole;
        let fraction = self.rest[end..].strip_prefix('.').map_or(0, digits);
        if fraction > 0 {
            end += 1 + fraction;
        }
        if let Some(exponent) = self.rest[end..].strip_prefix(['e', 'E']) {
            let sign = usize::from(exponent.starts_with(['+', '-']));
            let power = digits(&exponent[sign..]);
            end += if power > 0 { 1 + sign + power } else { 0 };
        }
        let text = self.take(end).replace('_', "");
        let token = if end == whole { text.parse().ok().map(Token::Int) } else { text.parse().ok().map(Token::Float) };
        token.ok_or_else(|| Fault::new(format!("{text} is too large a number")).at(self.line))
    }

    fn quoted(&mut self, quote: char) -> Outcome<Token<'s>> {
        let line = self.line;
        self.take(1);
        let mut text = String::new();
        let mut chars = self.rest.char_indices();
        while let Some((at, c)) = chars.next() {
            if c == quote {
                self.take(at + 1);
                return Ok(Token::Quoted(text));
            }
            if c != '\\' {
                text.push(c);
                continue;
            }
            match chars.next().map(|(_, escaped)| escaped) {
                Some('n') => text.push('\n'),
                Some('t') => text.push('\t'),
                Some('r') => text.push('\r'),
                Some('b') => text.push('\u{8}'),
                Some('f') => text.push('\u{c}'),
                Some('u') => {
                    let code: String = chars.by_ref().take(4).map(|(_, digit)| digit).collect();
                    let code = u32::from_str_radix(&code, 16).ok().and_then(char::from_u32);
                    text.push(code.ok_or_else(|| Fault::new("write four hexadecimal digits after \\u").at(line))?);
                }
                Some(other) => text.push(other),
                None => break,
            }
        }
        Err(Fault::new(format!("a text in quotes does not end; write {quote}")).at(line))
    }

    fn push(&mut self, token: Token<'s>) -> Outcome<()> {
        if self.tokens.len() >= MOST_PARTS {
            return Err(Fault::new(format!("it has more than {MOST_PARTS} parts; write a shorter template")));
        }
        self.tokens.push(Placed { token, line: self.line });
        Ok(())
    }

    fn take(&mut self, bytes: usize) -> &'s str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.line += taken.bytes().filter(|byte| *byte == b'\n').count();
        self.rest = rest;
        taken
    }
}

/// Where the next tag begins, and with what.
fn next_tag(text: &str) -> Option<(usize, &'static str)> {
    let opens = |at: usize| ["{{", "{%", "{#"].into_iter().find(|open| text[at..].starts_with(open));
    text.match_indices('{').find_map(|(at, _)| Some((at, opens(at)?)))
}

/// The length of `{% raw %}` or `{% endraw %}` at the beginning of a text.
fn raw_tag(text: &str, word: &str) -> Option<usize> {
    let inside = text.strip_prefix("{%")?;
    let inside = inside.strip_prefix(['-', '+']).unwrap_or(inside);
    let inside = inside.trim_start().strip_prefix(word)?.trim_start();
    let inside = inside.strip_prefix(['-', '+']).unwrap_or(inside);
    Some(text.len() - inside.strip_prefix("%}")?.len())
}
