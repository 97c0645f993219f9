//! What the process does: rows of a file to lines.

use super::cells;
use super::columns::Column;
use super::{BEGIN, MEMORY};
use crate::LARGEST_RECORD;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::reader::RowIter;
use serde_json::{Map, Value};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::time::Duration;
use trellis_confined::{Confines, confine};

/// Deep nesting takes stack.
const STACK: usize = 64 << 20;
/// Of the processor: whoever started this may be gone, and a file can go on for ever.
const TIME: Duration = Duration::from_hours(1);
/// Rows of a file: a few bytes can say that there are as many as anybody can count.
const MOST_ROWS: u64 = 100_000_000;
/// How much all values may be, as a multiple of the file and at least.
const MOST_TIMES: u64 = 1_000;
const ALWAYS: u64 = 256 << 20;

/// Why the file cannot be read, if it cannot.
pub(super) fn work() -> Result<(), String> {
    let file = input().map_err(|error| error.to_string())?;
    confine(Confines { memory: STACK as u64 + MEMORY, time: TIME });
    // What a reader panics about is told in our own words.
    std::panic::set_hook(Box::new(|_| {}));
    let reading = std::thread::Builder::new().name("parquet".to_owned()).stack_size(STACK);
    let reading = reading.spawn(move || read(file, &mut BufWriter::with_capacity(64 << 10, io::stdout())));
    reading.map_err(|error| error.to_string())?.join().unwrap_or_else(|_| Err("it is damaged".to_owned()))
}

/// The standard input as a file: what is read stands anywhere in it.
#[cfg(unix)]
fn input() -> io::Result<File> {
    use std::os::fd::AsFd;
    Ok(io::stdin().as_fd().try_clone_to_owned()?.into())
}

#[cfg(windows)]
fn input() -> io::Result<File> {
    use std::os::windows::io::AsHandle;
    Ok(io::stdin().as_handle().try_clone_to_owned()?.into())
}

fn read(file: File, to: &mut impl Write) -> Result<(), String> {
    let unwritten = |error: io::Error| error.to_string();
    let most = file.metadata().map_err(unwritten)?.len().saturating_mul(MOST_TIMES).max(ALWAYS);
    let reader = SerializedFileReader::new(file).map_err(|error| error.to_string())?;
    let columns = Column::all(reader.metadata().file_metadata().schema())?;
    let typed: Vec<_> = columns.iter().map(Column::typed).collect();
    to.write_all(&[BEGIN]).map_err(unwritten)?;
    line(&typed, to)?;
    let (mut rows, mut bytes) = (0, 0);
    for group in 0..reader.num_row_groups() {
        let wrong = |error: String| format!("row group {}: {error}", group + 1);
        let failed = |error: parquet::errors::ParquetError| wrong(error.to_string());
        let group = reader.get_row_group(group).map_err(failed)?;
        for row in RowIter::from_row_group(None, &*group).map_err(failed)? {
            rows += 1;
            if rows > MOST_ROWS {
                return Err(format!("it has more than {MOST_ROWS} rows; split it"));
            }
            let mut cells = Map::new();
            for (column, (name, field)) in columns.iter().zip(row.map_err(failed)?.get_column_iter()) {
                let in_column = |error| wrong(format!("column `{name:.100}`: {error}"));
                if let Some(value) = cells::value(column, field).map_err(in_column)? {
                    bytes += size(&value);
                    cells.insert(name.clone(), value);
                }
            }
            if bytes > most {
                return Err("it unpacks to more than a thousand times its size; split it".to_owned());
            }
            line(&Value::Object(cells), to).map_err(wrong)?;
        }
    }
    to.flush().map_err(unwritten)
}

/// Names of columns do not count: they are the same in each row. Those of maps are data.
fn size(value: &Value) -> u64 {
    match value {
        Value::String(text) => text.len() as u64,
        Value::Array(values) => values.iter().map(size).sum(),
        Value::Object(members) => members.iter().map(|(name, value)| name.len() as u64 + size(value)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
    }
}

fn line(value: &impl serde::Serialize, to: &mut impl Write) -> Result<(), String> {
    let mut line = serde_json::to_vec(value).map_err(|error| error.to_string())?;
    line.push(b'\n');
    if line.len() > LARGEST_RECORD {
        return Err("the row is larger than 4 MiB".to_owned());
    }
    to.write_all(&line).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_within_a_value_are_as_much_data_as_what_they_name() {
        let long = "k".repeat(1 << 20);
        assert_eq!(size(&json!({ long: null })), (1 << 20) + 1);
        assert_eq!(size(&json!([{"ab": "cde"}, 7])), 6);
    }
}
