//! Rows that are looked at one after the other, and those of them that a query gets.

use super::rules::{BUDGET, MOST_FOUND, Plan, by_field, fits, too_many};
use crate::ports::{Direction, FoundRows, RowQuery, TablesError};
use std::cmp::Ordering;
use std::ops::ControlFlow;
use trellis_domain::table::{Row, RowKey, TableLayout};

/// Bytes of rows that are found at once.
const LARGEST: usize = 32 << 20;

/// Takes rows in the order of a plan, and keeps the best.
#[derive(Debug)]
pub struct Collector<'a> {
    table: &'a str,
    layout: &'a TableLayout,
    query: &'a RowQuery,
    limit: usize,
    /// Rows come in the order that is wanted, so that the first are the best.
    in_order: bool,
    kept: Vec<(RowKey, Row)>,
    bytes: usize,
    visited: u64,
}

impl<'a> Collector<'a> {
    pub fn new(table: &'a str, layout: &'a TableLayout, query: &'a RowQuery, plan: &Plan) -> Self {
        let in_order = match plan {
            Plan::All => query.order.is_none(),
            // One value of one field: the rows lie there by their keys.
            Plan::Spans { spans, .. } => query.order.is_none() && spans.len() == 1 && spans[0].from == spans[0].to,
            Plan::Ordered { .. } => true,
        };
        let limit = query.limit.min(MOST_FOUND + 1);
        Self { table, layout, query, limit, in_order, kept: Vec::new(), bytes: 0, visited: 0 }
    }

    /// Looks at a row. Break if no other can be wanted.
    pub fn offer(&mut self, key: &RowKey, row: Row) -> Result<ControlFlow<()>, TablesError> {
        if self.is_full() {
            return Ok(ControlFlow::Break(()));
        }
        self.visited += 1;
        let budget = if self.query.budget == 0 { BUDGET } else { self.query.budget };
        if self.visited > budget {
            return Err(too_many(self.table, budget, self.layout));
        }
        if self.query.after.as_ref().is_some_and(|after| key <= after) || !fits(&row, &self.query.conditions) {
            return Ok(ControlFlow::Continue(()));
        }
        self.bytes += row.size();
        self.kept.push((key.clone(), row));
        if !self.in_order && (self.kept.len() >= 2 * self.limit.max(1) || self.bytes > LARGEST) {
            self.keep_best();
        }
        if self.bytes > LARGEST {
            let what = format!("the rows of `{}` that fit are larger than 32 MiB together; ask for fewer", self.table);
            return Err(TablesError::Refused(what));
        }
        Ok(if self.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    fn is_full(&self) -> bool {
        self.in_order && self.kept.len() >= self.limit
    }

    pub fn found(mut self) -> FoundRows {
        self.keep_best();
        let may_have_more = self.query.order.is_none() && self.kept.len() >= self.limit;
        let next = self.kept.last().filter(|_| may_have_more).map(|(key, _)| key.clone());
        FoundRows { rows: self.kept.into_iter().map(|(_, row)| row).collect(), next, visited: self.visited }
    }

    fn keep_best(&mut self) {
        if !self.in_order {
            let order = &self.query.order;
            self.kept.sort_by(|one, other| follow(order.as_ref(), one, other));
            self.kept.truncate(self.limit);
            self.bytes = self.kept.iter().map(|(_, row)| row.size()).sum();
        }
    }
}

/// By the field that is named, and by key; all of it the other way round if descending.
pub(crate) fn follow(
    order: Option<&(String, Direction)>,
    (one_key, one): &(RowKey, Row),
    (other_key, other): &(RowKey, Row),
) -> Ordering {
    match order {
        None => one_key.cmp(other_key),
        Some((field, direction)) => by_field(one, other, field, *direction).then_with(|| match direction {
            Direction::Ascending => one_key.cmp(other_key),
            Direction::Descending => other_key.cmp(one_key),
        }),
    }
}
