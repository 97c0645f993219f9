//! The contract of the stream between processes.

use super::{id, scope};
use crate::ports::{Heard, Stream, StreamListener, StreamMessage, StreamNotice, TextChunk, TextKind};
use std::sync::Arc;
use std::time::Duration;

/// Each call gives the ways of two processes into one new stream.
pub async fn suite<F: Future<Output = [Arc<dyn Stream>; 2]>>(fresh: impl Fn() -> F) {
    what_one_tells_all_others_hear_as_it_was_told(fresh().await).await;
    a_wait_that_is_given_up_loses_nothing(fresh().await).await;
    nobody_waits_for_a_slow_listener_and_it_is_told_what_it_missed(fresh().await).await;
}

/// What comes may take a while. What does not come is not waited for longer.
const PATIENCE: Duration = Duration::from_secs(5);

fn message(from: &str, notice: StreamNotice) -> StreamMessage {
    StreamMessage { from: from.into(), workspace: scope("default").workspace, notice }
}

fn committed(from: &str, seq: u64) -> StreamMessage {
    message(from, StreamNotice::Committed { run: id("r"), seq })
}

fn too_early(from: &str) -> StreamMessage {
    committed(from, 0)
}

/// One of each kind, with what is easily spoilt on the way.
fn all_kinds(from: &str) -> Vec<StreamMessage> {
    let chunk = TextChunk {
        run: id("r"),
        session: id("r:1:0"),
        message_id: "urn:trustgraph:agent:r:1:0/i1/thought#2".into(),
        kind: TextKind::Thought,
        after: u64::MAX,
        offset: 7,
        text: "\0\"ä€𝄞\n\u{feff}".repeat(2_000),
    };
    let ids = vec![Arc::from("one"), Arc::from("two")];
    let notices = [
        StreamNotice::Text(TextChunk { kind: TextKind::Answer, text: String::new(), ..chunk.clone() }),
        StreamNotice::Text(chunk),
        StreamNotice::Abandoned { run: id("r"), message_ids: ids },
        StreamNotice::Committed { run: id("r"), seq: 3 },
        StreamNotice::Cancelled { run: id("r") },
        StreamNotice::Following { run: id("r"), anew: true },
        StreamNotice::ConfigurationChanged { version: 9 },
    ];
    notices.into_iter().map(|notice| message(from, notice)).collect()
}

/// The messages of a process that are heard, until so many have come.
async fn heard(listener: &mut dyn StreamListener, from: &str, count: usize) -> Vec<StreamMessage> {
    let mut messages = Vec::new();
    let all = async {
        while messages.len() < count {
            match listener.next().await {
                // What was told before anybody listened may still have been on its way.
                Heard::Message(message) if message == too_early(from) => {}
                // One's own may come back.
                Heard::Message(message) if *message.from == *from => messages.push(message),
                Heard::Message(_) | Heard::Missed => {}
            }
        }
    };
    tokio::time::timeout(PATIENCE, all).await.expect("what was told while nothing was wrong is heard");
    messages
}

async fn what_one_tells_all_others_hear_as_it_was_told([one, two]: [Arc<dyn Stream>; 2]) {
    // Nobody listens yet.
    one.publish(too_early("one"));
    let (mut first, mut second, mut third) = (one.listen(), two.listen(), two.listen());
    let (of_one, of_two) = (all_kinds("one"), all_kinds("two"));
    for (told_by_one, told_by_two) in of_one.iter().cloned().zip(of_two.iter().cloned()) {
        one.publish(told_by_one);
        two.publish(told_by_two);
    }
    // What was told before may still have been on its way.
    let mut missing = of_one.clone();
    while !missing.is_empty() {
        let told = heard(&mut *second, "one", 1).await;
        missing.retain(|expected| !told.contains(expected));
    }
    assert_eq!(heard(&mut *first, "two", of_two.len()).await.len(), of_two.len(), "in both directions");
    drop(second);
    one.publish(committed("one", 4));
    while heard(&mut *third, "one", 1).await != [committed("one", 4)] {}
}

async fn a_wait_that_is_given_up_loses_nothing([one, two]: [Arc<dyn Stream>; 2]) {
    let mut listener = two.listen();
    for seq in 1..=50 {
        let nothing = tokio::time::timeout(Duration::from_millis(1), listener.next()).await;
        assert!(nothing.is_err(), "nothing was told: {nothing:?}");
        one.publish(committed("one", seq));
        assert_eq!(heard(&mut *listener, "one", 1).await, [committed("one", seq)]);
    }
}

async fn nobody_waits_for_a_slow_listener_and_it_is_told_what_it_missed([one, two]: [Arc<dyn Stream>; 2]) {
    const MANY: u64 = 50_000;
    let (mut slow, mut other) = (two.listen(), two.listen());
    // This is no async function: it cannot wait.
    for seq in 1..=MANY {
        one.publish(committed("one", seq));
    }
    let (mut count, mut missed) = (0, false);
    let all = async {
        while !missed && count < MANY {
            match slow.next().await {
                Heard::Message(_) => count += 1,
                Heard::Missed => missed = true,
            }
        }
    };
    let told = tokio::time::timeout(PATIENCE, all).await;
    assert!(told.is_ok(), "only {count} of {MANY} messages came, and nobody said so");
    // Everybody goes on from there, when it is quiet again: some of what still comes may be late.
    while tokio::time::timeout(Duration::from_millis(300), slow.next()).await.is_ok() {}
    one.publish(committed("one", MANY + 1));
    while heard(&mut *slow, "one", 1).await != [committed("one", MANY + 1)] {}
    let newest = async { while other.next().await != Heard::Message(committed("one", MANY + 1)) {} };
    tokio::time::timeout(PATIENCE, newest).await.expect("a listener that is late hears the newest messages");
}
