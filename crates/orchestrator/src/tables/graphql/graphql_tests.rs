use super::*;
use crate::memory::MemoryTables;
use trellis_domain::table::TableSchema;

fn schema(name: &str, fields: &Value) -> Arc<TableSchema> {
    let item = json!({"name": name, "fields": fields});
    Arc::new(TableSchema::from_json(name, item.as_object().unwrap()).unwrap())
}

fn schemas() -> Schemas {
    let cities = schema(
        "cities",
        &json!([
            {"name": "id", "type": "integer", "primary_key": true},
            {"name": "name", "type": "string", "indexed": true},
            {"name": "people", "type": "integer", "indexed": true},
            {"name": "area", "type": "float"},
            {"name": "capital", "type": "boolean"},
            {"name": "Seen on", "type": "date"},
        ]),
    );
    let odd = schema("odd-name", &json!([{"name": "x"}]));
    BTreeMap::from([("cities".to_owned(), cities), ("odd-name".to_owned(), odd)])
}

async fn tables() -> MemoryTables {
    let tables = MemoryTables::default();
    let schema = Arc::clone(&schemas()["cities"]);
    let row = |cells: Value| schema.row(cells.as_object().unwrap()).unwrap();
    let rows = vec![
        row(json!({"id": 1, "name": "Oslo", "people": 709, "area": 454.0, "capital": true, "Seen on": "2024-02-01"})),
        row(json!({"id": 2, "name": "Rome", "people": 2748, "area": 1285.3, "capital": true, "Seen on": "2023-01-01"})),
        row(json!({"id": 3, "name": "Turin", "people": 841, "capital": false})),
    ];
    let place =
        TablePlace { workspace: Workspace::default(), collection: Collection::default(), table: "cities".to_owned() };
    tables.put(&place, Arc::clone(&schema), "s", rows).await.unwrap();
    tables
}

async fn ask_with(query: &str, variables: Value) -> Result<Value, String> {
    let request = GraphqlRequest {
        query: query.to_owned(),
        variables: variables.as_object().cloned().unwrap_or_default(),
        operation: None,
    };
    let place = (&Workspace::default(), &Collection::default());
    let answer = answer(&tables().await, place, &schemas(), &request).await;
    match answer.errors.first() {
        Some(error) => Err(error.message.clone()),
        None => Ok(Value::Object(answer.data.unwrap())),
    }
}

async fn ask(query: &str) -> Result<Value, String> {
    ask_with(query, Value::Null).await
}

async fn ids(query: &str) -> Vec<i64> {
    let answer = ask(query).await.unwrap();
    answer["cities"].as_array().unwrap().iter().map(|row| row["id"].as_i64().unwrap()).collect()
}

#[tokio::test]
async fn rows_have_the_fields_that_are_asked_for() {
    let answer = ask("{ cities(limit: 1) { name area kind: __typename again: name } __typename }").await.unwrap();
    let row = json!({"name": "Oslo", "area": 454.0, "kind": "CitiesType", "again": "Oslo"});
    assert_eq!(answer, json!({"cities": [row], "__typename": "Query"}));
    let missing = ask("{ cities(where: {id: {eq: 3}}) { area seen_on } }").await.unwrap();
    assert_eq!(missing, json!({"cities": [{"area": null, "seen_on": null}]}));
    assert_eq!(ask("{ odd_name { x } }").await.unwrap(), json!({"odd_name": []}));
}

#[tokio::test]
async fn filters_orders_and_limits_do_what_they_say() {
    assert_eq!(ids("{ cities(where: {people: {gt: 709, lte: 2748}}) { id } }").await, [2, 3]);
    assert_eq!(ids("{ cities(where: {name: {in: [\"Oslo\", \"Rome\"]}, area: {gt: 500}}) { id } }").await, [2]);
    assert_eq!(ids("{ cities(where: {name: {startsWith: \"T\"}}) { id } }").await, [3]);
    assert_eq!(ids("{ cities(where: {name: {not: \"Rome\"}}) { id } }").await, [1, 3]);
    assert_eq!(ids("{ cities(where: {name: {not_in: [\"Rome\"]}}) { id } }").await, [1, 3]);
    assert_eq!(ids("{ cities(where: {capital: {eq: false}}) { id } }").await, [3]);
    assert_eq!(ids("{ cities(where: {seen_on: {gte: \"2024-01-01\"}}) { id } }").await, [1]);
    assert_eq!(ids("{ cities(where: {people: {eq: null}, name: null}) { id } }").await, [1, 2, 3]);
    assert_eq!(ids("{ cities(order_by: \"people\", direction: DESC, limit: 2) { id } }").await, [2, 3]);
    assert_eq!(ids("{ cities(order_by: \"name\") { id } }").await, [1, 2, 3]);
    assert_eq!(ids("{ cities(limit: 0) { id } }").await, [] as [i64; 0]);
}

#[tokio::test]
async fn variables_fragments_and_directives_are_known() {
    let query = "query Q($least: Int = 800, $name: Boolean!, $unused: String) {
        cities(where: {people: {gte: $least}}) { ...Few name @include(if: $name) ... on CitiesType { area @skip(if: true) } }
    }
    fragment Few on CitiesType { id }";
    let answer = ask_with(query, json!({"name": false})).await.unwrap();
    assert_eq!(answer, json!({"cities": [{"id": 2}, {"id": 3}]}));
    let given = ask_with(query, json!({"least": "2000", "name": true})).await.unwrap();
    assert_eq!(given, json!({"cities": [{"id": 2, "name": "Rome"}]}), "numbers may come as texts");
    let unknown = ask("{ cities(limit: $n) { id } }").await.unwrap_err();
    assert!(unknown.contains("`$n` is not defined"), "{unknown}");
}

#[tokio::test]
async fn what_is_wrong_is_named_with_what_there_is() {
    for (query, said) in [
        ("{ towns { id } }", "there is no table `towns`; these are: `cities`, `odd_name`"),
        ("{ cities { size } }", "`cities` has no field `size`; these are: id, name, people, area, capital, seen_on"),
        ("{ cities }", "say which fields of `cities` are wanted"),
        ("{ cities(where: {size: {eq: 1}}) { id } }", "has no field `size`"),
        ("{ cities(where: {people: {contains: \"7\"}}) { id } }", "cannot be compared by `contains`; use eq, not"),
        ("{ cities(where: {people: {eq: \"many\"}}) { id } }", "\"many\" is no integer"),
        ("{ cities(where: {people: 7}) { id } }", "write people: {eq: …}"),
        ("{ cities(order_by: \"size\") { id } }", "has no field `size`"),
        ("{ cities(direction: UP) { id } }", "neither ASC nor DESC"),
        ("{ cities(first: 3) { id } }", "`first` is not known; these are: where, order_by"),
        ("{ cities(limit: -1) { id } }", "write a number from 0 on"),
        ("{ a: cities { id } a: cities { name } }", "two different things are called `a`"),
        ("{ cities { id { x } } }", "neither fields nor arguments"),
        ("mutation { cities { id } }", "only queries are answered"),
        ("{ __schema { types { name } } }", "introspection is not offered"),
        ("{ cities { id ", "arse error"),
        ("", "arse error"),
        ("query A { cities { id } } query B { cities { id } }", "name one of them"),
        ("{ cities { ...F } } fragment F on CitiesType { ...F }", "contains itself"),
        ("{ cities { ...F } } fragment F on Other { id }", "is not one of"),
        ("{ cities(limit: 99999999999999999999) { id } }", ""),
    ] {
        let error = ask(query).await.expect_err(query);
        assert!(error.contains(said), "{query}: {error}");
    }
}

#[tokio::test]
async fn hostile_queries_are_refused_at_once() {
    let deep = format!("{{ cities(where: {}1{}) {{ id }} }}", "{a: ".repeat(10_000), "}".repeat(10_000));
    assert!(ask(&deep).await.unwrap_err().contains("bytes") || ask(&deep).await.unwrap_err().contains("deeper"));
    let deep = format!("{}{}", "{ a ".repeat(40), "}".repeat(40));
    assert!(ask(&deep).await.unwrap_err().contains("nested deeper"), "{deep}");
    let lists = format!("{{ cities(limit: {}{}) {{ id }} }}", "[".repeat(1_000), "]".repeat(1_000));
    assert!(ask(&lists).await.unwrap_err().contains("nested deeper"));
    let aliases = (0..1_000).map(|n| format!("a{n}: cities {{ id }} ")).collect::<Vec<_>>().concat();
    assert!(ask(&format!("{{ {aliases} }}")).await.unwrap_err().contains("more than"));
    let columns = (0..2_500).map(|n| format!("a{n}: id ")).collect::<Vec<_>>().concat();
    assert!(ask(&format!("{{ cities {{ {columns} }} }}")).await.unwrap_err().contains("more than"));
    // Each fragment uses the next one twice: two to the power of forty fields.
    let bombs = (0..40)
        .map(|n| format!("fragment F{n} on CitiesType {{ ...F{} ...F{} }} ", n + 1, n + 1))
        .collect::<Vec<_>>()
        .concat();
    let bomb = format!("{{ cities {{ ...F0 }} }} {bombs} fragment F40 on CitiesType {{ id }}");
    assert!(ask(&bomb).await.unwrap_err().contains("more than 2000"));
    let long = format!("{{ cities(where: {{name: {{eq: \"{}\"}}}}) {{ id }} }}", "x".repeat(40_000));
    assert!(ask(&long).await.unwrap_err().contains("write at most 32768"));
    let text = "{ cities(where: {name: {eq: \"{{{{{{{{{{{{{{{{{{{{{{{{\\\"{\"}}) { id } } # {{{{{{{{{{{{{{{{{{{{{{{{";
    assert_eq!(ask(text).await.unwrap(), json!({"cities": []}), "brackets in texts are no nesting");
}

proptest::proptest! {
    /// Nothing that can be written is a reason to panic.
    #[test]
    fn any_text_ends(query in "[{}()\\[\\]:,$@!\"# a-c0-9.\\-\n]{0,80}") {
        let request = GraphqlRequest { query, ..GraphqlRequest::default() };
        drop(Prepared::new(&schemas(), &request));
    }
}

#[tokio::test]
async fn nobody_gets_more_than_a_thousand_rows_and_is_told() {
    let tables = MemoryTables::default();
    let schema = Arc::clone(&schemas()["cities"]);
    let rows = (0..1_200).map(|n| schema.row(json!({ "id": n }).as_object().unwrap()).unwrap()).collect();
    let (workspace, collection) = (Workspace::default(), Collection::default());
    let place = TablePlace { workspace, collection, table: "cities".to_owned() };
    tables.put(&place, Arc::clone(&schema), "s", rows).await.unwrap();
    let ask = async |limit: u64| {
        let request =
            GraphqlRequest { query: format!("{{ cities(limit: {limit}) {{ id }} }}"), ..GraphqlRequest::default() };
        let answer = answer(&tables, (&place.workspace, &place.collection), &schemas(), &request).await;
        (answer.data.unwrap()["cities"].as_array().unwrap().len(), answer.cut)
    };
    assert_eq!(ask(1_000).await, (1_000, Vec::new()));
    assert_eq!(ask(5_000).await, (1_000, vec!["cities".to_owned()]));
}
