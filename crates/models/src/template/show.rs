//! How values are written: for people as Python writes them, and as JSON.

use super::fault::{Fault, Outcome};
use super::meter::{Meter, Writer};
use super::value::Value;
use serde::ser::{Error as _, Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::ser::Formatter;
use std::fmt;
use std::io;
use std::rc::Rc;

/// Writes a value into a text.
pub(super) fn write(writer: &mut Writer, value: &Value<'_>) -> Outcome<()> {
    match value {
        Value::Text(text) => writer.push(text.as_str()),
        other => writer.show(Shown(other)),
    }
}

/// A value as a text.
pub(super) fn text<'v>(meter: &Rc<Meter>, value: &Value<'v>) -> Outcome<Value<'v>> {
    if matches!(value, Value::Text(_)) {
        return Ok(value.clone());
    }
    let mut writer = Writer::new(meter);
    write(&mut writer, value)?;
    Ok(writer.into())
}

/// A value as JSON on one line, with blanks after colons and commas, as Python writes it: models write it that way, too.
pub(super) fn json<'v>(meter: &Rc<Meter>, value: &Value<'v>) -> Outcome<Value<'v>> {
    let mut out = JsonWriter(Writer::new(meter), None);
    let written = value.serialize(&mut serde_json::Serializer::with_formatter(&mut out, WithBlanks));
    finish(out, written)
}

struct WithBlanks;

impl Formatter for WithBlanks {
    fn begin_array_value<W: io::Write + ?Sized>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_key<W: io::Write + ?Sized>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_value<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}

/// The same with line breaks.
pub(super) fn pretty<'v>(meter: &Rc<Meter>, value: &Value<'v>) -> Outcome<Value<'v>> {
    let mut out = JsonWriter(Writer::new(meter), None);
    let written = serde_json::to_writer_pretty(&mut out, value);
    finish(out, written)
}

fn finish<'v>(out: JsonWriter, written: serde_json::Result<()>) -> Outcome<Value<'v>> {
    match (out, written) {
        (JsonWriter(_, Some(fault)), _) => Err(fault),
        (JsonWriter(..), Err(error)) => Err(Fault::new(format!("it cannot be written as JSON: {error}"))),
        (JsonWriter(writer, None), Ok(())) => Ok(writer.into()),
    }
}

struct JsonWriter(Writer, Option<Fault>);

impl io::Write for JsonWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = std::str::from_utf8(bytes).map_err(io::Error::other)?;
        match self.0.push(text) {
            Ok(()) => Ok(bytes.len()),
            Err(fault) => {
                self.1 = Some(fault);
                Err(io::ErrorKind::FileTooLarge.into())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Undefined | Self::None => serializer.serialize_none(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Int(number) => serializer.serialize_i128(*number),
            Self::Float(number) => serializer.serialize_f64(*number),
            Self::Text(text) => serializer.serialize_str(text.as_str()),
            Self::List(list) => {
                let mut items = serializer.serialize_seq(Some(list.items.len()))?;
                list.items.iter().try_for_each(|item| items.serialize_element(item))?;
                items.end()
            }
            Self::Map(dict) => {
                let mut entries = serializer.serialize_map(Some(dict.entries.len()))?;
                dict.entries.iter().try_for_each(|(key, value)| entries.serialize_entry(key.as_str(), value))?;
                entries.end()
            }
            Self::Space(_) | Self::Loop(_) | Self::Macro(_) | Self::Function(_) => {
                Err(S::Error::custom(format!("{} has no such form", self.kind())))
            }
        }
    }
}

struct Shown<'a, 'v>(&'a Value<'v>);

impl fmt::Display for Shown<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Undefined => Ok(()),
            Value::Text(text) => f.write_str(text.as_str()),
            other => inside(f, other),
        }
    }
}

/// As it is written inside a list.
pub(super) struct Inside<'a, 'v>(pub(super) &'a Value<'v>);

impl fmt::Display for Inside<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        inside(f, self.0)
    }
}

fn inside(f: &mut fmt::Formatter<'_>, value: &Value<'_>) -> fmt::Result {
    match value {
        Value::Undefined => f.write_str("undefined"),
        Value::None => f.write_str("None"),
        Value::Bool(true) => f.write_str("True"),
        Value::Bool(false) => f.write_str("False"),
        Value::Int(number) => write!(f, "{number}"),
        Value::Float(number) if number.is_nan() => f.write_str("NaN"),
        Value::Float(number) if number.fract() == 0.0 && number.is_finite() => write!(f, "{number:.1}"),
        Value::Float(number) => write!(f, "{number}"),
        Value::Text(text) => quoted(f, text.as_str()),
        Value::List(list) => {
            f.write_str("[")?;
            for (place, item) in list.items.iter().enumerate() {
                f.write_str(if place > 0 { ", " } else { "" })?;
                inside(f, item)?;
            }
            f.write_str("]")
        }
        Value::Map(dict) => {
            f.write_str("{")?;
            for (place, (key, value)) in dict.entries.iter().enumerate() {
                f.write_str(if place > 0 { ", " } else { "" })?;
                quoted(f, key.as_str())?;
                f.write_str(": ")?;
                inside(f, value)?;
            }
            f.write_str("}")
        }
        Value::Space(_) | Value::Loop(_) | Value::Macro(_) | Value::Function(_) => write!(f, "<{}>", value.kind()),
    }
}

fn quoted(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    use fmt::Write as _;
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    f.write_char(quote)?;
    for c in text.chars() {
        match c {
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            '\\' => f.write_str("\\\\")?,
            c if c == quote => write!(f, "\\{c}")?,
            c if c.is_control() => write!(f, "\\x{:02x}", u32::from(c))?,
            c => f.write_char(c)?,
        }
    }
    f.write_char(quote)
}
