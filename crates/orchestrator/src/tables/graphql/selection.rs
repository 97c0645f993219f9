//! What is selected: tables, and fields of their rows.

use super::arguments::Arguments;
use super::document::Operation;
use super::{GraphqlError, Schemas};
use crate::ports::RowQuery;
use graphql_parser::query::{Field, Selection, SelectionSet, TypeCondition};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use trellis_domain::table::{TableField, TableSchema, graphql_name, is_graphql_name};

/// Tables that one query asks.
const MOST_ROOTS: usize = 16;
/// Columns of one table in one query.
const MOST_COLUMNS: usize = 256;

/// A field of the answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Root {
    Table { key: String, schema: Arc<TableSchema>, query: RowQuery, limit: u64, columns: Vec<(String, Column)> },
    TypeName { key: String },
}

impl Root {
    fn key(&self) -> &str {
        match self {
            Self::Table { key, .. } | Self::TypeName { key } => key,
        }
    }

    pub(super) fn table(&self) -> Option<&str> {
        match self {
            Self::Table { schema, .. } => Some(&schema.name),
            Self::TypeName { .. } => None,
        }
    }
}

/// A field of a row in the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Column {
    Field(String),
    TypeName,
}

/// How a name is written in queries.
pub(in crate::tables) fn written_name(name: &str) -> String {
    if is_graphql_name(name) { name.to_owned() } else { graphql_name(name) }
}

/// `CustomersType`, `CustomersFilter`.
pub(super) fn type_name(schema: &TableSchema, suffix: &str) -> String {
    let name = written_name(&schema.name).to_lowercase();
    let mut letters = name.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    format!("{}{}{suffix}", first.map(String::from).unwrap_or_default(), letters.as_str())
}

pub(super) fn roots(schemas: &Schemas, operation: &Operation<'_>) -> Result<Vec<Root>, GraphqlError> {
    let mut fields = Vec::new();
    flatten(operation, operation.selection, "Query", &mut Vec::new(), &mut fields)?;
    let mut roots: Vec<Root> = Vec::new();
    for field in fields {
        let root = root(schemas, operation, field)?;
        match roots.iter().find(|known| known.key() == root.key()) {
            Some(known) if *known == root => continue,
            Some(_) => {
                let key = root.key();
                let what =
                    format!("two different things are called `{key}`; give one of them another name: `other: …`");
                return Err(GraphqlError::at(field.position, what));
            }
            None => roots.push(root),
        }
        if roots.len() > MOST_ROOTS {
            return Err(GraphqlError::new(format!("the query asks for more than {MOST_ROOTS} tables at once")));
        }
    }
    Ok(roots)
}

fn root<'a>(schemas: &Schemas, operation: &Operation<'a>, field: &Field<'a, String>) -> Result<Root, GraphqlError> {
    let key = field.alias.clone().unwrap_or_else(|| field.name.clone());
    if field.name == "__typename" {
        return Ok(Root::TypeName { key });
    }
    let wrong = |what: String| GraphqlError::at(field.position, what);
    if field.name.starts_with("__") {
        return Err(wrong("introspection is not offered: schemas are configuration items of type `schema`".to_owned()));
    }
    let found = schemas.values().find(|schema| written_name(&schema.name) == field.name);
    let schema = found.ok_or_else(|| wrong(no_table(schemas, &field.name)))?;
    let Arguments { query, limit } = Arguments::read(operation, schema, field)?;
    let columns = columns(operation, schema, field)?;
    Ok(Root::Table { key, schema: Arc::clone(schema), query, limit, columns })
}

fn no_table(schemas: &Schemas, name: &str) -> String {
    let names: Vec<_> = schemas.values().map(|schema| format!("`{}`", written_name(&schema.name))).collect();
    if names.is_empty() {
        return format!("there is no table `{name}`: no schema is configured");
    }
    format!("there is no table `{name}`; these are: {}", names.join(", "))
}

fn columns<'a>(
    operation: &Operation<'a>,
    schema: &TableSchema,
    field: &Field<'a, String>,
) -> Result<Vec<(String, Column)>, GraphqlError> {
    let mut fields = Vec::new();
    let type_name = type_name(schema, "Type");
    flatten(operation, &field.selection_set, &type_name, &mut Vec::new(), &mut fields)?;
    if fields.is_empty() {
        let what = format!("say which fields of `{}` are wanted: {{ {} }}", field.name, names(schema));
        return Err(GraphqlError::at(field.position, what));
    }
    let mut columns: Vec<(String, Column)> = Vec::new();
    for selected in fields {
        let wrong = |what: String| GraphqlError::at(selected.position, what);
        if !selected.selection_set.items.is_empty() || !selected.arguments.is_empty() {
            return Err(wrong(format!("`{}` has neither fields nor arguments", selected.name)));
        }
        let column = if selected.name == "__typename" {
            Column::TypeName
        } else {
            let known = field_named(schema, &selected.name);
            Column::Field(known.ok_or_else(|| wrong(no_field(schema, &selected.name)))?.name.clone())
        };
        let key = selected.alias.clone().unwrap_or_else(|| selected.name.clone());
        match columns.iter().find(|(known, _)| *known == key) {
            Some((_, known)) if *known == column => {}
            Some(_) => return Err(wrong(format!("two different fields are called `{key}`"))),
            None => columns.push((key, column)),
        }
        if columns.len() > MOST_COLUMNS {
            return Err(wrong(format!("more than {MOST_COLUMNS} fields are asked for")));
        }
    }
    Ok(columns)
}

pub(super) fn field_named<'a>(schema: &'a TableSchema, name: &str) -> Option<&'a TableField> {
    schema.fields.iter().find(|field| written_name(&field.name) == name)
}

pub(super) fn no_field(schema: &TableSchema, name: &str) -> String {
    format!("`{}` has no field `{name}`; these are: {}", written_name(&schema.name), names(schema))
}

fn names(schema: &TableSchema) -> String {
    schema.fields.iter().map(|field| written_name(&field.name)).collect::<Vec<_>>().join(", ")
}

/// The fields of a selection, with those of its fragments.
fn flatten<'a, 'o>(
    operation: &'o Operation<'a>,
    selection: &'o SelectionSet<'a, String>,
    of: &str,
    within: &mut Vec<&'o str>,
    fields: &mut Vec<&'o Field<'a, String>>,
) -> Result<(), GraphqlError> {
    let fits = |condition: &TypeCondition<'a, String>| {
        let TypeCondition::On(name) = condition;
        name.eq_ignore_ascii_case(of)
    };
    for item in &selection.items {
        operation.step()?;
        match item {
            Selection::Field(field) => {
                if operation.is_included(&field.directives)? {
                    fields.push(field);
                }
            }
            Selection::InlineFragment(fragment) => {
                if let Some(condition) = fragment.type_condition.as_ref().filter(|condition| !fits(condition)) {
                    let TypeCondition::On(name) = condition;
                    return Err(GraphqlError::at(fragment.position, format!("`{name}` is not `{of}`")));
                }
                if operation.is_included(&fragment.directives)? {
                    flatten(operation, &fragment.selection_set, of, within, fields)?;
                }
            }
            Selection::FragmentSpread(spread) => {
                let wrong = |what: String| GraphqlError::at(spread.position, what);
                let name = spread.fragment_name.as_str();
                let fragment = operation.fragments.get(name);
                let fragment = fragment.ok_or_else(|| wrong(format!("there is no fragment `{name}`")))?;
                if within.contains(&name) {
                    return Err(wrong(format!("the fragment `{name}` contains itself")));
                }
                if !fits(&fragment.type_condition) {
                    return Err(wrong(format!("the fragment `{name}` is not one of `{of}`")));
                }
                if operation.is_included(&spread.directives)? {
                    within.push(name);
                    flatten(operation, &fragment.selection_set, of, within, fields)?;
                    within.pop();
                }
            }
        }
    }
    let keys: BTreeSet<_> = fields.iter().map(|field| &field.name).collect();
    if keys.len() > MOST_COLUMNS {
        return Err(GraphqlError::new(format!("more than {MOST_COLUMNS} fields are asked for")));
    }
    Ok(())
}

/// Schemas as a model is shown them: all that it needs to choose, or all that it needs to write a query.
pub fn described(schemas: &Schemas, whole: bool) -> Value {
    let field = |field: &TableField| {
        let mut shown = json!({
            "name": written_name(&field.name), "type": field.kind.as_str(), "description": field.description,
        });
        if whole {
            shown["required"] = json!(field.required);
            shown["primary_key"] = json!(field.primary_key);
            shown["indexed"] = json!(field.indexed);
            shown["enum_values"] = json!(field.allowed);
        }
        shown
    };
    let schema = |schema: &Arc<TableSchema>| {
        json!({
            "name": written_name(&schema.name),
            "description": schema.description,
            "fields": schema.fields.iter().map(field).collect::<Vec<_>>(),
        })
    };
    schemas.values().map(schema).collect()
}
