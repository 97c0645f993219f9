use super::*;
use crate::memory::MemoryTables;
use crate::memory::scripted::ScriptedPrompter;
use crate::permits::Permit;
use crate::ports::{BoxFuture, EmbedError, Embedder, PromptCall, RealWorld, TablePlace, Tables, TextRole, ValueVector};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::sync::Arc;
use trellis_domain::config::{Settings, StoredItem};
use trellis_domain::table::TableSchema;
use trellis_domain::{Collection, Scope, Workspace};

fn settings() -> Arc<Settings> {
    let item = |kind: &str, key: &str, value: Value| StoredItem {
        kind: kind.to_owned(),
        key: key.to_owned(),
        value: value.to_string(),
    };
    let fields = json!([{"name": "name", "type": "string", "primary_key": true, "indexed": true}, {"name": "size", "type": "integer"}]);
    let prompt = |id: &str| item("prompt", &format!("template.{id}"), json!({"prompt": "x", "response-type": "json"}));
    let items = [
        item("schema", "cities", json!({"fields": fields})),
        item("schema", "rivers", json!({"fields": fields})),
        prompt(SELECTION),
        prompt(GRAPHQL),
    ];
    Arc::new(Settings::take(1, items).0)
}

fn place(table: &str) -> TablePlace {
    TablePlace { workspace: Workspace::default(), collection: Collection::default(), table: table.to_owned() }
}

async fn loaded(names: &[&str]) -> Arc<MemoryTables> {
    let tables = Arc::new(MemoryTables::default());
    for name in names {
        let schema = Arc::clone(&settings().schemas[*name]);
        let rows = vec![schema.row(json!({"name": format!("one of {name}"), "size": 7}).as_object().unwrap()).unwrap()];
        tables.put(&place(name), schema, "s", rows).await.unwrap();
    }
    tables
}

fn call(question: &str) -> QuestionCall {
    QuestionCall {
        scope: Scope::default(),
        settings: settings(),
        question: question.to_owned(),
        rows: 50,
        timeout: None,
        max_reply_bytes: 10_000,
        labels: None,
        permit: Permit::default(),
    }
}

/// A model that says these things in turn, and what it was asked.
fn model(replies: &[&str]) -> (Arc<ScriptedPrompter>, Arc<Mutex<Vec<PromptCall>>>) {
    let asked: Arc<Mutex<Vec<PromptCall>>> = Arc::default();
    let replies: Vec<String> = replies.iter().map(|reply| (*reply).to_owned()).collect();
    let heard = Arc::clone(&asked);
    let prompter = ScriptedPrompter::new(move |call| {
        let mut heard = heard.lock();
        heard.push(call.clone());
        replies.get(heard.len() - 1).cloned().ok_or_else(|| "nothing more to say".to_owned())
    });
    (Arc::new(prompter), asked)
}

fn asker(prompter: Arc<ScriptedPrompter>, tables: Arc<MemoryTables>) -> Asker {
    Asker { prompter, tables, world: Arc::new(RealWorld) }
}

#[tokio::test]
async fn a_question_becomes_a_query_and_rows() {
    let (prompter, heard) = model(&[r#"["rivers"]"#, r#"{"query": "{ rivers { name size } }", "confidence": 0.9}"#]);
    let asking = asker(prompter, loaded(&["cities", "rivers"]).await);
    let found = asking.answer(call("How long?"), &Collection::default()).await.unwrap();
    assert_eq!(json!(found.answer.data), json!({"rivers": [{"name": "one of rivers", "size": 7}]}));
    assert_eq!((found.calls.len(), found.generated.confidence), (2, 0.9));
    let heard = heard.lock().clone();
    assert_eq!((heard[0].id.as_str(), heard[1].id.as_str()), (SELECTION, GRAPHQL));
    assert_eq!(heard[1].variables["schemas"].as_array().unwrap().len(), 1, "only what was chosen is shown");
    let first = &heard[0].variables["mark"];
    assert_eq!(first.as_str().unwrap().len(), 8);
    assert_eq!(&heard[1].variables["mark"], first, "one mark for all that is asked");
    let (prompter, again) = model(&[r#"["rivers"]"#, r#"{"query": "{ rivers { name } }"}"#]);
    asker(prompter, loaded(&["cities", "rivers"]).await)
        .answer(call("How long?"), &Collection::default())
        .await
        .unwrap();
    assert_ne!(&again.lock()[0].variables["mark"], first, "and another for the next question");
}

#[tokio::test]
async fn one_table_needs_no_choice_and_tables_without_rows_are_not_offered() {
    let (prompter, heard) = model(&[r#"{"query": "{ cities { name } }"}"#]);
    let asking = asker(prompter, loaded(&["cities"]).await);
    let found = asking.answer(call("Which?"), &Collection::default()).await.unwrap();
    assert_eq!(found.calls.len(), 1);
    assert_eq!(heard.lock()[0].variables["schemas"][0]["name"], "cities");
    let elsewhere = Collection::new("elsewhere").unwrap();
    let error = asking.answer(call("Which?"), &elsewhere).await.unwrap_err();
    assert_eq!(error.to_string(), "the collection `elsewhere` has no tables");
}

#[tokio::test]
async fn a_wrong_query_is_told_once() {
    let (prompter, heard) = model(&[r#"{"query": "{ cities { height } }"}"#, r#"{"query": "{ cities { size } }"}"#]);
    let asking = asker(prompter, loaded(&["cities"]).await);
    let found = asking.answer(call("How high?"), &Collection::default()).await.unwrap();
    assert_eq!(json!(found.answer.data), json!({"cities": [{"size": 7}]}));
    let problem = heard.lock()[1].variables["problem"].to_string();
    assert!(problem.contains("no field `height`"), "{problem}");
    let (prompter, heard) = model(&[r#"{"query": "{ cities { height } }"}"#; 3]);
    let asking = asker(prompter, loaded(&["cities"]).await);
    let error = asking.answer(call("How high?"), &Collection::default()).await.unwrap_err();
    assert!(error.reason.contains("no field `height`") && error.reason.contains("{ cities { height } }"), "{error}");
    assert_eq!((error.calls.len(), heard.lock().len()), (2, 2), "all that was asked is told, and nothing a third time");
}

#[tokio::test]
async fn a_query_asks_for_no_more_rows_than_are_wanted() {
    let schema = Arc::clone(&settings().schemas["cities"]);
    let tables = loaded(&["cities"]).await;
    let many = (0..100).map(|n| schema.row(json!({"name": format!("c{n}")}).as_object().unwrap()).unwrap()).collect();
    tables.put(&place("cities"), schema, "s", many).await.unwrap();
    let (prompter, _) = model(&[r#"{"query": "{ cities(limit: 1000) { name } }"}"#]);
    let found = asker(prompter, tables).answer(call("All?"), &Collection::default()).await.unwrap();
    assert_eq!(found.answer.data.unwrap()["cities"].as_array().unwrap().len(), 50);
}

#[tokio::test]
async fn a_model_that_does_not_answer_is_told() {
    let (prompter, _) = model(&[]);
    let asking = asker(prompter, loaded(&["cities"]).await);
    let error = asking.answer(call("?"), &Collection::default()).await.unwrap_err();
    assert!(error.reason.contains("nothing more to say"), "{error}");
    let (prompter, _) = model(&["I would rather not."]);
    let asking = asker(prompter, loaded(&["cities"]).await);
    let error = asking.answer(call("?"), &Collection::default()).await.unwrap_err();
    assert!(error.reason.contains(GRAPHQL), "{error}");
}

/// Letters of a text, counted.
#[derive(Debug, Default)]
struct Letters(Mutex<Vec<String>>);

impl Embedder for Letters {
    fn model(&self) -> &'static str {
        "test/letters"
    }

    fn embed(&self, texts: Vec<String>, _role: TextRole) -> BoxFuture<'_, Result<Vec<Vec<f32>>, EmbedError>> {
        let count =
            |text: &String, letter: char| text.chars().filter(|found| *found == letter).map(|_| 1.0).sum::<f32>();
        let vectors = texts.iter().map(|text| vec![count(text, 'a'), count(text, 'o'), 0.1]).collect();
        self.0.lock().extend(texts);
        Box::pin(std::future::ready(Ok(vectors)))
    }
}

#[tokio::test]
async fn rows_are_found_by_meaning_as_they_are_now() {
    let (tables, letters): (Arc<dyn Tables>, _) = (Arc::new(MemoryTables::default()), Arc::new(Letters::default()));
    let item =
        json!({"fields": [{"name": "id", "type": "integer", "primary_key": true}, {"name": "name", "indexed": true}]});
    let schema = Arc::new(TableSchema::from_json("cities", item.as_object().unwrap()).unwrap());
    let row = |id: u64, name: &str| schema.row(json!({"id": id, "name": name}).as_object().unwrap());
    let loader = TableLoader::new(Arc::clone(&tables), Some(Arc::clone(&letters) as _));
    let load = async |rows: Vec<_>| {
        loader.load(place("cities"), Arc::clone(&schema), "s".to_owned(), rows.into_iter(), |_| {}).await.unwrap()
    };
    load(vec![row(1, "Ankara"), row(2, "Oslo"), row(3, "Oslo")]).await;
    load(vec![row(1, "Ankara"), row(2, "Oslo")]).await;
    assert_eq!(*letters.0.lock(), ["Ankara", "Oslo"], "a value gets a vector once");
    let finder = RowFinder { tables: Arc::clone(&tables), embedder: Arc::clone(&letters) as _ };
    let texts = async |text: &str| {
        let found = finder.find(&place("cities"), None, text, 5).await.unwrap();
        found.into_iter().map(|value| value.text).collect::<Vec<_>>()
    };
    assert_eq!(texts("aaa").await, ["Ankara", "Oslo"]);
    load(vec![row(1, "Lyon")]).await;
    assert_eq!(texts("aaa").await, ["Lyon", "Oslo"], "nobody has the old value any more");
    let bare: Arc<dyn Tables> = loaded(&["cities"]).await;
    let finder = RowFinder { tables: bare, embedder: letters };
    let error = finder.find(&place("cities"), None, "x", 5).await.unwrap_err();
    assert!(error.to_string().contains("no vectors of test/letters; load it again"), "{error}");
}

#[tokio::test]
async fn numbers_are_found_by_meaning_too() {
    let (tables, letters): (Arc<dyn Tables>, _) = (Arc::new(MemoryTables::default()), Arc::new(Letters::default()));
    let item = json!({
        "fields": [{"name": "id", "type": "integer", "primary_key": true}, {"name": "year", "type": "integer"}],
        "vector-indexes": ["year"],
    });
    let schema = Arc::new(TableSchema::from_json("cities", item.as_object().unwrap()).unwrap());
    let row = |id: u64, year: u64| schema.row(json!({"id": id, "year": year}).as_object().unwrap());
    let loader = TableLoader::new(Arc::clone(&tables), Some(Arc::clone(&letters) as _));
    let rows = vec![row(1, 1815), row(2, 1852)].into_iter();
    loader.load(place("cities"), Arc::clone(&schema), "s".to_owned(), rows, |_| {}).await.unwrap();
    let finder = RowFinder { tables, embedder: letters };
    let found = finder.find(&place("cities"), None, "1815", 5).await.unwrap();
    assert_eq!(found.iter().map(|value| value.text.as_str()).collect::<Vec<_>>(), ["1815", "1852"]);
}

#[tokio::test]
async fn rows_of_a_table_that_has_all_its_vectors_are_loaded_without() {
    let (tables, letters) = (loaded(&["cities"]).await, Arc::new(Letters::default()));
    let vector =
        |number: u64| ValueVector { field: "name".to_owned(), text: format!("{number}"), vector: vec![1.0, 1.0, 1.0] };
    let all = (1..MOST_VECTORS).map(vector).collect();
    assert_eq!(tables.put_vectors(&place("cities"), "test/letters", all).await.unwrap(), 0);
    let schema = Arc::clone(&settings().schemas["cities"]);
    let row = |name: &str| schema.row(json!({"name": name}).as_object().unwrap());
    let loader = TableLoader::new(tables, Some(Arc::clone(&letters) as _));
    let rows = vec![row("Ankara"), row("Oslo"), row("Rome")].into_iter();
    let came = loader.load(place("cities"), Arc::clone(&schema), "s".to_owned(), rows, |_| {}).await.unwrap();
    assert_eq!(came, LoadedRows { rows: 3, new: 3, changed: 0, without_vectors: 2 });
    assert_eq!(*letters.0.lock(), ["Ankara"], "nothing is asked for that nobody keeps");
}
