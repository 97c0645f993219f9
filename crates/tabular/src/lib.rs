//! Files of rows, within bounds: delimited text, JSON Lines and Parquet as rows of a schema, and a schema for a file that
//! has none.
//!
//! Knows no store. Files are read as they come, Parquet in a process of its own; what is wrong is told with its line.

mod delimited;
mod encoding;
mod infer;
mod json_lines;
pub mod parquet;
mod typed_lines;

pub use encoding::Encoding;
pub use infer::infer;
pub use trellis_confined::Program;

use delimited::Delimited;
use json_lines::JsonLines;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use trellis_domain::table::{FieldKind, Row, TableSchema, graphql_name};
use typed_lines::TypedLines;

/// Bytes of a record: what lies between two ends of lines, or of a row that has some within quotes.
pub const LARGEST_RECORD: usize = 4 << 20;
/// Columns of a file.
pub const MOST_COLUMNS: usize = 1_000;

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Csv,
    Tsv,
    JsonLines,
    /// As [`parquet::Unpacked`] gives it.
    Parquet,
}

impl Format {
    const NAMES: [(&'static str, Format); 5] = [
        ("csv", Self::Csv),
        ("tsv", Self::Tsv),
        ("jsonl", Self::JsonLines),
        ("ndjson", Self::JsonLines),
        ("parquet", Self::Parquet),
    ];

    /// By its name, which is also the end of files' names.
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| name.eq_ignore_ascii_case(known)).map(|(_, format)| *format)
    }

    pub fn of_file(path: &Path) -> Option<Self> {
        Self::named(path.extension()?.to_str()?)
    }

    /// By the type that a server gives with a file.
    pub fn of_type(said: &str) -> Option<Self> {
        match said.split(';').next()?.trim().to_ascii_lowercase().as_str() {
            "text/csv" => Some(Self::Csv),
            "text/tab-separated-values" => Some(Self::Tsv),
            "application/jsonl" | "application/x-ndjson" | "application/jsonlines" => Some(Self::JsonLines),
            "application/vnd.apache.parquet" | "application/x-parquet" => Some(Self::Parquet),
            _ => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Tsv => "tsv",
            Self::JsonLines => "jsonl",
            Self::Parquet => "parquet",
        }
    }

    pub fn list() -> &'static str {
        "csv, tsv, jsonl, parquet"
    }
}

/// Where a file is wrong, and what is.
#[derive(Debug, thiserror::Error)]
#[error("{name}{}: {what}", .line.map(|line| format!(":{line}")).unwrap_or_default())]
pub struct ReadError {
    pub name: String,
    /// Counted from 1; None if nothing of the file came so far.
    pub line: Option<u64>,
    pub what: String,
    /// The file itself is not to blame: it could not be read to its end.
    pub interrupted: bool,
}

/// What a record says, by the names of its columns.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Record {
    pub(crate) line: u64,
    pub(crate) cells: Map<String, Value>,
}

/// What is wrong with a record.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) line: Option<u64>,
    pub(crate) what: String,
    pub(crate) interrupted: bool,
}

impl Fault {
    pub(crate) fn new(line: u64, what: impl Into<String>) -> Self {
        Self { line: Some(line), what: what.into(), interrupted: false }
    }

    pub(crate) fn unread(line: u64, error: &std::io::Error) -> Self {
        // Text that is none is the file's own fault.
        let interrupted = error.kind() != std::io::ErrorKind::InvalidData;
        Self { line: Some(line), what: error.to_string(), interrupted }
    }
}

enum Records {
    Delimited(Box<Delimited>),
    JsonLines(JsonLines),
    Typed(TypedLines),
}

/// The names of columns, and the types that the file itself knows.
type Columns<'r> = (&'r [String], &'r [Option<FieldKind>]);

impl Records {
    fn new(reader: Box<dyn Read + Send>, format: Format, encoding: Encoding) -> Self {
        let encoding = if format == Format::Parquet { Encoding::default() } else { encoding };
        let reader = Box::new(encoding::Decoding::new(reader, encoding));
        match format {
            Format::Csv => Self::Delimited(Box::new(Delimited::new(reader, None))),
            Format::Tsv => Self::Delimited(Box::new(Delimited::new(reader, Some(b'\t')))),
            Format::JsonLines => Self::JsonLines(JsonLines::new(reader)),
            Format::Parquet => Self::Typed(TypedLines::new(reader)),
        }
    }

    /// Where the file has columns of its own.
    fn columns(&mut self) -> Result<Option<Columns<'_>>, Fault> {
        match self {
            Self::Delimited(delimited) => delimited.columns().map(|names| Some((names, &[] as &[_]))),
            Self::JsonLines(_) => Ok(None),
            Self::Typed(lines) => lines.columns().map(Some),
        }
    }
}

impl Iterator for Records {
    type Item = Result<Record, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Delimited(delimited) => delimited.next(),
            Self::JsonLines(lines) => lines.next(),
            Self::Typed(lines) => lines.next(),
        }
    }
}

/// The rows of a file. Ends with the first thing that is wrong.
pub struct Rows {
    name: String,
    records: Records,
    schema: Arc<TableSchema>,
    /// Nothing was read yet.
    is_fresh: bool,
    is_over: bool,
}

impl std::fmt::Debug for Rows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rows").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A file that is read, and how.
pub struct Source {
    /// What it is called in messages.
    pub name: String,
    pub reader: Box<dyn Read + Send>,
    pub format: Format,
    pub encoding: Encoding,
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").field("name", &self.name).field("format", &self.format).finish_non_exhaustive()
    }
}

impl Rows {
    pub fn new(source: Source, schema: Arc<TableSchema>) -> Self {
        let Source { name, reader, format, encoding } = source;
        Self { name, records: Records::new(reader, format, encoding), schema, is_fresh: true, is_over: false }
    }

    /// A file none of whose columns is a field was meant for another table.
    fn check_columns(&mut self) -> Result<(), Fault> {
        let Some((columns, _)) = self.records.columns()? else { return Ok(()) };
        let known = columns.iter().any(|column| field_of(&self.schema, column).is_some());
        if known {
            let names = columns.iter().map(String::as_str);
            return one_field_for_each(&self.schema, names).map_err(|what| Fault::new(1, what));
        }
        let names: Vec<_> = self.schema.fields.iter().map(|field| field.name.as_str()).collect();
        let what = format!(
            "no column is a field of the schema `{}`; it has {}, the file {:.300}",
            self.schema.name,
            names.join(", "),
            columns.join(", ")
        );
        Err(Fault::new(1, what))
    }

    fn row(&mut self) -> Option<Result<Row, Fault>> {
        if std::mem::take(&mut self.is_fresh)
            && let Err(fault) = self.check_columns()
        {
            return Some(Err(fault));
        }
        let record = match self.records.next()? {
            Ok(record) => record,
            Err(fault) => return Some(Err(fault)),
        };
        let mut cells = Map::new();
        for (column, value) in &record.cells {
            let Some(field) = field_of(&self.schema, column) else { continue };
            if cells.insert(field.to_owned(), value.clone()).is_some()
                && let Err(what) = one_field_for_each(&self.schema, record.cells.keys().map(String::as_str))
            {
                return Some(Err(Fault::new(record.line, what)));
            }
        }
        Some(self.schema.row(&cells).map_err(|error| {
            let schema = &self.schema.name;
            Fault::new(record.line, format!("{error}; correct the file, or the field in schema/{schema}"))
        }))
    }
}

/// The field that a column is for: of the same name, or of the name that a schema is given for it.
fn field_of<'a>(schema: &'a TableSchema, column: &str) -> Option<&'a str> {
    let named = |name: &str| schema.field(name).map(|field| field.name.as_str());
    let made = graphql_name(column);
    // Of columns whose names become the same all but the first have a number, and say which column they are.
    let numbered = || {
        let is_made = |name: &str| {
            let number = name.strip_prefix(&made).and_then(|rest| rest.strip_prefix('_'));
            number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
        };
        let found = schema.fields.iter().find(|field| field.description == column && is_made(&field.name));
        found.map(|field| field.name.as_str())
    };
    numbered().or_else(|| named(column)).or_else(|| named(column.trim())).or_else(|| named(&made))
}

/// Two columns that are for one field would leave one value of both: which is wanted nobody knows.
fn one_field_for_each<'c>(schema: &TableSchema, columns: impl Iterator<Item = &'c str>) -> Result<(), String> {
    let mut known: HashMap<&str, &str> = HashMap::new();
    for column in columns {
        let Some(field) = field_of(schema, column) else { continue };
        if let Some(other) = known.insert(field, column) {
            return Err(format!(
                "the columns `{other:.100}` and `{column:.100}` are both for the field `{field}`; rename one of them, or add \
                 a field to schema/{}",
                schema.name
            ));
        }
    }
    Ok(())
}

impl Iterator for Rows {
    type Item = Result<Row, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let row = self.row();
        self.is_over = !matches!(row, Some(Ok(_)));
        let name = &self.name;
        row.map(|row| {
            row.map_err(|Fault { line, what, interrupted }| ReadError { name: name.clone(), line, what, interrupted })
        })
    }
}

#[cfg(test)]
#[path = "tabular_tests.rs"]
mod tests;
