//! Tables: what a schema says of rows, and rows as they are kept.
//!
//! A schema is a configuration item of type `schema`, in the words of TrustGraph. A row has a value for each field that
//! it has something for; what is missing is not there.

mod cell;
mod encoding;

pub use encoding::{LONGEST_INDEXED, RowKey, index_value, index_value_length};

use crate::decision::words;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Fields of a schema.
pub const MOST_FIELDS: usize = 256;
/// Fields of which one may be searched for without reading all rows.
pub const MOST_INDEXED: usize = 16;
/// Bytes of a name.
const LONGEST_NAME: usize = 200;
const FIELDS: &str = r#"write a list of {"name": …, "type": "string"}"#;

words!(
    /// What the values of a field are. Points in time and the like are texts.
    FieldKind {
        String,
        Integer,
        Float,
        Boolean,
        Timestamp,
        Date,
        Time,
        Uuid,
    }
);

impl FieldKind {
    /// Whether its values are kept as texts.
    pub fn is_text(self) -> bool {
        match self {
            Self::String | Self::Timestamp | Self::Date | Self::Time | Self::Uuid => true,
            Self::Integer | Self::Float | Self::Boolean => false,
        }
    }
}

/// One field of a schema.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a member of the item by itself")]
pub struct TableField {
    pub name: String,
    pub kind: FieldKind,
    pub description: String,
    /// Every row has it.
    pub required: bool,
    /// What tells rows apart: a row takes the place of the one with the same values here.
    pub primary_key: bool,
    /// Rows are found by it without reading all of them.
    pub indexed: bool,
    /// Found by meaning as well.
    pub by_meaning: bool,
    /// The only values that it may have; empty for any.
    pub allowed: Vec<String>,
}

/// What the rows of a table are like.
///
/// ```
/// use trellis_domain::table::TableSchema;
///
/// let text = r#"{"name": "cities", "fields": [{"name": "id", "type": "integer", "primary_key": true},
///     {"name": "city", "type": "string", "required": true}]}"#;
/// let schema = TableSchema::from_json("cities", &serde_json::from_str(text)?).expect("it is right");
/// let cells = serde_json::from_str(r#"{"id": "7", "city": "Berlin"}"#)?;
/// assert_eq!(schema.row(&cells).expect("it fits").get("id"), Some(&7.into()));
/// assert!(schema.row(&serde_json::from_str(r#"{"id": "seven"}"#)?).is_err());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct TableSchema {
    /// The key of the configuration item, by which everybody knows the table.
    pub name: String,
    pub description: String,
    pub fields: Vec<TableField>,
}

/// A row: a value for each field that it has one for, by name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Row(BTreeMap<String, Value>);

impl Row {
    pub fn get(&self, field: &str) -> Option<&Value> {
        self.0.get(field)
    }

    pub fn values(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// About how many bytes it takes.
    pub fn size(&self) -> usize {
        let of = |value: &Value| value.as_str().map_or(8, str::len);
        self.0.iter().map(|(name, value)| name.len() + of(value) + 8).sum()
    }
}

/// What is wrong with a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("field `{field}`: {what}")]
pub struct CellError {
    pub field: String,
    pub what: String,
}

/// What is wrong with the fields of a schema, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}; {mend}")]
pub struct SchemaError {
    pub what: String,
    pub mend: String,
}

impl TableSchema {
    /// Reads an item. What it does not say is as in TrustGraph: any type that is not known is text.
    pub fn from_json(name: &str, item: &Map<String, Value>) -> Result<Self, SchemaError> {
        let problem = |what: String, mend: &str| SchemaError { what, mend: mend.to_owned() };
        let listed = item.get("fields").and_then(Value::as_array).filter(|fields| !fields.is_empty());
        let listed = listed.ok_or_else(|| problem("is missing, empty or no list".to_owned(), FIELDS))?;
        if listed.len() > MOST_FIELDS {
            return Err(problem(format!("has {} entries", listed.len()), "write at most 256"));
        }
        let (found_by, meant_by) = (names(item, "query-indexes"), names(item, "vector-indexes"));
        let mut fields = Vec::with_capacity(listed.len());
        let mut seen = BTreeSet::new();
        for (number, field) in (1..).zip(listed) {
            let wrong = |what: String| problem(format!("entry {number} {what}"), FIELDS);
            let text = |member: &str| field.get(member).and_then(Value::as_str);
            let flag = |member: &str| field.get(member).and_then(Value::as_bool).unwrap_or(false);
            let own = text("name").filter(|own| !own.is_empty() && own.len() <= LONGEST_NAME);
            let own = own.ok_or_else(|| wrong("has no name, or one that is too long".to_owned()))?;
            if !seen.insert(own) {
                return Err(wrong(format!("has the name `{own}`, as another one has")));
            }
            let kind = text("type").and_then(|kind| kind.parse().ok()).unwrap_or(FieldKind::String);
            let indexed = flag("indexed") || found_by.contains(own);
            let by_meaning =
                if meant_by.is_empty() { indexed && kind == FieldKind::String } else { meant_by.contains(own) };
            let allowed = field.get("enum").or_else(|| field.get("enum_values")).and_then(Value::as_array);
            let allowed = allowed.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
            fields.push(TableField {
                name: own.to_owned(),
                kind,
                description: text("description").unwrap_or_default().to_owned(),
                required: flag("required"),
                primary_key: flag("primary_key"),
                indexed,
                by_meaning,
                allowed,
            });
        }
        let indexed = fields.iter().filter(|field| field.indexed).count();
        if indexed > MOST_INDEXED {
            return Err(problem(format!("{indexed} of them are indexed"), "index at most 16"));
        }
        let description = item.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
        Ok(Self { name: name.to_owned(), description, fields })
    }

    /// The value of the configuration item.
    pub fn to_json(&self) -> Value {
        let fields = self.fields.iter().map(|field| {
            let mut written = json!({"name": field.name, "type": field.kind.as_str()});
            for (member, is_so) in
                [("primary_key", field.primary_key), ("required", field.required), ("indexed", field.indexed)]
            {
                if is_so {
                    written[member] = json!(true);
                }
            }
            if !field.description.is_empty() {
                written["description"] = json!(field.description);
            }
            if !field.allowed.is_empty() {
                written["enum"] = json!(field.allowed);
            }
            written
        });
        json!({"name": self.name, "description": self.description, "fields": fields.collect::<Vec<_>>()})
    }

    pub fn field(&self, name: &str) -> Option<&TableField> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// A row of values that came as texts or as JSON. Values of no field are left out.
    pub fn row(&self, cells: &Map<String, Value>) -> Result<Row, CellError> {
        let mut row = BTreeMap::new();
        for field in &self.fields {
            let wrong = |what: String| CellError { field: field.name.clone(), what };
            let value = cells.get(&field.name).map(|cell| cell::read(field, cell)).transpose().map_err(wrong)?;
            match value.flatten() {
                Some(value) => {
                    row.insert(field.name.clone(), value);
                }
                None if field.required || field.primary_key => return Err(wrong("is missing or empty".to_owned())),
                None => {}
            }
        }
        Ok(Row(row))
    }

    /// What tells this row from others: its key, or all of it where the schema names none.
    pub fn key(&self, row: &Row) -> Result<RowKey, CellError> {
        let fields = self.fields.iter().filter(|field| field.primary_key);
        encoding::row_key(fields.map(|field| (field.name.as_str(), row.get(&field.name))), row)
    }

    /// How rows are laid out on disk: what they are told apart by, and what they are found by.
    pub fn layout(&self) -> TableLayout {
        let named = |wanted: fn(&TableField) -> bool| {
            let fields = self.fields.iter().filter(|field| wanted(field));
            fields.map(|field| (field.name.clone(), field.kind)).collect()
        };
        TableLayout {
            key: named(|field| field.primary_key),
            indexed: named(|field| field.indexed || field.primary_key),
        }
    }
}

/// What a table was begun with. Its key stays as it is for as long as it has rows, and so do its indexes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableLayout {
    pub key: Vec<(String, FieldKind)>,
    pub indexed: Vec<(String, FieldKind)>,
}

fn names<'a>(item: &'a Map<String, Value>, member: &str) -> BTreeSet<&'a str> {
    item.get(member).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

/// A name as GraphQL knows names: letters, digits and underlines, and no digit first.
///
/// ```
/// use trellis_domain::table::graphql_name;
///
/// assert_eq!(graphql_name("First Name (2024)"), "first_name_2024");
/// assert_eq!(graphql_name("2nd"), "_2nd");
/// ```
pub fn graphql_name(text: &str) -> String {
    let mut name = String::new();
    for character in text.chars() {
        if character.is_ascii_alphanumeric() {
            name.push(character.to_ascii_lowercase());
        } else if !name.is_empty() && !name.ends_with('_') {
            name.push('_');
        }
    }
    let name = name.trim_end_matches('_');
    if name.is_empty() || name.starts_with(|first: char| first.is_ascii_digit()) {
        return format!("_{name}");
    }
    name.to_owned()
}

/// Whether a name can stand in a query as it is.
pub fn is_graphql_name(name: &str) -> bool {
    let begins = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    begins && !name.starts_with("__") && name.chars().all(|each| each.is_ascii_alphanumeric() || each == '_')
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
