//! Events for programs: gapless, schema first, an end last.

use crate::memory;
use trellis_domain::limits::SomeLimits;
use trellis_orchestrator::contract::runs::{Bench, SCRIPT};
use trellis_orchestrator::events::RunEvent;
use trellis_orchestrator::memory::scripted::ScriptedPrompter;

#[tokio::test(flavor = "multi_thread")]
async fn durable_events_have_no_gap_and_the_last_one_is_the_end() {
    let bench = Bench::new(memory(), ScriptedPrompter::replies(&SCRIPT)).await;
    let run = bench.ask(1, SomeLimits::default()).await;
    let (items, ()) = tokio::join!(bench.follow(&run), bench.finish(std::slice::from_ref(&run), 1));
    let events: Vec<_> = items.iter().map(|item| serde_json::to_value(RunEvent::of(&run, item)).unwrap()).collect();
    let durable: Vec<_> = events.iter().filter(|event| event["type"] != "chunk").collect();
    let seqs: Vec<_> = durable.iter().filter_map(|event| event["seq"].as_u64()).collect();
    assert_eq!(seqs, (1..=10).collect::<Vec<_>>());
    assert_eq!((&durable[0]["type"], &durable[0]["schema"]), (&"run.started".into(), &1.into()));
    assert_eq!(durable[1]["option_sets"][1]["decided_by"], "only-option");
    assert_eq!(durable[2]["tool"], "search");
    assert_eq!(durable[3]["content"], "a fact");
    let last = durable.last().unwrap();
    assert_eq!(
        (&last["type"], &last["state"], &last["answer"]),
        (&"run.completed".into(), &"answered".into(), &"It is so.".into())
    );
}
