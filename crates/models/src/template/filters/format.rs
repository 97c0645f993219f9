//! `"%5.2f of %s" | format(1.5, "two")`, as C and Python write it.

use super::Given;
use crate::template::fault::{Fault, Outcome};
use crate::template::meter::{Meter, Writer};
use crate::template::operators;
use crate::template::show::{self, Inside};
use crate::template::value::Value;
use std::rc::Rc;

/// Digits behind the point; a float has no more.
const MOST_DIGITS: usize = 400;

/// One `%…` of a format.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "these are the flags of a format, each on its own")]
struct Field {
    left: bool,
    zeros: bool,
    plus: bool,
    space: bool,
    width: usize,
    precision: Option<usize>,
}

pub(super) fn apply<'v>(meter: &Rc<Meter>, value: &Value<'v>, given: &mut Given<'v>) -> Outcome<Value<'v>> {
    let Some(format) = value.as_str() else { return Err(Fault::new(format!("{} is no format", value.kind()))) };
    let (placed, named) = given.take_all().into_parts();
    let mut placed = placed.into_iter();
    let mut missing = || placed.next().ok_or_else(|| Fault::new("the format needs more values than it was given"));
    let mut writer = Writer::new(meter);
    let mut rest = format;
    while let Some((text, after)) = rest.split_once('%') {
        writer.push(text)?;
        rest = after;
        let mut by_name = None;
        if let Some((name, after)) = rest.strip_prefix('(').and_then(|inside| inside.split_once(')')) {
            let found = named.iter().find(|(given, _)| *given == name).map(|(_, value)| value.clone());
            by_name = Some(found.ok_or_else(|| Fault::new(format!("the format was not given {name}")))?);
            rest = after;
        }
        let field = Field::read(&mut rest, &mut missing)?;
        let mut chars = rest.chars();
        let conversion = chars.next().ok_or_else(|| Fault::new("a format ends in the middle of a field"))?;
        rest = chars.as_str();
        if conversion == '%' {
            writer.push("%")?;
            continue;
        }
        let value = match by_name {
            Some(value) => value,
            None => missing()?,
        };
        field.write(meter, &mut writer, conversion, &value)?;
    }
    writer.push(rest)?;
    if placed.next().is_some() {
        return Err(Fault::new("the format needs fewer values than it was given"));
    }
    Ok(writer.into())
}

impl Field {
    fn read<'v>(rest: &mut &str, next: &mut impl FnMut() -> Outcome<Value<'v>>) -> Outcome<Self> {
        let mut field = Self::default();
        while let Some(flag) = rest.chars().next() {
            match flag {
                '-' => field.left = true,
                '0' => field.zeros = true,
                '+' => field.plus = true,
                ' ' => field.space = true,
                '#' => {}
                _ => break,
            }
            *rest = &rest[1..];
        }
        field.width = Self::number(rest, next)?.unwrap_or(0);
        if let Some(after) = rest.strip_prefix('.') {
            *rest = after;
            field.precision = Some(Self::number(rest, next)?.unwrap_or(0));
        }
        Ok(field)
    }

    fn number<'v>(rest: &mut &str, next: &mut impl FnMut() -> Outcome<Value<'v>>) -> Outcome<Option<usize>> {
        if let Some(after) = rest.strip_prefix('*') {
            *rest = after;
            return match next()? {
                Value::Int(number) => Ok(Some(usize::try_from(number).unwrap_or(usize::MAX))),
                other => Err(Fault::new(format!("a width is a number, not {}", other.kind()))),
            };
        }
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, after) = rest.split_at(digits);
        *rest = after;
        // What does not fit into a number is refused as too wide when it is written.
        Ok((digits > 0).then(|| number.parse().unwrap_or(usize::MAX)))
    }

    fn write(&self, meter: &Rc<Meter>, writer: &mut Writer, conversion: char, value: &Value<'_>) -> Outcome<()> {
        let no_number = || Fault::new(format!("%{conversion} needs a number, not {}", value.kind()));
        let digits = self.precision.unwrap_or(6).min(MOST_DIGITS);
        let text = match conversion {
            's' => {
                let text = show::text(meter, value)?;
                return self.padded(writer, "", text.as_str().unwrap_or_default(), self.precision);
            }
            'r' => {
                let mut shown = Writer::new(meter);
                shown.show(Inside(value))?;
                let text: Value<'_> = shown.into();
                return self.padded(writer, "", text.as_str().unwrap_or_default(), self.precision);
            }
            'c' => match value {
                Value::Int(code) => {
                    let c = u32::try_from(*code).ok().and_then(char::from_u32);
                    c.ok_or_else(|| Fault::new("%c needs the number of a character"))?.to_string()
                }
                other => return self.padded(writer, "", other.as_str().ok_or_else(no_number)?, Some(1)),
            },
            'd' | 'i' | 'u' => whole(value).ok_or_else(no_number)?.to_string(),
            'x' | 'X' | 'o' => {
                let number = whole(value).ok_or_else(no_number)?;
                let (sign, digits) = (if number < 0 { "-" } else { "" }, number.unsigned_abs());
                match conversion {
                    'x' => format!("{sign}{digits:x}"),
                    'X' => format!("{sign}{digits:X}"),
                    _ => format!("{sign}{digits:o}"),
                }
            }
            'f' | 'F' => format!("{:.digits$}", operators::float(value).ok_or_else(no_number)?),
            'e' => format!("{:.digits$e}", operators::float(value).ok_or_else(no_number)?),
            'E' => format!("{:.digits$E}", operators::float(value).ok_or_else(no_number)?),
            other => return Err(Fault::new(format!("there is no %{other}; use %s, %r, %d, %f, %e, %x, %o or %c"))),
        };
        let (sign, number) = match text.strip_prefix('-') {
            Some(number) => ("-", number),
            None if self.plus => ("+", text.as_str()),
            None if self.space => (" ", text.as_str()),
            None => ("", text.as_str()),
        };
        self.padded(writer, sign, number, None)
    }

    fn padded(&self, writer: &mut Writer, sign: &str, text: &str, longest: Option<usize>) -> Outcome<()> {
        let text = match longest.and_then(|longest| text.char_indices().nth(longest)) {
            Some((end, _)) => &text[..end],
            None => text,
        };
        let missing = self.width.saturating_sub(sign.len() + text.chars().count());
        if self.left {
            writer.push(sign)?;
            writer.push(text)?;
            return writer.push_times(" ", missing);
        }
        if self.zeros && longest.is_none() {
            writer.push(sign)?;
            writer.push_times("0", missing)?;
            return writer.push(text);
        }
        writer.push_times(" ", missing)?;
        writer.push(sign)?;
        writer.push(text)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "%d of 1.9 is 1")]
fn whole(value: &Value<'_>) -> Option<i128> {
    match value {
        Value::Int(number) => Some(*number),
        Value::Bool(value) => Some(i128::from(*value)),
        Value::Float(number) => Some(*number as i128),
        _ => None,
    }
}
