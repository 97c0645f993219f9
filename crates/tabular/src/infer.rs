//! A schema for a file that has none: all of it is read, and each field is what all its values can be.

use crate::{Fault, ReadError, Records, Source};
use serde_json::Value;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use trellis_domain::table::{FieldKind, MOST_FIELDS, TableField, TableSchema, graphql_name};

/// Different values of a field that are remembered, to see whether it tells rows apart.
const MOST_REMEMBERED: usize = 1_000_000;
/// Texts up to this length are worth an index, and how many fields get one.
const SHORT: usize = 64;
const MOST_INDEXED: usize = 8;

/// The schema of a file, under a name.
pub fn infer(name: &str, source: Source) -> Result<TableSchema, ReadError> {
    let Source { name: file, reader, format, encoding } = source;
    let failed = |fault: Fault| ReadError {
        name: file.clone(),
        line: fault.line,
        what: fault.what,
        interrupted: fault.interrupted,
    };
    let mut records = Records::new(reader, format, encoding);
    let keys = keys(name);
    let mut columns: Vec<Seen> = Vec::new();
    let (names, kinds) = records.columns().map_err(failed)?.unwrap_or_default();
    for (place, column) in names.iter().enumerate() {
        columns.push(Seen { known: kinds.get(place).copied().flatten(), ..Seen::new(column, &keys) });
    }
    let mut rows = 0;
    for record in records {
        let record = record.map_err(failed)?;
        rows += 1;
        for (column, value) in &record.cells {
            let place = columns.iter().position(|seen| seen.column == *column);
            let place = place.unwrap_or_else(|| {
                columns.push(Seen::new(column, &keys));
                columns.len() - 1
            });
            columns[place].look(value);
        }
        if columns.len() > MOST_FIELDS {
            return Err(failed(Fault::new(record.line, format!("more than {MOST_FIELDS} different fields"))));
        }
    }
    if rows == 0 {
        return Err(ReadError { name: file, line: None, what: "there are no rows".to_owned(), interrupted: false });
    }
    Ok(schema(name, &file, &columns, rows))
}

/// What was seen of a column.
struct Seen {
    column: String,
    /// What the file itself says that it is.
    known: Option<FieldKind>,
    present: u64,
    longest: usize,
    /// What all its values can be.
    can_be: Vec<FieldKind>,
    /// None if it is not called like a key, some value came twice, or too many came to be sure.
    different: Option<HashSet<u64>>,
}

impl Seen {
    fn new(column: &str, keys: &[String]) -> Self {
        let can_be =
            vec![FieldKind::Integer, FieldKind::Float, FieldKind::Boolean, FieldKind::Date, FieldKind::Timestamp];
        // What no key can be is not remembered: there may be many columns, and all of them different in each row.
        let different = keys.contains(&graphql_name(column)).then(HashSet::new);
        Self { column: column.to_owned(), known: None, present: 0, longest: 0, can_be, different }
    }

    fn look(&mut self, value: &Value) {
        let text = match value {
            Value::Null => return,
            Value::String(text) if text.is_empty() => return,
            Value::String(text) => text.clone(),
            Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
        };
        self.present += 1;
        self.longest = self.longest.max(text.len());
        self.can_be.retain(|kind| can_be(*kind, text.trim()));
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        let is_new = |seen: &mut HashSet<u64>| seen.insert(hasher.finish()) && seen.len() <= MOST_REMEMBERED;
        if !self.different.as_mut().is_some_and(is_new) {
            self.different = None;
        }
    }

    fn kind(&self) -> FieldKind {
        let seen = || self.can_be.first().copied().filter(|_| self.present > 0);
        self.known.or_else(seen).unwrap_or(FieldKind::String)
    }
}

#[cfg(test)]
pub(crate) fn remembers(column: &str, keys: &[String]) -> bool {
    Seen::new(column, keys).different.is_some()
}

fn can_be(kind: FieldKind, text: &str) -> bool {
    // Numbers with zeros in front are codes: 007 is not 7.
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_code = digits.len() > 1 && digits.starts_with('0') && !digits.starts_with("0.");
    match kind {
        FieldKind::Integer => !is_code && text.parse::<i64>().is_ok() && !text.starts_with('+'),
        FieldKind::Float => {
            let is_number = text.starts_with(|first: char| first.is_ascii_digit() || "-.".contains(first));
            !is_code && is_number && text.parse::<f64>().is_ok_and(f64::is_finite)
        }
        FieldKind::Boolean => ["true", "false", "yes", "no"].iter().any(|word| text.eq_ignore_ascii_case(word)),
        FieldKind::Date => is_date(text),
        FieldKind::Timestamp => {
            let parts = text.split_once(['T', ' ']);
            parts.is_some_and(|(date, time)| is_date(date) && time.len() >= 5 && time.as_bytes()[2] == b':')
        }
        FieldKind::String | FieldKind::Time | FieldKind::Uuid => false,
    }
}

/// `2024-02-29`.
fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    let shape =
        |(place, byte): (usize, &u8)| if place == 4 || place == 7 { *byte == b'-' } else { byte.is_ascii_digit() };
    bytes.len() == 10 && bytes.iter().enumerate().all(shape)
}

fn schema(name: &str, file: &str, columns: &[Seen], rows: u64) -> TableSchema {
    let mut names = HashSet::new();
    let mut fields: Vec<TableField> = Vec::new();
    let mut indexed = 0;
    for seen in columns {
        let mut own = graphql_name(&seen.column);
        let mut number = 2;
        while !names.insert(own.clone()) {
            own = format!("{}_{number}", graphql_name(&seen.column));
            number += 1;
        }
        let kind = seen.kind();
        let names_rows = own == "id" || own.ends_with("_id") || own.ends_with("_code");
        let is_worth_it = names_rows || (kind.is_text() && seen.longest <= SHORT && seen.present > 0);
        let is_indexed = is_worth_it && indexed < MOST_INDEXED;
        indexed += usize::from(is_indexed);
        let description = if own == seen.column { String::new() } else { seen.column.clone() };
        fields.push(TableField {
            name: own,
            kind,
            description,
            required: false,
            primary_key: false,
            indexed: is_indexed,
            by_meaning: is_indexed && kind == FieldKind::String,
            allowed: Vec::new(),
        });
    }
    if let Some(key) = key(name, columns, &fields, rows) {
        fields[key].primary_key = true;
        fields[key].indexed = false;
    }
    TableSchema { name: name.to_owned(), description: format!("Rows of {:.200}", file_name(file)), fields }
}

/// Without its folder or server, which are nobody's business: models and other users read descriptions.
fn file_name(file: &str) -> &str {
    let path = if file.contains("://") { file.split(['?', '#']).next().unwrap_or_default() } else { file };
    path.trim_end_matches('/').rsplit(['/', '\\']).next().unwrap_or_default()
}

/// What the key of a table may be called, the likeliest first.
fn keys(table: &str) -> [String; 5] {
    let plural = table.strip_suffix("ies").map(|stem| format!("{stem}y"));
    let singular = plural.unwrap_or_else(|| table.strip_suffix('s').unwrap_or(table).to_owned());
    ["id".to_owned(), format!("{table}_id"), format!("{singular}_id"), "uuid".to_owned(), "key".to_owned()]
}

/// The field that is named like a key and tells all rows apart.
fn key(table: &str, columns: &[Seen], fields: &[TableField], rows: u64) -> Option<usize> {
    let wanted = keys(table);
    let tells_apart = |seen: &Seen| seen.present == rows && seen.different.is_some();
    let places = wanted.iter().filter_map(|name| fields.iter().position(|field| &field.name == name));
    places.into_iter().find(|place| tells_apart(&columns[*place]))
}
