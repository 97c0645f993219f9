//! Plays a scenario from its first question to its last end.

use crate::breakage::Breakage;
use crate::callers::{self, Received, workspace};
use crate::fault_source::FaultSource;
use crate::processes::{Common, Processes};
use crate::queue::Broker;
use crate::recorder::{Recorder, Seen};
use crate::scenario::{CALM_MS, Scenario, ScheduledEvent, What};
use crate::stream::Wire;
use parking_lot::Mutex;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use trellis_domain::config::{Settings, StoredItem};
use trellis_domain::record::Record;
use trellis_domain::{Caller, Hash, RunId, Timestamp, Workspace};
use trellis_orchestrator::memory::{MemoryConfig, MemoryJournal, VirtualWorld};
use trellis_orchestrator::ports::{Config, Journal, all_due_turns};

/// The world after everything has happened.
#[derive(Debug)]
pub struct FinishedWorld {
    pub scenario: Scenario,
    pub runs: Vec<FinishedRun>,
    pub seen: Seen,
    /// Turns that are open although everything should have come to its end.
    pub open_turns: Vec<String>,
    /// With this mistake.
    pub breakage: Option<Breakage>,
}

/// What became of a question.
#[derive(Debug)]
pub struct FinishedRun {
    pub question: usize,
    pub workspace: Workspace,
    pub received: Received,
    pub records: Vec<Arc<Record>>,
    pub settings: BTreeMap<Hash, Arc<Settings>>,
}

impl FinishedWorld {
    /// The same for the same course of events.
    pub fn digest(&self) -> Hash {
        let recorded = self.seen.recorded.iter().map(|(place, recorded)| format!("{place:?} {recorded:?}\n"));
        let calls = self.seen.calls.iter().map(|call| format!("{call:?}\n"));
        let text: String = recorded.chain(calls).collect();
        Hash::of(text)
    }
}

/// All runs have their hour, and this much more.
const LIMIT: Duration = Duration::from_hours(2);
/// How long people are waited for.
const APPROVAL_TIMEOUT_MS: u64 = 40_000;
/// What is left to do when the last run has ended: the deadline of a fan-out stays open until it is due.
const AFTERWARDS: Duration = Duration::from_secs(400);

/// Plays a scenario on one thread, in no time.
pub fn play(scenario: &Scenario, breakage: Option<Breakage>) -> FinishedWorld {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime without IO").block_on(played(scenario.clone(), breakage))
}

async fn played(scenario: Scenario, breakage: Option<Breakage>) -> FinishedWorld {
    let world = Arc::new(VirtualWorld::new());
    let fault_source = Arc::new(FaultSource::new(scenario.seed, scenario.faults.clone()));
    let recorder = Arc::new(Recorder::default());
    let common = Common {
        journal: Arc::new(MemoryJournal::shared(Arc::clone(&world) as _)),
        config: Arc::new(MemoryConfig::new(Arc::clone(&world) as _)),
        broker: Arc::new(Broker::new(Arc::clone(&fault_source))),
        wire: Arc::new(Wire::new(Arc::clone(&fault_source), Arc::clone(&recorder), breakage)),
        recorder,
        world,
        fault_source,
        breakage,
    };
    for number in [0, 1] {
        configure(&common.config, &workspace(number), 0).await;
    }
    let processes = Arc::new(Processes::new(common, scenario.processes.len()));
    let mut world_tasks = JoinSet::new();
    for (number, plan) in scenario.processes.iter().enumerate() {
        world_tasks.spawn(Arc::clone(&processes).live(number, plan.clone()));
    }
    let received: Vec<_> = scenario.questions.iter().map(|_| Arc::new(Mutex::new(Received::default()))).collect();
    world_tasks.spawn(happen(Arc::clone(&processes), scenario.clone(), received.clone()));
    world_tasks.spawn(callers::answer_questions(Arc::clone(&processes), scenario.clone(), received.clone()));
    let mut callers = JoinSet::new();
    for (number, asked) in scenario.questions.iter().enumerate() {
        callers.spawn(callers::ask(Arc::clone(&processes), number, asked.clone(), Arc::clone(&received[number])));
    }
    let all = async { while callers.join_next().await.is_some() {} };
    // Whoever is not answered by then never will be.
    drop(tokio::time::timeout(LIMIT, all).await);
    tokio::time::sleep(AFTERWARDS).await;
    world_tasks.shutdown().await;
    finished(scenario, &processes.common, received).await
}

/// A tool, which some change of the configuration describes anew, and an agent that can be called.
async fn configure(config: &MemoryConfig, workspace: &Workspace, number: usize) {
    let mut value = json!({
        "type": "text-completion", "name": "search", "description": format!("finds facts, version {number}"),
    });
    value["approval-timeout-ms"] = json!(APPROVAL_TIMEOUT_MS);
    if *workspace == Workspace::default() {
        // There, nothing may be called twice without being asked for.
        value["effect"] = json!("unsafe");
    } else {
        // Here, people are asked before anything is called.
        value["requires-approval"] = json!(true);
    }
    let item = StoredItem { kind: "tool".to_owned(), key: "search".to_owned(), value: value.to_string() };
    let agent = json!({"type": "agent", "name": "colleague", "pattern": "react", "description": "knows more"});
    let agent = StoredItem { kind: "tool".to_owned(), key: "colleague".to_owned(), value: agent.to_string() };
    config.put(workspace, vec![item, agent], Caller::program()).await.expect("valid items");
}

async fn happen(processes: Arc<Processes>, scenario: Scenario, received: Vec<Arc<Mutex<Received>>>) {
    let began = tokio::time::Instant::now();
    for (number, ScheduledEvent { at_ms, what }) in scenario.events.iter().enumerate() {
        tokio::time::sleep_until(began + Duration::from_millis(*at_ms)).await;
        match *what {
            What::Crash { process } => {
                if let Some(process) = processes.get(process) {
                    process.life.kill();
                }
            }
            What::Pause { process, ms } => {
                if let Some(process) = processes.get(process) {
                    process.life.pause(Duration::from_millis(ms));
                    processes.common.recorder.count("processes that stood still");
                }
            }
            What::Jump { ms } => {
                processes.common.world.jump_ms(ms);
                processes.common.recorder.count("clocks put forward or back");
            }
            What::Configure => configure(&processes.common.config, &workspace(0), number + 1).await,
            What::Cancel { question } | What::Tell { question } => {
                let run = received[question].lock().run.clone();
                let Some(run) = run else { continue };
                let workspace = workspace(scenario.questions[question].workspace);
                if matches!(what, What::Tell { .. }) {
                    callers::tell(&processes, &workspace, &run).await;
                } else {
                    callers::cancel(&processes, &workspace, &run).await;
                }
            }
        }
    }
    tokio::time::sleep_until(began + Duration::from_millis(CALM_MS)).await;
    processes.common.fault_source.calm_down();
}

async fn finished(scenario: Scenario, common: &Common, received: Vec<Arc<Mutex<Received>>>) -> FinishedWorld {
    let mut runs = Vec::new();
    for (question, received) in received.into_iter().enumerate() {
        let received = std::mem::take(&mut *received.lock());
        let workspace = workspace(scenario.questions[question].workspace);
        let records = match &received.run {
            Some(run) => common.journal.events(&workspace, run, 0, usize::MAX).await.unwrap_or_default(),
            None => Vec::new(),
        };
        let mut settings = BTreeMap::new();
        for record in &records {
            if let Ok(found) = common.config.snapshot(&workspace, record.header.config).await {
                settings.insert(record.header.config, found);
            }
        }
        runs.push(FinishedRun { question, workspace, received, records, settings });
    }
    let open_turns = open_turns(common, &runs).await;
    let seen = std::mem::take(&mut *common.recorder.seen());
    FinishedWorld { scenario, runs, seen, open_turns, breakage: common.breakage }
}

async fn open_turns(common: &Common, runs: &[FinishedRun]) -> Vec<String> {
    let named = |workspace: &Workspace, run: &RunId, name: String| format!("{workspace} {run} {name}");
    let mut open = Vec::new();
    for run in runs {
        let Some(id) = &run.received.run else { continue };
        let turns = common.journal.turns_of(&run.workspace, id).await.unwrap_or_default();
        open.extend(
            turns.iter().map(|turn| named(&run.workspace, id, format!("{}/{}", turn.key.session, turn.key.name))),
        );
    }
    let everybody = Timestamp::from_micros(i64::MAX);
    let others = all_due_turns(&*common.journal, everybody).await.unwrap_or_default();
    open.extend(others.iter().map(|turn| named(&turn.key.scope.workspace, &turn.key.run, turn.key.name.to_string())));
    open
}
