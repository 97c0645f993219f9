use super::*;
use crate::contract;
use crate::memory::MemoryJournal;
use crate::ports::{Commit, Journal};
use trellis_domain::record::{Body, PromptUse, Reading, Replied};
use trellis_patterns::react::IterationNames;

fn run() -> (Workspace, RunId) {
    (Workspace::default(), SessionId::new("r").unwrap())
}

fn say(hub: &Hub, id: &str, text: &str) {
    let (workspace, run) = run();
    hub.writer(&workspace, &run, &run).text(&Arc::from(id), TextKind::Thought, text);
}

async fn next_text(subscription: &mut Subscription) -> String {
    match subscription.next(&MemoryJournal::default()).await.unwrap() {
        Item::Text { message_id, text, .. } => format!("{message_id}: {text}"),
        Item::Record(record) => format!("record {}", record.header.seq),
    }
}

#[tokio::test]
async fn a_slow_reader_gets_what_has_gathered_at_once() {
    let hub = Arc::new(Hub::default());
    let (workspace, run) = run();
    let mut slow = hub.subscribe(&workspace, &run, 0);
    let (writer, message) = (hub.writer(&workspace, &run, &run), Arc::from("m"));
    for piece in ["one ", "two ", "three"] {
        writer.text(&message, TextKind::Thought, piece);
    }
    assert_eq!(next_text(&mut slow).await, "m: one two three");
    writer.text(&message, TextKind::Thought, " four");
    assert_eq!(next_text(&mut slow).await, "m:  four");
}

#[tokio::test]
async fn whoever_comes_late_gets_the_open_message_from_its_start() {
    let hub = Arc::new(Hub::default());
    let (workspace, run) = run();
    let (writer, message) = (hub.writer(&workspace, &run, &run), Arc::from("m"));
    writer.text(&message, TextKind::Thought, "begun ");
    let mut late = hub.subscribe(&workspace, &run, 0);
    writer.text(&message, TextKind::Thought, "before");
    assert_eq!(next_text(&mut late).await, "m: begun before");
}

#[tokio::test]
async fn a_closed_message_is_forgotten_and_readers_are_independent() {
    let hub = Arc::new(Hub::default());
    let (workspace, run) = run();
    let (mut one, mut two) = (hub.subscribe(&workspace, &run, 0), hub.subscribe(&workspace, &run, 0));
    say(&hub, "a", "x");
    assert_eq!(next_text(&mut one).await, "a: x");
    hub.close_messages(&workspace, &run, &[Arc::from("a")]);
    say(&hub, "b", "y");
    assert_eq!((next_text(&mut one).await, next_text(&mut two).await), ("b: y".into(), "b: y".into()));
}

#[test]
fn the_hub_forgets_a_run_that_has_ended() {
    let hub = Arc::new(Hub::default());
    let (workspace, run) = run();
    say(&hub, "m", "x");
    hub.committed(&workspace, &run, &[], true);
    assert!(hub.runs.lock().is_empty());
}

/// A call that began when the run had just ended tells nobody, and leaves nothing behind.
#[test]
fn the_hub_forgets_what_nobody_reads_or_writes() {
    let hub = Arc::new(Hub::default());
    let (workspace, run) = run();
    hub.committed(&workspace, &run, &[], true);
    let late = hub.writer(&workspace, &run, &run);
    hub.committed(&workspace, &run, &[], false);
    assert_eq!(hub.runs.lock().len(), 1, "somebody may still write");
    late.text(&Arc::from("m"), TextKind::Thought, "x");
    drop(late);
    hub.committed(&workspace, &run, &[], false);
    assert_eq!(hub.runs.lock().len(), 1, "an open message is kept for whoever comes");
    hub.close_messages(&workspace, &run, &[Arc::from("m")]);
    hub.committed(&workspace, &run, &[], false);
    assert!(hub.runs.lock().is_empty());
}

#[test]
fn the_last_reader_takes_an_idle_stream_along() {
    let hub = Arc::new(Hub::default());
    let (workspace, run) = run();
    let (one, two) = (hub.subscribe(&workspace, &run, 0), hub.subscribe(&workspace, &run, 0));
    drop(one);
    assert_eq!(hub.runs.lock().len(), 1, "somebody still listens");
    drop(two);
    assert!(hub.runs.lock().is_empty());
    say(&hub, "m", "x");
    drop(hub.subscribe(&workspace, &run, 0));
    assert_eq!(hub.runs.lock().len(), 1, "an open message is kept for whoever comes");
}

#[tokio::test]
async fn a_message_begun_anew_under_the_same_name_is_read_from_its_start() {
    let hub = Arc::new(Hub::default());
    let (workspace, run) = run();
    let mut reader = hub.subscribe(&workspace, &run, 0);
    say(&hub, "m", "ääää");
    assert_eq!(next_text(&mut reader).await, "m: ääää");
    hub.close_messages(&workspace, &run, &[Arc::from("m")]);
    say(&hub, "m", "a new, longer text");
    assert_eq!(next_text(&mut reader).await, "m: a new, longer text");
}

fn replied() -> Body {
    Body::from(Replied {
        prompt: PromptUse::default(),
        raw: "".into(),
        parts: Vec::new(),
        stop: None,
        thought: None,
        reading: Reading::Unusable { reason: "it is empty".to_owned() },
        decision: Vec::new(),
        model: None,
        in_token: None,
        out_token: None,
        ms: 0,
        citations: Vec::new(),
        incomplete: None,
        enforced: false,
        failures: Vec::new(),
        repairs: Vec::new(),
        heard: 0,
    })
}

#[tokio::test]
async fn a_record_that_is_read_before_its_news_brings_its_messages_once() {
    let hub = Arc::new(Hub::default());
    let (workspace, run) = run();
    let writer = hub.writer(&workspace, &run, &run);
    writer.text(&Arc::from("urn:trustgraph:agent:r/i1/thought"), TextKind::Thought, "Hm.");
    let journal = MemoryJournal::default();
    let records = vec![
        contract::record("r", Name::session(), &[], contract::accepted("why?")),
        contract::record("r", Name::iteration(1), &[], replied()),
    ];
    journal.commit(Commit { records, ..contract::commit("default", "r", "r", 0) }).await.unwrap();
    // The commit is there, and nobody has told the hub of it yet.
    let mut reader = hub.subscribe(&workspace, &run, 0);
    for _ in 0..2 {
        assert!(matches!(reader.next(&journal).await.unwrap(), Item::Record(_)));
    }
    writer.text(&Arc::from("next"), TextKind::Thought, "So.");
    let Item::Text { message_id, .. } = reader.next(&journal).await.unwrap() else { panic!("no text") };
    assert_eq!(&*message_id, "next");
}
