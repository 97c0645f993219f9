//! Triples and SPARQL, as the stock clients ask for them.

use crate::house::{House, Setup, Socket};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use trellis_domain::rdf::{Quad, Term, Triple};
use trellis_domain::{RunId, Workspace};
use trellis_orchestrator::ports::{Answer, Asking, BoxFuture, Found, Graph, GraphError, QuadPattern, QueryLimits};

const TRIPLES: &str = "/api/v1/flow/default/service/triples";
const SPARQL: &str = "/api/v1/flow/default/service/sparql";
const QUERY: &str = "https://trustgraph.ai/ns/query";
const DERIVED: &str = "http://www.w3.org/ns/prov#wasDerivedFrom";

fn iri(iri: &str) -> Value {
    json!({"t": "i", "i": iri})
}

/// All replies on a socket to one request to a service of the usual flow.
async fn replies(socket: &mut Socket, service: &str, request: Value) -> Vec<Value> {
    let frame = json!({"id": "q", "workspace": "default", "service": service, "flow": "default", "request": request});
    socket.send(frame).await;
    socket.replies().await
}

async fn one_reply(socket: &mut Socket, service: &str, request: Value) -> Value {
    let mut all = replies(socket, service, request).await;
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)["response"].take()
}

/// Asks an agent and gives the IRI of its session.
async fn asked(socket: &mut Socket, scene: Value) -> String {
    socket.ask("a", &scene, true).await;
    let replies = socket.replies().await;
    replies[0]["response"]["explain_id"].as_str().unwrap().to_owned()
}

/// The entities that the explain tools find: each node is fetched twice, then whatever derives from it.
async fn walk(socket: &mut Socket, node: &str, found: &mut Vec<String>) {
    let graph = "urn:graph:retrieval";
    let fetch = json!({"limit": 100, "s": iri(node), "g": graph, "collection": "default"});
    let first = one_reply(socket, "triples", fetch.clone()).await;
    assert_eq!(one_reply(socket, "triples", fetch).await, first, "stable");
    let types: Vec<_> =
        first["response"].as_array().unwrap().iter().filter(|triple| triple["s"] == iri(node)).collect();
    assert!(!types.is_empty(), "{node} is described");
    found.push(node.to_owned());
    let below = json!({"limit": 20, "p": iri(DERIVED), "o": iri(node), "g": graph, "collection": "default"});
    let below = one_reply(socket, "triples", below).await;
    for triple in below["response"].as_array().unwrap() {
        Box::pin(walk(socket, triple["s"]["i"].as_str().unwrap(), found)).await;
    }
}

#[tokio::test]
async fn the_explain_tools_find_and_walk_a_session() {
    let house = House::open().await;
    let mut socket = house.socket().await;
    let first = asked(&mut socket, json!({"tools": 1, "answer": "one"})).await;
    let second = asked(&mut socket, json!({"tools": 2, "answer": "two"})).await;
    let list = json!({"limit": 50, "p": iri(QUERY), "g": "urn:graph:retrieval", "collection": "default"});
    let list = one_reply(&mut socket, "triples", list).await;
    let sessions: Vec<_> = list["response"].as_array().unwrap().iter().map(|triple| &triple["s"]["i"]).collect();
    assert_eq!(sessions, [&json!(second), &json!(first)], "newest first");
    let top = json!({"limit": 1, "s": iri(&second), "p": iri(DERIVED), "g": "urn:graph:retrieval"});
    assert_eq!(one_reply(&mut socket, "triples", top).await, json!({"response": []}), "a top-level session");
    let mut found = Vec::new();
    walk(&mut socket, &second, &mut found).await;
    for node in ["", "/i1", "/i1/observation", "/i2", "/i2/observation", "/final"] {
        assert!(found.contains(&format!("{second}{node}")), "{node} in {found:?}");
    }
}

/// The tools ask for 20 nodes below a node and for 100 statements about one; a long plan has more of both.
#[tokio::test]
async fn the_explain_tools_find_everything_of_a_long_plan() {
    let house = House::open().await;
    let mut socket = house.socket().await;
    let steps: Vec<_> = (0..50).map(|number| json!({"tool": true, "number": number})).collect();
    let question = json!({"plan": steps}).to_string();
    let replies = replies(&mut socket, "agent", json!({"question": question, "pattern": "plan-then-execute"})).await;
    let session = replies[0]["response"]["explain_id"].as_str().unwrap().to_owned();
    let mut found = Vec::new();
    walk(&mut socket, &session, &mut found).await;
    for step in 0..50 {
        assert!(found.contains(&format!("{session}/step/{step}")), "step {step} in {found:?}");
    }
    assert!(found.contains(&format!("{session}/synthesis")), "{found:?}");
    let about = json!({"limit": 100, "s": iri(&format!("{session}/plan"))});
    let (_, about) = house.post(TRIPLES, &about).await;
    assert!(about["response"].as_array().unwrap().len() > 100, "the plan itself is whole, too");
    let (_, few) = house.post(TRIPLES, &json!({"limit": 20, "p": iri(DERIVED)})).await;
    assert_eq!(few["response"].as_array().unwrap().len(), 20, "what is no step through a trace keeps to its limit");
}

#[tokio::test]
async fn triples_are_the_same_over_rest_and_in_batches() {
    let house = House::open().await;
    let mut socket = house.socket().await;
    let session = asked(&mut socket, json!({"tools": 1, "answer": "one"})).await;
    let request = json!({"s": iri(&session), "workspace": "default"});
    let (status, whole) = house.post(TRIPLES, &request).await;
    assert_eq!(status, 200);
    let all = whole["response"].as_array().unwrap().clone();
    assert!(all.len() > 6 && all.iter().all(|triple| triple["g"] == "urn:graph:retrieval"), "{whole}");
    let batched = json!({"s": session, "streaming": true, "batch-size": 4});
    let frames = replies(&mut socket, "triples", batched).await;
    let batch = |frame: &Value| frame["response"]["response"].as_array().unwrap().clone();
    assert!(frames.len() > 1 && frames.iter().all(|frame| batch(frame).len() <= 4), "{frames:?}");
    assert_eq!(frames.iter().flat_map(batch).collect::<Vec<_>>(), all, "a plain text names a node as well");
    for graph in [json!(null), json!("*")] {
        let (_, found) = house.post(TRIPLES, &json!({"s": iri(&session), "g": graph})).await;
        assert_eq!(found, whole);
    }
    for graph in ["", "urn:graph:source"] {
        let nothing = json!({"s": iri(&session), "g": graph, "streaming": true});
        let frames = replies(&mut socket, "triples", nothing).await;
        assert_eq!(frames, [json!({"id": "q", "response": {"response": []}, "complete": true})]);
    }
    let (_, few) = house.post(TRIPLES, &json!({"limit": 3})).await;
    assert_eq!(few["response"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn wrong_requests_are_refused_by_name_on_both_surfaces() {
    let house = House::open().await;
    let mut socket = house.socket().await;
    let cases = [
        ("triples", json!({"s": 1}), "`s`"),
        ("triples", json!({"o": {"t": "i"}}), "`o`"),
        ("triples", json!({"limit": "ten"}), "`limit`"),
        ("triples", json!({"batch-size": 0, "streaming": true}), "`batch-size`"),
        ("sparql", json!({}), "`query`"),
        ("sparql", json!({"query": ["ASK {}"]}), "`query`"),
        ("sparql", json!({"query": "ASK {}", "collection": 1}), "`collection`"),
        ("sparql", json!({"query": "ASK {}", "limit": 1_000_000}), "`limit`"),
    ];
    for (service, request, named) in cases {
        let (status, over_rest) = house.post(&format!("/api/v1/flow/default/service/{service}"), &request).await;
        assert_eq!((status, &over_rest["error"]["type"]), (200, &json!("request-error")), "{request}");
        assert!(over_rest["error"]["message"].as_str().unwrap().contains(named), "{request}: {over_rest}");
        let frames = replies(&mut socket, service, request.clone()).await;
        assert_eq!(frames, [json!({"id": "q", "error": over_rest["error"], "complete": true})], "{request}");
    }
    let (_, elsewhere) = house.post("/api/v1/flow/nowhere/service/triples", &json!({})).await;
    assert!(elsewhere["error"]["message"].as_str().unwrap().contains("nowhere"), "{elsewhere}");
    let (_, none) = house.post(SPARQL, &json!({"query": "ASK {}"})).await;
    assert_eq!(none["error"]["type"], "gateway-error", "the graph in memory knows no SPARQL: {none}");
}

/// A graph that gives one answer after another, and notes what it was asked.
#[derive(Debug, Default)]
struct Oracle {
    answers: Mutex<Vec<Result<Answer, GraphError>>>,
    asked: Mutex<Vec<(String, QueryLimits)>>,
    missing_runs: AtomicUsize,
}

impl Graph for Oracle {
    fn run<'a>(&'a self, _: &'a Workspace, _: &'a RunId) -> BoxFuture<'a, Result<Vec<Quad>, GraphError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn matching<'a>(
        &'a self,
        _: &'a Workspace,
        _: &'a QuadPattern,
        _: usize,
    ) -> BoxFuture<'a, Result<Found<Vec<Quad>>, GraphError>> {
        Box::pin(std::future::pending())
    }

    fn query<'a>(
        &'a self,
        _: Asking<'a>,
        sparql: &'a str,
        limits: QueryLimits,
    ) -> BoxFuture<'a, Result<Found<Answer>, GraphError>> {
        self.asked.lock().unwrap().push((sparql.to_owned(), limits));
        let answer = self.answers.lock().unwrap().remove(0);
        let missing_runs = self.missing_runs.load(Ordering::Relaxed);
        Box::pin(std::future::ready(answer.map(|found| Found { found, missing_runs })))
    }
}

async fn house_with(answers: Vec<Result<Answer, GraphError>>) -> (House, Arc<Oracle>) {
    let oracle = Arc::new(Oracle { answers: Mutex::new(answers), ..Oracle::default() });
    (House::with(Setup { graph: Some(Arc::clone(&oracle) as _), ..Setup::default() }).await, oracle)
}

fn rows(count: usize, truncated: bool) -> Answer {
    let rows = (0..count).map(|n| vec![Some(Term::literal(n.to_string())), None]).collect();
    Answer::Rows { variables: vec!["n".to_owned(), "none".to_owned()], rows, truncated }
}

#[tokio::test]
async fn each_form_of_sparql_answer_has_the_shape_that_clients_read() {
    let triple = Triple { s: Term::iri("urn:s"), p: Term::iri("urn:p"), o: Term::literal("o") };
    let written = json!({"s": iri("urn:s"), "p": iri("urn:p"), "o": {"t": "l", "v": "o"}});
    let shapes = [
        (
            rows(1, false),
            json!({"query-type": "select", "variables": ["n", "none"],
                "bindings": [{"values": [{"t": "l", "v": "0"}, null]}]}),
        ),
        (rows(0, false), json!({"query-type": "select", "variables": ["n", "none"], "bindings": []})),
        (Answer::Truth(false), json!({"query-type": "ask", "ask-result": false})),
        (Answer::Constructed(vec![triple.clone()]), json!({"query-type": "construct", "triples": [written]})),
        (Answer::Described(vec![triple]), json!({"query-type": "describe", "triples": [written]})),
    ];
    let twice = shapes.iter().flat_map(|(answer, _)| [Ok(answer.clone()), Ok(answer.clone())]).collect();
    let (house, oracle) = house_with(twice).await;
    let mut socket = house.socket().await;
    for (_, shape) in &shapes {
        let request = json!({"query": "ASK {}", "collection": "default", "limit": 7});
        assert_eq!(house.post(SPARQL, &request).await, (200, shape.clone()));
        let streamed = json!({"query": "ASK {}", "streaming": true, "batch-size": 20});
        let frames = replies(&mut socket, "sparql", streamed).await;
        assert_eq!(frames, [json!({"id": "q", "response": shape, "complete": true})]);
    }
    let asked = oracle.asked.lock().unwrap();
    let limits: Vec<_> = asked.iter().take(2).map(|(_, limits)| limits.max_rows).collect();
    assert_eq!((limits, asked[0].0.as_str()), (vec![7, 10_000], "ASK {}"));
}

#[tokio::test]
async fn rows_come_in_batches_under_their_variables_and_a_cut_is_said() {
    let (house, _) = house_with(vec![Ok(rows(5, true))]).await;
    let mut socket = house.socket().await;
    let request = json!({"query": "SELECT", "streaming": true, "batch-size": 2, "limit": 5});
    let frames = replies(&mut socket, "sparql", request).await;
    let seen: Vec<_> = frames
        .iter()
        .map(|frame| {
            let response = &frame["response"];
            assert_eq!(response["variables"], json!(["n", "none"]));
            (response["bindings"].as_array().unwrap().len(), &response["truncated"], &frame["complete"])
        })
        .collect();
    let (no, yes, none) = (json!(false), json!(true), Value::Null);
    assert_eq!(seen, [(2, &none, &no), (2, &none, &no), (1, &yes, &yes)]);
}

#[tokio::test]
async fn failures_of_the_graph_are_errors_of_the_envelope() {
    let time = Duration::from_secs(30);
    let failures =
        [(GraphError::Query("wrong".to_owned()), "request-error"), (GraphError::TimedOut(time), "gateway-error")];
    let (house, _) = house_with(failures.iter().map(|(error, _)| Err(error.clone())).collect()).await;
    let mut socket = house.socket().await;
    for (error, kind) in failures {
        let frames = replies(&mut socket, "sparql", json!({"query": "x", "streaming": true})).await;
        let told = json!({"type": kind, "message": error.to_string()});
        assert_eq!(frames, [json!({"id": "q", "error": told, "complete": true})]);
    }
}

#[tokio::test]
async fn a_server_that_stops_leaves_no_look_unanswered() {
    let (house, _) = house_with(Vec::new()).await;
    let mut socket = house.socket().await;
    socket.send(json!({"id": "q", "service": "triples", "flow": "default", "request": {}})).await;
    socket.send(json!({"id": "r", "service": "triples", "flow": "default", "request": {"limit": "x"}})).await;
    // The second is answered, so the first is being looked for.
    assert_eq!(socket.next().await["id"], "r");
    house.close.send_replace(trellis_gateway::Phase::Closed);
    let last = socket.next().await;
    assert!(last["error"]["message"].as_str().unwrap().contains("stopping"), "{last}");
}

#[tokio::test]
async fn an_answer_that_lacks_runs_says_how_many() {
    let (house, oracle) = house_with(vec![Ok(Answer::Truth(true)), Ok(rows(2, false)), Ok(rows(1, false))]).await;
    let (_, whole) = house.post(SPARQL, &json!({"query": "ASK {}"})).await;
    assert_eq!(whole, json!({"query-type": "ask", "ask-result": true}));
    oracle.missing_runs.store(1_200, Ordering::Relaxed);
    let (_, lacking) = house.post(SPARQL, &json!({"query": "SELECT"})).await;
    assert_eq!(lacking["missing-runs"], 1_200, "{lacking}");
    let (_, lacking) = house.post("/api/v1/sparql", &json!({"query": "SELECT"})).await;
    assert_eq!((&lacking["missing-runs"], lacking["bindings"].as_array().unwrap().len()), (&json!(1_200), 1));
}

/// Whoever has said everything may close that half of the connection, also with a query.
#[tokio::test]
async fn a_caller_that_only_listens_any_more_gets_its_answer() {
    let (house, _) = house_with(vec![Ok(Answer::Truth(true)), Ok(Answer::Truth(true))]).await;
    for path in [SPARQL, "/api/v1/sparql"] {
        let mut stream = house.request("POST", path, "", br#"{"query": "ASK {}"}"#).await;
        stream.shutdown().await.unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).await.unwrap();
        assert!(reply.starts_with("HTTP/1.1 200") && reply.contains("\"ask-result\":true"), "{path}: {reply:?}");
    }
}

#[tokio::test]
async fn a_query_that_finds_no_place_is_told_to_come_again() {
    let busy = || Err(GraphError::Busy("too many queries wait already; ask again in a moment".to_owned()));
    let (house, _) = house_with(vec![busy(), busy()]).await;
    let (status, reply) = house.post("/api/v1/sparql", &json!({"query": "ASK {}"})).await;
    assert_eq!((status, &reply["error"]["type"]), (429, &json!("too-many-queries")), "{reply}");
    let (status, reply) = house.post(SPARQL, &json!({"query": "ASK {}"})).await;
    assert_eq!((status, &reply["error"]["type"]), (200, &json!("gateway-error")), "{reply}");
}
