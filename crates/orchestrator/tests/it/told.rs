//! Messages to a run that is under way: recorded, and part of whatever models are asked next.

use crate::memory;
use crate::promises::Serving;
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;
use trellis_domain::limits::SomeLimits;
use trellis_domain::parts::ChatTurn;
use trellis_domain::record::Record;
use trellis_domain::{Caller, RunId, Surface, Workspace};
use trellis_orchestrator::contract::play;
use trellis_orchestrator::contract::runs::Bench;
use trellis_orchestrator::contract::teams::{Played, agent, question};
use trellis_orchestrator::memory::scripted::ScriptedPrompter;
use trellis_orchestrator::ports::{BoxFuture, PromptCall, ToolCall, ToolError, ToolOutput, ToolRunner};
use trellis_orchestrator::workers::{Stop, WorkerOptions};
use trellis_orchestrator::{Options, Orchestrator, Ports, TellError, Telling};

const MESSAGE: &str = "only the last two years";

fn ada() -> Caller {
    Caller::new(Some("ada".to_owned()), Surface::CommandLine)
}

/// A tool that answers when it is told to.
#[derive(Debug, Default)]
struct Held {
    begun: Notify,
    go_on: Notify,
}

impl ToolRunner for Held {
    fn call(&self, _: ToolCall) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            self.begun.notify_one();
            self.go_on.notified().await;
            Ok(ToolOutput { text: "a fact".to_owned(), ..ToolOutput::default() })
        })
    }
}

/// What models were asked, as text: the variables, then the turns.
type Asked = Arc<Mutex<Vec<(String, String)>>>;

async fn bench(tools: &Arc<Held>) -> (Bench, Asked) {
    let asked = Asked::default();
    let heard = Arc::clone(&asked);
    let prompter = ScriptedPrompter::saying(move |call: &PromptCall| {
        let turns: Vec<_> = call.turns.iter().map(written).collect();
        let text = format!("{}\n{}", json!(call.variables), turns.join("\n"));
        heard.lock().unwrap().push((call.id.clone(), text));
        play::reply_or_call(call)
    });
    let bench = Bench::new(memory(), prompter).await;
    let ports = Ports { tools: Arc::clone(tools) as Arc<dyn ToolRunner>, ..bench.orchestrator.ports.clone() };
    (Bench { orchestrator: Arc::new(Orchestrator::new(ports, Options::default())), ..bench }, asked)
}

fn written(turn: &ChatTurn) -> String {
    match turn {
        ChatTurn::User { text } | ChatTurn::ToolResult { text, .. } => text.text().to_owned(),
        ChatTurn::Assistant { .. } => String::new(),
    }
}

async fn tell(bench: &Bench, run: &RunId, text: &str) -> Result<Telling, TellError> {
    bench.runs().tell(&Workspace::default(), run, text, &ada()).await
}

fn of_run(played: &Played) -> impl Iterator<Item = &Arc<Record>> {
    played.records.iter().filter(|record| record.header.session == played.run)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_asked_next_is_asked_with_the_message() {
    let tools = Arc::new(Held::default());
    let (bench, asked) = bench(&tools).await;
    let run = bench.request(1, question(&json!({"tools": 2, "answer": "so"}), "react"), SomeLimits::default()).await;
    let serving = Serving::start(&bench, WorkerOptions::default());
    tools.begun.notified().await;
    assert_eq!(tell(&bench, &run, MESSAGE).await.unwrap(), Telling { number: 1, agents: 1 });
    tools.go_on.notify_one();
    tools.begun.notified().await;
    tools.go_on.notify_one();
    bench.follow(&run).await;
    serving.stop(Stop::Drain).await;
    let played = Played::of(&bench, run.clone()).await;
    played.keeps_the_promises();
    let heard: Vec<_> = asked.lock().unwrap().iter().map(|(_, text)| text.matches(MESSAGE).count()).collect();
    assert_eq!(heard, [0, 1, 1], "once in each prompt after it");
    let replies: Vec<_> = of_run(&played).filter_map(|it| Some(it.body.as_replied()?.heard)).collect();
    assert_eq!(replies, [0, 1, 1]);
    let told = of_run(&played).find_map(|record| record.body.as_told()).unwrap();
    assert_eq!((told.text.text(), &told.by), (MESSAGE, &ada()));
    assert!(matches!(tell(&bench, &run, "more").await, Err(TellError::Ended(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn all_agents_at_work_hear_it_and_those_that_begin_later() {
    let tools = Arc::new(Held::default());
    let (bench, asked) = bench(&tools).await;
    let scene = json!({"team": [[agent("a")], [agent("b")]]});
    let run = bench.request(1, question(&scene, "supervisor"), SomeLimits::default()).await;
    let serving = Serving::start(&bench, WorkerOptions::default());
    tools.begun.notified().await;
    assert_eq!(tell(&bench, &run, MESSAGE).await.unwrap(), Telling { number: 1, agents: 2 });
    tools.go_on.notify_one();
    tools.begun.notified().await;
    tools.go_on.notify_one();
    bench.follow(&run).await;
    serving.stop(Stop::Drain).await;
    let played = Played::of(&bench, run).await;
    played.keeps_the_promises();
    let heard: Vec<_> = asked.lock().unwrap().iter().map(|(id, text)| (id.clone(), text.contains(MESSAGE))).collect();
    let heard: Vec<_> = heard.iter().map(|(id, heard)| (id.as_str(), *heard)).collect();
    let expected = [
        ("supervisor-decompose", false),
        ("agent-react", false),
        ("agent-react", true),
        ("supervisor-review", true),
        ("agent-react", true),
        ("agent-react", true),
    ];
    assert_eq!(heard[..6], expected);
}

/// An agent with a task type of its own has that one's words, and still knows what was said before those above it began.
#[tokio::test(flavor = "multi_thread")]
async fn it_reaches_agents_of_another_task_type_far_below() {
    let tools = Arc::new(Held::default());
    let (bench, asked) = bench(&tools).await;
    crate::agents::add_colleague(&bench, &json!({"task-type": "audit", "pattern": "react"})).await;
    let task_type = json!({"name": "audit", "description": "checks", "framing": "Check twice."});
    crate::agents::put(&bench, "agent-task-type", "audit", &task_type).await;
    let scene = json!({"team": [[agent("a")], [{"agents": [agent("deep")], "answer": "b"}]]});
    let run = bench.request(1, question(&scene, "supervisor"), SomeLimits::default()).await;
    let serving = Serving::start(&bench, WorkerOptions::default());
    tools.begun.notified().await;
    tell(&bench, &run, MESSAGE).await.unwrap();
    tools.go_on.notify_one();
    tools.begun.notified().await;
    tools.go_on.notify_one();
    bench.follow(&run).await;
    serving.stop(Stop::Drain).await;
    Played::of(&bench, run).await.keeps_the_promises();
    let asked = asked.lock().unwrap();
    let own = format!("{{\"question\":{}", json!(agent("deep").to_string()));
    let below: Vec<_> = asked.iter().filter(|(_, text)| text.starts_with(&own)).collect();
    assert_eq!(below.len(), 2);
    assert!(below.iter().all(|(_, text)| text.contains("Check twice.") && text.contains(MESSAGE)), "{below:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_survives_a_process_that_goes() {
    let tools = Arc::new(Held::default());
    let (bench, asked) = bench(&tools).await;
    let run = bench.request(1, question(&json!({"tools": 1, "answer": "so"}), "react"), SomeLimits::default()).await;
    let serving = Serving::start(&bench, WorkerOptions::default());
    tools.begun.notified().await;
    tell(&bench, &run, MESSAGE).await.unwrap();
    serving.stop(Stop::Abandon).await;
    tools.go_on.notify_one();
    tokio::time::timeout(Duration::from_mins(1), bench.finish(std::slice::from_ref(&run), 1)).await.unwrap();
    let played = Played::of(&bench, run).await;
    played.keeps_the_promises();
    assert!(asked.lock().unwrap().last().unwrap().1.contains(MESSAGE));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_told_is_refused_with_the_reason() {
    let tools = Arc::new(Held::default());
    let (bench, _) = bench(&tools).await;
    let run = bench.request(1, question(&json!({"tools": 1}), "react"), SomeLimits::default()).await;
    assert!(matches!(tell(&bench, &run, " \n").await, Err(TellError::Empty)));
    assert!(matches!(tell(&bench, &run, &"x".repeat(20_000)).await, Err(TellError::TooLong { .. })));
    let unknown = RunId::new("nobody").unwrap();
    assert!(matches!(tell(&bench, &unknown, "hello").await, Err(TellError::Unknown(_))));
    for _ in 0..32 {
        tell(&bench, &run, "again").await.unwrap();
    }
    assert!(matches!(tell(&bench, &run, "again").await, Err(TellError::TooMany(32))));
}
