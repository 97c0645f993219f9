//! Restarts and disorder over the in-memory journal.

use crate::memory;
use trellis_orchestrator::contract::runs::Store;
use trellis_orchestrator::contract::trouble::{
    Place, a_run_survives_a_restart_between_any_two_commits, disorder_changes_nothing, scenes,
};

/// The memory outlives the processes that are played over it.
struct Kept(Store);

impl Place for Kept {
    async fn open(&self) -> Store {
        self.0.clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_may_die_between_any_two_commits() {
    for (scene, pattern) in scenes() {
        a_run_survives_a_restart_between_any_two_commits(|| Kept(memory()), &scene, pattern).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wake_ups_in_any_order_and_number_leave_the_same_run() {
    for seed in 1..=40 {
        for (scene, pattern) in scenes() {
            disorder_changes_nothing(async || memory(), &scene, pattern, seed * 7919).await;
        }
    }
}
