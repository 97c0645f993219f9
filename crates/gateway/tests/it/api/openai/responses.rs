//! Responses without a stream.

use super::{RESPONSES, listening, response, waiting, with};
use crate::api::server::Api;
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn a_response_is_a_run_and_can_be_read_again() {
    let api = Api::open().await;
    let body = with(response(&json!({"tools": 1, "answer": "so"})), "instructions", json!("Be brief."));
    let reply = api.post(RESPONSES, "", &with(body, "metadata", json!({"order": "4711"}))).await;
    let said = reply.json();
    let run = reply.header("x-trellis-run").unwrap();
    assert_eq!((reply.status, said["id"].as_str()), (200, Some(&*format!("resp_{run}"))));
    assert_eq!((&said["status"], &said["output"][0]["content"][0]["text"]), (&json!("completed"), &json!("so")));
    assert_eq!((&said["instructions"], &said["model"]), (&json!("Be brief."), &json!("trellis/react")));
    assert_eq!((&said["metadata"], &said["store"]), (&json!({"order": "4711"}), &json!(true)));
    let recorded = api.get(&format!("/api/v1/runs/{run}")).await.json();
    assert_eq!(said["usage"]["input_tokens"], recorded["in_token"]);
    let again = api.get(&format!("/v1/responses/resp_{run}")).await.json();
    assert_eq!(with(again, "metadata", json!({"order": "4711"})), said);
    let kept = api.call("DELETE", &format!("/v1/responses/resp_{run}"), "", "").await;
    assert_eq!((kept.status, &kept.json()["error"]["code"]), (403, &json!("records_are_kept")));
    let missing = api.get("/v1/responses/resp_nobody").await;
    assert_eq!((missing.status, &missing.json()["error"]["code"]), (404, &json!("not_found")));
    assert_eq!(api.get(&format!("/v1/responses/{run}")).await.status, 404, "an id begins with resp_");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_goes_on_from_the_one_before_it_and_several_from_the_same() {
    let (api, contexts) = listening().await;
    let scene = |n: u32| json!({"answer": format!("answer {n}")});
    let ask = async |n: u32, previous: Option<&Value>| {
        let body = response(&scene(n));
        let body = previous.map_or_else(|| body.clone(), |id| with(body.clone(), "previous_response_id", id.clone()));
        api.post(RESPONSES, "", &body).await.json()
    };
    let first = ask(1, None).await;
    let second = ask(2, Some(&first["id"])).await;
    let third = ask(3, Some(&second["id"])).await;
    let branch = ask(4, Some(&first["id"])).await;
    let told = |numbers: &[u32]| {
        let exchange = |n: &u32| format!("\n\nQuestion: {}\nAnswer: answer {n}", scene(*n));
        format!("Earlier in this conversation:{}", numbers.iter().map(exchange).collect::<String>())
    };
    assert_eq!(*contexts.lock().unwrap(), [String::new(), told(&[1]), told(&[1, 2]), told(&[1])]);
    assert_eq!((&third["previous_response_id"], &branch["previous_response_id"]), (&second["id"], &first["id"]));
    assert!(first["conversation"]["id"].is_string() && third["conversation"] == first["conversation"]);
    // A conversation by its name goes on from its newest questions.
    let named = with(response(&scene(5)), "conversation", first["conversation"]["id"].clone());
    assert_eq!(api.post(RESPONSES, "", &named).await.status, 200);
    assert_eq!(contexts.lock().unwrap().last(), Some(&told(&[1, 2, 3, 4])));
}

#[tokio::test]
async fn what_cannot_be_gone_on_from_is_refused() {
    let api = Api::with(waiting()).await;
    let begun = api.post(RESPONSES, "", &with(response(&json!({})), "background", json!(true))).await.json();
    let body = |id: &Value| with(response(&json!({})), "previous_response_id", id.clone());
    for (body, status, says) in [
        (body(&json!("resp_nobody")), 404, "no response `resp_nobody`"),
        (body(&json!("nobody")), 404, "no response `nobody`"),
        (body(&json!(7)), 400, "must be a text"),
        (body(&begun["id"]), 400, "has not ended yet"),
        (with(body(&begun["id"]), "conversation", json!("c")), 400, "not both"),
        (with(response(&json!({})), "conversation", json!({"name": "c"})), 400, "`conversation` must be"),
        (with(response(&json!({})), "conversation", json!("a b")), 400, "conversation id"),
    ] {
        let (found, message) = api.post(RESPONSES, "", &body).await.refusal();
        assert_eq!((found, message.contains(says)), (status, true), "{body}: {message}");
    }
    let told = json!([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]);
    let both = with(with(response(&json!({})), "input", told), "conversation", json!("c"));
    let (status, message) = api.post(RESPONSES, "", &both).await.refusal();
    assert_eq!((status, message.contains("only the new message")), (400, true), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_in_the_background_comes_at_once_and_can_be_cancelled() {
    let api = Api::with(waiting()).await;
    let body = with(response(&json!({"answer": "so"})), "background", json!(true));
    let begun = api.post(RESPONSES, "", &body).await.json();
    assert_eq!(
        (&begun["status"], &begun["background"], &begun["output"]),
        (&json!("queued"), &json!(true), &json!([]))
    );
    let path = format!("/v1/responses/{}/cancel", begun["id"].as_str().unwrap());
    for _ in 0..2 {
        let cancelled = api.post(&path, "", &json!({})).await;
        assert_eq!((cancelled.status, &cancelled.json()["status"]), (200, &json!("cancelled")));
    }
    let api = Api::open().await;
    let begun = api.post(RESPONSES, "", &body).await.json();
    let path = format!("/v1/responses/{}", begun["id"].as_str().unwrap());
    let ends = async {
        while api.get(&path).await.json()["status"] != "completed" {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(30), ends).await.expect("the run ends");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_messages_is_a_conversation_of_its_own() {
    let (api, contexts) = listening().await;
    let input = json!([
        {"role": "developer", "content": "Be kind."},
        {"role": "user", "content": [{"type": "input_text", "text": "Who?"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Ada.", "annotations": []}]},
        {"role": "user", "content": json!({"answer": "so"}).to_string()},
    ]);
    let body = json!({"model": "trellis/react", "input": input, "instructions": "Be brief."});
    let said = api.post(RESPONSES, "", &body).await.json();
    assert_eq!(said["output"][0]["content"][0]["text"], "so");
    let told = "Be brief.\n\nBe kind.\n\nEarlier in this conversation:\n\nQuestion: Who?\nAnswer: Ada.";
    assert_eq!(*contexts.lock().unwrap(), [told]);
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_that_end_badly_are_told_by_their_status() {
    let api = Api::open().await;
    let failed = api.post(RESPONSES, "", &response(&json!({"fail": true}))).await.json();
    assert_eq!((&failed["status"], &failed["error"]["code"]), (&json!("failed"), &json!("server_error")));
    let cut = api.post(RESPONSES, "", &response(&json!({"tools": 99}))).await.json();
    assert_eq!((&cut["status"], &cut["output"][0]["status"]), (&json!("incomplete"), &json!("incomplete")));
    assert_eq!(cut["incomplete_details"]["reason"], "max_output_tokens");
}
