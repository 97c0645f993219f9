//! In the place of TrustGraph's orchestrator, on a real RabbitMQ with scripted services around it.
#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]
#![cfg(unix)]

mod begun;
mod exchanges;
mod flows;
mod neighbours;
mod odd;
mod services;
mod shared;

use neighbours::{Held, Neighbours, configure, definition, ends, text, tool};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use trellis_brokers::BrokerAddress;
use trellis_brokers::trustgraph::{FolderNotes, TrustGraph, TrustGraphOptions};
use trellis_domain::limits::SomeLimits;
use trellis_orchestrator::memory::scripted::ScriptedTools;
use trellis_orchestrator::memory::{MemoryConfig, MemoryJournal};
use trellis_orchestrator::ports::{Config, Journal, Notes, Queue, RealWorld, World};
use trellis_orchestrator::queue::FairQueue;
use trellis_orchestrator::workers::{Stop, WorkerOptions, Workers};
use trellis_orchestrator::{Hub, Options, Orchestrator, Ports, RunService};
use trellis_servers::{RabbitMq, RabbitMqOptions};

/// What comes may take a while on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);
/// So many dialogs of a flow are open at once.
const DIALOGS: usize = 16;

/// One process of ours.
struct Ours {
    stop: watch::Sender<bool>,
    stop_workers: watch::Sender<Option<Stop>>,
    serving: JoinHandle<()>,
    working: JoinHandle<()>,
}

/// What a process of ours keeps, and shares with others if they have the same.
struct Kept {
    journal: Arc<dyn Journal>,
    config: Arc<dyn Config>,
    queue: Arc<dyn Queue>,
    hub: Hub,
    notes: Arc<dyn Notes>,
}

impl Ours {
    async fn start(server: &RabbitMq, journal: &Arc<MemoryJournal>, notes: &Path) -> Self {
        let world: Arc<dyn World> = Arc::new(RealWorld);
        let kept = Kept {
            journal: Arc::clone(journal) as _,
            config: Arc::new(MemoryConfig::new(Arc::clone(&world))),
            queue: Arc::new(FairQueue::new(world)),
            hub: Hub::default(),
            notes: Arc::new(FolderNotes::open(notes).unwrap()),
        };
        Self::start_on(server, kept).await
    }

    async fn start_on(server: &RabbitMq, kept: Kept) -> Self {
        let address = BrokerAddress::rabbitmq("127.0.0.1", server.port(), "trellis", server.password(), "/");
        let options = TrustGraphOptions {
            id: "agent-manager".to_owned(),
            notices: "notify:tg:config".to_owned(),
            config_timeout: Duration::from_secs(30),
            // It goes on while RabbitMQ is started again.
            prompt_timeout: 5 * PATIENCE,
            librarian_timeout: Duration::from_secs(30),
            limits: SomeLimits::default(),
            dialogs_per_flow: DIALOGS,
        };
        let world: Arc<dyn World> = Arc::new(RealWorld);
        let deployment = Arc::new(TrustGraph::connect(address, options, Arc::clone(&world)).await.unwrap());
        let Kept { journal, config, queue, hub, notes } = kept;
        let ports = Ports {
            journal,
            queue,
            config: Arc::clone(&config),
            prompter: deployment.prompter(),
            tools: deployment.tools(Arc::new(ScriptedTools::new(|_| Ok("nothing".to_owned())))),
            hub: Arc::new(hub),
            world,
        };
        let orchestrator = Arc::new(Orchestrator::new(ports, Options::default()));
        let runs = RunService::new(&orchestrator);
        let (stop_workers, stopped) = watch::channel(None);
        let working =
            tokio::spawn(async move { Workers::new(orchestrator, WorkerOptions::default()).run(stopped).await });
        let (stop, stopped) = watch::channel(false);
        let serving = tokio::spawn(async move { deployment.serve(runs, config, notes, stopped).await });
        Self { stop, stop_workers, serving, working }
    }

    async fn stop(self) {
        self.stop.send_replace(true);
        self.serving.await.unwrap();
        self.stop_workers.send_replace(Some(Stop::Drain));
        self.working.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_answered_with_the_services_of_the_deployment() {
    let server = RabbitMq::start(RabbitMqOptions::default());
    let (neighbours, notes) = (Neighbours::start(&server).await, TempDir::new().unwrap());
    configure(&neighbours).await;
    let journal = Arc::new(MemoryJournal::default());
    let ours = Ours::start(&server, &journal, notes.path()).await;

    let responses = neighbours.ask(&json!({"question": "rain?", "state": null, "streaming": true})).await;
    assert_eq!(text(&responses, "answer"), "It says: Rain.");
    assert_eq!(text(&responses, "observation"), "Rain.");
    let sessions: Vec<_> = responses.iter().map(|response| response["session_id"].as_str().unwrap()).collect();
    assert!(!sessions[0].is_empty() && sessions.iter().all(|session| *session == sessions[0]), "{sessions:?}");
    assert_eq!(ends(&responses), 1);
    let step = format!("urn:trustgraph:agent:{}/i1", sessions[0]);
    assert!(responses.iter().any(|response| response["explain_id"] == step.as_str()));
    neighbours.until("triples", |stored| stored["metadata"]["id"] == step.as_str()).await;
    let answer = format!("urn:trustgraph:agent:{}/answer", sessions[0]);
    neighbours.until("librarian", |saved| saved["document_id"] == answer.as_str()).await;
    let saved = neighbours.heard("librarian").into_iter().find(|saved| saved["document_id"] == answer.as_str());
    let about = &saved.unwrap()["document_metadata"];
    assert_eq!(about["tags"], json!(["answer"]));
    assert_eq!(about["metadata"][0]["o"]["iri"], format!("urn:trustgraph:agent:{}", sessions[0]));
    let asked = neighbours.heard("mcp-tool");
    assert_eq!(asked, [json!({"name": "get_weather", "parameters": r#"{"city":"Paris"}"#})]);

    // What somebody else has begun: their step is known, and their graph goes on with ours.
    let step = json!({"thought": "t", "action": "weather", "arguments": {"city": "Oslo"}, "observation": "Snow."});
    let begun = json!({"question": "snow?", "session_id": "elsewhere", "pattern": "react", "history": [step]});
    let responses = neighbours.ask(&begun).await;
    assert_eq!(responses.last().unwrap()["content"], "It says: Snow.");
    neighbours.until("triples", |stored| stored.to_string().contains("agent:elsewhere/i1/observation")).await;

    // Nothing that is no request keeps others from being answered.
    let refused = neighbours.ask(&json!({"question": 7})).await;
    assert!(refused[0]["error"]["message"].as_str().unwrap().contains("no request to an agent"), "{refused:?}");

    ours.stop().await;
    let ours = Ours::start(&server, &journal, notes.path()).await;
    let responses = neighbours.ask(&json!({"question": "rain again?"})).await;
    assert_eq!(responses.last().unwrap()["content"], "It says: Rain.");
    until_no_dialog_is_open(notes.path()).await;
    ours.stop().await;
}

async fn until_no_dialog_is_open(notes: &Path) {
    let closed = async {
        while std::fs::read_dir(notes).unwrap().count() > 0 {
            RealWorld.sleep(Duration::from_millis(20)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, closed).await.is_ok(), "no dialog is open");
}

#[tokio::test(flavor = "multi_thread")]
async fn patterns_and_changes_of_the_configuration_go_over_the_broker() {
    let server = RabbitMq::start(RabbitMqOptions::default());
    let (neighbours, notes) = (Neighbours::start(&server).await, TempDir::new().unwrap());
    configure(&neighbours).await;
    let ours = Ours::start(&server, &Arc::default(), notes.path()).await;

    let planned =
        neighbours.ask(&json!({"question": "rain?", "pattern": "plan-then-execute", "streaming": true})).await;
    assert_eq!((text(&planned, "answer").as_str(), ends(&planned)), ("Planned: Rain. Rain.", 1));
    let session = planned[0]["session_id"].as_str().unwrap();
    for node in ["plan", "step/0", "step/1", "synthesis"] {
        let node = format!("urn:trustgraph:agent:{session}/{node}");
        neighbours.until("triples", |stored| stored["metadata"]["id"] == node.as_str()).await;
    }
    let supervised = neighbours.ask(&json!({"question": "rain?", "pattern": "supervisor", "streaming": true})).await;
    let found = "Found: It says: Rain. It says: Rain.";
    assert_eq!((text(&supervised, "answer").as_str(), ends(&supervised)), (found, 1));
    let session = supervised[0]["session_id"].as_str().unwrap();
    for node in ["decompose", "finding/0", "finding/1", "synthesis"] {
        let node = format!("urn:trustgraph:agent:{session}/{node}");
        neighbours.until("triples", |stored| stored["metadata"]["id"] == node.as_str()).await;
    }

    // A dialog has the tools that there were when it began, and the services of its flow whatever becomes of that.
    let question = "what says the almanac?";
    let written = json!(question).to_string();
    neighbours.hold(Some(Held { steps: 0, pieces: 0 }));
    let id = neighbours.begin(&json!({"question": question})).await;
    neighbours.until("prompt", |asked| asked["terms"]["question"] == written.as_str()).await;
    neighbours.put("tool", "almanac", &tool("almanac")).await;
    neighbours.put("tool", "broken", &json!({"name": "broken", "type": "telepathy"})).await;
    let rag = [("graph-rag-request", "request:tg:rag:a:b"), ("graph-rag-response", "response:tg:rag:a:b")];
    neighbours.put("processor:agent-manager", "main", &definition(&rag)).await;
    neighbours.hold(None);
    let held = neighbours.end_of(&id).await;
    assert_eq!((text(&held, "answer").as_str(), ends(&held)), ("It says: Rain.", 1));
    let known =
        async { while text(&neighbours.ask(&json!({"question": question})).await, "observation") == "Rain." {} };
    tokio::time::timeout(PATIENCE, known).await.expect("the new tool is known");
    let answered = neighbours.ask(&json!({"question": question})).await;
    assert_eq!(text(&answered, "answer"), "It says: get_almanac!");
    until_no_dialog_is_open(notes.path()).await;
    ours.stop().await;
}

/// What a deployment may do wrong harms only what is wrong.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_of_the_configuration_keeps_nothing_else_waiting() {
    let server = RabbitMq::start(RabbitMqOptions::default());
    let (neighbours, notes) = (Neighbours::start(&server).await, TempDir::new().unwrap());
    configure(&neighbours).await;
    neighbours.note_item("closed", "tool", "secret", Some(&tool("secret")));
    neighbours.refuse("closed", "tool");
    let ours = Ours::start(&server, &Arc::default(), notes.path()).await;
    let question = json!({"question": "rain?"});
    assert_eq!(text(&neighbours.ask(&question).await, "answer"), "It says: Rain.");

    // An item that has lost its value, and a definition that nobody can serve, take nothing away.
    neighbours.note_item("default", "tool", "weather", None);
    neighbours.put("processor:agent-manager", "main", &json!({"topics": {"request": "a:b"}})).await;
    let asked = neighbours.heard("config").len();
    neighbours.put("tool", "almanac", &tool("almanac")).await;
    neighbours.until_more("config", asked).await;
    let known = async {
        let almanac = json!({"question": "what says the almanac?"});
        while text(&neighbours.ask(&almanac).await, "observation") != "get_almanac!" {}
    };
    tokio::time::timeout(PATIENCE, known).await.expect("the new tool is known");
    assert_eq!(text(&neighbours.ask(&question).await, "answer"), "It says: Rain.", "the old tool is still there");
    ours.stop().await;
}

/// The supervisor that waits for it may be busy for long, and nobody else waits for that.
#[tokio::test(flavor = "multi_thread")]
async fn ends_of_others_go_round_until_somebody_takes_them() {
    let server = RabbitMq::start(RabbitMqOptions::default());
    let (neighbours, notes) = (Neighbours::start(&server).await, TempDir::new().unwrap());
    configure(&neighbours).await;
    let ours = Ours::start(&server, &Arc::default(), notes.path()).await;
    let plan = json!([{"goal": "g", "tool_hint": "h", "depends_on": [], "status": "completed", "result": "r"}]);
    let step = json!({"thought": "Subagent completed", "action": "complete", "arguments": {"a": "1"}, "observation": "o",
        "step_type": "subagent-completion", "plan": plan, "subagent_results": {"x": "y"}});
    let end = json!({"question": "goal", "state": "searched", "group": ["read"], "collection": "papers", "streaming": true,
        "session_id": "child", "conversation_id": "talk", "pattern": "react", "task_type": "general", "framing": "Cite.",
        "correlation_id": "c-1", "parent_session_id": "parent", "subagent_goal": "goal", "expected_siblings": 2,
        "history": [step]});
    neighbours.begin(&end).await;
    assert_eq!(text(&neighbours.ask(&json!({"question": "rain?"})).await, "answer"), "It says: Rain.");
    // It is still known to a process that comes after this one.
    ours.stop().await;
    let ours = Ours::start(&server, &Arc::default(), notes.path()).await;
    let taken = neighbours.take_one().await;
    assert_eq!(taken, end, "whoever takes it can go on with all that it says");
    // What the first process has sent and could not note as sent any more comes twice.
    let again = async {
        loop {
            neighbours.take_one().await;
        }
    };
    tokio::select! {
        () = until_no_dialog_is_open(notes.path()) => {}
        () = again => {}
    }
    ours.stop().await;
}

/// Its supervisor is in another process of the pool, and the client waits for that one.
#[tokio::test(flavor = "multi_thread")]
async fn a_subagent_of_others_tells_its_end_to_the_pool_and_not_to_the_client() {
    let server = RabbitMq::start(RabbitMqOptions::default());
    let (neighbours, notes) = (Neighbours::start(&server).await, TempDir::new().unwrap());
    configure(&neighbours).await;
    let ours = Ours::start(&server, &Arc::default(), notes.path()).await;
    let id = neighbours
        .begin(&json!({
            "question": "rain?", "session_id": "child", "conversation_id": "talk", "correlation_id": "c-2",
            "parent_session_id": "parent", "subagent_goal": "rain?", "expected_siblings": 2, "streaming": true,
        }))
        .await;
    neighbours.until("prompt", |asked| asked["id"] == "agent-react").await;
    let step = json!({
        "thought": "Subagent completed", "action": "complete", "arguments": {}, "observation": "It says: Rain.",
        "step_type": "subagent-completion", "plan": [], "subagent_results": {},
    });
    let told = json!({
        "question": "rain?", "state": "", "group": null, "history": [step], "collection": "default", "streaming": false,
        "session_id": "child", "conversation_id": "talk", "pattern": "", "task_type": "", "framing": "",
        "correlation_id": "c-2", "parent_session_id": "parent", "subagent_goal": "rain?", "expected_siblings": 2,
    });
    assert_eq!(neighbours.take_one().await.to_string(), told.to_string());
    assert_eq!(ends(&neighbours.responses(&id)), 0);
    ours.stop().await;
}

/// Another process of the pool takes what there is no place for here.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_has_no_place_for_a_dialog_keeps_no_request() {
    let server = RabbitMq::start(RabbitMqOptions::default());
    let (neighbours, notes) = (Neighbours::start(&server).await, TempDir::new().unwrap());
    configure(&neighbours).await;
    let ours = Ours::start(&server, &Arc::default(), notes.path()).await;
    neighbours.hold(Some(Held { steps: 0, pieces: 0 }));
    for n in 0..DIALOGS {
        neighbours.begin(&json!({"question": format!("rain {n}?")})).await;
    }
    let open = || std::fs::read_dir(notes.path()).unwrap().count();
    let all_open = async {
        while open() < DIALOGS {
            RealWorld.sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, all_open).await.expect("all places are taken");
    neighbours.begin(&json!({"question": "one more?"})).await;
    assert_eq!(neighbours.take_one().await["question"], "one more?");
    // With a place, it is listened to again.
    neighbours.hold(None);
    assert_eq!(text(&neighbours.ask(&json!({"question": "rain?"})).await, "answer"), "It says: Rain.");
    ours.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dialog_outlives_the_broker() {
    let server = RabbitMq::start(RabbitMqOptions::default());
    let (mut neighbours, notes) = (Neighbours::start(&server).await, TempDir::new().unwrap());
    configure(&neighbours).await;
    let ours = Ours::start(&server, &Arc::default(), notes.path()).await;
    neighbours.hold(Some(Held { steps: 1, pieces: 0 }));
    let id = neighbours.begin(&json!({"question": "rain?", "streaming": true})).await;
    neighbours.until_told(&id, |response| response["message_type"] == "observation").await;
    let prompts = neighbours.heard("prompt").len();
    server.kill();
    server.start_again();
    neighbours.hold(None);
    neighbours.come_back(&server).await;
    neighbours.until_more("prompt", prompts).await;
    // The original's gateway looks for RabbitMQ less often than we do: what is to be told waits for it.
    RealWorld.sleep(Duration::from_secs(1)).await;
    neighbours.listen().await;
    let responses = neighbours.end_of(&id).await;
    assert_eq!((text(&responses, "answer").as_str(), ends(&responses)), ("It says: Rain.", 1));
    assert_eq!(text(&neighbours.ask(&json!({"question": "rain again?"})).await, "answer"), "It says: Rain.");
    until_no_dialog_is_open(notes.path()).await;
    ours.stop().await;
}
