//! Rows that stock clients load and ask, in GraphQL, in words and by meaning.

use acceptance::Stage;
use serde_json::json;

const CITIES: &str = "id,city,inhabitants\n1,Oslo,709000\n2,Abba,2748000\n3,Turin,many\n4,Turin,841000\n";

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn rows_are_loaded_and_asked_by_the_commands() {
    let stage = Stage::with(&[("TRELLIS_EMBEDDING_MODEL", "openai/letters")]).await;
    let folder = tempfile::TempDir::new().unwrap();
    let write = |name: &str, text: String| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let schema = json!({"name": "cities", "description": "Cities", "fields": [
        {"name": "id", "type": "integer", "primary_key": true},
        {"name": "name", "type": "string", "indexed": true},
        {"name": "people", "type": "integer"},
    ]});
    let put = ["--type", "schema", "--key", "cities", "--value", &schema.to_string()];
    stage.tg("tg-put-config-item", &put).await.ok();
    let mapping =
        |source: &str, target: &str| json!({"source_field": source, "target_field": target, "transforms": []});
    let descriptor = json!({
        "format": {"type": "csv", "encoding": "utf-8", "options": {"header": true}},
        "mappings": [mapping("id", "id"), mapping("city", "name"), mapping("inhabitants", "people")],
        "output": {"schema_name": "cities", "options": {"confidence": 1.0}},
    });
    let (input, descriptor) = (write("cities.csv", CITIES.to_owned()), write("cities.json", descriptor.to_string()));
    let load = ["--load", "--input", &input, "--descriptor", &descriptor, "--collection", "world"];
    for _ in 0..2 {
        stage.tg("tg-load-structured-data", &load).await.ok().says(&["Successfully imported: 4"]);
    }
    // The row whose number is none was left out; the others are there once.
    stage.trellis(&["tables", "list"]).await.ok().says(&["world", "cities", "3", "0"]);
    let query = "query Q($least: Int) { cities(where: {people: {gt: $least}}, order_by: \"people\") { name people } }";
    let ask = ["-q", query, "-C", "world", "-v", "{\"least\": 800000}", "--format", "csv"];
    stage.tg("tg-invoke-rows-query", &ask).await.ok().says(&["name,people", "Turin,841000", "Abba,2748000"]);
    let wrong = ["-q", "{ towns { id } }", "-C", "world"];
    stage.tg("tg-invoke-rows-query", &wrong).await.notes(&["there is no table `towns`"]);
    let question = ["-q", "Which cities are large?", "--collection", "world", "--format", "json"];
    let found = stage.tg("tg-invoke-structured-query", &question).await.ok().json();
    assert_eq!(found, json!({"cities": [{"name": "Abba", "people": 2_748_000}]}));
    let question = ["-q", "Which cities are large?", "--format", "summary"];
    let told = stage.tg("tg-invoke-nlp-query", &question).await.ok();
    told.says(&["cities(where: {people: {gt: 1000000}})", "Detected Schemas: cities", "Confidence: 90.00%"]);
    let near = ["-s", "cities", "-c", "world", "-l", "1", "abab"];
    stage.tg("tg-invoke-row-embeddings", &near).await.ok().says(&["Index: name", "Values: ['Abba']", "Score: 1.0000"]);
    stage.tg("tg-list-collections", &[]).await.ok().says(&["world"]);
    stage.tg("tg-delete-collection", &["world", "-y"]).await.ok().says(&["deleted successfully"]);
    stage.trellis(&["tables", "list"]).await.ok().never_says("cities");
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn a_file_is_diagnosed_step_by_step_and_loaded_without_being_described() {
    let stage = Stage::open().await;
    let folder = tempfile::TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (input, descriptor) = (path("cities.csv"), path("descriptor.json"));
    std::fs::write(&input, "id,name,people\n1,Oslo,709000\n2,Abba,2748000\n").unwrap();
    let fields =
        ["id", "name", "people"].map(|name| json!({"name": name, "type": "string", "primary_key": name == "id"}));
    let schema = json!({"name": "cities", "description": "Cities", "fields": fields}).to_string();
    stage.tg("tg-put-config-item", &["--type", "schema", "--key", "cities", "--value", &schema]).await.ok();
    let step = async |arguments: &[&str]| {
        stage.tg("tg-load-structured-data", &[&["-i", &input], arguments].concat()).await.ok()
    };
    step(&["--discover-schema"]).await.says(&["Best matching schema: cities"]);
    step(&["--generate-descriptor", "--schema-name", "cities", "-o", &descriptor]).await;
    step(&["--parse-only", "-d", &descriptor, "-o", &path("parsed.json")]).await;
    assert!(std::fs::read_to_string(path("parsed.json")).unwrap().contains("Abba"));
    step(&["--load", "-d", &descriptor]).await.says(&["Successfully imported: 2"]);
    step(&["--auto", "--dry-run"]).await.says(&["Dry run successful!"]);
    step(&["--auto"]).await.says(&["Auto-selected schema: cities", "Records imported: 2"]);
    let query = ["-q", "{ cities(order_by: \"id\") { name } }", "--format", "csv"];
    stage.tg("tg-invoke-rows-query", &query).await.ok().says(&["Oslo", "Abba"]);
    stage.python("sdk_diagnosis.py").await.ok().says(&["csv", "['cities']", "NAME -> name"]);
}
