//! Knowledge over HTTP, and as stock loaders import it.

use crate::house::{House, Setup};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;
use trellis_domain::Workspace;
use trellis_gateway::{Access, Identity, Token};

const LOAD: &str = "/api/v1/collections/history/knowledge";
const TRIPLES: &str = "/api/v1/flow/default/service/triples";

async fn load(house: &House, path: &str, kind: &str, body: &str) -> (u16, Value) {
    house.http("POST", path, &format!("Content-Type: {kind}\r\n"), body.as_bytes()).await
}

async fn found(house: &House, collection: &str) -> usize {
    let about = json!({"s": {"t": "i", "i": "urn:ada"}, "collection": collection});
    let (_, reply) = house.post(TRIPLES, &about).await;
    reply["response"].as_array().map_or(0, Vec::len)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_loaded_listed_found_and_removed() {
    let house = House::open().await;
    let (status, loaded) = load(&house, LOAD, "text/turtle; charset=utf-8", "<urn:ada> <urn:p> 1, 2, 1 .").await;
    assert_eq!((status, loaded), (200, json!({"read": 3, "new": 2})));
    assert_eq!(load(&house, LOAD, "text/turtle", "<urn:ada> <urn:p> 2 .").await.1, json!({"read": 1, "new": 0}));
    let (_, listed) = house.http("GET", "/api/v1/collections", "", b"").await;
    let expected = json!([{"collection": "history", "quads": 2, "sources": 1, "unfinished": []}]);
    let mut collections = listed["collections"].clone();
    let loaded_by = collections[0].as_object_mut().unwrap().remove("loaded_by").unwrap();
    assert_eq!((loaded_by.as_array().map(Vec::len), &loaded_by[0]["surface"]), (Some(1), &json!("api")));
    assert_eq!(collections, expected);
    assert_eq!((found(&house, "history").await, found(&house, "default").await), (2, 0));
    let listing = json!({"operation": "list-collections"});
    let (_, all) = house.post("/api/v1/collection-management", &listing).await;
    assert_eq!(all["collections"][1]["collection"], "history", "stock clients see it as well");
    assert_eq!(house.http("DELETE", LOAD, "", b"").await, (200, json!({"quads": 2})));
    assert_eq!(house.http("DELETE", LOAD, "", b"").await.0, 404);
    load(&house, LOAD, "text/turtle", "<urn:ada> <urn:p> 2 .").await;
    let delete = json!({"operation": "delete-collection", "collection": "history"});
    assert!(house.post("/api/v1/collection-management", &delete).await.1.get("error").is_none());
    assert_eq!(found(&house, "history").await, 0, "a collection takes its knowledge along");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_file_is_told() {
    let house = House::open().await;
    let told = async |path: &str, kind: &str, body: &str, status: u16, words: &str| {
        let reply = load(&house, path, kind, body).await;
        assert!(reply.0 == status && reply.1["error"]["message"].as_str().unwrap().contains(words), "{reply:?}");
    };
    told(LOAD, "text/turtle", "<urn:s> <urn:p> .", 422, "an upload:1:17").await;
    told(LOAD, "text/plain", "<urn:s> <urn:p> 1 .", 400, "n-quads (.nq)").await;
    told(&format!("{LOAD}?base=here"), "text/turtle", "<a> <b> 1 .", 422, "not an absolute IRI").await;
    told("/api/v1/collections/no%20name%2F/knowledge", "text/turtle", "", 400, "").await;
    told(LOAD, "text/turtle", "<urn:trustgraph:agent:S/end> <urn:p> 1 .", 422, "node of a run").await;
    told(LOAD, "application/ld+json", "{\"@context\": \"http://x/\", \"a\": 1}", 422, "not fetched").await;
    let (_, listed) = house.http("GET", "/api/v1/collections", "", b"").await;
    assert_eq!(listed["collections"], json!([]), "nothing is left of it");
}

type ImportSocket = tokio_tungstenite::WebSocketStream<tokio_tungstenite::MaybeTlsStream<tokio::net::TcpStream>>;

async fn import(house: &House, kind: &str, query: &str) -> Result<ImportSocket, String> {
    let address = format!("ws://{}/api/v1/flow/default/import/{kind}{query}", house.address);
    connect_async(address).await.map(|(socket, _)| socket).map_err(|error| error.to_string())
}

fn batch(subject: &str, object: &str) -> Message {
    let triple = json!({"s": {"t": "i", "i": subject}, "p": {"t": "i", "i": "urn:p"}, "o": {"t": "l", "v": object}});
    let metadata = json!({"id": "people", "metadata": [], "collection": "history"});
    Message::text(json!({"metadata": metadata, "triples": [triple]}).to_string())
}

/// Closes as the stock client does, and waits for the answer.
async fn close(mut socket: ImportSocket) {
    socket.close(None).await.unwrap();
    while let Some(Ok(_)) = socket.next().await {}
}

#[tokio::test(flavor = "multi_thread")]
async fn stock_loaders_import_triples() {
    let house = House::open().await;
    let mut socket = import(&house, "triples", "?workspace=default").await.unwrap();
    for n in 0..50 {
        socket.send(batch("urn:ada", &format!("{n}"))).await.unwrap();
    }
    socket.send(batch("urn:trustgraph:agent:S/end", "forged")).await.unwrap();
    close(socket).await;
    assert_eq!(found(&house, "history").await, 50, "what cannot be kept is left out");
    let (_, listed) = house.http("GET", "/api/v1/collections", "", b"").await;
    assert_eq!(listed["collections"][0]["unfinished"], json!([]), "closing finishes it");
    assert_eq!(listed["collections"][0]["loaded_by"][0]["surface"], "trustgraph-socket");
    let mut contexts = import(&house, "entity-contexts", "").await.unwrap();
    contexts.send(Message::text("{\"entities\": []}")).await.unwrap();
    close(contexts).await;
    assert!(import(&house, "graph-embeddings", "").await.unwrap_err().contains("404"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_breaks_leaves_an_unfinished_source_and_nonsense_is_told() {
    let house = House::open().await;
    let mut broken = import(&house, "triples", "").await.unwrap();
    broken.send(batch("urn:ada", "1")).await.unwrap();
    let mut nonsense = import(&house, "triples", "").await.unwrap();
    nonsense.send(Message::text("nonsense")).await.unwrap();
    assert!(matches!(nonsense.next().await, Some(Ok(Message::Close(Some(_))))), "it is closed with a reason");
    drop(broken);
    let unfinished = async || {
        let (_, listed) = house.http("GET", "/api/v1/collections", "", b"").await;
        listed["collections"][0]["unfinished"].clone()
    };
    while unfinished().await.is_null() {
        tokio::task::yield_now().await;
    }
    assert_eq!(unfinished().await, json!(["people"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn imports_need_a_token_where_there_are_some() {
    let access = Access::Tokens(vec![(Token::new("al"), Identity::user("alice", [Workspace::new("acme").unwrap()]))]);
    let house = House::with(Setup { access, ..Setup::default() }).await;
    assert!(import(&house, "triples", "").await.unwrap_err().contains("401"));
    assert!(import(&house, "triples", "?token=al&workspace=default").await.unwrap_err().contains("403"));
    close(import(&house, "triples", "?token=al").await.unwrap()).await;
}
