//! Questions to agents on both surfaces.

use crate::house::House;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use trellis_domain::RunId;
use trellis_gateway::Phase;

fn kinds(replies: &[Value]) -> Vec<&str> {
    replies.iter().map(|reply| reply["response"]["message_type"].as_str().unwrap_or("?")).collect()
}

fn text_of(replies: &[Value], kind: &str) -> String {
    let of_kind = replies.iter().filter(|reply| reply["response"]["message_type"] == kind);
    of_kind.filter_map(|reply| reply["response"]["content"].as_str()).collect()
}

#[tokio::test]
async fn a_streamed_dialog_tells_every_step_and_ends_once() {
    let house = House::open().await;
    let mut socket = house.socket().await;
    socket.ask("req-1", &json!({"tools": 1, "answer": "forty two"}), true).await;
    let replies = socket.replies().await;
    assert!(replies.iter().all(|reply| reply["id"] == "req-1" && reply.get("error").is_none()), "{replies:#?}");
    let ends = replies.iter().filter(|reply| reply["response"]["end_of_dialog"] == true).count();
    assert_eq!((ends, replies.last().unwrap()["response"]["end_of_dialog"].clone()), (1, json!(true)));
    let kinds = kinds(&replies);
    assert_eq!((kinds[0], *kinds.last().unwrap()), ("explain", "answer"));
    assert_eq!(text_of(&replies, "answer"), "forty two");
    assert_eq!(text_of(&replies, "observation"), "fact \"0\"");
    assert!(!kinds.contains(&"action"), "the stock client would show it as a thought");
}

#[tokio::test]
async fn a_dialog_that_is_not_streamed_has_its_answer_in_the_last_frame() {
    let house = House::open().await;
    let mut socket = house.socket().await;
    for scene in [
        json!({"tools": 1, "answer": "x"}),
        json!({"plan": [{"tool": true}]}),
        json!({"team": [[{"answer": "x"}, {"answer": "y"}]]}),
    ] {
        let pattern = if scene["team"].is_array() {
            "supervisor"
        } else if scene["plan"].is_array() {
            "plan-then-execute"
        } else {
            "react"
        };
        let request = json!({"question": scene.to_string(), "streaming": false, "pattern": pattern});
        socket.send(json!({"id": "1", "service": "agent", "flow": "default", "request": request})).await;
        let replies = socket.replies().await;
        let answers: Vec<_> = replies.iter().filter(|reply| reply["response"]["message_type"] == "answer").collect();
        assert_eq!(answers.len(), 1, "{replies:#?}");
        assert!(answers[0]["response"]["content"].as_str().is_some_and(|text| !text.is_empty()));
        assert_eq!((&answers[0]["complete"], &answers[0]["response"]["end_of_dialog"]), (&json!(true), &json!(true)));
    }
}

#[tokio::test]
async fn many_dialogs_share_a_socket_and_each_gets_its_own_replies() {
    const DIALOGS: usize = 40;
    let house = House::open().await;
    let mut socket = house.socket().await;
    for n in 0..DIALOGS {
        socket.ask(&format!("req-{n}"), &json!({"tools": 2, "answer": format!("answer {n}")}), true).await;
    }
    let mut answers = vec![String::new(); DIALOGS];
    let mut complete = 0;
    while complete < DIALOGS {
        let reply = socket.next().await;
        let n: usize = reply["id"].as_str().unwrap().strip_prefix("req-").unwrap().parse().unwrap();
        if reply["response"]["message_type"] == "answer" {
            answers[n] += reply["response"]["content"].as_str().unwrap_or("");
        }
        complete += usize::from(reply["complete"] == true);
    }
    for (n, answer) in answers.iter().enumerate() {
        assert_eq!(*answer, format!("answer {n}"));
    }
}

#[tokio::test]
async fn a_failed_run_is_told_in_the_envelope_and_in_the_response() {
    let house = House::open().await;
    let mut socket = house.socket().await;
    socket.ask("1", &json!({"fail": true}), true).await;
    let last = socket.replies().await.pop().unwrap();
    assert_eq!((&last["error"]["type"], &last["complete"]), (&json!("agent-error"), &json!(true)), "{last:#}");
    assert_eq!(last["response"]["error"], last["error"]);
    assert_eq!(
        (&last["response"]["message_type"], &last["response"]["end_of_dialog"]),
        (&json!("error"), &json!(true))
    );
    assert!(last["error"]["message"].as_str().unwrap().contains("the model is dead"), "{last:#}");
}

#[tokio::test]
async fn a_question_that_is_refused_is_told_the_same_way() {
    let house = House::open().await;
    let mut socket = house.socket().await;
    socket.send(json!({"id": 7, "service": "agent", "flow": "default", "request": {"question": " "}})).await;
    let last = socket.next().await;
    assert_eq!((&last["id"], &last["complete"]), (&json!(7), &json!(true)));
    assert_eq!(last["error"]["message"], "the question is empty; write what you want to know");
    assert_eq!(last["response"]["end_of_dialog"], true);
}

#[tokio::test]
async fn rest_gives_the_whole_answer_with_the_members_that_the_sdk_reads() {
    let house = House::open().await;
    for streaming in [false, true] {
        let question = json!({"tools": 1, "answer": "forty two"}).to_string();
        let (status, reply) = house
            .post("/api/v1/flow/default/service/agent", &json!({"question": question, "streaming": streaming}))
            .await;
        assert_eq!(status, 200);
        assert_eq!((&reply["answer"], &reply["content"]), (&json!("forty two"), &json!("forty two")), "{reply:#}");
        assert_eq!((&reply["thought"], &reply["observation"]), (&json!("enough"), &json!("fact \"0\"")));
        assert_eq!(reply["end_of_dialog"], true);
    }
    let failing = json!({"question": json!({"fail": true}).to_string()});
    let (status, reply) = house.post("/api/v1/flow/default/service/agent", &failing).await;
    assert_eq!((status, &reply["error"]["type"]), (200, &json!("agent-error")), "{reply:#}");
}

#[tokio::test]
async fn a_client_that_goes_away_does_not_stop_its_run() {
    let house = House::open().await;
    let mut socket = house.socket().await;
    socket.ask("1", &json!({"tools": 20, "answer": "still here"}), true).await;
    let first = socket.next().await;
    drop(socket);
    let session = first["response"]["session_id"].as_str().unwrap();
    let run = RunId::new(session).unwrap();
    assert!(house.bench.try_follow(&run).await, "the run goes on to its end");
}

#[tokio::test]
async fn a_server_that_stops_tells_each_open_request_before_it_closes() {
    let house = House::open().await;
    let mut socket = house.socket().await;
    socket.ask("1", &json!({"silent": true}), true).await;
    while socket.next().await["response"]["message_type"] != "explain" {}
    house.close.send_replace(Phase::Closed);
    let mut last = socket.next().await;
    while last["complete"] != true {
        last = socket.next().await;
    }
    assert!(last["error"]["message"].as_str().unwrap().contains("the server is stopping"), "{last:#}");
    assert_eq!(socket.next().await, Value::Null, "then the connection ends");
}

/// Work in hand is finished before a server closes, and whoever asked for it hears the end of it.
#[tokio::test]
async fn a_server_that_drains_lets_answers_be_heard_and_takes_no_question() {
    let house = House::open().await;
    let mut socket = house.socket().await;
    socket.ask("1", &json!({"tools": 8, "answer": "heard"}), true).await;
    assert!(socket.next().await["response"].is_object());
    house.close.send_replace(Phase::Draining);
    assert_eq!(
        house.http("GET", "/readyz", "", b"").await,
        (503, json!({"status": "stopping"})),
        "to new callers, too"
    );
    assert_eq!(text_of(&socket.replies().await, "answer"), "heard");
    socket.ask("2", &json!({"answer": "not any more"}), true).await;
    let refused = socket.replies().await.pop().unwrap();
    assert!(refused["error"]["message"].as_str().unwrap().contains("the server is stopping"), "{refused}");
}

/// However many follow a run and however suddenly the server closes: what has ended is heard to its end.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_has_ended_is_heard_to_its_end_by_a_server_that_closes() {
    for _ in 0..5 {
        let house = House::open().await;
        let mut socket = house.socket().await;
        socket.ask("0", &json!({"tools": 8, "answer": "heard"}), true).await;
        let run = socket.next().await["response"]["session_id"].as_str().unwrap().to_owned();
        let path = format!("/api/v1/runs/{run}/events");
        let mut followers = Vec::new();
        for _ in 0..40 {
            let mut follower = house.request("GET", &path, "", b"").await;
            let mut status = [0; 12];
            follower.read_exact(&mut status).await.unwrap();
            // Whoever comes behind the end has nothing to wait for.
            if status.ends_with(b"200") {
                followers.push(follower);
            }
        }
        assert!(house.bench.try_follow(&RunId::new(&run).unwrap()).await);
        assert!(!followers.is_empty());
        house.close.send_replace(Phase::Closed);
        for mut follower in followers {
            let mut heard = String::new();
            follower.read_to_string(&mut heard).await.unwrap();
            assert!(heard.contains("event: run.completed"), "{heard}");
        }
        assert_eq!(text_of(&socket.replies().await, "answer"), "heard");
    }
}

#[tokio::test]
async fn a_question_as_long_as_allowed_is_answered_in_frames_that_clients_can_receive() {
    let house = House::open().await;
    let mut socket = house.socket().await;
    let scene = json!({"answer": "short", "filler": "\"".repeat(300_000)});
    socket.ask("1", &scene, true).await;
    let replies = socket.replies().await;
    assert_eq!(text_of(&replies, "answer"), "short");
    assert!(replies.iter().all(|reply| reply.to_string().len() < 1 << 20), "the stock client hangs at 1 MiB");
    let explained = replies.iter().filter(|reply| reply["response"]["message_type"] == "explain");
    assert!(
        explained.clone().all(|reply| reply["response"]["explain_id"].is_string()),
        "what is left out can be asked for"
    );
    assert!(explained.clone().any(|reply| reply["response"].get("explain_triples").is_none()));
}

/// The server has a runtime of its own, which goes as soon as it has served: like the process that it is.
#[test]
fn a_server_that_has_stopped_has_said_everything() {
    let runtime = || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (server, client) = (runtime(), runtime());
    let house = server.block_on(House::open());
    let mut socket = client.block_on(async {
        let mut socket = house.socket().await;
        socket.ask("1", &json!({"silent": true}), true).await;
        while socket.next().await["response"]["message_type"] != "explain" {}
        socket
    });
    server.block_on(house.shut());
    server.shutdown_background();
    let last = client.block_on(async { socket.replies().await.pop().unwrap() });
    assert!(last["error"]["message"].as_str().unwrap().contains("the server is stopping"), "{last:#}");
}
