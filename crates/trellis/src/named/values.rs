//! Values as the settings file and the environment write them.

use serde_json::Value;
use toml::de::DeValue;

/// A value as a person would write it; a text without its quotes.
pub(crate) fn text(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) if number.radix() == 10 => number.as_str().to_owned(),
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(yes) => yes.to_string(),
        DeValue::Integer(_) | DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => {
            value.type_str().to_owned()
        }
    }
}

/// The same value as JSON.
pub(crate) fn json(value: &DeValue<'_>) -> Result<Value, String> {
    let wrong = || format!("{} cannot be written as JSON", text(value));
    Ok(match value {
        DeValue::String(text) => Value::from(&**text),
        DeValue::Integer(number) => {
            let number = i64::from_str_radix(number.as_str(), number.radix());
            number.map(Value::from).map_err(|_| wrong())?
        }
        DeValue::Float(number) => number.as_str().parse::<f64>().map(Value::from).map_err(|_| wrong())?,
        DeValue::Boolean(yes) => Value::from(*yes),
        DeValue::Datetime(time) => Value::from(time.to_string()),
        DeValue::Array(list) => list.iter().map(|value| json(value.get_ref())).collect::<Result<_, _>>()?,
        DeValue::Table(table) => {
            let members = table.iter().map(|(name, value)| Ok((name.get_ref().to_string(), json(value.get_ref())?)));
            members.collect::<Result<serde_json::Map<_, _>, String>>()?.into()
        }
    })
}

/// A number above 0.
pub(crate) fn whole<T: TryFrom<u64>>(value: &str) -> Result<T, String> {
    let number = value.replace('_', "").parse::<u64>().ok().filter(|number| *number > 0);
    let number = number.ok_or_else(|| format!("{value:?} is not a whole number above 0"))?;
    T::try_from(number).map_err(|_| format!("{value} is too large"))
}
