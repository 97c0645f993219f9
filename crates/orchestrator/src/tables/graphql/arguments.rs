//! What is said of a table in a query: `where`, `order_by`, `direction`, `limit`.

use super::document::Operation;
use super::filters::conditions;
use super::selection::{field_named, no_field};
use super::{GraphqlError, USUAL_LIMIT};
use crate::ports::{Direction, RowQuery};
use graphql_parser::query::Field;
use serde_json::Value;
use std::collections::BTreeSet;
use trellis_domain::table::TableSchema;

pub(super) struct Arguments {
    pub(super) query: RowQuery,
    pub(super) limit: u64,
}

impl Arguments {
    pub(super) fn read(
        operation: &Operation<'_>,
        schema: &TableSchema,
        field: &Field<'_, String>,
    ) -> Result<Self, GraphqlError> {
        let wrong = |what: String| GraphqlError::at(field.position, what);
        let (mut query, mut limit) = (RowQuery::default(), USUAL_LIMIT);
        let (mut order, mut direction, mut seen) = (None, Direction::Ascending, BTreeSet::new());
        for (name, written) in &field.arguments {
            if !seen.insert(name) {
                return Err(wrong(format!("the argument `{name}` is given twice")));
            }
            let value = operation.value(written)?;
            match (name.as_str(), value) {
                ("where" | "order_by" | "direction" | "limit", Value::Null) => {}
                ("where", value) => query.conditions = conditions(schema, &value).map_err(wrong)?,
                ("order_by", Value::String(by)) => {
                    let known = field_named(schema, &by).ok_or_else(|| wrong(no_field(schema, &by)))?;
                    order = Some(known.name.clone());
                }
                ("direction", Value::String(word)) if word.eq_ignore_ascii_case("asc") => {}
                ("direction", Value::String(word)) if word.eq_ignore_ascii_case("desc") => {
                    direction = Direction::Descending;
                }
                ("limit", value) => {
                    let number = value.as_u64().or_else(|| value.as_str()?.parse().ok());
                    limit = number.ok_or_else(|| wrong(format!("`limit` is {value}; write a number from 0 on")))?;
                }
                ("order_by", _) => return Err(wrong("`order_by` is no text; name a field in quotes".to_owned())),
                ("direction", _) => return Err(wrong("`direction` is neither ASC nor DESC".to_owned())),
                (other, _) => {
                    let known = "where, order_by, direction, limit";
                    return Err(wrong(format!("the argument `{other}` is not known; these are: {known}")));
                }
            }
        }
        query.order = order.map(|field| (field, direction));
        Ok(Self { query, limit })
    }
}
