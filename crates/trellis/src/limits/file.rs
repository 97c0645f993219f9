//! The settings file: TOML with `[limits]` and `[limits.maximum]`.

use super::{Limit, Source};
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub(super) fn read(path: &Path) -> Result<Source, String> {
    let cannot = |error| format!("cannot read the settings file {}: {error}", path.display());
    let text = std::fs::read_to_string(path).map_err(cannot)?;
    parse(&text).map_err(|problem| format!("{}: {problem}", path.display()))
}

/// Every complaint names its line: whoever wrote the file has to find it.
pub(super) fn parse(text: &str) -> Result<Source, String> {
    let at = |place: usize| format!("line {}", text[..place.min(text.len())].matches('\n').count() + 1);
    let table = DeTable::parse(text).map_err(|error| {
        let place = error.span().map_or(0, |span| span.start);
        format!("{}: {}", at(place), error.message())
    })?;
    let mut source = Source::default();
    for (name, value) in table.get_ref() {
        let place = at(name.span().start);
        match (name.get_ref().as_ref(), value.get_ref()) {
            ("limits", DeValue::Table(limits)) => {
                for (name, value) in limits {
                    match (name.get_ref().as_ref(), value.get_ref()) {
                        ("maximum", DeValue::Table(maximum)) => {
                            let limits = maximum.iter().map(|(name, value)| limit("limits.maximum", name, value, &at));
                            source.maximum = limits.collect::<Result<_, _>>()?;
                        }
                        _ => source.usual.push(limit("limits", name, value, &at)?),
                    }
                }
            }
            ("limits", _) => return Err(format!("{place}: `limits` is not a table; write [limits]")),
            (other, _) => return Err(format!("{place}: there is no setting `{other}`; the file may hold [limits]")),
        }
    }
    Ok(source)
}

fn limit(
    table: &str,
    name: &Spanned<std::borrow::Cow<'_, str>>,
    value: &Spanned<DeValue<'_>>,
    at: &impl Fn(usize) -> String,
) -> Result<Limit, String> {
    let text = match value.get_ref() {
        DeValue::Integer(number) if number.radix() == 10 => number.as_str().to_owned(),
        DeValue::Integer(_)
        | DeValue::Float(_)
        | DeValue::String(_)
        | DeValue::Boolean(_)
        | DeValue::Datetime(_)
        | DeValue::Array(_)
        | DeValue::Table(_) => value.get_ref().type_str().to_owned(),
    };
    let (place, name) = (at(name.span().start), name.get_ref());
    Limit::new(name, &text).map_err(|problem| format!("{place}, {table}.{name}: {problem}"))
}
