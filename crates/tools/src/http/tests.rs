//! Requests to a real server on this machine.

use super::*;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use trellis_domain::config::{ConfigItem, Settings, validate};

/// Serves these answers, one for each request in turn, and keeps what was asked.
pub(crate) async fn serve(answers: Vec<String>) -> (String, tokio::task::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let served = tokio::spawn(async move {
        let mut asked = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let (mut request, mut buffer) = (Vec::new(), [0; 4096]);
            while !is_whole(&request) {
                let read = stream.read(&mut buffer).await.unwrap();
                request.extend_from_slice(&buffer[..read]);
            }
            asked.push(String::from_utf8(request).unwrap());
            // Whoever asked may have heard enough.
            drop(stream.write_all(answer.as_bytes()).await);
        }
        asked
    });
    (address, served)
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ").map(str::to_owned));
    body.len() >= length.map_or(0, |length| length.trim().parse().unwrap())
}

pub(crate) fn answer(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n{headers}\r\n{body}", body.len())
}

pub(crate) fn http(hosts: &[&str], private: bool) -> Http {
    let secret = ToolSecret { value: Ok(Secret::new("sk-weather-1").unwrap()), hosts: vec!["127.0.0.1".to_owned()] };
    let reach = Reach { hosts: hosts.iter().map(|host| (*host).to_owned()).collect(), private };
    Http::new(reach, BTreeMap::from([("WEATHER".to_owned(), secret)]))
}

async fn call(http: &Http, item: Value, arguments: Value) -> Result<String, String> {
    let mut item = item;
    item["type"] = "http".into();
    let Ok(ConfigItem::Tool(tool)) = validate("tool", "weather", &item.to_string()) else { panic!("{item}") };
    let call = ToolCall {
        scope: trellis_domain::Scope::default(),
        collection: trellis_domain::Collection::default(),
        settings: Arc::new(Settings::default()),
        tool,
        arguments: arguments.as_object().unwrap().clone(),
        idempotency_key: "key-1".to_owned(),
        step: None,
        document: None,
        timeout: Duration::from_secs(9),
        max_reply_bytes: 1 << 20,
        labels: None,
        permit: trellis_orchestrator::permits::Permit::default(),
        input: trellis_orchestrator::ports::CallInput::Nobody,
    };
    http.call(&call).await.map(|output| output.text).map_err(|error| error.reason)
}

#[tokio::test]
async fn a_request_carries_arguments_and_secrets_and_brings_the_answer() {
    let (address, served) = serve(vec![
        answer("200 OK", "content-type: application/json\r\n", r#"{"celsius": 7, "you": "sk-weather-1"}"#),
        answer("201 Created", "", "done"),
    ])
    .await;
    let http = http(&["127.0.0.1"], true);
    let headers = json!({ "authorization": "Bearer {secret:WEATHER}" });
    let get =
        json!({ "url": format!("http://{address}/now/{{city}}"), "query": { "unit": "{unit}" }, "headers": headers });
    let found = call(&http, get, json!({ "city": "Tromsø", "unit": "c" })).await;
    assert_eq!(found.as_deref(), Ok(r#"{"celsius": 7, "you": "[redacted]"}"#), "a secret never comes back");
    let post = json!({ "url": format!("http://{address}/notes"), "body": { "text": "{text}" } });
    assert_eq!(call(&http, post, json!({ "text": "hello" })).await.as_deref(), Ok("done"));
    let asked = served.await.unwrap();
    assert!(asked[0].starts_with("GET /now/Troms%C3%B8?unit=c HTTP/1.1"), "{}", asked[0]);
    assert!(asked[0].contains("authorization: Bearer sk-weather-1\r\n"), "{}", asked[0]);
    assert!(asked[1].starts_with("POST /notes ") && asked[1].ends_with(r#"{"text":"hello"}"#), "{}", asked[1]);
    assert!(asked[1].contains("idempotency-key: key-1\r\n"), "{}", asked[1]);
    assert!(!asked[0].contains("idempotency-key"), "looking changes nothing: {}", asked[0]);
}

#[tokio::test]
async fn what_goes_wrong_is_told_in_words() {
    let long = "x".repeat(MOST_BYTES + 10);
    let (address, served) = serve(vec![
        answer("404 Not Found", "", "no such city"),
        answer("302 Found", "location: http://elsewhere.example/\r\n", ""),
        answer("302 Found", "location: /there\r\n", ""),
        answer("200 OK", "", "found there"),
        answer("200 OK", "", &long),
    ])
    .await;
    let http = http(&["127.0.0.1", "elsewhere.example"], true);
    let get = json!({ "url": format!("http://{address}/") });
    let found = call(&http, get.clone(), json!({})).await.unwrap_err();
    assert_eq!(found, "http://127.0.0.1/ answered 404 Not Found: no such city");
    let elsewhere = call(&http, get.clone(), json!({})).await.unwrap_err();
    assert!(elsewhere.ends_with("sends on to http://elsewhere.example/, which is not followed"), "{elsewhere}");
    assert_eq!(call(&http, get.clone(), json!({})).await.as_deref(), Ok("found there"));
    let much = call(&http, get.clone(), json!({})).await.unwrap();
    assert!(much.len() < MOST_BYTES + 100 && much.ends_with("longer than 1 MB]"), "{}", much.len());
    served.await.unwrap();
    let gone = call(&http, get, json!({})).await.unwrap_err();
    assert!(gone.contains("refused"), "{gone}");
}

#[test]
fn nobody_is_followed_to_another_server_or_out_of_protection() {
    for (from, to, follows) in [
        ("https://a.example/x", "https://a.example/y", true),
        ("http://a.example/x", "https://a.example/x", true),
        ("https://a.example/x", "http://a.example/x", false),
        ("https://a.example/x", "https://a.example:8443/x", false),
        ("https://a.example/x", "https://b.example/x", false),
    ] {
        assert_eq!(is_same_place(&Url::parse(from).unwrap(), &Url::parse(to).unwrap()), follows, "{from} to {to}");
    }
}

#[tokio::test]
async fn nothing_is_sent_where_it_may_not_go() {
    let (address, served) = serve(Vec::new()).await;
    served.await.unwrap();
    let port = address.rsplit(':').next().unwrap();
    let get = |host: &str| json!({ "url": format!("http://{host}:{port}/") });
    let unnamed = call(&http(&["api.example.com"], true), get("127.0.0.1"), json!({})).await.unwrap_err();
    assert!(unnamed.starts_with("the operator does not allow calls to 127.0.0.1"), "{unnamed}");
    let private = call(&http(&["127.0.0.1"], false), get("127.0.0.1"), json!({})).await.unwrap_err();
    assert!(private.contains("is not a public address"), "{private}");
    let resolved = call(&http(&["localhost"], false), get("localhost"), json!({})).await.unwrap_err();
    assert!(resolved.contains("is not a public address"), "a name that is allowed and points here: {resolved}");
    let headers = json!({ "url": format!("http://localhost:{port}/"), "headers": { "x-key": "{secret:WEATHER}" } });
    let carried = call(&http(&["localhost"], true), headers, json!({})).await.unwrap_err();
    assert_eq!(carried, "the secret `WEATHER` may not be sent to localhost");
    let unknown = json!({ "url": format!("http://127.0.0.1:{port}/"), "headers": { "x-key": "{secret:OTHER}" } });
    let template = Template::read(unknown.as_object().unwrap()).unwrap();
    let obstacle = http(&["127.0.0.1"], true).check(&template).unwrap_err();
    assert!(obstacle.starts_with("there is no secret `OTHER`"), "{obstacle}");
}
