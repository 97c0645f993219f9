//! The document and the page made from it.

use super::server::Api;
use serde_json::{Value, json};

#[tokio::test]
async fn the_page_shows_every_operation_and_every_shape_and_asks_nobody_else() {
    let api = Api::open().await;
    let document = api.document();
    let page = api.page().await;
    let mut operations = 0;
    for item in document["paths"].as_object().unwrap().values() {
        for operation in item.as_object().unwrap().values() {
            let id = operation["operationId"].as_str().unwrap();
            assert!(page.contains(&format!("<section id=\"{id}\">")), "{id}");
            operations += 1;
        }
    }
    assert!(operations >= 13, "{operations}");
    for name in document["components"]["schemas"].as_object().unwrap().keys() {
        assert!(page.contains(&format!("id=\"shape-{name}\"")), "{name}");
    }
    let asks = ["<script", "=\"http", "=\"//", "url(", "@import"].into_iter().find(|asks| page.contains(asks));
    assert_eq!(asks, None, "the page asks somebody else");
    let links = page.split("href=\"#").skip(1).map(|rest| rest.split('"').next().unwrap());
    for link in links {
        assert!(page.contains(&format!("id=\"{link}\"")), "the link {link} leads nowhere");
    }
}

/// Operations whose replies have no body that could be described: what is never done, connections that become something
/// else, and contents of any kind.
const WITHOUT_REPLY: [&str; 4] = ["deleteResponse", "openSocket", "import", "readDocument"];

/// How an example breaks the schema that stands beside it.
fn faults(document: &Value, content: &Value) -> Vec<String> {
    let schema = json!({"components": document["components"], "allOf": [content["schema"]]});
    let schema = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
    schema.iter_errors(&content["example"]).map(|fault| fault.to_string()).collect()
}

#[tokio::test]
async fn every_operation_shows_what_it_takes_and_gives_and_what_people_do_first_comes_first() {
    let api = Api::open().await;
    let document = api.document();
    let (mut order, mut without_reply, mut wrong) = (Vec::new(), Vec::new(), Vec::new());
    for item in document["paths"].as_object().unwrap().values() {
        for operation in item.as_object().unwrap().values() {
            let id = operation["operationId"].as_str().unwrap();
            order.push(id);
            let replies = operation["responses"].as_object().unwrap().iter();
            let good = replies.filter(|(status, _)| status.starts_with('2')).map(|(_, reply)| reply);
            let replies: Vec<_> = good.filter(|reply| reply.get("content").is_some()).collect();
            if replies.is_empty() {
                without_reply.push(id);
            }
            for body in operation.get("requestBody").into_iter().chain(replies) {
                let content = body["content"].as_object().unwrap().values().next().unwrap();
                if content.get("example").is_none() {
                    wrong.push(format!("{id} has no example for {content}"));
                    continue;
                }
                wrong.extend(faults(document, content).into_iter().map(|fault| format!("{id}: {fault}")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(without_reply, WITHOUT_REPLY);
    let examples: Value = serde_json::from_str(include_str!("../../../src/docs/examples.json")).unwrap();
    let named: Vec<_> =
        examples.as_array().unwrap().iter().map(|example| example["operation"].as_str().unwrap()).collect();
    assert_eq!(order, named, "the examples are of other operations, or in another order, than the document");
    assert_eq!(order[..4], ["createRun", "listRuns", "getRun", "followRun"]);
    // The page is in the same order.
    let page = api.page().await;
    let places = ["createRun", "getRun", "followRun", "listTools", "createResponse", "live"];
    let places = places.map(|id| page.find(&format!("<section id=\"{id}\">")).unwrap());
    assert!(places.is_sorted() && page.contains("&quot;question&quot;: &quot;What is Company X?&quot;"), "{places:?}");
}

#[tokio::test]
async fn an_example_that_breaks_its_schema_is_found() {
    let api = Api::open().await;
    let mut content =
        api.document()["paths"]["/api/v1/runs"]["post"]["requestBody"]["content"]["application/json"].clone();
    assert!(faults(api.document(), &content).is_empty());
    for wrong in [json!({"question": ""}), json!({"question": 3}), json!({"question": "Why?", "patern": "react"})] {
        content["example"] = wrong;
        assert!(!faults(api.document(), &content).is_empty(), "{content}");
    }
}

/// A request of the document is one that the server takes.
#[tokio::test]
async fn the_first_example_is_a_run_with_an_answer() {
    let api = Api::open().await;
    let content = &api.document()["paths"]["/api/v1/runs"]["post"]["requestBody"]["content"]["application/json"];
    let run = api.finish(&content["example"]).await;
    assert_eq!(api.get(&format!("/api/v1/runs/{run}")).await.json()["state"], "answered");
}

#[tokio::test]
async fn compatible_paths_answer_as_the_document_says() {
    let api = Api::open().await;
    assert_eq!(api.get("/healthz").await.status, 200);
    assert_eq!(api.get("/readyz").await.status, 200);
    for (path, body, status) in [
        ("/api/v1/nonsense", "{}", 404),
        ("/api/v1/config", "{", 400),
        ("/api/v1/config", r#"{"operation": "config"}"#, 200),
        ("/api/v1/flow/default/service/agent", r#"{"question": "{}"}"#, 200),
        ("/api/v1/flow/default/service/agent", "[]", 400),
    ] {
        assert_eq!(api.call("POST", path, "", body).await.status, status, "{path} {body}");
    }
    assert_eq!(api.get("/api/v1/socket").await.status, 400);
}
