//! Tables in memory.

use crate::documents::normalised;
use crate::ports::{
    FoundRows, LoadedBy, LoadedTable, NearValue, NearValues, PutRows, RowQuery, TablePlace, Tables, TablesError,
    TablesFuture, ValueQuery, ValueVector, Vectorless,
};
use crate::tables::{
    Collector, MOST_FOUND, MOST_TABLES, MOST_VECTORS, Plan, check_layout, check_rows, check_vectors, follow,
    note_loader, note_unfinished, plan, sorted,
};
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::sync::Arc;
use trellis_domain::table::{Row, RowKey, TableLayout, TableSchema, index_value};
use trellis_domain::{Caller, Collection, Workspace};

#[derive(Debug, Default)]
struct Table {
    layout: TableLayout,
    rows: BTreeMap<RowKey, Row>,
    unfinished: Vec<String>,
    loaded_by: Vec<LoadedBy>,
    /// By model, field and text.
    vectors: BTreeMap<(String, String, String), Vec<f32>>,
}

impl Table {
    /// How many values have vectors of a model.
    fn count(&self, model: &str) -> u64 {
        self.vectors.keys().filter(|(known, _, _)| known == model).count() as u64
    }
}

#[derive(Debug, Default)]
pub struct MemoryTables {
    tables: RwLock<BTreeMap<TablePlace, Table>>,
}

fn ready<'a, T: Send + 'a>(value: Result<T, TablesError>) -> TablesFuture<'a, T> {
    Box::pin(std::future::ready(value))
}

impl MemoryTables {
    fn put_rows(
        &self,
        place: &TablePlace,
        schema: &TableSchema,
        source: &str,
        rows: Vec<Row>,
    ) -> Result<PutRows, TablesError> {
        // The last one with a key is the one that stays.
        let rows: BTreeMap<RowKey, Row> = check_rows(schema, source, rows)?.into_iter().collect();
        let mut tables = self.tables.write();
        let of_workspace = tables.keys().filter(|known| known.workspace == place.workspace).count();
        match tables.get(place) {
            Some(table) => {
                check_layout(&place.table, &table.layout, schema)?;
            }
            None if of_workspace >= MOST_TABLES => {
                return Err(TablesError::Refused(format!("a workspace has at most {MOST_TABLES} tables")));
            }
            None => {}
        }
        let begin = || Table { layout: schema.layout(), ..Table::default() };
        let table = tables.entry(place.clone()).or_insert_with(begin);
        note_unfinished(&place.table, &mut table.unfinished, source);
        let mut put = PutRows::default();
        for (key, row) in rows {
            match table.rows.insert(key, row.clone()) {
                None => put.new += 1,
                Some(before) if before != row => put.changed += 1,
                Some(_) => {}
            }
        }
        Ok(put)
    }
}

impl Tables for MemoryTables {
    fn put<'a>(
        &'a self,
        place: &'a TablePlace,
        schema: Arc<TableSchema>,
        source: &'a str,
        rows: Vec<Row>,
    ) -> TablesFuture<'a, PutRows> {
        ready(self.put_rows(place, &schema, source, rows))
    }

    fn finish<'a>(&'a self, place: &'a TablePlace, source: &'a str) -> TablesFuture<'a, ()> {
        if let Some(table) = self.tables.write().get_mut(place) {
            table.unfinished.retain(|known| known != source);
        }
        ready(Ok(()))
    }

    fn note_loader<'a>(&'a self, place: &'a TablePlace, caller: &'a Caller) -> TablesFuture<'a, ()> {
        if let Some(table) = self.tables.write().get_mut(place) {
            note_loader(&mut table.loaded_by, caller);
        }
        ready(Ok(()))
    }

    fn find<'a>(&'a self, place: &'a TablePlace, query: RowQuery) -> TablesFuture<'a, FoundRows> {
        let tables = self.tables.read();
        ready(tables.get(place).map_or(Ok(FoundRows::default()), |table| find(&place.table, table, &query)))
    }

    fn tables<'a>(&'a self, workspace: &'a Workspace) -> TablesFuture<'a, Vec<LoadedTable>> {
        let tables = self.tables.read();
        let own = tables.iter().filter(|(place, _)| &place.workspace == workspace);
        let listed = own.map(|(place, table)| LoadedTable {
            collection: place.collection.clone(),
            table: place.table.clone(),
            rows: table.rows.len() as u64,
            unfinished: sorted(table.unfinished.clone()),
            loaded_by: table.loaded_by.clone(),
        });
        ready(Ok(listed.collect()))
    }

    fn remove<'a>(&'a self, place: &'a TablePlace) -> TablesFuture<'a, Option<u64>> {
        ready(Ok(self.tables.write().remove(place).map(|table| table.rows.len() as u64)))
    }

    fn remove_collection<'a>(&'a self, workspace: &'a Workspace, collection: &'a Collection) -> TablesFuture<'a, u64> {
        let mut tables = self.tables.write();
        let before = tables.len();
        tables.retain(|place, _| &place.workspace != workspace || &place.collection != collection);
        ready(Ok((before - tables.len()) as u64))
    }

    fn without_vectors<'a>(
        &'a self,
        place: &'a TablePlace,
        model: &'a str,
        mut values: Vec<(String, String)>,
    ) -> TablesFuture<'a, Vectorless> {
        let mut room = MOST_VECTORS;
        if let Some(table) = self.tables.read().get(place) {
            let key = |(field, text): &(String, String)| (model.to_owned(), field.clone(), text.clone());
            values.retain(|value| !table.vectors.contains_key(&key(value)));
            room = room.saturating_sub(table.count(model));
        }
        ready(Ok(Vectorless::within(values, room)))
    }

    fn put_vectors<'a>(
        &'a self,
        place: &'a TablePlace,
        model: &'a str,
        vectors: Vec<ValueVector>,
    ) -> TablesFuture<'a, u64> {
        if let Err(error) = check_vectors(&vectors) {
            return ready(Err(error));
        }
        let mut no_room = 0;
        if let Some(table) = self.tables.write().get_mut(place) {
            let mut count = table.count(model);
            for ValueVector { field, text, vector } in vectors {
                let key = (model.to_owned(), field, text);
                let is_new = !table.vectors.contains_key(&key);
                if is_new && count >= MOST_VECTORS {
                    no_room += 1;
                    continue;
                }
                count += u64::from(is_new);
                table.vectors.insert(key, vector);
            }
        }
        ready(Ok(no_room))
    }

    fn near<'a>(&'a self, place: &'a TablePlace, query: ValueQuery) -> TablesFuture<'a, NearValues> {
        let tables = self.tables.read();
        ready(Ok(tables.get(place).map(|table| near(table, &query)).unwrap_or_default()))
    }
}

/// As a store with indexes looks, so that it is bounded alike.
fn find(name: &str, table: &Table, query: &RowQuery) -> Result<FoundRows, TablesError> {
    let plan = plan(&table.layout, query);
    let mut collector = Collector::new(name, &table.layout, query, &plan);
    let after = |key: &RowKey| query.after.as_ref().is_none_or(|after| key > after);
    let all = table.rows.iter().filter(|(key, _)| after(key)).map(|(key, row)| (key.clone(), row.clone()));
    let mut candidates: Vec<(RowKey, Row)> = match &plan {
        Plan::All | Plan::Ordered { .. } => all.collect(),
        Plan::Spans { field, spans } => {
            let lies = |row: &Row| {
                let value = index_value(row.get(field));
                // A bound may be the beginning of a value only.
                spans.iter().any(|span| span.from <= value && (value <= span.to || value.starts_with(&span.to)))
            };
            all.filter(|(_, row)| lies(row)).collect()
        }
    };
    if matches!(plan, Plan::Ordered { .. }) {
        candidates.sort_by(|one, other| follow(query.order.as_ref(), one, other));
    }
    for (key, row) in candidates {
        if collector.offer(&key, row)?.is_break() {
            break;
        }
    }
    Ok(collector.found())
}

fn near(table: &Table, query: &ValueQuery) -> NearValues {
    let wanted = normalised(&query.vector);
    let of_model = table.vectors.iter().filter(|((model, field, _), vector)| {
        model == &query.model
            && vector.len() == wanted.len()
            && query.field.as_ref().is_none_or(|wanted| wanted == field)
    });
    let mut values: Vec<_> = of_model
        .map(|((_, field, text), vector)| {
            let score = normalised(vector).iter().zip(&wanted).map(|(one, other)| f64::from(one * other)).sum();
            NearValue { field: field.clone(), text: text.clone(), score }
        })
        .collect();
    let compared = values.len() as u64;
    values.sort_by(|one, other| {
        other.score.total_cmp(&one.score).then_with(|| (&one.field, &one.text).cmp(&(&other.field, &other.text)))
    });
    values.truncate(query.limit.min(MOST_FOUND));
    NearValues { values, compared }
}
