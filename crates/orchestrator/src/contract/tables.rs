//! The contract of tables.

use crate::ports::{
    Condition, Direction, FoundRows, LoadedBy, PutRows, RowQuery, TablePlace, Tables, TablesError, Test, ValueQuery,
    ValueVector, Vectorless,
};
use crate::tables::{MOST_AT_ONCE, MOST_VECTORS};
use serde_json::{Value, json};
use std::sync::Arc;
use trellis_domain::table::{Row, TableSchema};
use trellis_domain::{Caller, Collection, Surface, Workspace};

pub async fn suite<F: Future<Output = Arc<dyn Tables>>>(fresh: impl Fn() -> F) {
    rows_come_back_as_they_were_put(&*fresh().await).await;
    putting_again_changes_nothing_and_keys_take_places(&*fresh().await).await;
    rows_without_a_key_are_a_set(&*fresh().await).await;
    every_test_does_what_it_says_with_and_without_an_index(&*fresh().await).await;
    rows_come_in_order(&*fresh().await).await;
    rows_come_in_pages(&*fresh().await).await;
    changed_rows_are_found_by_what_they_are_now(&*fresh().await).await;
    work_is_bounded_and_indexes_save_it(&*fresh().await).await;
    places_are_apart(&*fresh().await).await;
    who_loaded_rows_is_on_record(&*fresh().await).await;
    removed_tables_are_gone_and_can_begin_anew(&*fresh().await).await;
    another_key_is_refused_and_nothing_of_the_call_is_kept(&*fresh().await).await;
    unfinished_sources_are_told(&*fresh().await).await;
    sources_that_were_given_up_keep_nobody_out(&*fresh().await).await;
    long_texts_are_found_and_told_apart(&*fresh().await).await;
    values_are_found_by_meaning(&*fresh().await).await;
    a_table_has_room_for_so_many_vectors(&*fresh().await).await;
}

/// Cities with a key; `name` and `people` are indexed, the others are not.
pub fn cities() -> Arc<TableSchema> {
    schema(
        "cities",
        &json!([
            {"name": "id", "type": "integer", "primary_key": true},
            {"name": "name", "type": "string", "indexed": true},
            {"name": "country", "type": "string"},
            {"name": "people", "type": "integer", "indexed": true},
            {"name": "area", "type": "float"},
            {"name": "capital", "type": "boolean"},
        ]),
    )
}

pub fn schema(name: &str, fields: &Value) -> Arc<TableSchema> {
    let item = json!({"name": name, "fields": fields});
    Arc::new(TableSchema::from_json(name, item.as_object().expect("it is one")).expect("a good schema"))
}

pub fn place(table: &str) -> TablePlace {
    TablePlace { workspace: Workspace::default(), collection: Collection::default(), table: table.to_owned() }
}

pub fn rows(schema: &TableSchema, rows: &Value) -> Vec<Row> {
    let row = |row: &Value| schema.row(row.as_object().expect("an object")).expect("a good row");
    rows.as_array().expect("a list").iter().map(row).collect()
}

fn six() -> Value {
    json!([
        {"id": 1, "name": "Oslo", "country": "Norway", "people": 709_000, "area": 454.0, "capital": true},
        {"id": 2, "name": "Bergen", "country": "Norway", "people": 286_000, "area": 464.7, "capital": false},
        {"id": 3, "name": "Rome", "country": "Italy", "people": 2_748_000, "area": 1285.3, "capital": true},
        {"id": 4, "name": "Turin", "country": "Italy", "people": 841_000, "capital": false},
        {"id": 5, "name": "Berlin", "country": "Germany", "people": 3_677_000, "area": 891.1, "capital": true},
        {"id": 6, "name": "Atlantis", "country": "nowhere"},
    ])
}

pub async fn put(tables: &dyn Tables, schema: &Arc<TableSchema>, given: &Value) -> PutRows {
    let put = tables.put(&place(&schema.name), Arc::clone(schema), "source", rows(schema, given)).await;
    put.expect("good rows")
}

pub fn test(field: &str, test: Test) -> Condition {
    Condition { field: field.to_owned(), test }
}

pub async fn find(tables: &dyn Tables, table: &str, query: RowQuery) -> FoundRows {
    let query = RowQuery { limit: if query.limit == 0 { 100 } else { query.limit }, ..query };
    tables.find(&place(table), query).await.expect("the tables work")
}

pub fn ids(found: &FoundRows) -> Vec<i64> {
    found.rows.iter().map(|row| row.get("id").and_then(Value::as_i64).expect("every row has an id")).collect()
}

async fn with_conditions(tables: &dyn Tables, conditions: Vec<Condition>) -> Vec<i64> {
    ids(&find(tables, "cities", RowQuery { conditions, ..RowQuery::default() }).await)
}

async fn rows_come_back_as_they_were_put(tables: &dyn Tables) {
    let schema = cities();
    assert_eq!(put(tables, &schema, &six()).await, PutRows { new: 6, changed: 0 });
    let found = find(tables, "cities", RowQuery::default()).await;
    assert_eq!(found.rows, rows(&schema, &six()), "in the order of their keys");
    assert_eq!(find(tables, "other", RowQuery::default()).await, FoundRows::default());
}

async fn putting_again_changes_nothing_and_keys_take_places(tables: &dyn Tables) {
    let schema = cities();
    put(tables, &schema, &six()).await;
    assert_eq!(put(tables, &schema, &six()).await, PutRows::default());
    let changed = json!([{"id": 2, "name": "Bergen", "people": 290_000}, {"id": 7, "name": "Graz"}]);
    assert_eq!(put(tables, &schema, &changed).await, PutRows { new: 1, changed: 1 });
    let twice = json!([{"id": 8, "name": "first"}, {"id": 8, "name": "last"}]);
    assert_eq!(put(tables, &schema, &twice).await, PutRows { new: 1, changed: 0 });
    let found = find(tables, "cities", RowQuery::default()).await;
    assert_eq!(ids(&found), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(found.rows[1].get("country"), None, "a row takes the place of all of the other");
    assert_eq!(found.rows[7].get("name"), Some(&json!("last")));
    let listed = tables.tables(&Workspace::default()).await.expect("they can be listed");
    assert_eq!((listed[0].table.as_str(), listed[0].rows), ("cities", 8));
}

async fn rows_without_a_key_are_a_set(tables: &dyn Tables) {
    let schema = schema("events", &json!([{"name": "what"}, {"name": "when", "type": "date", "indexed": true}]));
    let given = json!([{"what": "a", "when": "2024-01-01"}, {"what": "b"}, {"what": "a", "when": "2024-01-01"}]);
    assert_eq!(put(tables, &schema, &given).await.new, 2);
    assert_eq!(put(tables, &schema, &given).await, PutRows::default());
    let conditions = vec![test("when", Test::Is(json!("2024-01-01")))];
    assert_eq!(find(tables, "events", RowQuery { conditions, ..RowQuery::default() }).await.rows.len(), 1);
}

async fn every_test_does_what_it_says_with_and_without_an_index(tables: &dyn Tables) {
    put(tables, &cities(), &six()).await;
    let expected: [(&str, Test, &[i64]); 24] = [
        ("name", Test::Is(json!("Rome")), &[3]),
        ("country", Test::Is(json!("Norway")), &[1, 2]),
        ("id", Test::Is(json!(4)), &[4]),
        ("capital", Test::Is(json!(true)), &[1, 3, 5]),
        ("name", Test::IsNot(json!("Rome")), &[1, 2, 4, 5, 6]),
        ("people", Test::IsNot(json!(709_000)), &[2, 3, 4, 5]),
        ("name", Test::In(vec![json!("Turin"), json!("Oslo"), json!("Oslo"), json!("Nowhere")]), &[1, 4]),
        ("country", Test::In(vec![]), &[]),
        ("country", Test::NotIn(vec![json!("Italy"), json!("Norway")]), &[5, 6]),
        ("people", Test::Above(json!(841_000)), &[3, 5]),
        ("people", Test::AtLeast(json!(841_000)), &[3, 4, 5]),
        ("people", Test::Below(json!(709_000)), &[2]),
        ("people", Test::AtMost(json!(709_000)), &[1, 2]),
        ("area", Test::Above(json!(464.7)), &[3, 5]),
        ("area", Test::AtMost(json!(464.7)), &[1, 2]),
        ("name", Test::Above(json!("Oslo")), &[3, 4]),
        ("name", Test::Below(json!("Bergen")), &[6]),
        ("name", Test::Contains("er".to_owned()), &[2, 5]),
        ("country", Test::Contains("any".to_owned()), &[5]),
        ("name", Test::StartsWith("Ber".to_owned()), &[2, 5]),
        ("country", Test::StartsWith("I".to_owned()), &[3, 4]),
        ("name", Test::StartsWith(String::new()), &[1, 2, 3, 4, 5, 6]),
        ("name", Test::EndsWith("in".to_owned()), &[4, 5]),
        ("country", Test::EndsWith("way".to_owned()), &[1, 2]),
    ];
    for (field, asked, found) in expected {
        assert_eq!(with_conditions(tables, vec![test(field, asked.clone())]).await, found, "{field} {asked:?}");
    }
    let both = vec![test("people", Test::Above(json!(500_000))), test("country", Test::Is(json!("Italy")))];
    assert_eq!(with_conditions(tables, both).await, [3, 4]);
    let bounds = vec![test("people", Test::Above(json!(286_000))), test("people", Test::Below(json!(841_000)))];
    assert_eq!(with_conditions(tables, bounds).await, [1]);
    let none = vec![test("people", Test::Above(json!(9))), test("people", Test::Below(json!(1)))];
    assert_eq!(with_conditions(tables, none).await, [] as [i64; 0]);
    assert_eq!(with_conditions(tables, vec![test("people", Test::Is(json!("709000")))]).await, [] as [i64; 0]);
}

async fn rows_come_in_order(tables: &dyn Tables) {
    put(tables, &cities(), &six()).await;
    let order = |field: &str, direction| Some((field.to_owned(), direction));
    for field in ["people", "area", "name", "country", "id"] {
        let by = |direction| RowQuery { order: order(field, direction), ..RowQuery::default() };
        let up = ids(&find(tables, "cities", by(Direction::Ascending)).await);
        let mut down = ids(&find(tables, "cities", by(Direction::Descending)).await);
        let first = find(tables, "cities", RowQuery { limit: 2, ..by(Direction::Descending) }).await;
        assert_eq!(ids(&first), down[..2], "{field}: the first of all, not some that come first");
        down.reverse();
        assert_eq!(up, down, "{field}");
        assert_eq!(up.len(), 6);
    }
    let by_people = RowQuery { order: order("people", Direction::Ascending), ..RowQuery::default() };
    assert_eq!(ids(&find(tables, "cities", by_people.clone()).await), [6, 2, 1, 4, 3, 5], "nothing comes first");
    let conditions = vec![test("country", Test::In(vec![json!("Italy"), json!("Germany")]))];
    assert_eq!(ids(&find(tables, "cities", RowQuery { conditions, ..by_people }).await), [4, 3, 5]);
}

async fn rows_come_in_pages(tables: &dyn Tables) {
    put(tables, &cities(), &six()).await;
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let found = find(tables, "cities", RowQuery { after, limit: 4, ..RowQuery::default() }).await;
        seen.extend(ids(&found));
        after = found.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(seen, [1, 2, 3, 4, 5, 6]);
}

async fn changed_rows_are_found_by_what_they_are_now(tables: &dyn Tables) {
    let schema = cities();
    put(tables, &schema, &six()).await;
    put(tables, &schema, &json!([{"id": 1, "name": "Kristiania", "people": 1}])).await;
    assert_eq!(with_conditions(tables, vec![test("name", Test::Is(json!("Oslo")))]).await, [] as [i64; 0]);
    assert_eq!(with_conditions(tables, vec![test("name", Test::Is(json!("Kristiania")))]).await, [1]);
    assert_eq!(with_conditions(tables, vec![test("people", Test::AtMost(json!(1)))]).await, [1]);
}

async fn work_is_bounded_and_indexes_save_it(tables: &dyn Tables) {
    let many: Vec<_> = (0..500).map(|n| json!({"id": n, "name": format!("n{}", n % 50), "country": "x"})).collect();
    put(tables, &cities(), &json!(many)).await;
    let ask = |field: &str| RowQuery {
        conditions: vec![test(field, Test::Is(json!("n7")))],
        limit: 100,
        budget: 100,
        ..RowQuery::default()
    };
    let found = find(tables, "cities", ask("name")).await;
    assert_eq!((found.rows.len(), found.visited), (10, 10), "an index leads to the rows");
    let refused = tables.find(&place("cities"), ask("country")).await.expect_err("all rows would be read");
    let refused = refused.to_string();
    assert!(refused.contains("more than 100 rows") && refused.contains("`name`"), "{refused}");
    let first = RowQuery { limit: 5, budget: 100, ..RowQuery::default() };
    assert_eq!(find(tables, "cities", first).await.visited, 5, "nobody reads on when there is enough");
    let by_people = Some(("people".to_owned(), Direction::Descending));
    let ordered = RowQuery { order: by_people, limit: 3, budget: 100, ..RowQuery::default() };
    assert!(find(tables, "cities", ordered).await.visited <= 4, "an index has the order");
}

async fn places_are_apart(tables: &dyn Tables) {
    let schema = cities();
    let other = Workspace::new("other").expect("a name");
    let shop = Collection::new("shop").expect("a name");
    let places = [
        place("cities"),
        place("cities2"),
        TablePlace { collection: shop.clone(), ..place("cities") },
        TablePlace { workspace: other.clone(), ..place("cities") },
    ];
    for (n, place) in places.iter().enumerate() {
        let given = rows(&schema, &json!([{"id": n, "name": "same"}]));
        tables.put(place, Arc::clone(&schema), "s", given).await.expect("good rows");
    }
    for (n, place) in places.iter().enumerate() {
        let conditions = vec![test("name", Test::Is(json!("same")))];
        let found = tables.find(place, RowQuery { conditions, limit: 9, ..RowQuery::default() }).await.expect("rows");
        assert_eq!(ids(&found), [i64::try_from(n).expect("small")]);
    }
    assert_eq!(tables.remove_collection(&Workspace::default(), &Collection::default()).await.ok(), Some(2));
    let listed = tables.tables(&Workspace::default()).await.expect("they can be listed");
    assert_eq!(listed.iter().map(|table| &table.collection).collect::<Vec<_>>(), [&shop]);
    assert_eq!(tables.tables(&other).await.expect("they can be listed").len(), 1);
}

async fn who_loaded_rows_is_on_record(tables: &dyn Tables) {
    let ada = Caller::new(Some("ada".to_owned()), Surface::CommandLine);
    let other = Caller::new(None, Surface::Api);
    tables.note_loader(&place("cities"), &ada).await.expect("a table that is not there is noted of nobody");
    put(tables, &cities(), &six()).await;
    for caller in [&ada, &other, &other, &ada] {
        tables.note_loader(&place("cities"), caller).await.expect("it is noted");
    }
    put(tables, &cities(), &six()).await;
    tables.finish(&place("cities"), "s").await.expect("it is finished");
    let listed = tables.tables(&Workspace::default()).await.expect("they can be listed");
    assert_eq!(listed[0].loaded_by, [LoadedBy::from(&other), LoadedBy::from(&ada)], "the last one last");
}

async fn removed_tables_are_gone_and_can_begin_anew(tables: &dyn Tables) {
    put(tables, &cities(), &six()).await;
    assert_eq!(tables.remove(&place("cities")).await.ok(), Some(Some(6)));
    assert_eq!(tables.remove(&place("cities")).await.ok(), Some(None));
    assert_eq!(find(tables, "cities", RowQuery::default()).await, FoundRows::default());
    let anew = schema("cities", &json!([{"name": "name", "primary_key": true}, {"name": "id", "type": "integer"}]));
    assert_eq!(put(tables, &anew, &json!([{"id": 9, "name": "Oslo"}])).await.new, 1);
    assert_eq!(ids(&find(tables, "cities", RowQuery::default()).await), [9]);
}

async fn another_key_is_refused_and_nothing_of_the_call_is_kept(tables: &dyn Tables) {
    put(tables, &cities(), &six()).await;
    let other = schema("cities", &json!([{"name": "name", "primary_key": true}, {"name": "id", "type": "integer"}]));
    let given = rows(&other, &json!([{"id": 9, "name": "Oslo"}]));
    let refused = tables.put(&place("cities"), other, "s", given).await.expect_err("the key is another");
    assert!(refused.to_string().contains("was begun with the key `id`"), "{refused}");
    let many = vec![Row::default(); MOST_AT_ONCE + 1];
    let refused = tables.put(&place("cities"), cities(), "s", many).await;
    assert!(matches!(refused, Err(TablesError::Refused(_))));
    assert_eq!(find(tables, "cities", RowQuery::default()).await.rows.len(), 6);
    let wider = schema(
        "cities",
        &json!([{"name": "id", "type": "integer", "primary_key": true}, {"name": "country", "indexed": true}]),
    );
    assert_eq!(put(tables, &wider, &json!([{"id": 7, "country": "Italy"}])).await.new, 1, "other indexes may come");
    assert_eq!(with_conditions(tables, vec![test("country", Test::Is(json!("Italy")))]).await, [3, 4, 7]);
}

async fn unfinished_sources_are_told(tables: &dyn Tables) {
    let schema = cities();
    put(tables, &schema, &six()).await;
    let unfinished = async || {
        let listed = tables.tables(&Workspace::default()).await.expect("they can be listed");
        listed[0].unfinished.clone()
    };
    assert_eq!(unfinished().await, ["source"]);
    tables.finish(&place("cities"), "source").await.expect("it can be finished");
    assert!(unfinished().await.is_empty());
    tables.finish(&place("elsewhere"), "source").await.expect("nothing is there to finish");
}

async fn sources_that_were_given_up_keep_nobody_out(tables: &dyn Tables) {
    let schema = cities();
    let load = async |source: &str| {
        let one = rows(&schema, &json!([{"id": 1, "name": "Oslo"}]));
        tables
            .put(&place("cities"), Arc::clone(&schema), source, one)
            .await
            .expect("there is always room for one more");
    };
    load("zero").await;
    for number in 0..1_005 {
        load(&format!("source{number:04}")).await;
        // One that goes on is not forgotten.
        if number % 500 == 0 {
            load("a load that goes on").await;
        }
    }
    let listed = tables.tables(&Workspace::default()).await.expect("they can be listed").remove(0).unfinished;
    assert_eq!(listed.len(), 1_000, "those that came last");
    assert!(listed.iter().any(|source| source == "source1004") && listed.is_sorted());
    assert!(listed.iter().any(|source| source == "a load that goes on") && !listed.iter().any(|it| it == "zero"));
}

async fn a_table_has_room_for_so_many_vectors(tables: &dyn Tables) {
    put(tables, &cities(), &six()).await;
    let here = place("cities");
    let value = |number: u64| ("name".to_owned(), format!("{number}"));
    let vector = |number: u64| ValueVector { field: "name".to_owned(), text: format!("{number}"), vector: vec![1.0] };
    for start in (0..MOST_VECTORS - 10).step_by(20_000) {
        let end = (start + 20_000).min(MOST_VECTORS - 10);
        assert_eq!(tables.put_vectors(&here, "m", (start..end).map(vector).collect()).await.expect("good vectors"), 0);
    }
    let asked = (MOST_VECTORS - 20..MOST_VECTORS + 5).map(value).collect();
    let unknown = tables.without_vectors(&here, "m", asked).await.expect("the tables work");
    assert_eq!((unknown.values.len(), unknown.no_room), (10, 5));
    let more = (MOST_VECTORS - 20..MOST_VECTORS + 5).map(vector).collect();
    assert_eq!(tables.put_vectors(&here, "m", more).await.expect("the rest is left out"), 5);
    let unknown = tables.without_vectors(&here, "m", vec![value(0), value(MOST_VECTORS)]).await.expect("they work");
    assert_eq!(unknown, Vectorless { values: Vec::new(), no_room: 1 });
    assert_eq!(tables.put_vectors(&here, "other", vec![vector(0)]).await.expect("each model has its own"), 0);
}

async fn long_texts_are_found_and_told_apart(tables: &dyn Tables) {
    let start = "ä".repeat(200);
    let (one, other) = (format!("{start} one"), format!("{start} other"));
    put(tables, &cities(), &json!([{"id": 1, "name": one}, {"id": 2, "name": other}, {"id": 3, "name": "ä"}])).await;
    assert_eq!(with_conditions(tables, vec![test("name", Test::Is(json!(one)))]).await, [1]);
    assert_eq!(with_conditions(tables, vec![test("name", Test::StartsWith(format!("{start} o")))]).await, [1, 2]);
    assert_eq!(with_conditions(tables, vec![test("name", Test::Above(json!(one)))]).await, [2]);
    let order = Some(("name".to_owned(), Direction::Descending));
    let ordered = find(tables, "cities", RowQuery { order, ..RowQuery::default() }).await;
    assert_eq!(ids(&ordered), [2, 1, 3]);
}

async fn values_are_found_by_meaning(tables: &dyn Tables) {
    put(tables, &cities(), &six()).await;
    let value = |field: &str, text: &str, vector: &[f32]| ValueVector {
        field: field.to_owned(),
        text: text.to_owned(),
        vector: vector.to_vec(),
    };
    let (here, pair) = (place("cities"), |field: &str, text: &str| (field.to_owned(), text.to_owned()));
    let vectors = vec![
        value("name", "Oslo", &[2.0, 0.0]),
        value("name", "Rome", &[0.0, 3.0]),
        value("country", "x", &[1.0, 1.0]),
    ];
    tables.put_vectors(&here, "m", vectors.clone()).await.expect("good vectors");
    tables.put_vectors(&here, "m", vectors).await.expect("the same again");
    tables.put_vectors(&here, "other", vec![value("name", "Graz", &[1.0, 0.0])]).await.expect("good vectors");
    let asked = vec![pair("name", "Oslo"), pair("name", "Graz"), pair("country", "Oslo")];
    let unknown = tables.without_vectors(&here, "m", asked).await.expect("the tables work");
    assert_eq!(unknown, Vectorless { values: vec![pair("name", "Graz"), pair("country", "Oslo")], no_room: 0 });
    let ask = async |field: Option<&str>, vector: &[f32], limit| {
        let (model, field) = ("m".to_owned(), field.map(str::to_owned));
        let query = ValueQuery { model, vector: vector.to_vec(), field, limit };
        tables.near(&here, query).await.expect("the tables work")
    };
    let near = ask(None, &[5.0, 0.1], 2).await;
    let texts: Vec<_> = near.values.iter().map(|value| value.text.as_str()).collect();
    assert_eq!((texts, near.compared), (vec!["Oslo", "x"], 3));
    assert!(near.values[0].score > 0.99 && near.values[0].score < 1.001, "{:?}", near.values);
    assert_eq!(ask(Some("name"), &[1.0, 1.1], 9).await.values[0].text, "Rome");
    assert_eq!(ask(None, &[1.0, 0.0, 0.0], 9).await.compared, 0, "of another length");
    let wrong = tables.put_vectors(&here, "m", vec![value("name", "x", &[f32::NAN])]).await;
    assert!(matches!(wrong, Err(TablesError::Refused(_))));
    tables.remove(&here).await.expect("it can be removed");
    assert_eq!(ask(None, &[1.0, 0.0], 9).await.compared, 0, "they go with the table");
}
