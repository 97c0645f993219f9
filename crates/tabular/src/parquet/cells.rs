//! A value of a Parquet file as JSON.

use super::columns::{Column, Nanoseconds};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use chrono::{DateTime, NaiveTime, SecondsFormat};
use parquet::record::Field;
use serde_json::{Map, Number, Value};
use trellis_domain::table::FieldKind;

const SECOND: i64 = 1_000_000_000;

/// None if there is no value.
pub(super) fn value(column: &Column, field: &Field) -> Result<Option<Value>, String> {
    let value = match (field, column.nanoseconds) {
        (Field::Long(count), Some(Nanoseconds::SinceMidnight)) => time(*count)?,
        (Field::Long(count), Some(Nanoseconds::SinceEpoch)) => {
            timestamp(count.div_euclid(SECOND), count.rem_euclid(SECOND), column.is_utc)?
        }
        (Field::TimestampMillis(count), _) => {
            timestamp(count.div_euclid(1_000), count.rem_euclid(1_000) * 1_000_000, column.is_utc)?
        }
        (Field::TimestampMicros(count), _) => {
            timestamp(count.div_euclid(1_000_000), count.rem_euclid(1_000_000) * 1_000, column.is_utc)?
        }
        (Field::Decimal(_), _) => decimal(&field.to_string(), column.kind),
        (Field::Bytes(bytes), _) if column.is_uuid && bytes.len() == 16 => uuid(bytes.data()),
        (other, _) => nested(other)?,
    };
    Ok(Some(value).filter(|value| !value.is_null()))
}

/// A value about which nothing is known but what it is itself.
fn nested(field: &Field) -> Result<Value, String> {
    Ok(match field {
        Field::Null => Value::Null,
        Field::Bool(truth) => Value::Bool(*truth),
        Field::Byte(number) => Value::from(*number),
        Field::Short(number) => Value::from(*number),
        Field::Int(number) => Value::from(*number),
        Field::Long(number) => Value::from(*number),
        Field::UByte(number) => Value::from(*number),
        Field::UShort(number) => Value::from(*number),
        Field::UInt(number) => Value::from(*number),
        Field::ULong(number) => Value::from(*number),
        Field::Float16(number) => float(f64::from(*number)),
        // By its shortest form: 0.1 is not 0.10000000149.
        Field::Float(number) => float(number.to_string().parse().unwrap_or(f64::from(*number))),
        Field::Double(number) => float(*number),
        Field::Decimal(_) => Value::String(field.to_string()),
        Field::Str(text) => Value::String(text.clone()),
        Field::Bytes(bytes) => Value::String(BASE64_STANDARD.encode(bytes.data())),
        Field::Date(days) => {
            let day = DateTime::from_timestamp(i64::from(*days) * 86_400, 0);
            let day = day.ok_or_else(|| format!("{days} days after 1970 are no date"))?;
            Value::String(day.date_naive().to_string())
        }
        Field::TimeMillis(count) => time(i64::from(*count) * 1_000_000)?,
        Field::TimeMicros(count) => time(count.saturating_mul(1_000))?,
        Field::TimestampMillis(count) => {
            timestamp(count.div_euclid(1_000), count.rem_euclid(1_000) * 1_000_000, false)?
        }
        Field::TimestampMicros(count) => {
            timestamp(count.div_euclid(1_000_000), count.rem_euclid(1_000_000) * 1_000, false)?
        }
        Field::Group(row) => {
            let members = row.get_column_iter().map(|(name, field)| Ok((name.clone(), nested(field)?)));
            Value::Object(members.collect::<Result<Map<_, _>, String>>()?)
        }
        Field::ListInternal(list) => Value::Array(list.elements().iter().map(nested).collect::<Result<_, _>>()?),
        Field::MapInternal(map) => {
            let entry = |(key, field): &(Field, Field)| {
                let key = match nested(key)? {
                    Value::String(text) => text,
                    other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                        other.to_string()
                    }
                };
                Ok((key, nested(field)?))
            };
            Value::Object(map.entries().iter().map(entry).collect::<Result<Map<_, _>, String>>()?)
        }
    })
}

/// What is no number, such as NaN, is no value.
fn float(number: f64) -> Value {
    Number::from_f64(number).map_or(Value::Null, Value::Number)
}

fn decimal(text: &str, kind: Option<FieldKind>) -> Value {
    let number = match kind {
        Some(FieldKind::Integer) => text.parse::<i64>().ok().map(Value::from),
        Some(FieldKind::Float) => text.parse().ok().map(float),
        _ => None,
    };
    number.unwrap_or_else(|| Value::from(text))
}

fn time(nanoseconds: i64) -> Result<Value, String> {
    let (seconds, rest) = (nanoseconds.div_euclid(SECOND), nanoseconds.rem_euclid(SECOND));
    let seconds = u32::try_from(seconds).ok();
    let time = seconds.zip(u32::try_from(rest).ok());
    let time = time.and_then(|(seconds, rest)| NaiveTime::from_num_seconds_from_midnight_opt(seconds, rest));
    let time = time.ok_or_else(|| format!("{nanoseconds} nanoseconds after midnight are no time of a day"))?;
    Ok(Value::String(time.to_string()))
}

/// `2024-02-29T12:30:00.5Z`; without the last letter where it is not said to be UTC.
fn timestamp(seconds: i64, nanoseconds: i64, is_utc: bool) -> Result<Value, String> {
    let time = u32::try_from(nanoseconds).ok().and_then(|rest| DateTime::from_timestamp(seconds, rest));
    let time = time.ok_or_else(|| format!("{seconds} seconds after 1970 are no time"))?;
    let mut text = time.to_rfc3339_opts(SecondsFormat::AutoSi, true);
    if !is_utc {
        text.pop();
    }
    Ok(Value::String(text))
}

fn uuid(bytes: &[u8]) -> Value {
    let mut text = String::with_capacity(36);
    for (place, byte) in bytes.iter().enumerate() {
        if matches!(place, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.extend([byte >> 4, byte & 15].map(|digit| char::from_digit(u32::from(digit), 16).unwrap_or('0')));
    }
    Value::String(text)
}
