//! What goes well: replies arrive in order, whole, counted and attributed.

use crate::ask::{self, ask, each_provider, hurried, patient, provider, request};
use crate::speech;
use crate::stub::{Act, Stub, answer, head, send, stream};
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::time::Duration;
use trellis_domain::Hash;
use trellis_domain::config::PromptReply;
use trellis_domain::parts::StopReason;
use trellis_models::ModelReply;

const PIECES: [&str; 4] = ["Moss ", "is gr", "\u{fc}n", " 😀"];

#[tokio::test]
async fn a_reply_arrives_in_pieces_and_is_counted() {
    for name in ["openai", "anthropic", "ollama"] {
        let stub = Stub::always(stream(speech::reply(name, &PIECES))).await;
        let provider = provider(name, &stub.base, patient());
        let (reply, pieces) = ask(&*provider, &request(PromptReply::Text)).await;
        assert_eq!(pieces, PIECES, "{name}");
        let reply = reply.unwrap();
        let sent = speech::reply(name, &PIECES).concat();
        let response = reply.response.clone();
        assert_eq!(response.as_ref().map(|response| response.hash), Some(Hash::of(sent)), "{name}: all that came");
        let expected = ModelReply {
            text: PIECES.concat(),
            stop: Some(StopReason::End),
            response,
            model: format!("{name}/m-2026"),
            in_token: Some(11),
            out_token: Some(4),
            ..ModelReply::default()
        };
        assert_eq!(reply, expected);
    }
}

/// The stream may be cut anywhere by the network, in the middle of a character, too.
#[tokio::test]
async fn it_does_not_matter_how_the_bytes_arrive() {
    for name in ["openai", "anthropic", "ollama"] {
        let bytes = speech::reply(name, &PIECES).concat().into_bytes();
        let crumbs = bytes.chunks(7).map(|crumb| Act::Send(crumb.to_vec()));
        let paused = crumbs.flat_map(|crumb| [crumb, Act::Pause(Duration::from_millis(1))]);
        let stub = Stub::always(std::iter::once(head("200 OK", "")).chain(paused).collect()).await;
        let (reply, pieces) = ask(&*provider(name, &stub.base, patient()), &request(PromptReply::Text)).await;
        assert_eq!((reply.unwrap().text, pieces), (PIECES.concat(), PIECES.map(str::to_owned).to_vec()));
    }
}

#[tokio::test]
async fn every_request_says_where_in_a_run_it_belongs() {
    let stub = Stub::always(answer("500 Broken", "", "")).await;
    for provider in each_provider(&stub, &hurried()) {
        ask::transient(ask::text(&*provider).await);
    }
    let seen = stub.seen();
    let paths: Vec<_> = seen.iter().map(|seen| seen.path.as_str()).collect();
    assert_eq!(paths, ["/v1/chat/completions", "/v1/messages", "/api/chat"]);
    for seen in &seen {
        let label = |name: &str| seen.headers.get(name).map(String::as_str);
        assert_eq!(label("x-trellis-prompt"), Some("pattern-select"));
        assert_eq!(label("x-trellis-run"), Some("run-1"));
        assert_eq!(label("x-trellis-session"), Some("session-2"));
        assert_eq!(label("x-trellis-step"), Some("i3"));
        assert_eq!(label("content-type"), Some("application/json"));
        assert_eq!((&seen.body["model"], &seen.body["stream"]), (&json!("m"), &json!(true)));
    }
    let bearer = format!("Bearer {}", ask::KEY);
    assert_eq!(seen[0].headers.get("authorization"), Some(&bearer));
    assert_eq!(seen[1].headers.get("x-api-key").map(String::as_str), Some(ask::KEY));
    assert_eq!(seen[1].headers.get("anthropic-version").map(String::as_str), Some("2023-06-01"));
    assert_eq!(seen[2].headers.get("authorization"), Some(&bearer));
}

/// A listener that has heard enough gets no more, and what it heard is the reply.
#[tokio::test]
async fn a_reply_that_is_stopped_ends_there() {
    for name in ["openai", "anthropic", "ollama"] {
        let first = speech::reply(name, &["first "]).remove(if name == "ollama" { 0 } else { 2 });
        let (first, endless) = match name {
            "anthropic" => {
                let piece = speech::reply(name, &["x"]).remove(3);
                (piece.clone(), piece)
            }
            _ => (first.clone(), first),
        };
        let stub = Stub::always(vec![head("200 OK", ""), send(first), Act::Forever(endless.into_bytes())]).await;
        let mut heard = 0;
        let provider = provider(name, &stub.base, patient());
        let reply = provider
            .complete(&request(PromptReply::Text), &mut |piece| {
                let text = &crate::ask::written(piece);
                heard += text.len();
                if heard > 50 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })
            .await
            .unwrap();
        assert_eq!(reply.text.len(), heard, "{name}: {}", reply.text);
        assert!(heard < 100 && !reply.enforced);
        while stub.left() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// One enormous piece is handed over in small ones, so that whoever stops it is not overrun.
#[tokio::test]
async fn a_large_piece_is_cut() {
    let large = "ä".repeat(1 << 20);
    let stub = Stub::always(stream(speech::reply("openai", &[&large]))).await;
    let provider = provider("openai", &stub.base, patient());
    let mut heard = 0;
    let reply = provider
        .complete(&request(PromptReply::Text), &mut |piece| {
            let text = &crate::ask::written(piece);
            heard += text.len();
            if heard > 10_000 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .await
        .unwrap();
    assert!(reply.text.len() < 20_000, "{} bytes", reply.text.len());
    let (reply, pieces) = ask(&*provider, &request(PromptReply::Text)).await;
    assert_eq!((reply.unwrap().text, pieces.concat()), (large.clone(), large));
}

#[tokio::test]
async fn servers_that_do_not_stream_are_understood() {
    let openai = json!({ "model": "m-2026", "usage": { "prompt_tokens": 11, "completion_tokens": 4 },
        "choices": [{ "message": { "role": "assistant", "content": "Moss" }, "finish_reason": "stop" }] });
    let anthropic = json!({ "type": "message", "model": "m-2026", "stop_reason": "end_turn",
        "content": [{ "type": "text", "text": "Moss" }], "usage": { "input_tokens": 11, "output_tokens": 4 } });
    let ollama = json!({ "model": "m-2026", "message": { "content": "Moss" }, "done": true, "prompt_eval_count": 11,
        "eval_count": 4 });
    for (name, body) in [("openai", openai), ("anthropic", anthropic), ("ollama", ollama)] {
        for body in [body.to_string(), format!("\n\n{}", serde_json::to_string_pretty(&body).unwrap())] {
            let head = format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len());
            let stub = Stub::always(answer("200 OK", &head, &body)).await;
            let (reply, pieces) = ask(&*provider(name, &stub.base, patient()), &request(PromptReply::Text)).await;
            let reply = reply.unwrap();
            assert_eq!((reply.text.as_str(), pieces.as_slice()), ("Moss", ["Moss".to_owned()].as_slice()), "{name}");
            assert_eq!((reply.in_token, reply.out_token), (Some(11), Some(4)));
        }
    }
}

/// vLLM, llama.cpp, LM Studio and others leave out one thing or another.
#[tokio::test]
async fn openai_streams_of_other_servers_are_understood() {
    let chunk = |value: Value| format!("data: {value}\n\n");
    let said = |text: &str| chunk(json!({ "choices": [{ "delta": { "content": text } }] }));
    let finished = chunk(json!({ "choices": [{ "delta": {}, "finish_reason": "stop" }] }));
    for (what, stream) in [
        ("no finish reason", [said("Moss"), "data: [DONE]\n\n".to_owned()].concat()),
        ("no end mark", [said("Moss"), finished.clone()].concat()),
        ("no blank lines", [said("Mo"), said("ss"), finished.clone()].concat().replace("\n\n", "\n")),
        ("carriage returns", [said("Moss"), finished.clone()].concat().replace('\n', "\r\n")),
        ("comments", format!(": OPENROUTER PROCESSING\n\n{}: ping\n{finished}", said("Moss"))),
        ("no last blank line", format!("{}{}", said("Moss"), finished.trim_end())),
        ("a byte order mark", format!("\u{feff}{}{finished}", said("Moss"))),
    ] {
        let stub = Stub::always(answer("200 OK", "content-type: text/event-stream\r\n", &stream)).await;
        let reply = ask::text(&*provider("openai", &stub.base, patient())).await;
        let reply = reply.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!((reply.text.as_str(), reply.model.as_str(), reply.in_token), ("Moss", "openai/m", None), "{what}");
    }
}

/// The connection stays open after the last word.
#[tokio::test]
async fn a_server_that_does_not_hang_up_is_not_waited_for_long() {
    let mut messages = speech::reply("openai", &["Moss"]);
    messages.truncate(messages.len() - 2);
    let mut script = stream(messages);
    script.push(Act::Hang);
    let stub = Stub::always(script).await;
    let reply = ask::text(&*provider("openai", &stub.base, hurried())).await.unwrap();
    assert_eq!((reply.text.as_str(), reply.out_token), ("Moss", None));
}

#[tokio::test]
async fn a_reply_at_the_limit_of_tokens_says_so() {
    let openai = json!({ "choices": [{ "delta": { "content": "Mo" }, "finish_reason": "length" }] });
    let openai = format!("data: {openai}\n\ndata: [DONE]\n\n");
    let anthropic =
        json!({ "type": "message", "stop_reason": "max_tokens", "content": [{ "type": "text", "text": "Mo" }] });
    let ollama = json!({ "message": { "content": "Mo" }, "done": true, "done_reason": "length" });
    for (name, body) in [("openai", openai), ("anthropic", anthropic.to_string()), ("ollama", ollama.to_string())] {
        let stub = Stub::always(answer("200 OK", "", &body)).await;
        let reply = ask::text(&*provider(name, &stub.base, patient())).await.unwrap();
        assert!(reply.cut_short && reply.text == "Mo", "{name}: {reply:?}");
    }
}
