//! Tables over HTTP, and as stock loaders import rows.

use crate::house::{House, Setup};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;
use trellis_domain::Workspace;
use trellis_gateway::{Access, Identity, ParquetReader, Token};
use trellis_tabular::Program;

const LOAD: &str = "/api/v1/tables/world/cities/rows";
const ROWS: &str = "/api/v1/flow/default/service/rows";

async fn put_schema(house: &House) {
    let fields = json!([{"name": "id", "type": "integer", "primary_key": true}, {"name": "name", "indexed": true}]);
    let value = json!({"name": "cities", "fields": fields}).to_string();
    let put = json!({"operation": "put", "values": [{"type": "schema", "key": "cities", "value": value}]});
    let (status, reply) = house.post("/api/v1/config", &put).await;
    assert!(status == 200 && reply.get("error").is_none(), "{reply}");
}

async fn load(house: &House, path: &str, body: &str) -> (u16, Value) {
    house.http("POST", path, "Content-Type: text/csv\r\n", body.as_bytes()).await
}

async fn names(house: &House, collection: &str) -> Value {
    let query = json!({"query": "{ cities { name } }", "collection": collection});
    house.post(ROWS, &query).await.1["data"]["cities"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_loaded_listed_asked_and_removed() {
    let house = House::open().await;
    let (status, refused) = load(&house, LOAD, "id,name\n1,Oslo\n").await;
    assert!(status == 404 && refused.to_string().contains("there is no schema `cities`"), "{refused}");
    put_schema(&house).await;
    let loaded = load(&house, LOAD, "id,name\n1,Oslo\n2,Rome\n").await;
    assert_eq!(loaded, (200, json!({"rows": 2, "new": 2, "changed": 0})));
    assert_eq!(load(&house, LOAD, "id,name\n2,Roma\n").await.1, json!({"rows": 1, "new": 0, "changed": 1}));
    let (_, listed) = house.http("GET", "/api/v1/tables", "", b"").await;
    let expected = json!([{"collection": "world", "table": "cities", "rows": 2, "unfinished": []}]);
    let mut tables = listed["tables"].clone();
    let loaded_by = tables[0].as_object_mut().unwrap().remove("loaded_by").unwrap();
    assert_eq!((loaded_by.as_array().map(Vec::len), &loaded_by[0]["surface"]), (Some(1), &json!("api")));
    assert_eq!(tables, expected);
    assert_eq!(names(&house, "world").await, json!([{"name": "Oslo"}, {"name": "Roma"}]));
    assert_eq!(names(&house, "default").await, json!([]));
    let (status, wrong) = load(&house, LOAD, "id,name\n3,Bern\nx,Graz\n").await;
    assert!(status == 422 && wrong.to_string().contains("an upload:3: field `id`: `x` is no integer"), "{wrong}");
    assert_eq!(names(&house, "world").await.as_array().unwrap().len(), 3, "what came before it stays");
    let (_, unknown) = load(&house, &format!("{LOAD}?format=avro"), "").await;
    assert!(unknown.to_string().contains("csv, tsv, jsonl, parquet"), "{unknown}");
    let (status, without) = load(&house, &format!("{LOAD}?format=parquet"), "PAR1").await;
    assert!(status == 400 && without.to_string().contains("no Parquet file can be read here"), "{without}");
    let listing = json!({"operation": "list-collections"});
    let (_, all) = house.post("/api/v1/collection-management", &listing).await;
    assert_eq!(all["collections"][1]["collection"], "world", "stock clients see it as well");
    let table = "/api/v1/tables/world/cities";
    assert_eq!(house.http("DELETE", table, "", b"").await, (200, json!({"rows": 3})));
    assert_eq!(house.http("DELETE", table, "", b"").await.0, 404);
    load(&house, LOAD, "id,name\n1,Oslo\n").await;
    let delete = json!({"operation": "delete-collection", "collection": "world"});
    assert!(house.post("/api/v1/collection-management", &delete).await.1.get("error").is_none());
    assert_eq!(names(&house, "world").await, json!([]), "a collection takes its tables along");
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_imported_over_a_socket_of_their_own() {
    let house = House::open().await;
    put_schema(&house).await;
    let address = format!("ws://{}/api/v1/flow/default/import/rows", house.address);
    let (mut socket, _) = connect_async(&address).await.unwrap();
    let batch = |schema: &str, values: Value| {
        let metadata = json!({"id": "parsed-1", "metadata": [], "collection": "world"});
        let batch = json!({"metadata": metadata, "schema_name": schema, "values": values, "confidence": 0.9});
        Message::text(batch.to_string())
    };
    let several =
        json!([{"id": "1", "name": "Oslo"}, {"id": "many", "name": "wrong"}, "no row", {"id": "2", "name": ""}]);
    socket.send(batch("cities", several)).await.unwrap();
    socket.send(batch("cities", json!({"id": "3", "name": "Rome"}))).await.unwrap();
    socket.send(batch("unknown", json!([{"id": "4"}]))).await.unwrap();
    socket.close(None).await.unwrap();
    while let Some(Ok(_)) = socket.next().await {}
    assert_eq!(names(&house, "world").await, json!([{"name": "Oslo"}, {"name": null}, {"name": "Rome"}]));
    let (_, listed) = house.http("GET", "/api/v1/tables", "", b"").await;
    assert_eq!(listed["tables"][0]["unfinished"], json!([]), "closing finishes it");
    assert_eq!(listed["tables"][0]["loaded_by"][0]["surface"], "trustgraph-socket");
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_of_others_are_not_there() {
    let users = ["ann", "bob"].map(|name| {
        let identity = Identity::user(name, [Workspace::new(name).unwrap()]);
        (Token::new(format!("{name}-token")), identity)
    });
    let house = House::with(Setup { access: Access::Tokens(users.into()), ..Setup::default() }).await;
    let fields = json!([{"name": "id", "type": "integer", "primary_key": true}]);
    let value = json!({"name": "cities", "fields": fields}).to_string();
    let put = json!({"operation": "put", "values": [{"type": "schema", "key": "cities", "value": value}]}).to_string();
    let as_user = |name: &str| format!("Authorization: Bearer {name}-token\r\nContent-Type: text/csv\r\n");
    for name in ["ann", "bob"] {
        let (status, reply) = house.http("POST", "/api/v1/config", &as_user(name), put.as_bytes()).await;
        assert_eq!(status, 200, "{reply}");
    }
    let (status, loaded) = house.http("POST", LOAD, &as_user("ann"), b"id\n1\n").await;
    assert_eq!(status, 200, "{loaded}");
    let count = async |name: &str| {
        let query = json!({"query": "{ cities { id } }", "collection": "world"}).to_string();
        house.http("POST", ROWS, &as_user(name), query.as_bytes()).await.1["data"]["cities"].as_array().unwrap().len()
    };
    assert_eq!((count("ann").await, count("bob").await), (1, 0));
    assert_eq!(house.http("GET", "/api/v1/tables", &as_user("bob"), b"").await.1["tables"], json!([]));
    let query = json!({"query": "{ cities { id } }", "collection": "world", "workspace": "ann"}).to_string();
    let (_, denied) = house.http("POST", ROWS, &as_user("bob"), query.as_bytes()).await;
    assert!(denied.get("data").is_none(), "{denied}");
    assert_eq!(house.http("DELETE", "/api/v1/tables/world/cities", &as_user("bob"), b"").await.0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_requests_are_told() {
    let house = House::open().await;
    put_schema(&house).await;
    let told = async |service: &str, request: Value, words: &str| {
        let (_, reply) = house.post(&format!("/api/v1/flow/default/service/{service}"), &request).await;
        assert!(reply.to_string().contains(words), "{service}: {reply}");
    };
    told("rows", json!({}), "the member `query` is missing").await;
    told("rows", json!({"query": "{ cities { nothing } }"}), "has no field `nothing`").await;
    told("rows", json!({"query": "{".repeat(200)}), "nested deeper").await;
    told("structured-query", json!({"question": "?"}), "has no tables").await;
    told("nlp-query", json!({}), "the member `question` is missing").await;
    told("row-embeddings", json!({"schema_name": "cities"}), "the member `vector` is missing").await;
    told("row-embeddings", json!({"schema_name": "cities", "vector": ["x"]}), "no number").await;
    told("row-embeddings", json!({"schema_name": "cities", "vector": [1]}), "TRELLIS_EMBEDDING_MODEL").await;
}

/// Says of every file that it is a table with one row.
fn one_row() -> ParquetReader {
    let columns = r#"[{"name":"id","type":"integer"},{"name":"name","type":"string"}]"#;
    let script = format!(r#"cat >/dev/null; printf '\002%s\n%s\n' '{columns}' '{{"id":1,"name":"Oslo"}}'"#);
    let arguments = vec!["-c".into(), script.into()];
    let program = Program { path: "/bin/sh".into(), arguments, variables: Vec::new() };
    ParquetReader { program, folder: std::env::temp_dir(), patience: Duration::from_millis(200) }
}

/// Each Parquet file takes a process and room on disk for as long as it is loaded, and there are two places in all.
#[tokio::test(flavor = "multi_thread")]
async fn a_parquet_file_that_does_not_come_keeps_no_other_workspace_waiting() {
    let user = |name: &str| Identity::user(name, [Workspace::new(name).unwrap()]);
    let access = Access::Tokens(["mine", "other"].map(|name| (Token::new(name), user(name))).into());
    let house = House::with(Setup { parquet: Some(one_row()), access, ..Setup::default() }).await;
    let who = |name: &str| format!("Authorization: Bearer {name}\r\n");
    let fields = json!([{"name": "id", "type": "integer", "primary_key": true}, {"name": "name", "indexed": true}]);
    let item =
        json!({"type": "schema", "key": "cities", "value": json!({"name": "cities", "fields": fields}).to_string()});
    for name in ["mine", "other"] {
        let body = json!({"items": [item]}).to_string();
        let path = format!("/api/v1/configuration?workspace={name}");
        let (status, said) = house.http("POST", &path, &who(name), body.as_bytes()).await;
        assert_eq!(status, 200, "{said}");
    }
    let path = |name: &str| format!("{LOAD}?format=parquet&workspace={name}");
    let load = async |name: &str| house.http("POST", &path(name), &who(name), b"PAR1").await;
    let mut slow = TcpStream::connect(&house.address).await.unwrap();
    let head = format!("POST {} HTTP/1.1\r\nHost: {}\r\n{}", path("mine"), house.address, who("mine"));
    slow.write_all(format!("{head}Connection: close\r\nContent-Length: 4\r\n\r\nPA").as_bytes()).await.unwrap();
    // Its own workspace is told to come again, once the slow one has its turn.
    let refused = async {
        loop {
            let (status, said) = load("mine").await;
            if status == 429 {
                return said;
            }
        }
    };
    let refused = tokio::time::timeout(Duration::from_secs(30), refused).await.expect("two are loaded at once");
    assert!(refused.to_string().contains("load this one when another is done"), "{refused}");
    let (status, other) = load("other").await;
    assert_eq!((status, &other["rows"]), (200, &json!(1)), "{other}");
    slow.write_all(b"R1").await.unwrap();
    let mut reply = String::new();
    slow.read_to_string(&mut reply).await.unwrap();
    assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
    assert_eq!(load("mine").await.0, 200);
    house.shut().await;
}
