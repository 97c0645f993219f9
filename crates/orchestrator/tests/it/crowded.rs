//! A model that takes few calls at a time, and many runs that want it.

use crate::memory;
use crate::promises::Serving;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use trellis_domain::limits::SomeLimits;
use trellis_domain::message::AgentRequest;
use trellis_domain::record::Name;
use trellis_domain::run::RunState;
use trellis_domain::{Caller, RequestId, RunId, Scope, Workspace};
use trellis_orchestrator::Cancelling;
use trellis_orchestrator::accept::{Question, UnknownNames};
use trellis_orchestrator::contract::runs::{Bench, SCRIPT};
use trellis_orchestrator::hub::Item;
use trellis_orchestrator::memory::scripted::ScriptedPrompter;
use trellis_orchestrator::orchestrator::{Options, Orchestrator, Ports};
use trellis_orchestrator::permits::CallCapacity;
use trellis_orchestrator::ports::{BoxFuture, PromptCall, PromptError, PromptNeed, PromptReply, Prompter, ReplySink};
use trellis_orchestrator::workers::{Stop, WorkerOptions};

/// Takes a few calls at a time; those who ask come with a permit.
#[derive(Debug)]
struct Popular {
    model: ScriptedPrompter,
    capacity: Arc<CallCapacity>,
    asked: AtomicUsize,
    takes: Duration,
}

impl Prompter for Popular {
    fn ask<'a>(
        &'a self,
        call: PromptCall,
        sink: &'a mut dyn ReplySink,
    ) -> BoxFuture<'a, Result<PromptReply, PromptError>> {
        Box::pin(async move {
            assert!(call.permit.is_in(&self.capacity), "nobody asks without a permit");
            self.asked.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(self.takes).await;
            self.model.ask(call, sink).await
        })
    }

    fn capacity(&self, _: PromptNeed<'_>) -> Option<Arc<CallCapacity>> {
        Some(Arc::clone(&self.capacity))
    }
}

async fn crowd(places: usize, takes: Duration) -> (Bench, Arc<Popular>) {
    let first = Bench::new(memory(), ScriptedPrompter::replies(&SCRIPT)).await;
    let (model, capacity) = (ScriptedPrompter::replies(&SCRIPT), CallCapacity::new(places));
    let popular = Arc::new(Popular { model, capacity, asked: AtomicUsize::new(0), takes });
    let ports = Ports { prompter: Arc::clone(&popular) as _, ..first.orchestrator.ports.clone() };
    let orchestrator = Arc::new(Orchestrator::new(ports, Options::default()));
    (Bench { orchestrator, ..first }, popular)
}

async fn ask(bench: &Bench, workspace: &Workspace, n: usize) -> RunId {
    let question = Question {
        scope: Scope { workspace: workspace.clone(), ..Scope::default() },
        request_id: RequestId::new(&format!("request-{n}")).unwrap(),
        request: AgentRequest { question: format!("question {n}"), ..AgentRequest::default() },
        limits: SomeLimits::default(),
        names: UnknownNames::Refuse,
        selection: trellis_domain::Selection::default(),
        by: None,
    };
    bench.runs().accept(question).await.unwrap().run
}

async fn follow(bench: &Bench, workspace: &Workspace, run: &RunId) {
    let mut subscription = bench.runs().follow(workspace, run, 0);
    loop {
        if let Item::Record(record) = subscription.next().await.unwrap()
            && record.header.name == Name::end()
        {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hundreds_of_runs_of_one_workspace_do_not_keep_the_run_of_another_waiting() {
    let (bench, popular) = crowd(2, Duration::from_millis(3)).await;
    let (many, other) = (Workspace::default(), Workspace::new("other").unwrap());
    for n in 0..200 {
        ask(&bench, &many, n).await;
    }
    // Fewer places than runs that wait: what waits for the model takes none.
    let serving = Serving::start(&bench, WorkerOptions { concurrency: 8, ..WorkerOptions::default() });
    while popular.asked.load(Ordering::SeqCst) < 20 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let before = popular.asked.load(Ordering::SeqCst);
    let run = ask(&bench, &other, 1).await;
    follow(&bench, &other, &run).await;
    let calls = popular.asked.load(Ordering::SeqCst) - before;
    assert!(calls < 40, "four calls of its own took {calls} calls of all");
    let told = bench.orchestrator.ports.journal.run(&other, &run).await.unwrap().unwrap();
    assert_eq!((told.state, told.usage.model_calls), (RunState::Answered, 4));
    // Who only waits is not waited for.
    serving.stop(Stop::Drain).await;
    assert!(popular.asked.load(Ordering::SeqCst) < 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_for_a_permit_can_be_cancelled_and_ends_when_its_time_is_over() {
    let (bench, popular) = crowd(1, Duration::from_mins(10)).await;
    let workspace = Workspace::default();
    let serving = Serving::start(&bench, WorkerOptions::default());
    let busy = ask(&bench, &workspace, 1).await;
    while popular.asked.load(Ordering::SeqCst) < 1 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let waiting = ask(&bench, &workspace, 2).await;
    let hurried = SomeLimits { run_timeout_ms: Some(50), ..SomeLimits::default() };
    let late = bench.ask(3, hurried).await;
    follow(&bench, &workspace, &late).await;
    assert!(bench.summary(&late).await.state.is_end(), "its time was over while it waited");
    assert_eq!(bench.runs().cancel(&workspace, &waiting, &Caller::program()).await.unwrap(), Cancelling::Cancelled);
    let journal = &bench.orchestrator.ports.journal;
    let open = async |run| journal.turns_of(&workspace, run).await.unwrap().len();
    while open(&waiting).await + open(&late).await > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(open(&busy).await, 1);
    assert_eq!(popular.asked.load(Ordering::SeqCst), 1);
    serving.stop(Stop::Abandon).await;
}
