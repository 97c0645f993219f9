//! Several processes over one store, which tell each other through a stream, or do not hear each other at all.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;
use trellis_domain::config::StoredItem;
use trellis_domain::limits::SomeLimits;
use trellis_domain::message::AgentRequest;
use trellis_domain::record::Name;
use trellis_domain::run::Termination;
use trellis_domain::{Caller, RequestId, RunId, Scope, Workspace};
use trellis_orchestrator::accept::UnknownNames;
use trellis_orchestrator::contract::stream;
use trellis_orchestrator::hub::{Hub, Item, Subscription};
use trellis_orchestrator::memory::scripted::{ScriptedPrompter, ScriptedTools};
use trellis_orchestrator::memory::{MemoryConfig, MemoryJournal, MemoryStream, VirtualWorld};
use trellis_orchestrator::orchestrator::{Options, Orchestrator, Ports};
use trellis_orchestrator::ports::{
    BoxFuture, Heard, PromptCall, PromptError, PromptReply, Prompter, ReplySink, Stream, StreamListener, StreamMessage,
    World,
};
use trellis_orchestrator::queue::FairQueue;
use trellis_orchestrator::workers::{WorkerOptions, Workers};
use trellis_orchestrator::{Cancelling, Question, RunService};

#[tokio::test(start_paused = true)]
async fn the_stream_in_memory_keeps_its_contract() {
    stream::suite(async || {
        let stream: Arc<dyn Stream> = Arc::new(MemoryStream::default());
        [Arc::clone(&stream), stream]
    })
    .await;
}

/// Says nothing to anybody.
#[derive(Debug)]
struct Silent;

impl Stream for Silent {
    fn publish(&self, _: StreamMessage) {}

    fn listen(&self) -> Box<dyn StreamListener> {
        Box::new(Self)
    }
}

impl StreamListener for Silent {
    fn next(&mut self) -> BoxFuture<'_, Heard> {
        Box::pin(std::future::pending())
    }
}

/// Loses every message, and says so.
#[derive(Debug)]
struct Losing(watch::Sender<u64>);

#[derive(Debug)]
struct Loss(watch::Receiver<u64>);

impl Stream for Losing {
    fn publish(&self, _: StreamMessage) {
        self.0.send_modify(|lost| *lost += 1);
    }

    fn listen(&self) -> Box<dyn StreamListener> {
        Box::new(Loss(self.0.subscribe()))
    }
}

impl StreamListener for Loss {
    fn next(&mut self) -> BoxFuture<'_, Heard> {
        Box::pin(async {
            self.0.changed().await.unwrap();
            Heard::Missed
        })
    }
}

#[derive(Debug, Default)]
struct Written(Vec<String>);

impl ReplySink for Written {
    fn text(&mut self, text: &str) -> ControlFlow<()> {
        self.0.push(text.to_owned());
        ControlFlow::Continue(())
    }

    fn restart(&mut self) {
        self.0.clear();
    }
}

/// How long the model takes for each piece of a reply.
const PIECE: Duration = Duration::from_millis(700);

/// A model that takes its time, and knows how many wait for it.
#[derive(Debug)]
struct Slowly {
    inner: ScriptedPrompter,
    waiting: Arc<AtomicUsize>,
}

struct Waiter(Arc<AtomicUsize>);

impl Drop for Waiter {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Prompter for Slowly {
    fn ask<'a>(
        &'a self,
        call: PromptCall,
        sink: &'a mut dyn ReplySink,
    ) -> BoxFuture<'a, Result<PromptReply, PromptError>> {
        Box::pin(async move {
            self.waiting.fetch_add(1, Ordering::SeqCst);
            let _waiter = Waiter(Arc::clone(&self.waiting));
            let mut written = Written::default();
            let reply = self.inner.ask(call, &mut written).await?;
            for piece in written.0 {
                tokio::time::sleep(PIECE).await;
                assert!(sink.text(&piece).is_continue());
            }
            Ok(reply)
        })
    }
}

const THOUGHT: &str = "it depends on äußerst many things, and on some others as well";
const ANSWER: &str = "Forty-two, as far as anybody can tell.";

/// Two processes over one store. The first works, the second asks and follows.
struct TwoProcesses {
    one: Arc<Orchestrator>,
    two: Arc<Orchestrator>,
    waiting: Arc<AtomicUsize>,
    /// Ends with the world.
    _tasks: tokio::task::JoinSet<()>,
    _stop: watch::Sender<Option<trellis_orchestrator::workers::Stop>>,
}

impl TwoProcesses {
    async fn new(stream: impl Stream + 'static) -> Self {
        let world: Arc<dyn World> = Arc::new(VirtualWorld::new());
        let stream: Arc<dyn Stream> = Arc::new(stream);
        let mut inner = ScriptedPrompter::replies(&[&format!("Thought: {THOUGHT}\nFinal Answer: {ANSWER}")]);
        inner.piece = 6;
        let waiting = Arc::new(AtomicUsize::new(0));
        let config = MemoryConfig::new(Arc::clone(&world));
        let first = Ports {
            journal: Arc::new(MemoryJournal::shared(Arc::clone(&world))),
            queue: Arc::new(FairQueue::new(Arc::clone(&world))),
            config: Arc::new(config.of_another_process()),
            prompter: Arc::new(Slowly { inner, waiting: Arc::clone(&waiting) }),
            tools: Arc::new(ScriptedTools::new(|_| Ok("a fact".to_owned()))),
            hub: Arc::new(Hub::shared(Arc::clone(&stream), Arc::clone(&world))),
            world: Arc::clone(&world),
        };
        let hub = Arc::new(Hub::shared(stream, world));
        let second = Ports { config: Arc::new(config), hub, ..first.clone() };
        let process = |ports| Arc::new(Orchestrator::new(ports, Options::default()));
        let (one, two) = (process(first), process(second));
        let (stop, stopped) = watch::channel(None);
        let workers = Workers::new(Arc::clone(&one), WorkerOptions::default());
        let mut tasks = tokio::task::JoinSet::new();
        tasks.spawn(async move { workers.run(stopped).await });
        let listener = Arc::clone(&two);
        tasks.spawn(async move { listener.hear().await });
        // Everybody has begun to listen.
        tokio::time::sleep(Duration::from_secs(1)).await;
        Self { one, two, waiting, _tasks: tasks, _stop: stop }
    }

    async fn ask(&self) -> RunId {
        let question = Question {
            scope: Scope::default(),
            request_id: RequestId::new("request").unwrap(),
            request: AgentRequest {
                question: "What is the answer?".to_owned(),
                pattern: "react".to_owned(),
                streaming: true,
                ..AgentRequest::default()
            },
            limits: SomeLimits::default(),
            names: UnknownNames::Refuse,
            selection: trellis_domain::Selection::default(),
            by: None,
        };
        RunService::new(&self.two).accept(question).await.unwrap().run
    }

    async fn until_waiting(&self, count: usize) {
        while self.waiting.load(Ordering::SeqCst) != count {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

fn subscribe(process: &Orchestrator, run: &RunId) -> Subscription {
    process.ports.hub.subscribe(&Workspace::default(), run, 0)
}

/// What a follower gets, when, and how the run has ended.
async fn follow(process: &Orchestrator, run: &RunId) -> (Vec<(u128, String)>, Termination) {
    let began = Instant::now();
    let mut subscription = subscribe(process, run);
    let mut got = Vec::new();
    loop {
        let item = subscription.next(&*process.ports.journal).await.unwrap();
        let passed = began.elapsed().as_millis();
        match item {
            Item::Text { kind, text, .. } => got.push((passed, format!("{kind:?}: {text}"))),
            Item::Record(record) => {
                got.push((passed, format!("{} {}", record.header.seq, record.header.name)));
                if record.header.name == Name::end() {
                    return (got, record.body.as_ended().unwrap().reason);
                }
            }
        }
    }
}

fn told(got: &[(u128, String)], kind: &str) -> String {
    got.iter().filter_map(|(_, item)| item.strip_prefix(kind)).collect()
}

#[tokio::test(start_paused = true)]
async fn a_follower_in_another_process_gets_the_same_at_the_same_time() {
    let world = TwoProcesses::new(MemoryStream::default()).await;
    let run = world.ask().await;
    let (here, there) = tokio::join!(follow(&world.one, &run), follow(&world.two, &run));
    assert_eq!(here, there);
    let (got, _) = there;
    assert_eq!(told(&got, "Thought: "), THOUGHT);
    assert!(ANSWER.starts_with(&told(&got, "Answer: ")), "the record brings the rest: {got:?}");
    let texts = got.iter().filter(|(_, item)| item.contains(": ")).count();
    assert!(texts > 10, "it came while it was written: {got:?}");
}

#[tokio::test(start_paused = true)]
async fn whoever_comes_late_gets_the_open_message_from_its_start_in_any_process() {
    let world = TwoProcesses::new(MemoryStream::default()).await;
    let run = world.ask().await;
    world.until_waiting(1).await;
    for pause in [PIECE * 4, PIECE * 2] {
        tokio::time::sleep(pause).await;
        let mut late = subscribe(&world.two, &run);
        let text = loop {
            if let Item::Text { text, .. } = late.next(&*world.two.ports.journal).await.unwrap() {
                break text;
            }
        };
        assert!(text.len() > 6 && THOUGHT.starts_with(&text), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_follower_that_hears_nothing_reads_the_journal() {
    let world = TwoProcesses::new(Silent).await;
    let run = world.ask().await;
    let ((here, _), (there, end)) = tokio::join!(follow(&world.one, &run), follow(&world.two, &run));
    assert_eq!(end, Termination::FinalAnswer);
    let records = |got: &[(u128, String)]| -> Vec<(u128, String)> {
        got.iter().filter(|(_, item)| !item.contains(": ")).cloned().collect()
    };
    let (here, there) = (records(&here), records(&there));
    assert_eq!(here.len(), there.len());
    for ((at, record), (later, same)) in here.into_iter().zip(there) {
        assert_eq!(record, same);
        assert!(later - at <= 3_000, "{record} came {} ms late", later - at);
    }
}

/// How long the first process goes on with a call after the second has cancelled its run.
async fn lets_go_after(stream: impl Stream + 'static) -> Duration {
    let world = TwoProcesses::new(stream).await;
    let run = world.ask().await;
    world.until_waiting(1).await;
    tokio::time::sleep(PIECE * 3).await;
    let began = Instant::now();
    let cancelled = RunService::new(&world.two).cancel(&Workspace::default(), &run, &Caller::program()).await.unwrap();
    assert_eq!(cancelled, Cancelling::Cancelled);
    world.until_waiting(0).await;
    let took = began.elapsed();
    let (got, end) = follow(&world.two, &run).await;
    assert_eq!(end, Termination::Cancelled);
    assert!(got.iter().all(|(_, item)| !item.ends_with(" i1")), "nothing came of the call: {got:?}");
    let open = async || world.two.ports.journal.turns_of(&Workspace::default(), &run).await.unwrap();
    while !open().await.is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    took
}

#[tokio::test(start_paused = true)]
async fn a_cancel_in_another_process_stops_a_call_at_once() {
    let at_once = Duration::from_millis(20);
    assert!(lets_go_after(MemoryStream::default()).await <= at_once);
    assert!(lets_go_after(Losing(watch::Sender::new(0))).await <= at_once, "what is missed is looked for");
}

#[tokio::test(start_paused = true)]
async fn a_cancel_that_is_not_heard_of_is_noticed_when_the_claim_is_renewed() {
    let took = lets_go_after(Silent).await;
    assert!(took <= WorkerOptions::default().claim_life / 3, "{took:?}");
}

/// How long it takes until a change in the second process is known in the first.
async fn configured_after(stream: impl Stream + 'static) -> Duration {
    let world = TwoProcesses::new(stream).await;
    let (here, elsewhere) = (&world.one.ports.config, &world.two.ports.config);
    let (mut watch, mut own) = (here.watch(), elsewhere.watch());
    let began = Instant::now();
    let value = r#"{"type":"text-completion","name":"ask"}"#.to_owned();
    let item = StoredItem { kind: "tool".to_owned(), key: "ask".to_owned(), value };
    elsewhere.put(&Workspace::default(), vec![item], Caller::program()).await.unwrap();
    watch.changed().await;
    let took = began.elapsed();
    own.mark_unchanged();
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert!(!watch.has_changed() && !own.has_changed(), "one change is told once");
    took
}

#[tokio::test(start_paused = true)]
async fn a_change_of_the_configuration_is_known_in_all_processes() {
    assert_eq!(configured_after(MemoryStream::default()).await, Duration::ZERO);
    let took = configured_after(Silent).await;
    assert!(!took.is_zero() && took <= Duration::from_secs(30), "{took:?}");
}
