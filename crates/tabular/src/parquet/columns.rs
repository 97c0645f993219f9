//! The columns of a Parquet file: what each is as the field of a table.

use crate::MOST_COLUMNS;
use crate::typed_lines::TypedColumn;
use parquet::basic::{ConvertedType, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::schema::types::Type;
use std::collections::HashSet;
use trellis_domain::table::FieldKind;

/// Digits that a float and a 64-bit integer have for sure.
const FLOAT_DIGITS: i32 = 15;
const INTEGER_DIGITS: i32 = 18;

/// A column, and what has to be known to write its values.
pub(super) struct Column {
    pub(super) name: String,
    pub(super) kind: Option<FieldKind>,
    /// What a 64-bit number without a unit counts.
    pub(super) nanoseconds: Option<Nanoseconds>,
    /// Its timestamps are of UTC, not of some place's clock.
    pub(super) is_utc: bool,
    pub(super) is_uuid: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Nanoseconds {
    SinceMidnight,
    SinceEpoch,
}

impl Column {
    /// Those of a file.
    pub(super) fn all(schema: &Type) -> Result<Vec<Self>, String> {
        let fields = schema.get_fields();
        if fields.is_empty() || fields.len() > MOST_COLUMNS {
            return Err(format!("it has {} columns; 1 to {MOST_COLUMNS} are read", fields.len()));
        }
        let mut names = HashSet::new();
        if let Some(twice) = fields.iter().find(|field| !names.insert(field.name())) {
            return Err(format!("two of its columns are called `{:.100}`", twice.name()));
        }
        Ok(fields.iter().map(|field| Self::of(field)).collect())
    }

    fn of(field: &Type) -> Self {
        let info = field.get_basic_info();
        let (logical, converted) = (info.logical_type_ref(), info.converted_type());
        let nanoseconds = match logical {
            Some(LogicalType::Time(time)) if time.unit == TimeUnit::NANOS => Some(Nanoseconds::SinceMidnight),
            Some(LogicalType::Timestamp(time)) if time.unit == TimeUnit::NANOS => Some(Nanoseconds::SinceEpoch),
            _ => None,
        };
        let is_utc = match logical {
            Some(LogicalType::Timestamp(time)) => time.is_adjusted_to_u_t_c,
            // What older programs wrote was always UTC.
            _ => matches!(converted, ConvertedType::TIMESTAMP_MILLIS | ConvertedType::TIMESTAMP_MICROS),
        };
        let is_uuid = logical == Some(&LogicalType::Uuid);
        // A list, or a group of fields, is written as JSON.
        let is_repeated = info.has_repetition() && info.repetition() == Repetition::REPEATED;
        let is_single = field.is_primitive() && !is_repeated;
        let kind = if is_single { kind(field, logical, converted) } else { Some(FieldKind::String) };
        Self { name: field.name().to_owned(), kind, nanoseconds, is_utc, is_uuid }
    }

    pub(super) fn typed(&self) -> TypedColumn {
        TypedColumn { name: self.name.clone(), kind: self.kind }
    }
}

/// None if only the values can tell: numbers without a sign may be too large for an integer.
fn kind(field: &Type, logical: Option<&LogicalType>, converted: ConvertedType) -> Option<FieldKind> {
    let by_meaning = match (logical, converted) {
        (Some(LogicalType::Decimal(_)), _) | (_, ConvertedType::DECIMAL) => {
            match (field.get_precision(), field.get_scale()) {
                (..=INTEGER_DIGITS, 0) => Some(FieldKind::Integer),
                (..=FLOAT_DIGITS, _) => Some(FieldKind::Float),
                _ => Some(FieldKind::String),
            }
        }
        (Some(LogicalType::Date), _) | (_, ConvertedType::DATE) => Some(FieldKind::Date),
        (Some(LogicalType::Time(_)), _) | (_, ConvertedType::TIME_MILLIS | ConvertedType::TIME_MICROS) => {
            Some(FieldKind::Time)
        }
        (Some(LogicalType::Timestamp(_)), _)
        | (_, ConvertedType::TIMESTAMP_MILLIS | ConvertedType::TIMESTAMP_MICROS) => Some(FieldKind::Timestamp),
        (Some(LogicalType::Uuid), _) => Some(FieldKind::Uuid),
        (Some(LogicalType::Float16), _) => Some(FieldKind::Float),
        (_, ConvertedType::UINT_64) => return None,
        _ => None,
    };
    by_meaning.or(match field.get_physical_type() {
        Physical::BOOLEAN => Some(FieldKind::Boolean),
        Physical::INT32 | Physical::INT64 => Some(FieldKind::Integer),
        Physical::INT96 => Some(FieldKind::Timestamp),
        Physical::FLOAT | Physical::DOUBLE => Some(FieldKind::Float),
        Physical::BYTE_ARRAY | Physical::FIXED_LEN_BYTE_ARRAY => Some(FieldKind::String),
    })
}
