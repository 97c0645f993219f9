//! What goes wrong: every failure ends, says why, and says whether asking again may help.

use crate::ask::{self, KEY, ask, each_provider, held, hurried, patient, permanent, provider, request, transient};
use crate::speech;
use crate::stub::{Act, Script, Seen, Stub, answer, head, send, stream};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use trellis_domain::config::PromptReply;
use trellis_models::{CallSettings, Choice, ModelReply, ModelSettings, Provider, ProviderError, Sampling, choose};
use trellis_orchestrator::ports::RealWorld;

const LONG: Duration = Duration::from_secs(30);

async fn each(script: Script, settings: CallSettings) -> Vec<Result<ModelReply, ProviderError>> {
    let stub = Stub::always(script).await;
    let mut results = Vec::new();
    for provider in each_provider(&stub, &settings) {
        results.push(timeout(LONG, ask::text(&*provider)).await.unwrap());
    }
    results
}

#[tokio::test]
async fn too_many_requests_pass_and_the_wish_is_kept() {
    for result in each(answer("429 Too Many Requests", "retry-after: 7\r\n", "{\"error\": \"slow\"}"), patient()).await
    {
        let (reason, retry_after) = transient(result);
        assert!(reason.ends_with("answered 429 Too Many Requests: slow"), "{reason}");
        assert_eq!(retry_after, Some(Duration::from_secs(7)));
    }
}

#[tokio::test]
async fn faults_of_the_server_pass() {
    for status in ["500 Internal Server Error", "502 Bad Gateway", "529 Overloaded"] {
        for result in each(answer(status, "", "<html>oops</html>"), patient()).await {
            let (reason, retry_after) = transient(result);
            assert!(reason.ends_with(": a web page") && retry_after.is_none(), "{reason}");
        }
    }
}

#[tokio::test]
async fn faults_of_the_request_do_not_pass() {
    for (status, words) in [("401 Unauthorized", "wrong key"), ("404 Not Found", "no such model")] {
        let body = json!({ "error": { "message": words } }).to_string();
        for result in each(answer(status, "", &body), patient()).await {
            let reason = permanent(result);
            assert!(reason.ends_with(&format!("answered {status}: {words}")), "{reason}");
        }
    }
}

#[tokio::test]
async fn a_key_is_not_carried_elsewhere() {
    let elsewhere = Stub::always(answer("200 OK", "", "{}")).await;
    let location = format!("location: {}/v2\r\n", elsewhere.base);
    for result in each(answer("307 Temporary Redirect", &location, ""), patient()).await {
        let reason = permanent(result);
        assert!(reason.contains(&format!("it has moved to {}/v2; set this address", elsewhere.base)), "{reason}");
    }
    assert_eq!(elsewhere.seen().len(), 0);
}

#[tokio::test]
async fn a_server_that_is_not_there_may_come_back() {
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let base = format!("http://{free}");
    let (reason, _) = transient(ask::text(&*provider("ollama", &base, patient())).await);
    let expected = format!("ollama cannot be reached at {base}/api/chat: ");
    assert!(reason.starts_with(&expected) && reason.to_lowercase().contains("refused"), "{reason}");
}

#[tokio::test]
async fn a_server_that_speaks_no_tls_never_will() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("https://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::io::AsyncWriteExt::write_all(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
            tokio::time::sleep(LONG).await;
        }
    });
    let reason = permanent(ask::text(&*provider("openai", &base, patient())).await);
    assert!(reason.contains("cannot be reached at https://"), "{reason}");
}

#[tokio::test]
async fn silence_ends() {
    let piece = |name: &str| speech::reply(name, &["Mo", "ss"]).into_iter().take(4).collect::<Vec<_>>();
    for result in each(vec![Act::Hang], hurried()).await {
        assert!(transient(result).0.ends_with("said nothing for 0.4 s"));
    }
    for result in each(vec![head("200 OK", ""), Act::Hang], hurried()).await {
        assert!(transient(result).0.ends_with("said nothing for 0.4 s"));
    }
    for name in ["openai", "anthropic", "ollama"] {
        let pieces = if name == "ollama" { piece(name)[..1].to_vec() } else { piece(name) };
        let mut script = stream(pieces);
        script.push(Act::Hang);
        let stub = Stub::always(script).await;
        let (result, heard) = ask(&*provider(name, &stub.base, hurried()), &request(PromptReply::Text)).await;
        assert!(transient(result).0.ends_with("said nothing for 0.4 s"), "{name}");
        assert!(!heard.is_empty(), "{name}: what came before was heard");
    }
}

/// A long reply is not a silent one.
#[tokio::test]
async fn slow_replies_are_waited_for() {
    let pieces: Vec<_> = ["a"; 12].to_vec();
    let messages = speech::reply("openai", &pieces).into_iter().map(send);
    let slow = messages.flat_map(|message| [message, Act::Pause(Duration::from_millis(60))]);
    let script = std::iter::once(head("200 OK", "")).chain(slow).collect();
    let stub = Stub::always(script).await;
    assert_eq!(ask::text(&*provider("openai", &stub.base, hurried())).await.unwrap().text, "a".repeat(12));
}

#[tokio::test]
async fn a_reply_that_breaks_off_may_be_asked_for_again() {
    for name in ["openai", "anthropic", "ollama"] {
        let whole = speech::reply(name, &["Mo", "ss"]);
        let half = whole[..if name == "ollama" { 1 } else { 4 }].concat();
        let chunk = format!("{:x}\r\n{half}\r\n", half.len());
        for (what, script) in [
            ("the stream just ends", answer("200 OK", "", &half)),
            ("in the middle of a line", answer("200 OK", "", half.trim_end_matches(['\n', '}']))),
            ("in the middle of chunks", vec![head("200 OK", "transfer-encoding: chunked\r\n"), send(chunk)]),
            ("shorter than it says", answer("200 OK", "content-length: 99999\r\n", &half)),
        ] {
            let stub = Stub::always(script).await;
            let (reason, _) = transient(ask::text(&*provider(name, &stub.base, patient())).await);
            let broken = ["broke off", "not JSON"].iter().any(|words| reason.contains(words));
            assert!(broken, "{name}, {what}: {reason}");
        }
    }
}

#[tokio::test]
async fn errors_inside_the_stream_are_errors() {
    let error = json!({ "type": "error", "error": { "type": "overloaded_error", "message": "Overloaded" } });
    for name in ["openai", "anthropic", "ollama"] {
        let framed = if name == "ollama" { format!("{error}\n") } else { format!("event: error\ndata: {error}\n\n") };
        let first = speech::reply(name, &["Mo"]).remove(0);
        let stub = Stub::always(answer("200 OK", "", &format!("{first}{framed}"))).await;
        let (reason, _) = transient(ask::text(&*provider(name, &stub.base, patient())).await);
        assert_eq!(reason, format!("{name} failed: Overloaded"));
    }
}

#[tokio::test]
async fn rubbish_is_no_reply() {
    for (rubbish, lasting) in [
        ("<!doctype html>\n<html>Welcome!</html>\n", true),
        ("OK\n", true),
        ("{\"status\": \"ok\"}", true),
        ("data: {\"broken\n\n", false),
        ("", false),
        ("\u{0}\u{1}\u{2}", true),
    ] {
        for result in each(answer("200 OK", "", rubbish), patient()).await {
            let error = result.unwrap_err();
            let reason = error.to_string();
            let permanent = matches!(error, ProviderError::Permanent { .. });
            // Where every line is JSON, all of these may be a broken line.
            assert!(permanent == lasting || reason.starts_with("ollama"), "{rubbish:?}: {error:?}");
            assert!(reason.len() < 500, "{reason}");
        }
    }
    let invalid = [b"data: {\"a\": \"\xff\xfe\"}\n\n".to_vec()].map(Act::Send);
    for result in each(std::iter::once(head("200 OK", "")).chain(invalid).collect(), patient()).await {
        assert!(transient(result).0.ends_with("sent something that is not UTF-8"));
    }
}

/// Endless lines, endless bodies and endless errors end here.
#[tokio::test]
async fn nothing_is_read_for_ever() {
    let block = vec![b'x'; 1 << 16];
    let endless = |start: &str| vec![head("200 OK", ""), send(start), Act::Forever(block.clone())];
    for start in ["data: ", "", "{"] {
        for result in each(endless(start), patient()).await {
            assert!(permanent(result).ends_with("sent a line that does not end"), "{start}");
        }
    }
    for result in each(vec![head("400 Bad Request", ""), Act::Forever(block.clone())], patient()).await {
        assert!(permanent(result).len() < 600);
    }
    let lines = Act::Forever(b"data: {\"choices\": []}\n".repeat(1000));
    let stub = Stub::always(vec![head("200 OK", ""), lines]).await;
    let provider = provider("openai", &stub.base, patient());
    let endless = timeout(Duration::from_millis(300), ask::text(&*provider)).await;
    assert!(endless.is_err(), "whoever asks decides how long a reply may take as a whole");
}

#[tokio::test]
async fn a_reply_without_words_is_none() {
    let openai = |finish: &str| {
        let chunk = json!({ "choices": [{ "delta": { "content": "" }, "finish_reason": finish }] });
        answer("200 OK", "", &format!("data: {chunk}\n\ndata: [DONE]\n\n"))
    };
    for (finish, words) in [
        ("length", "used up the limit of tokens before anything was said; set max-tokens of this model higher"),
        ("content_filter", "withheld the reply by its filter"),
    ] {
        let stub = Stub::always(openai(finish)).await;
        assert_eq!(permanent(ask::text(&*provider("openai", &stub.base, patient())).await), format!("openai {words}"));
    }
    let stub = Stub::always(openai("stop")).await;
    assert_eq!(transient(ask::text(&*provider("openai", &stub.base, patient())).await).0, "openai said nothing");
}

#[tokio::test]
async fn a_reply_whose_rest_was_withheld_is_none() {
    let chunk =
        |finish: &str| json!({ "choices": [{ "delta": { "content": "The dose is" }, "finish_reason": finish }] });
    let stub = Stub::always(answer("200 OK", "", &format!("data: {}\n\n", chunk("content_filter")))).await;
    let reason = permanent(ask::text(&*provider("openai", &stub.base, patient())).await);
    assert_eq!(reason, "openai withheld the rest of the reply by its filter");
}

#[tokio::test]
async fn pieces_count_where_the_whole_is_repeated_beside_each() {
    let chunk = |piece: &str, whole: &str, finish: Value| {
        let choice = json!({ "delta": { "content": piece }, "message": { "content": whole }, "finish_reason": finish });
        format!("data: {}\n\n", json!({ "choices": [choice] }))
    };
    let stream = chunk("Moss", "Moss", Value::Null) + &chunk(" grows", "Moss grows", json!("stop"));
    let stub = Stub::always(answer("200 OK", "", &stream)).await;
    let reply = ask::text(&*provider("openai", &stub.base, patient())).await.unwrap();
    assert_eq!(reply.text, "Moss grows");
}

/// A proxy that repeats what it was sent must not put the key on record.
#[tokio::test]
async fn a_key_in_a_reply_is_taken_out() {
    let stub = Stub::start(|_, seen| {
        let (first, second) = seen.headers["authorization"].split_at(12);
        stream(speech::reply("openai", &["You sent ", first, second, "."]))
    })
    .await;
    let reply = ask::ask(&*provider("openai", &stub.base, patient()), &request(PromptReply::Text)).await.0.unwrap();
    assert_eq!(reply.text, "You sent Bearer [redacted].");
    assert_eq!(reply.repairs, ["a key that it held was taken out"]);
}

/// The password of an address, and a key in its query, in the forms in which a server repeats them.
#[tokio::test]
async fn what_an_address_holds_is_not_repeated() {
    let stub = Stub::start(|_, seen| {
        let words = format!("{} {}", seen.headers["authorization"], seen.path);
        answer("401 Unauthorized", "", &json!({ "error": words }).to_string())
    })
    .await;
    let base = stub.base.replace("http://", "http://me:pass%20word@") + "/v1?version=2024-10&api-key=in-the-query";
    let environment = move |name: &str| (name == "OPENAI_BASE_URL").then(|| base.clone());
    let choices = choose(&["openai/m".to_owned()], &ModelSettings::default(), &environment).unwrap();
    let [Choice::Remote(choice)] = &choices[..] else { panic!("{choices:?}") };
    let shown = choice.to_string();
    let provider = choice.clone().connect(patient(), Arc::new(RealWorld)).unwrap();
    let error = ask::text(&*provider).await.unwrap_err().to_string();
    assert!(
        error.contains("Basic [redacted]") && error.contains("/v1/chat/completions?version=2024-10&api-key=[redacted]"),
        "{error}"
    );
    assert!(error.contains("version=2024-10"), "what is no secret is shown: {error}");
    for secret in ["pass", "in-the-query"] {
        assert!(!shown.contains(secret) && !error.contains(secret), "{shown} {error}");
    }
}

#[tokio::test]
async fn a_key_that_is_echoed_is_not_repeated() {
    let echo = |seen: &Seen| seen.headers.get("authorization").or(seen.headers.get("x-api-key")).unwrap().clone();
    for status in ["401 Unauthorized", "500 Broken", "400 schema"] {
        for escaped in [false, true] {
            let stub = Stub::start(move |_, seen| {
                let key = echo(seen);
                let words = json!({ "error": { "message": format!("schema: bad header {key}!") } }).to_string();
                let words = if escaped { words.replace("sk-", "\\u0073k-") } else { words };
                answer(status, "", &words)
            })
            .await;
            for provider in each_provider(&stub, &patient()) {
                let error = ask(&*provider, &held()).await.0.unwrap_err();
                let shown = format!("{error} {error:?} {provider:?}");
                assert!(shown.contains("[redacted]!") && !shown.contains(KEY), "{shown}");
            }
        }
    }
    let stub = Stub::start(move |_, seen| {
        let key = echo(seen);
        let error = json!({ "error": { "message": format!("no {key}") } });
        answer("200 OK", "", &format!("data: {error}\n\ndata: {key}\n\n"))
    })
    .await;
    let reason = transient(ask::text(&*provider("openai", &stub.base, patient())).await).0;
    assert_eq!(reason, "openai failed: no Bearer [redacted]");
    // Where a shown text would be cut is not where the key may be cut.
    for start in 0..90 {
        let stub =
            Stub::start(move |_, seen| answer("200 OK", "", &format!("data: {}{}\n\n", "x".repeat(start), echo(seen))))
                .await;
        let error = ask::text(&*provider("openai", &stub.base, patient())).await.unwrap_err().to_string();
        assert!(!error.contains(&KEY[..KEY.len() / 2]), "{error}");
    }
}

/// Dropping the future ends the call, at the server and in the count of calls.
#[tokio::test]
async fn a_call_that_nobody_waits_for_ends() {
    let whole = stream(speech::reply("openai", &["Moss"]));
    let stub = Stub::start(move |n, _| if n == 0 { vec![Act::Hang] } else { whole.clone() }).await;
    let settings = CallSettings { concurrency: 1, ..patient() };
    let provider = provider("openai", &stub.base, settings);
    assert!(timeout(Duration::from_millis(200), ask::text(&*provider)).await.is_err());
    assert_eq!(timeout(LONG, ask::text(&*provider)).await.unwrap().unwrap().text, "Moss");
    while stub.left() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn only_so_many_calls_are_made_at_a_time() {
    let pause = Duration::from_millis(50);
    let script = [vec![Act::Pause(pause)], stream(speech::reply("openai", &["Moss"]))].concat();
    let stub = Stub::always(script).await;
    let provider = provider("openai", &stub.base, CallSettings { concurrency: 2, ..patient() });
    let started = tokio::time::Instant::now();
    let calls = (0..8).map(|_| {
        let provider = Arc::clone(&provider);
        tokio::spawn(async move { ask::text(&*provider).await.unwrap() })
    });
    for call in calls.collect::<Vec<_>>() {
        assert_eq!(call.await.unwrap().text, "Moss");
    }
    assert!(started.elapsed() >= pause * 4, "eight calls, two at a time");
}

/// The trait object can be shown, and shows nothing that it should not.
#[test]
fn a_provider_can_be_shown() {
    let provider: Arc<dyn Provider> = provider("openai", "http://me:pass-word@localhost", patient());
    let shown = format!("{provider:?}");
    assert!(shown.contains("http://localhost/v1/chat/completions"), "{shown}");
    assert!(!shown.contains(KEY) && !shown.contains("pass-word"), "{shown}");
}

/// A limit that nobody set must not be the reason why a prompt does not fit.
#[tokio::test]
async fn a_usual_limit_gives_way_to_the_prompt() {
    let stub = Stub::start(|_, seen| {
        let words = "'max_tokens' is too large: 4096. This model's maximum context length is 4096 tokens";
        match seen.body["max_tokens"].as_u64() {
            Some(_) => answer("400 Bad Request", "", &json!({ "error": { "message": words } }).to_string()),
            None => stream(speech::reply("openai", &["Moss"])),
        }
    })
    .await;
    let free = ask::provider("openai", &stub.base, patient());
    for _ in 0..2 {
        assert_eq!(ask::text(&*free).await.unwrap().text, "Moss");
    }
    let sent: Vec<_> = stub.seen().iter().map(|seen| seen.body["max_tokens"].as_u64()).collect();
    assert_eq!(sent, [Some(4096), None, Some(4096), None], "it is no refusal of the limit as such");
    let sampling = Sampling { max_tokens: Some(50), ..Sampling::default() };
    let limited = ask::provider("openai", &stub.base, CallSettings { sampling, ..patient() });
    let error = ask::text(&*limited).await.unwrap_err();
    assert!(matches!(error, ProviderError::TooLong { .. }), "what was set is not changed: {error:?}");
}
