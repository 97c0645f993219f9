//! Values as bytes that sort as the values do, for keys and indexes.

use super::{CellError, Row};
use crate::Hash;
use serde_json::Value;

/// Bytes of a text that an index looks at. Texts that begin alike lie together, and the rows say which is which.
pub const LONGEST_INDEXED: usize = 256;
/// Bytes of a key.
const LONGEST_KEY: usize = 1024;

const NOTHING: u8 = 0x10;
const TRUTH: u8 = 0x20;
const INTEGER: u8 = 0x30;
const FLOAT: u8 = 0x31;
const TEXT: u8 = 0x40;
/// Of rows without a key of their own.
const CONTENT: u8 = 0x01;

/// What tells a row from others of its table, in an order in which they can be read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowKey(Vec<u8>);

impl RowKey {
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// A value in an index. Rows that have none are there, too.
pub fn index_value(value: Option<&Value>) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(value, LONGEST_INDEXED, &mut bytes);
    bytes
}

/// How many of these bytes are a value, if they begin with one.
pub fn index_value_length(bytes: &[u8]) -> Option<usize> {
    let length = match *bytes.first()? {
        NOTHING => 1,
        TRUTH => 2,
        INTEGER | FLOAT => 9,
        TEXT => bytes.windows(2).position(|end| end == [0, 0])? + 2,
        _ => return None,
    };
    (length <= bytes.len()).then_some(length)
}

pub(super) fn row_key<'a>(
    values: impl Iterator<Item = (&'a str, Option<&'a Value>)>,
    row: &Row,
) -> Result<RowKey, CellError> {
    let mut bytes = Vec::new();
    for (field, value) in values {
        write(value, usize::MAX, &mut bytes);
        if bytes.len() > LONGEST_KEY {
            let what = format!("a key is longer than {LONGEST_KEY} bytes");
            return Err(CellError { field: field.to_owned(), what });
        }
    }
    if bytes.is_empty() {
        let content = serde_json::to_vec(row).expect("values of rows are JSON");
        bytes.push(CONTENT);
        bytes.extend_from_slice(&Hash::of(content).as_bytes()[..16]);
    }
    Ok(RowKey(bytes))
}

fn write(value: Option<&Value>, longest: usize, bytes: &mut Vec<u8>) {
    match value {
        None | Some(Value::Null) => bytes.push(NOTHING),
        Some(Value::Bool(truth)) => bytes.extend([TRUTH, u8::from(*truth)]),
        Some(Value::Number(number)) => {
            if let Some(integer) = number.as_i64() {
                bytes.push(INTEGER);
                bytes.extend((integer.cast_unsigned() ^ (1 << 63)).to_be_bytes());
            } else {
                bytes.push(FLOAT);
                bytes.extend(sortable(number.as_f64().unwrap_or_default()).to_be_bytes());
            }
        }
        Some(Value::String(text)) => write_text(text.as_bytes(), longest, bytes),
        // Rows have no others.
        Some(other @ (Value::Array(_) | Value::Object(_))) => {
            write_text(other.to_string().as_bytes(), longest, bytes);
        }
    }
}

/// An end that no text has within, and that sorts before everything that could follow.
fn write_text(text: &[u8], longest: usize, bytes: &mut Vec<u8>) {
    bytes.push(TEXT);
    for byte in &text[..text.len().min(longest)] {
        bytes.push(*byte);
        if *byte == 0 {
            bytes.push(0xff);
        }
    }
    bytes.extend([0, 0]);
}

/// The bits of a number, so that they sort as the numbers do.
fn sortable(number: f64) -> u64 {
    // There are two zeros, which are the same.
    let bits = (number + 0.0).to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}
