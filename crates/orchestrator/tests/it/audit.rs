//! Records that came from elsewhere are held against their hashes.

use crate::memory;
use serde_json::json;
use std::sync::Arc;
use trellis_domain::document::Payload;
use trellis_domain::limits::SomeLimits;
use trellis_domain::message::AgentRequest;
use trellis_domain::record::{Body, Record};
use trellis_orchestrator::audit::Audit;
use trellis_orchestrator::contract::runs::Bench;

/// The records of a run with a text that is stored beside its record.
async fn records() -> Vec<Arc<Record>> {
    let bench = Bench::play(memory()).await;
    let scene = json!({"tools": 2, "pad": "x".repeat(20_000)}).to_string();
    let request = AgentRequest { question: scene, ..AgentRequest::default() };
    let run = bench.request(1, request, SomeLimits::default()).await;
    bench.finish(std::slice::from_ref(&run), 1).await;
    bench.records(&run).await
}

fn changed(records: &[Arc<Record>], place: usize, change: impl Fn(&mut Record)) -> Vec<String> {
    let mut records = records.to_vec();
    change(Arc::make_mut(&mut records[place]));
    Audit::of(&records).faults
}

#[tokio::test(flavor = "multi_thread")]
async fn records_that_went_through_json_have_the_content_that_their_hashes_say() {
    let records = records().await;
    let sent = serde_json::to_string(&records).unwrap();
    let received: Vec<Arc<Record>> = serde_json::from_str(&sent).unwrap();
    let audit = Audit::of(&received);
    assert_eq!((audit.records, audit.unchecked, audit.faults), (records.len(), 0, Vec::new()));
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_was_changed_on_the_way_is_found() {
    let records = records().await;
    let other_question = |record: &mut Record| {
        if let Body::Accepted(accepted) = &mut record.body {
            accepted.question = Payload::from("Another question?");
        }
    };
    let faults = changed(&records, 0, other_question);
    assert!(faults.len() == 1 && faults[0].contains("does not have the content that its hash says"), "{faults:?}");
    let follows = records.iter().position(|record| !record.header.causes.is_empty()).unwrap();
    let faults = changed(&records, follows, |record| record.header.parents[0] = record.header.content);
    assert!(faults.len() == 1 && faults[0].contains("which is not what it was"), "{faults:?}");
    let mut gap = records.clone();
    gap.remove(records.len() - 2);
    assert!(Audit::of(&gap).faults.iter().any(|fault| fault.contains("was expected")));
}

#[tokio::test(flavor = "multi_thread")]
async fn hashes_of_an_older_format_are_counted_and_not_judged() {
    let mut records = records().await;
    Arc::make_mut(&mut records[0]).header.format = 1;
    let audit = Audit::of(&records);
    assert_eq!((audit.unchecked, audit.faults), (1, Vec::new()));
}
