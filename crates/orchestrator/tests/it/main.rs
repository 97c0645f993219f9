//! The in-memory twins keep the contracts, and a dialog reads the same in both modes.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "a test may fail loudly")]
#![allow(clippy::disallowed_methods, reason = "a test waits for what it tests")]

mod agents;
mod asked;
mod budgets;
mod callers;
mod cancel;
mod crowded;
mod dialog;
mod earlier;
mod events;
mod fan_in;
mod library;
mod limits;
mod mutants;
mod park;
mod pinned;
mod precedence;
mod processes;
mod promises;
mod replayed;
mod search;
mod selected;
mod several_calls;
mod tables;
mod taken_up;
mod told;
mod tool_sets;
mod trouble;
mod uncertain;
mod wrong_replies;

use std::sync::Arc;
use trellis_orchestrator::contract::{config, graph, journal, knowledge, prompter, queue, runs, teams};
use trellis_orchestrator::memory::scripted::ScriptedPrompter;
use trellis_orchestrator::memory::{MemoryConfig, MemoryGraph, MemoryJournal, MemoryKnowledge, VirtualWorld};
use trellis_orchestrator::ports::{Config, Journal, RealWorld, World};
use trellis_orchestrator::queue::FairQueue;

pub(crate) fn memory() -> runs::StorePorts {
    (Arc::new(MemoryJournal::default()), Arc::new(MemoryConfig::new(Arc::new(RealWorld))))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_journal_in_memory_keeps_the_commit_contract() {
    journal::suite(async || Arc::new(MemoryJournal::default()) as Arc<dyn Journal>).await;
}

#[tokio::test(start_paused = true)]
async fn claims_in_a_shared_journal_expire_by_its_clock() {
    let world = Arc::new(VirtualWorld::new());
    let shared = MemoryJournal::shared(Arc::clone(&world) as Arc<dyn World>);
    journal::claims_expire(&shared, |time| tokio::time::sleep(time)).await;
}

#[tokio::test]
async fn configuration_in_memory_keeps_its_contract() {
    config::suite(async || Arc::new(MemoryConfig::new(Arc::new(RealWorld))) as Arc<dyn Config>).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_graph_in_memory_keeps_its_contract() {
    graph::suite(async || {
        let store = memory();
        let graph = Arc::new(MemoryGraph::new(Arc::clone(&store.0)));
        (store, graph as _)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn knowledge_in_memory_keeps_its_contract() {
    knowledge::suite(async || {
        let (store, loaded) = (memory(), Arc::new(MemoryKnowledge::default()));
        let graph = Arc::new(MemoryGraph::with_knowledge(Arc::clone(&store.0), Arc::clone(&loaded)));
        ((store, graph as _), loaded as _)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_queue_in_memory_keeps_its_contract() {
    queue::suite(Arc::new(FairQueue::new(Arc::new(RealWorld)))).await;
}

#[tokio::test]
async fn the_scripted_prompter_keeps_its_contract() {
    let mut scripted = ScriptedPrompter::replies(&["Thought: it depends."]);
    scripted.piece = 5;
    prompter::suite(&scripted, Arc::default(), "agent-react", serde_json::Map::new()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_in_memory_keep_the_promises() {
    runs::suite(async || memory()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn teams_in_memory_keep_the_promises() {
    teams::suite(async || memory()).await;
}
