//! Filters of texts.

use super::Given;
use crate::template::fault::{Fault, Outcome};
use crate::template::meter::{Meter, Writer};
use crate::template::show;
use crate::template::value::{Text, Value};
use std::rc::Rc;

pub(super) fn apply<'v>(meter: &Rc<Meter>, name: &str, value: &Value<'v>, given: &mut Given<'v>) -> Outcome<Value<'v>> {
    let Value::Text(text) = show::text(meter, value)? else {
        return Err(Fault::new(format!("{} is no text", value.kind())));
    };
    match name {
        "trim" => trim(meter, &text, given),
        "replace" => replace(meter, &text, given),
        "indent" => indent(meter, &text, given),
        "split" => split(meter, &text, given),
        "lines" => parts(meter, &text, text.as_str().lines()),
        "escape" | "e" => written(meter, &text, |c, writer| match c {
            '<' => writer.push("&lt;"),
            '>' => writer.push("&gt;"),
            '&' => writer.push("&amp;"),
            '"' => writer.push("&quot;"),
            '\'' => writer.push("&#x27;"),
            '/' => writer.push("&#x2f;"),
            c => writer.push(c.encode_utf8(&mut [0; 4])),
        }),
        "lower" => written(meter, &text, |c, writer| writer.show(c.to_lowercase())),
        "upper" => written(meter, &text, |c, writer| writer.show(c.to_uppercase())),
        _ => {
            let mut is_first = true;
            let every_word = name == "title";
            written(meter, &text, |c, writer| {
                let begins = every_word && (c.is_whitespace() || matches!(c, '-' | '(' | '{' | '[' | '<'));
                let was_first = std::mem::replace(&mut is_first, begins);
                if was_first && !begins { writer.show(c.to_uppercase()) } else { writer.show(c.to_lowercase()) }
            })
        }
    }
}

/// A text made of another one, character by character.
fn written<'v>(
    meter: &Rc<Meter>,
    text: &Text<'v>,
    mut write: impl FnMut(char, &mut Writer) -> Outcome<()>,
) -> Outcome<Value<'v>> {
    let mut writer = Writer::new(meter);
    text.as_str().chars().try_for_each(|c| write(c, &mut writer))?;
    Ok(writer.into())
}

fn trim<'v>(meter: &Rc<Meter>, text: &Text<'v>, given: &mut Given<'v>) -> Outcome<Value<'v>> {
    let whole = text.as_str();
    let trimmed = match given.take("chars") {
        None | Some(Value::Undefined | Value::None) => whole.trim(),
        Some(chars) => {
            let chars = show::text(meter, &chars)?;
            let chars = chars.as_str().unwrap_or_default();
            meter.steps(whole.len().saturating_mul(chars.len()) / 16)?;
            whole.trim_matches(|c| chars.contains(c))
        }
    };
    Ok(Value::Text(text.cut(trimmed)))
}

fn replace<'v>(meter: &Rc<Meter>, text: &Text<'v>, given: &mut Given<'v>) -> Outcome<Value<'v>> {
    let from = show::text(meter, &given.needed("from", "replace")?)?;
    let to = show::text(meter, &given.needed("to", "replace")?)?;
    let (from, to) = (from.as_str().unwrap_or_default(), to.as_str().unwrap_or_default());
    meter.bytes(4 * text.as_str().len())?;
    let mut writer = Writer::new(meter);
    let mut end = 0;
    for (start, found) in text.as_str().match_indices(from) {
        writer.push(&text.as_str()[end..start])?;
        writer.push(to)?;
        end = start + found.len();
    }
    writer.push(&text.as_str()[end..])?;
    Ok(writer.into())
}

fn indent<'v>(meter: &Rc<Meter>, text: &Text<'v>, given: &mut Given<'v>) -> Outcome<Value<'v>> {
    let width = given.int("width")?.unwrap_or(4);
    let width = usize::try_from(width.max(0)).unwrap_or(usize::MAX);
    let (first, blank) = (given.flag("first"), given.flag("blank"));
    let mut writer = Writer::new(meter);
    for (place, line) in text.as_str().split('\n').enumerate() {
        if place > 0 {
            writer.push("\n")?;
        }
        let is_indented = if place == 0 { first } else { blank || !line.trim_end_matches('\r').is_empty() };
        if is_indented {
            writer.push_times(" ", width)?;
        }
        writer.push(line)?;
    }
    Ok(writer.into())
}

fn split<'v>(meter: &Rc<Meter>, text: &Text<'v>, given: &mut Given<'v>) -> Outcome<Value<'v>> {
    let separator = given.take("split");
    let most = given.int("maxsplit")?.and_then(|most| usize::try_from(most).ok()).map(|most| most.saturating_add(1));
    let whole = text.as_str();
    match (separator.as_ref().and_then(Value::as_str), most) {
        (None, None) => parts(meter, text, whole.split_whitespace()),
        (None, Some(most)) => {
            let mut rest = whole.trim_start();
            let mut found = Vec::new();
            while !rest.is_empty() {
                meter.steps(1)?;
                let end = if found.len() + 1 == most { None } else { rest.find(char::is_whitespace) };
                let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
                found.push(word);
                rest = after.trim_start();
            }
            parts(meter, text, found.into_iter())
        }
        (Some(separator), None) => parts(meter, text, whole.split(separator)),
        (Some(separator), Some(most)) => parts(meter, text, whole.splitn(most, separator)),
    }
}

/// Parts of a text, none of them copied.
fn parts<'v, 'a>(meter: &Rc<Meter>, text: &Text<'v>, parts: impl Iterator<Item = &'a str>) -> Outcome<Value<'v>> {
    let mut items = Vec::new();
    let mut room = Vec::new();
    for part in parts {
        // Paid in portions: how many there are is not known before.
        if items.len() % 1024 == 0 {
            room.push(meter.hold(1024 * size_of::<Value<'_>>())?);
        }
        items.push(Value::Text(text.cut(part)));
    }
    Value::list(meter, items)
}
