//! Collections, as the stock commands list, set and delete them.

use crate::house::House;
use serde_json::{Value, json};

async fn ask(house: &House, request: Value) -> Value {
    let (status, reply) = house.post("/api/v1/collection-management", &request).await;
    assert_eq!(status, 200, "{reply}");
    reply
}

fn usual() -> Value {
    json!({"collection": "default", "name": "default", "description": "", "tags": []})
}

#[tokio::test]
async fn collections_are_set_listed_and_deleted() {
    let house = House::open().await;
    let listing = json!({"operation": "list-collections", "workspace": "default"});
    assert_eq!(ask(&house, listing.clone()).await, json!({"timestamp": "", "collections": [usual()]}));
    let papers =
        json!({"collection": "papers", "name": "papers", "description": "about trellises", "tags": ["a", "b"]});
    let update = json!({"operation": "update-collection", "collection": "papers", "description": "about trellises", "tags": ["a", "b"]});
    assert_eq!(ask(&house, update).await["collections"], json!([papers]), "the updated one");
    let renamed =
        ask(&house, json!({"operation": "update-collection", "collection": "papers", "name": "Papers"})).await;
    assert_eq!(renamed["collections"][0]["tags"], json!(["a", "b"]), "what is not mentioned stays");
    let all = ask(&house, listing.clone()).await["collections"].clone();
    assert_eq!((all[0].clone(), &all[1]["name"], all.as_array().unwrap().len()), (usual(), &json!("Papers"), 2));
    for (tags, found) in [(json!(["b", "z"]), 1), (json!(["z"]), 0), (json!([]), 2)] {
        let filtered = json!({"operation": "list-collections", "tag_filter": tags});
        assert_eq!(ask(&house, filtered).await["collections"].as_array().unwrap().len(), found);
    }
    let item = json!({"operation": "list", "type": "collection"});
    assert_eq!(house.post("/api/v1/config", &item).await.1["directory"], json!(["papers"]), "configuration items");
    let delete = json!({"operation": "delete-collection", "collection": "papers"});
    assert_eq!(ask(&house, delete.clone()).await, json!({"timestamp": "", "collections": []}));
    assert_eq!(ask(&house, delete).await["error"]["message"], "Collection not found: papers");
    assert_eq!(ask(&house, listing).await["collections"], json!([usual()]));
}

#[tokio::test]
async fn the_default_collection_can_be_described_and_never_goes() {
    let house = House::open().await;
    let update = json!({"operation": "update-collection", "collection": "default", "name": "All", "tags": ["t"]});
    assert_eq!(ask(&house, update).await["collections"][0]["name"], "All");
    let delete = json!({"operation": "delete-collection", "collection": "default"});
    assert!(ask(&house, delete).await["error"]["message"].as_str().unwrap().contains("always there"));
    let listed = ask(&house, json!({"operation": "list-collections"})).await;
    assert_eq!(listed["collections"][0]["name"], "All");
}

#[tokio::test]
async fn an_item_that_somebody_wrote_by_hand_does_not_hide_the_others() {
    let house = House::open().await;
    let values = json!([
        {"type": "collection", "key": "bare", "value": "not JSON"},
        {"type": "collection", "key": "no good name/", "value": "{}"},
        {"type": "collection", "key": "half", "value": "{\"description\": \"d\", \"user\": \"u\"}"},
    ]);
    house.post("/api/v1/config", &json!({"operation": "put", "values": values})).await;
    let listed = ask(&house, json!({"operation": "list-collections"})).await["collections"].clone();
    let half = json!({"collection": "half", "name": "half", "description": "d", "tags": []});
    let bare = json!({"collection": "bare", "name": "bare", "description": "", "tags": []});
    assert_eq!(listed, json!([bare, usual(), half]));
    for wrong in [json!({"collection": "a/b"}), json!({}), json!({"collection": "a", "tags": "x"})] {
        let mut request = wrong.clone();
        request["operation"] = json!("update-collection");
        assert_eq!(ask(&house, request).await["error"]["type"], "request-error", "{wrong}");
    }
    assert_eq!(house.post("/api/v1/collection-management", &json!({"operation": "x"})).await.0, 400);
}
