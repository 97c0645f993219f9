//! The document and the page made from it.

use super::server::Api;

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
    assert!(!page.contains("<script") && !page.contains("http:") && !page.contains("https:"));
    let links = page.split("href=\"#").skip(1).map(|rest| rest.split('"').next().unwrap());
    for link in links {
        assert!(page.contains(&format!("id=\"{link}\"")), "the link {link} leads nowhere");
    }
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
