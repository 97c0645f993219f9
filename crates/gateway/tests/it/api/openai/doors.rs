//! Models, tokens, workspaces and paths that are not there.

use super::{CHAT, RESPONSES, chat, response, waiting, with};
use crate::api::server::Api;
use crate::house::Setup;
use serde_json::{Value, json};
use trellis_gateway::{Access, Identity, Token};

#[tokio::test]
async fn every_pattern_that_can_be_named_is_a_model() {
    let api = Api::with(waiting()).await;
    let models = api.get("/v1/models").await.json();
    let ids: Vec<_> = models["data"].as_array().unwrap().iter().map(|model| model["id"].as_str().unwrap()).collect();
    assert_eq!(ids[0], "trellis/auto");
    assert!(ids.contains(&"trellis/react") && ids.contains(&"trellis/supervisor"), "{ids:?}");
    assert_eq!(api.get("/v1/models/trellis/auto").await.json()["id"], "trellis/auto");
    for id in ids {
        // Some clients write the slash as it is.
        for path in [id.to_owned(), id.replace('/', "%2F")] {
            let (status, model) = api.house.http("GET", &format!("/v1/models/{path}"), "", b"").await;
            assert_eq!((status, &model["id"]), (200, &json!(id)));
        }
    }
    let missing = api.get("/v1/models/trellis/gpt-4o").await;
    assert_eq!((missing.status, &missing.json()["error"]["code"]), (404, &json!("model_not_found")));
}

#[tokio::test]
async fn whoever_has_no_token_stays_outside_and_nobody_reads_the_runs_of_others() {
    let user = |name: &str| Identity::user(name, [trellis_domain::Workspace::new(name).unwrap()]);
    let access = Access::Tokens(vec![(Token::new("s3cret"), user("alice")), (Token::new("other"), user("bob"))]);
    let api = Api::with(Setup { access, ..waiting() }).await;
    for headers in ["", "Authorization: Bearer wrong\r\n"] {
        let reply = api.call("GET", "/v1/models", headers, "").await;
        let error = &reply.json()["error"];
        assert_eq!((reply.status, &error["code"]), (401, &json!("invalid_api_key")));
        assert_eq!(
            (&error["type"], reply.header("www-authenticate")),
            (&json!("invalid_request_error"), Some("Bearer"))
        );
    }
    let (alice, bob) = ("Authorization: Bearer s3cret\r\n", "Authorization: Bearer other\r\n");
    let body = with(response(&json!({})), "background", json!(true));
    let begun = api.post(RESPONSES, alice, &body).await.json();
    let path = format!("/v1/responses/{}", begun["id"].as_str().unwrap());
    assert_eq!(api.call("GET", &path, alice, "").await.status, 200);
    assert_eq!(api.call("GET", &path, bob, "").await.status, 404);
    assert_eq!(api.call("POST", &format!("{path}/cancel"), bob, "").await.status, 404);
    let previous = with(body, "previous_response_id", begun["id"].clone());
    assert_eq!(api.post(RESPONSES, bob, &previous).await.status, 404);
    let elsewhere = api.call("GET", "/v1/models?workspace=bob", alice, "").await;
    assert_eq!((elsewhere.status, &elsewhere.json()["error"]["type"]), (403, &json!("invalid_request_error")));
}

#[tokio::test]
async fn paths_and_methods_that_are_not_there_are_refused_in_the_same_words() {
    let api = Api::with(waiting()).await;
    for (method, path, status) in
        [("GET", "/v1/embeddings", 404), ("GET", "/v1", 404), ("GET", CHAT, 405), ("DELETE", "/v1/models", 405)]
    {
        let (found, body): (u16, Value) = api.house.http(method, path, "", b"").await;
        let error = &body["error"];
        assert_eq!((found, &error["type"]), (status, &json!("invalid_request_error")), "{method} {path}: {body}");
        assert!(error["message"].is_string() && error["param"].is_null(), "{body}");
    }
    let evil = api.post(CHAT, "Origin: https://evil.example\r\n", &chat(&json!({}))).await;
    assert_eq!((evil.status, &evil.json()["error"]["type"]), (403, &json!("invalid_request_error")));
}
