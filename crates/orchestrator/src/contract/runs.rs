//! Whole runs over any journal and configuration: the promises, asserted by name.

use super::scope;
use crate::accept::{AcceptError, Question, UnknownNames};
use crate::hub::{Hub, Item};
use crate::ledger::summary_of;
use crate::library::RunDocuments;
use crate::memory::scripted::{ScriptedPrompter, ScriptedTools};
use crate::orchestrator::{Options, Orchestrator, Ports};
use crate::ports::{Claim, ClaimId, Claiming, Config, Journal, OpenTurn, RealWorld, World, all_due_turns};
use crate::queue::FairQueue;
use crate::service::RunService;
use crate::workers::{Stop, WorkerOptions, Workers};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use trellis_domain::config::StoredItem;
use trellis_domain::limits::SomeLimits;
use trellis_domain::message::AgentRequest;
use trellis_domain::record::{Name, Record};
use trellis_domain::run::{RunState, RunSummary};
use trellis_domain::{Caller, RequestId, RunId, Surface, Workspace};

/// Journal and configuration of one store.
pub type StorePorts = (Arc<dyn Journal>, Arc<dyn Config>);

/// Three tool calls and an answer.
pub const SCRIPT: [&str; 4] = [
    "Thought: first\nAction: search\nArgs: {\"question\": \"a\"}",
    "Thought: second\nAction: search\nArgs: {\"question\": \"b\"}",
    "Thought: third\nAction: search\nArgs: {\"question\": \"c\"}",
    "Thought: done\nFinal Answer: It is so.",
];

/// An orchestrator with scripted model and tools.
#[derive(Debug)]
pub struct Bench {
    pub orchestrator: Arc<Orchestrator>,
    pub prompter: Arc<ScriptedPrompter>,
    pub tools: Arc<ScriptedTools>,
}

impl Bench {
    pub async fn new((journal, config): StorePorts, prompter: ScriptedPrompter) -> Self {
        Self::with_tools((journal, config), prompter, ScriptedTools::new(|_| Ok(" a fact \n".to_owned()))).await
    }

    /// A model and tools that play what the question says; see [`play`](super::play).
    pub async fn play(store: StorePorts) -> Self {
        let prompter = ScriptedPrompter::saying(super::play::reply_or_call);
        Self::with_tools(store, prompter, ScriptedTools::new(super::play::result)).await
    }

    pub async fn with_tools((journal, config): StorePorts, prompter: ScriptedPrompter, tools: ScriptedTools) -> Self {
        let tool = r#"{"type":"text-completion","name":"search","description":"finds facts"}"#;
        let item = StoredItem { kind: "tool".to_owned(), key: "search".to_owned(), value: tool.to_owned() };
        config.put(&Workspace::default(), vec![item], Caller::program()).await.expect("a valid item");
        let (prompter, tools) = (Arc::new(prompter), Arc::new(tools));
        let world: Arc<dyn World> = Arc::new(RealWorld);
        let ports = Ports {
            queue: Arc::new(FairQueue::new(Arc::clone(&world))),
            prompter: Arc::clone(&prompter) as _,
            tools: Arc::clone(&tools) as _,
            hub: Arc::new(Hub::default()),
            journal,
            config,
            world,
        };
        let orchestrator = Arc::new(Orchestrator::new(ports, Options::default()));
        Self { orchestrator, prompter, tools }
    }

    /// The runs, as those see them who ask for them.
    pub fn runs(&self) -> RunService {
        RunService::new(&self.orchestrator)
    }

    pub async fn ask(&self, n: usize, limits: SomeLimits) -> RunId {
        let request = AgentRequest { question: format!("question {n}"), streaming: true, ..AgentRequest::default() };
        self.request(n, request, limits).await
    }

    pub async fn request(&self, n: usize, request: AgentRequest, limits: SomeLimits) -> RunId {
        self.try_request(n, request, limits).await.expect("a good question")
    }

    pub async fn try_request(&self, n: usize, request: AgentRequest, limits: SomeLimits) -> Result<RunId, AcceptError> {
        let question = Question {
            scope: scope("default"),
            request_id: RequestId::new(&format!("request-{n}")).expect("a valid id"),
            request,
            limits,
            names: UnknownNames::Refuse,
            selection: trellis_domain::Selection::default(),
            by: None,
        };
        Ok(self.runs().accept(question).await?.run)
    }

    /// Waits for the end of a run. False if the store fails before.
    pub async fn try_follow(&self, run: &RunId) -> bool {
        let mut subscription = self.runs().follow(&Workspace::default(), run, 0);
        while let Ok(item) = subscription.next().await {
            if let Item::Record(record) = item
                && record.header.name == Name::end()
                && record.header.session == *run
            {
                return true;
            }
        }
        false
    }

    /// Follows a run to its end.
    pub async fn follow(&self, run: &RunId) -> Vec<Item> {
        let mut subscription = self.runs().follow(&Workspace::default(), run, 0);
        let mut items = Vec::new();
        loop {
            let item = subscription.next().await.expect("the store works");
            items.push(item.clone());
            if let Item::Record(record) = item
                && record.header.name == Name::end()
                && record.header.session == *run
            {
                return items;
            }
        }
    }

    /// Serves until all these runs have ended.
    pub async fn finish(&self, runs: &[RunId], workers: usize) {
        let (stop, stopped) = watch::channel(None);
        let groups: Vec<_> = (0..workers)
            .map(|_| {
                let group = Workers::new(Arc::clone(&self.orchestrator), WorkerOptions::default());
                let stopped = stopped.clone();
                tokio::spawn(async move { group.run(stopped).await })
            })
            .collect();
        for run in runs {
            self.follow(run).await;
        }
        stop.send_replace(Some(Stop::Drain));
        for group in groups {
            group.await.expect("workers do not fail");
        }
    }

    pub async fn records(&self, run: &RunId) -> Vec<Arc<Record>> {
        let journal = &self.orchestrator.ports.journal;
        journal.events(&Workspace::default(), run, 0, 10_000).await.expect("the store works")
    }

    pub async fn summary(&self, run: &RunId) -> RunSummary {
        let found = self.orchestrator.ports.journal.run(&Workspace::default(), run).await;
        let summary = found.expect("the store works").expect("the run exists");
        let told = summary_of(&self.records(run).await).filter(|told| told.seq == summary.seq);
        assert!(told.is_none_or(|told| told == summary), "the records say what the list of runs says");
        summary
    }
}

pub async fn suite<F: Future<Output = StorePorts>>(fresh: impl Fn() -> F) {
    a_session_leaves_its_records_in_order(fresh().await).await;
    every_text_of_a_run_is_a_document(fresh().await).await;
    many_sessions_and_several_workers_answer_each_once(fresh().await).await;
    two_workers_on_one_turn_leave_one_outcome(fresh().await).await;
    a_recorded_reply_is_not_asked_for_again(fresh().await).await;
    the_same_request_attaches_and_another_gets_its_own_session(fresh().await).await;
    a_request_id_names_one_request_only(fresh().await).await;
    a_turn_that_panics_ends_its_run_only(fresh().await).await;
}

fn names(records: &[Arc<Record>]) -> String {
    records.iter().map(|record| record.header.name.as_str()).collect::<Vec<_>>().join(" ")
}

async fn a_session_leaves_its_records_in_order(store: StorePorts) {
    let bench = Bench::new(store, ScriptedPrompter::replies(&SCRIPT)).await;
    let run = bench.ask(1, SomeLimits::default()).await;
    bench.finish(std::slice::from_ref(&run), 1).await;
    let records = bench.records(&run).await;
    assert_eq!(
        names(&records),
        "session pattern-decision i1 i1/observation i2 i2/observation i3 i3/observation i4 end"
    );
    let versions: Vec<_> = records.iter().map(|record| record.header.version).collect();
    assert_eq!(versions, [1, 1, 2, 3, 4, 5, 6, 7, 8, 9], "nine commits: one per outcome");
    let summary = bench.summary(&run).await;
    assert_eq!((summary.state, summary.usage.model_calls, summary.usage.tool_calls), (RunState::Answered, 4, 3));
    let open = all_due_turns(&*bench.orchestrator.ports.journal, RealWorld.now()).await.expect("the store works");
    assert!(open.is_empty(), "an ended run leaves no open turn");
}

async fn every_text_of_a_run_is_a_document(store: StorePorts) {
    let bench = Bench::new(store, ScriptedPrompter::replies(&SCRIPT)).await;
    let run = bench.ask(1, SomeLimits::default()).await;
    bench.finish(std::slice::from_ref(&run), 1).await;
    let library = RunDocuments::new(Arc::clone(&bench.orchestrator.ports.journal));
    let document = async |workspace: &Workspace, name: &str| {
        let id = format!("urn:trustgraph:agent:{run}/{name}");
        library.find(workspace, &id).await.expect("the store works")
    };
    let workspace = Workspace::default();
    for (name, text) in [("i1/thought", "first"), ("i2/observation", "a fact"), ("answer", "It is so.")] {
        let found = document(&workspace, name).await.unwrap_or_else(|| panic!("{name} is a document"));
        assert_eq!((found.size, found.sha256), (text.len() as u64, trellis_domain::Hash::of(text)));
        let read = library.read(&workspace, &found, 1..u64::MAX).await.expect("the store works");
        assert_eq!(read, text.as_bytes()[1..]);
    }
    let title = document(&workspace, "answer").await.map(|found| found.metadata.title);
    assert_eq!(title.as_deref(), Some("Agent Answer: question 1..."));
    assert!(document(&workspace, "nothing").await.is_none());
    let other = Workspace::new("other").expect("a valid name");
    assert!(document(&other, "answer").await.is_none(), "workspaces are apart");
}

async fn many_sessions_and_several_workers_answer_each_once(store: StorePorts) {
    let bench = Bench::new(store, ScriptedPrompter::replies(&SCRIPT)).await;
    let mut runs = Vec::new();
    for n in 0..40 {
        runs.push(bench.ask(n, SomeLimits::default()).await);
    }
    bench.finish(&runs, 3).await;
    for run in &runs {
        let ends = bench.records(run).await.iter().filter(|record| record.header.name == Name::end()).count();
        assert_eq!(ends, 1, "answered once");
    }
    let calls = bench.prompter.calls.all();
    assert_eq!((calls.len(), calls.values().max()), (160, Some(&1)), "paid once");
}

async fn two_workers_on_one_turn_leave_one_outcome(store: StorePorts) {
    let bench = Bench::new(store, ScriptedPrompter::replies(&SCRIPT)).await;
    for n in 0..20 {
        let run = bench.ask(n, SomeLimits::default()).await;
        let turn = first_turn(&bench, &run).await;
        let race = || {
            let (orchestrator, turn) = (Arc::clone(&bench.orchestrator), turn.clone());
            tokio::spawn(async move { orchestrator.handle(&turn).await })
        };
        let (one, two) = (race(), race());
        one.await.expect("no panic").expect("the store works");
        two.await.expect("no panic").expect("the store works");
        let records = bench.records(&run).await;
        assert_eq!(names(&records), "session pattern-decision i1 i1/observation");
    }
}

async fn first_turn(bench: &Bench, run: &RunId) -> OpenTurn {
    let open = all_due_turns(&*bench.orchestrator.ports.journal, RealWorld.now()).await.expect("the store works");
    open.into_iter().find(|turn| turn.key.run == *run).expect("an accepted question has an open turn")
}

async fn a_recorded_reply_is_not_asked_for_again(store: StorePorts) {
    let tools = ScriptedTools::new(|_| panic!("the process dies here, so to speak"));
    let bench = Bench::with_tools(store.clone(), ScriptedPrompter::replies(&SCRIPT), tools).await;
    let run = bench.ask(1, SomeLimits::default()).await;
    let turn = first_turn(&bench, &run).await;
    let (orchestrator, handled) = (Arc::clone(&bench.orchestrator), turn.clone());
    let died = tokio::spawn(async move { orchestrator.handle(&handled).await }).await;
    assert!(died.is_err_and(|error| error.is_panic()));
    let second = Bench::new(store, ScriptedPrompter::replies(&SCRIPT)).await;
    second.finish(std::slice::from_ref(&run), 1).await;
    let calls = second.prompter.calls.all();
    assert!(!calls.contains_key(&format!("{run}/i1")), "the first reply was recorded: {calls:?}");
    assert_eq!(calls.len(), 3);
}

async fn the_same_request_attaches_and_another_gets_its_own_session(store: StorePorts) {
    let bench = Bench::new(store, ScriptedPrompter::replies(&SCRIPT)).await;
    let alice = Caller::new(Some("alice".to_owned()), Surface::Api);
    let question = |text: &str| Question {
        scope: scope("default"),
        request_id: RequestId::new("r").expect("a valid id"),
        request: AgentRequest { question: text.to_owned(), session_id: "mine".to_owned(), ..AgentRequest::default() },
        limits: SomeLimits::default(),
        names: UnknownNames::Refuse,
        selection: trellis_domain::Selection::default(),
        by: Some(alice.clone()),
    };
    let first = bench.runs().accept(question("a?")).await.expect("a good question");
    let somebody_else = Question { by: Some(Caller::new(None, Surface::CommandLine)), ..question("a?") };
    let again = bench.runs().accept(somebody_else).await.expect("a good question");
    let accepted = bench.records(&first.run).await.into_iter().find_map(|record| record.body.as_accepted().cloned());
    assert_eq!(accepted.and_then(|accepted| accepted.by), Some(alice.clone()), "whoever asked first");
    let other = bench.runs().accept(question("b?")).await.expect("a good question");
    let other_again = bench.runs().accept(question("b?")).await.expect("a good question");
    assert_eq!((first.run.as_str(), first.attached), ("mine", false));
    assert_eq!((again.run.as_str(), again.attached), ("mine", true));
    assert_ne!(other.run, first.run);
    assert_eq!((other_again.run, other_again.attached), (other.run, true));
}

async fn a_request_id_names_one_request_only(store: StorePorts) {
    let bench = Bench::new(store, ScriptedPrompter::replies(&SCRIPT)).await;
    let ask = async |question: &str, limits: SomeLimits| {
        let request = AgentRequest { question: question.to_owned(), ..AgentRequest::default() };
        bench.try_request(1, request, limits).await
    };
    let first = ask("a?", SomeLimits::default()).await.expect("a good question");
    assert_eq!(ask("a?", SomeLimits::default()).await.expect("the same"), first);
    let short = SomeLimits { max_iterations: Some(1), ..SomeLimits::default() };
    for refused in [ask("b?", SomeLimits::default()).await, ask("a?", short).await] {
        let Err(AcceptError::OtherRequest { run }) = refused else { panic!("another request: {refused:?}") };
        assert_eq!(run, first);
    }
}

async fn a_turn_that_panics_ends_its_run_only(store: StorePorts) {
    let prompter = ScriptedPrompter::new(|call| {
        assert!(call.variables["question"] != "question 1", "a bug that only this question finds");
        Ok("Final Answer: fine".to_owned())
    });
    let bench = Bench::new(store, prompter).await;
    let runs = [bench.ask(1, SomeLimits::default()).await, bench.ask(2, SomeLimits::default()).await];
    bench.finish(&runs, 1).await;
    assert_eq!(bench.summary(&runs[0]).await.state, RunState::Failed);
    assert_eq!(bench.summary(&runs[1]).await.state, RunState::Answered);
}

/// For stores whose claims expire. A turn that was in hand at too many crashes is given up with the reason, without being
/// begun again; one that was in hand at some of them is answered.
pub async fn a_turn_that_stops_every_process_is_set_aside(store: StorePorts) {
    let bench = Bench::new(store, ScriptedPrompter::new(|_| Ok("Final Answer: fine".to_owned()))).await;
    let killer = bench.ask(1, SomeLimits::default()).await;
    let unlucky = [bench.ask(2, SomeLimits::default()).await, bench.ask(3, SomeLimits::default()).await];
    let journal = &bench.orchestrator.ports.journal;
    let crashes = [(&killer, 8), (&unlucky[0], 4), (&unlucky[1], 4)];
    for (run, crashes) in crashes {
        let turn = first_turn(&bench, run).await.key;
        for number in 0..crashes {
            let claim = Claim { turn: turn.clone(), id: ClaimId { process: 9, number } };
            // The process that had it before is gone: its claim expires.
            while journal.claim(&claim, Duration::from_millis(1)).await.expect("the store works") == Claiming::Held {
                RealWorld.sleep(Duration::from_millis(1)).await;
            }
        }
    }
    let runs = [std::slice::from_ref(&killer), &unlucky].concat();
    bench.finish(&runs, 2).await;
    let end = bench.records(&killer).await.last().and_then(|record| record.body.as_ended().cloned());
    let error = end.and_then(|end| end.error).expect("it failed");
    assert!(error.contains("cut short 8 times"), "{error}");
    for run in &unlucky {
        assert_eq!(bench.summary(run).await.state, RunState::Answered);
    }
    let asked = bench.prompter.calls.all();
    assert!(asked.keys().all(|call| !call.starts_with(killer.as_str())), "it is not begun again: {asked:?}");
}
