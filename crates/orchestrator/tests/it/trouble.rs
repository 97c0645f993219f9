//! Restarts and disorder over the in-memory journal.

use crate::memory;
use proptest::prelude::*;
use serde_json::{Value, json};
use trellis_orchestrator::contract::runs::StorePorts;
use trellis_orchestrator::contract::trouble::{
    Reopenable, a_run_survives_a_restart_between_any_two_commits, disorder_changes_nothing, scenes,
};

/// The memory outlives the processes that are played over it.
struct Kept(StorePorts);

impl Reopenable for Kept {
    async fn open(&self) -> StorePorts {
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

/// Teams of any shape: agents that answer, fail or plan, and teams of them, in one or two rounds.
fn team() -> impl Strategy<Value = Value> {
    let step = (0_u32..3, any::<bool>(), prop::bool::weighted(0.2)).prop_map(|(needs, tool, fail)| {
        json!({"say": needs, "tool": tool, "fail": fail, "needs": if needs > 1 { vec![0] } else { vec![] }})
    });
    let plan = prop::collection::vec(step, 1..4).prop_map(|steps| json!({"plan": steps}));
    let agent = (0_u32..3, "[a-z]{1,6}").prop_map(|(tools, answer)| json!({"tools": tools, "answer": answer}));
    let leaf = prop_oneof![4 => agent, 1 => Just(json!({"fail": true})), 1 => plan];
    let round = |inner| prop::collection::vec(inner, 1..4);
    leaf.prop_recursive(2, 12, 3, move |inner| {
        prop::collection::vec(round(inner), 1..3).prop_map(|rounds| json!({"team": rounds}))
    })
    .prop_map(|scene| if scene["team"].is_array() { scene } else { json!({"team": [[scene]]}) })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn any_team_leaves_the_same_run_in_any_disorder(scene in team(), seed in any::<u64>()) {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        runtime.block_on(disorder_changes_nothing(async || memory(), &scene, "supervisor", seed));
    }
}
