//! The rules of rows, the same for every adapter: what can be kept, and which rows fit a query.

use crate::ports::{Condition, Direction, LoadedBy, RowQuery, TablesError, Test, ValueVector};
use serde_json::Value;
use std::cmp::Ordering;
use trellis_domain::Caller;
use trellis_domain::table::{CellError, LONGEST_INDEXED, Row, RowKey, TableLayout, TableSchema, index_value};

/// Rows that are found at once.
pub const MOST_FOUND: usize = 1_000;
/// Rows of one batch, and bytes of one row.
pub const MOST_AT_ONCE: usize = 10_000;
pub const LARGEST_ROW: usize = 4 << 20;
/// Rows that a query looks at, if nobody says how many.
pub const BUDGET: u64 = 1_000_000;
/// Tables of a workspace.
pub const MOST_TABLES: usize = 1_000;
/// Values of a table that have vectors: all of them are compared.
pub const MOST_VECTORS: u64 = 200_000;
/// Bytes of a value that has a vector.
pub const LONGEST_VALUE: usize = 8 << 10;
/// Numbers of a vector.
const MOST_DIMENSIONS: usize = 4_096;
/// Sources of a table that are known to be unfinished.
const MOST_UNFINISHED: usize = 1_000;
/// Callers that are remembered for one table.
const MOST_LOADERS: usize = 100;
const LONGEST_SOURCE: usize = 2 << 10;

/// Rows with their keys, if they can be kept.
pub fn check_rows(schema: &TableSchema, source: &str, rows: Vec<Row>) -> Result<Vec<(RowKey, Row)>, TablesError> {
    if source.is_empty() || source.len() > LONGEST_SOURCE {
        return Err(TablesError::Refused("a source needs a name of at most 2 KiB".to_owned()));
    }
    if rows.len() > MOST_AT_ONCE {
        return Err(TablesError::Refused(format!("{} rows at once; give at most {MOST_AT_ONCE}", rows.len())));
    }
    let refused = |error: CellError| TablesError::Refused(error.to_string());
    let checked = rows.into_iter().map(|row| {
        if row.size() > LARGEST_ROW {
            return Err(TablesError::Refused("a row is larger than 4 MiB".to_owned()));
        }
        schema.key(&row).map(|key| (key, row)).map_err(refused)
    });
    checked.collect()
}

/// Notes that a source is being loaded. Those that came last are last; of very many the one that nobody has touched for the
/// longest is forgotten, so that loads that were given up never keep others out. Whether anything changed.
pub fn note_unfinished(table: &str, unfinished: &mut Vec<String>, source: &str) -> bool {
    if unfinished.last().is_some_and(|last| last == source) {
        return false;
    }
    unfinished.retain(|known| known != source);
    if unfinished.len() >= MOST_UNFINISHED {
        let forgotten = unfinished.remove(0);
        tracing::warn!(table, source = forgotten, "a load that was never finished is forgotten: there are too many");
    }
    unfinished.push(source.to_owned());
    true
}

/// Notes who loads rows, each caller once: the last one is last, and of very many the first is forgotten. Whether anything
/// changed.
pub fn note_loader(loaded_by: &mut Vec<LoadedBy>, caller: &Caller) -> bool {
    let loader = LoadedBy::from(caller);
    if loaded_by.last() == Some(&loader) {
        return false;
    }
    loaded_by.retain(|known| *known != loader);
    if loaded_by.len() >= MOST_LOADERS {
        loaded_by.remove(0);
    }
    loaded_by.push(loader);
    true
}

/// Names as they are listed.
pub fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort_unstable();
    names
}

/// Whether rows of a schema can go into a table that was begun with this layout.
pub fn check_layout(table: &str, begun: &TableLayout, schema: &TableSchema) -> Result<(), TablesError> {
    let key = schema.layout().key;
    if begun.key == key {
        return Ok(());
    }
    let words = |key: &[(String, _)]| {
        if key.is_empty() {
            return "no key".to_owned();
        }
        format!("the key {}", key.iter().map(|(name, _)| format!("`{name}`")).collect::<Vec<_>>().join(", "))
    };
    Err(TablesError::Refused(format!(
        "the table `{table}` was begun with {}, and the schema has {} now: remove the table and load it anew, or change \
         schema/{table} back",
        words(&begun.key),
        words(&key)
    )))
}

pub fn check_vectors(vectors: &[ValueVector]) -> Result<(), TablesError> {
    let dimensions = vectors.first().map_or(1, |first| first.vector.len());
    for value in vectors {
        let length = value.vector.len();
        if length == 0 || length > MOST_DIMENSIONS || length != dimensions {
            return Err(TablesError::Refused(format!(
                "a vector has {length} numbers; 1 to {MOST_DIMENSIONS}, the same for all, are kept"
            )));
        }
        if value.vector.iter().any(|number| !number.is_finite()) || value.text.len() > LONGEST_VALUE {
            return Err(TablesError::Refused("a vector has a number that is none, or a value is too long".to_owned()));
        }
    }
    Ok(())
}

/// What a query is told that would look at too many rows.
pub(super) fn too_many(table: &str, budget: u64, layout: &TableLayout) -> TablesError {
    let names = layout.key.iter().chain(&layout.indexed).map(|(name, _)| format!("`{name}`"));
    let mut names: Vec<_> = names.collect();
    names.dedup();
    let help = if names.is_empty() { "no field is indexed".to_owned() } else { names.join(", ") };
    TablesError::Refused(format!(
        "more than {budget} rows of `{table}` would be read for this: filter by an indexed field (these are: {help})"
    ))
}

/// Whether a row passes all tests.
pub(super) fn fits(row: &Row, conditions: &[Condition]) -> bool {
    conditions.iter().all(|condition| row.get(&condition.field).is_some_and(|value| condition.test.passes(value)))
}

impl Test {
    pub fn passes(&self, value: &Value) -> bool {
        let text = || value.as_str().unwrap_or_default();
        match self {
            Self::Is(wanted) => value == wanted,
            Self::IsNot(unwanted) => value != unwanted,
            Self::In(wanted) => wanted.contains(value),
            Self::NotIn(unwanted) => !unwanted.contains(value),
            Self::Above(bound) => order_of(value, bound) == Some(Ordering::Greater),
            Self::AtLeast(bound) => order_of(value, bound).is_some_and(Ordering::is_ge),
            Self::Below(bound) => order_of(value, bound) == Some(Ordering::Less),
            Self::AtMost(bound) => order_of(value, bound).is_some_and(Ordering::is_le),
            Self::Contains(part) => text().contains(part.as_str()),
            Self::StartsWith(start) => text().starts_with(start.as_str()),
            Self::EndsWith(end) => text().ends_with(end.as_str()),
        }
    }
}

/// None if the values cannot be compared: they are of different kinds.
fn order_of(one: &Value, other: &Value) -> Option<Ordering> {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => match (one.as_i64(), other.as_i64()) {
            (Some(one), Some(other)) => Some(one.cmp(&other)),
            _ => one.as_f64()?.partial_cmp(&other.as_f64()?),
        },
        (Value::String(one), Value::String(other)) => Some(one.cmp(other)),
        (Value::Bool(one), Value::Bool(other)) => Some(one.cmp(other)),
        _ => None,
    }
}

/// How two rows follow each other by a field: as their values do in an index, and texts to their ends.
pub(super) fn by_field(one: &Row, other: &Row, field: &str, direction: Direction) -> Ordering {
    let (one, other) = (one.get(field), other.get(field));
    let by_index = || index_value(one).cmp(&index_value(other));
    let by_text = || one.and_then(Value::as_str).cmp(&other.and_then(Value::as_str));
    let order = by_index().then_with(by_text);
    match direction {
        Direction::Ascending => order,
        Direction::Descending => order.reverse(),
    }
}

/// A part of an index: values from the first to the last, both of them included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    pub from: Vec<u8>,
    pub to: Vec<u8>,
}

/// The parts of a field's index in which all rows lie that fit the conditions; None if the conditions say nothing that
/// an index knows. More rows may lie there.
pub(super) fn spans(field: &str, conditions: &[Condition]) -> Option<Vec<Span>> {
    let exact = |value: &Value| Span { from: index_value(Some(value)), to: index_value(Some(value)) };
    let tests = || conditions.iter().filter(|condition| condition.field == field).map(|condition| &condition.test);
    let points = tests().find_map(|test| match test {
        Test::Is(value) => Some(vec![exact(value)]),
        Test::In(values) => {
            let mut spans: Vec<_> = values.iter().map(exact).collect();
            spans.sort_by(|one, other| one.from.cmp(&other.from));
            spans.dedup();
            Some(spans)
        }
        Test::IsNot(_)
        | Test::NotIn(_)
        | Test::Above(_)
        | Test::AtLeast(_)
        | Test::Below(_)
        | Test::AtMost(_)
        | Test::Contains(_)
        | Test::StartsWith(_)
        | Test::EndsWith(_) => None,
    });
    if points.is_some() {
        return points;
    }
    let (mut from, mut to): (Option<Vec<u8>>, Option<Vec<u8>>) = (None, None);
    for test in tests() {
        match test {
            Test::Above(value) | Test::AtLeast(value) => from = from.max(Some(index_value(Some(value)))),
            Test::Below(value) | Test::AtMost(value) => {
                let bound = index_value(Some(value));
                to = Some(to.map_or(bound.clone(), |known| known.min(bound)));
            }
            Test::StartsWith(start) if !start.is_empty() => {
                let (first, last) = beginning(start);
                from = from.max(Some(first));
                to = Some(to.map_or(last.clone(), |known| known.min(last)));
            }
            Test::Is(_)
            | Test::IsNot(_)
            | Test::In(_)
            | Test::NotIn(_)
            | Test::Contains(_)
            | Test::StartsWith(_)
            | Test::EndsWith(_) => {}
        }
    }
    if from.is_none() && to.is_none() {
        return None;
    }
    // What has no value passes no test: it lies in front of all others.
    let from = from.unwrap_or_else(|| index_value(Some(&Value::Bool(false))));
    Some(vec![Span { from, to: to.unwrap_or_else(|| vec![u8::MAX]) }])
}

/// From the first to the last text that begins like this.
fn beginning(start: &str) -> (Vec<u8>, Vec<u8>) {
    let start = &start[..start.floor_char_boundary(LONGEST_INDEXED)];
    let mut first = index_value(Some(&Value::from(start)));
    // Without the end of the text.
    first.truncate(first.len() - 2);
    let mut last = first.clone();
    last.push(u8::MAX);
    (first, last)
}

/// How the rows for a query are looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plan {
    /// All of them, in the order of their keys.
    All,
    /// Those in parts of an index.
    Spans { field: String, spans: Vec<Span> },
    /// All of them, in the order of an index: as soon as there are enough, the rest need not be read.
    Ordered { field: String, direction: Direction },
}

/// The best way that a table's layout and the schema's present kinds of fields allow.
pub fn plan(layout: &TableLayout, query: &RowQuery) -> Plan {
    let indexed = || layout.indexed.iter().map(|(field, _)| field);
    let points = |spans: &[Span]| spans.iter().all(|span| span.from == span.to);
    let found = || indexed().filter_map(|field| spans(field, &query.conditions).map(|spans| (field.clone(), spans)));
    // One that knows the values beats one that knows their bounds.
    if query.after.is_none()
        && let Some((field, spans)) = found().min_by_key(|(_, spans)| !points(spans))
    {
        return Plan::Spans { field, spans };
    }
    match &query.order {
        Some((field, direction)) if layout.indexed.iter().any(|(known, kind)| known == field && !kind.is_text()) => {
            Plan::Ordered { field: field.clone(), direction: *direction }
        }
        Some(_) | None => Plan::All,
    }
}
