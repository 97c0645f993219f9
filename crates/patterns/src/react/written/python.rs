//! Calls as in Python: `search(question="moss")`, alone or in a list, with or without a fence.

use super::super::functions::Functions;
use super::{Placed, Written};
use serde_json::{Map, Number, Value};

/// The whole text is such a call or a list of them, or a fence in it is.
pub(super) fn find(text: &str, functions: &Functions) -> Vec<Placed> {
    let whole = 0..text.len();
    let marks = text.match_indices("```").map(|(at, _)| at).collect::<Vec<_>>();
    let fenced = marks.chunks_exact(2).map(|pair| {
        let line = text[pair[0]..pair[1]].find('\n').map_or(pair[0] + 3, |line| pair[0] + line + 1);
        line..pair[1]
    });
    let places = std::iter::once(whole).chain(fenced);
    places.filter_map(|range| Some((range.clone(), calls(&text[range], functions)?))).collect()
}

fn calls(text: &str, functions: &Functions) -> Option<Vec<Written>> {
    let text = text.trim().trim_start_matches("<|python_tag|>").trim();
    let listed = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    let mut reader = Reader { rest: listed.unwrap_or(text), deeper: DEEPEST };
    let mut calls = Vec::new();
    loop {
        calls.push(reader.call(functions)?);
        if reader.rest.trim_start().is_empty() {
            return Some(calls);
        }
        if calls.len() >= MOST_CALLS {
            return None;
        }
        reader.take(",").or_else(|| reader.take(";"))?;
    }
}

/// More calls at once are no reply.
const MOST_CALLS: usize = 64;

/// How deep values may be nested.
const DEEPEST: usize = 32;

struct Reader<'t> {
    rest: &'t str,
    /// How much deeper a value may be.
    deeper: usize,
}

impl Reader<'_> {
    fn take(&mut self, mark: &str) -> Option<()> {
        self.rest = self.rest.trim_start().strip_prefix(mark)?;
        Some(())
    }

    /// A word such as a name, without what follows it.
    fn word(&mut self) -> Option<String> {
        let rest = self.rest.trim_start();
        let length = rest.find(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-' | '.')).unwrap_or(rest.len());
        let word = rest[..length].to_owned();
        self.rest = &rest[length..];
        (!word.is_empty()).then_some(word)
    }

    fn call(&mut self, functions: &Functions) -> Option<Written> {
        let is_printed = self.take("print(").is_some();
        let name = self.word()?;
        functions.meant(&name)?;
        self.take("(")?;
        let mut arguments = Map::new();
        while self.take(")").is_none() {
            let argument = self.word()?;
            self.take("=")?;
            arguments.insert(argument, self.value()?);
            if self.take(",").is_none() && !self.rest.trim_start().starts_with(')') {
                return None;
            }
        }
        if is_printed {
            self.take(")")?;
        }
        Some(Written { name, arguments })
    }

    fn value(&mut self) -> Option<Value> {
        self.deeper = self.deeper.checked_sub(1)?;
        let value = self.nested();
        self.deeper += 1;
        value
    }

    fn nested(&mut self) -> Option<Value> {
        let rest = self.rest.trim_start();
        match rest.chars().next()? {
            quote @ ('"' | '\'') => self.text(quote).map(Value::String),
            '[' => {
                self.take("[")?;
                self.items("]").map(Value::Array)
            }
            '(' => {
                self.take("(")?;
                self.items(")").map(Value::Array)
            }
            '{' => {
                self.take("{")?;
                let mut members = Map::new();
                while self.take("}").is_none() {
                    let quote = self.rest.trim_start().chars().next().filter(|c| matches!(c, '"' | '\''))?;
                    let name = self.text(quote)?;
                    self.take(":")?;
                    members.insert(name, self.value()?);
                    if self.take(",").is_none() && !self.rest.trim_start().starts_with('}') {
                        return None;
                    }
                }
                Some(Value::Object(members))
            }
            _ => self.scalar(),
        }
    }

    fn items(&mut self, close: &str) -> Option<Vec<Value>> {
        let mut items = Vec::new();
        while self.take(close).is_none() {
            items.push(self.value()?);
            if self.take(",").is_none() && !self.rest.trim_start().starts_with(close) {
                return None;
            }
        }
        Some(items)
    }

    fn text(&mut self, quote: char) -> Option<String> {
        let rest = self.rest.trim_start().strip_prefix(quote)?;
        let mut text = String::new();
        let mut chars = rest.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => match chars.next()?.1 {
                    'n' => text.push('\n'),
                    't' => text.push('\t'),
                    'r' => text.push('\r'),
                    other if matches!(other, '\\' | '"' | '\'') => text.push(other),
                    other => text.extend(['\\', other]),
                },
                c if c == quote => {
                    self.rest = &rest[at + c.len_utf8()..];
                    return Some(text);
                }
                c => text.push(c),
            }
        }
        None
    }

    fn scalar(&mut self) -> Option<Value> {
        let rest = self.rest.trim_start();
        let length = rest.find(|c: char| c.is_whitespace() || matches!(c, ',' | ')' | ']' | '}')).unwrap_or(rest.len());
        let word = &rest[..length];
        let value = match word {
            "True" | "true" => Value::Bool(true),
            "False" | "false" => Value::Bool(false),
            "None" | "null" => Value::Null,
            word => {
                let whole = word.parse::<i64>().ok().map(Number::from);
                Value::Number(whole.or_else(|| Number::from_f64(word.parse().ok()?))?)
            }
        };
        self.rest = &rest[length..];
        Some(value)
    }
}
