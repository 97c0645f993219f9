//! Whoever follows a run, in any process: records without a gap and in time, one end, and text that is the beginning of the
//! message that its record brings whole.

use crate::processes::{Alive, Processes};
use std::collections::BTreeMap;
use std::time::Duration;
use trellis_domain::message::{AgentResponse, message_type};
use trellis_domain::record::Record;
use trellis_domain::{RunId, Workspace};
use trellis_orchestrator::Item;
use trellis_orchestrator::dialog::Dialog;
use trellis_orchestrator::events::RunEvent;
use trellis_patterns::react::IterationNames;
use trellis_provenance::iri;

/// A silence in which a connection may break.
const SILENCE: Duration = Duration::from_secs(1);
/// Nobody hears of a record later than this, whatever is lost.
const LATE: Duration = Duration::from_secs(7);

/// One connection.
struct Follower<'a> {
    processes: &'a Processes,
    workspace: &'a Workspace,
    run: &'a RunId,
    dialog: Dialog,
    /// Since when it follows.
    since: Duration,
    after: u64,
    /// The text of each open message.
    texts: BTreeMap<String, String>,
    /// What was sent as an answer, by message.
    answers: BTreeMap<String, String>,
    ends: u32,
    wrong: Vec<String>,
}

/// What came of a connection: how often it was told that the dialog is over, if it came that far, and what was wrong.
pub(crate) type Followed = (Option<u32>, Vec<String>);

/// Follows a run in a process, to its end or until the connection breaks.
pub(crate) async fn follow(
    processes: &Processes,
    process: &Alive,
    (workspace, run): (&Workspace, &RunId),
    streaming: bool,
    breaks: bool,
) -> Followed {
    let mut follower = Follower {
        processes,
        workspace,
        run,
        dialog: Dialog::new(run.clone(), streaming),
        since: processes.common.world.passed(),
        after: 0,
        texts: BTreeMap::new(),
        answers: BTreeMap::new(),
        ends: 0,
        wrong: Vec::new(),
    };
    let mut subscription = process.hub.subscribe(workspace, run, 0);
    while !follower.dialog.is_over() {
        let next = subscription.next(&*processes.common.journal);
        match tokio::time::timeout(SILENCE, next).await {
            Ok(Ok(item)) => follower.hear(item),
            Ok(Err(_)) => return (None, follower.wrong),
            Err(_) if breaks && processes.common.fault_source.chance().one_in(40) => return (None, follower.wrong),
            Err(_) => {}
        }
        if process.life.is_dead() {
            return (None, follower.wrong);
        }
    }
    (Some(follower.ends), follower.wrong)
}

impl Follower<'_> {
    fn hear(&mut self, item: Item) {
        match &item {
            Item::Text { message_id, text, .. } => {
                self.processes.common.recorder.count("pieces of text that followers got");
                self.texts.entry(message_id.to_string()).or_default().push_str(text);
            }
            Item::Record(record) => {
                self.check_place(record);
                self.check_texts(&item, record);
            }
        }
        let messages = self.dialog.project(item.clone());
        for message in &messages {
            self.check_answer(message, &item);
        }
    }

    fn check_place(&mut self, record: &Record) {
        let header = &record.header;
        if header.seq != self.after + 1 {
            self.wrong.push(format!("record {} came after {}", header.seq, self.after));
        }
        self.after = header.seq;
        let place = (self.workspace.clone(), header.session.clone(), header.name.clone());
        let recorded = self.processes.common.recorder.seen().recorded.get(&place).map(|recorded| recorded.passed);
        if let Some(recorded) = recorded.filter(|recorded| *recorded >= self.since) {
            let late = self.processes.common.world.passed().saturating_sub(recorded);
            if late > LATE {
                self.wrong.push(format!("{}/{} came {late:?} late", header.session, header.name));
            }
        }
    }

    /// What was shown of the messages that a record brings whole.
    fn check_texts(&mut self, item: &Item, record: &Record) {
        if record.body.as_replied().is_none() {
            return;
        }
        let header = &record.header;
        let event = serde_json::to_value(RunEvent::of(self.run, item)).unwrap_or_default();
        let mut check = |id: String, whole: Option<&str>| {
            let shown = self.texts.remove(&id).unwrap_or_default();
            if let Some(whole) = whole.filter(|whole| !whole.starts_with(&shown)) {
                self.wrong.push(format!("{id} is {whole:?}, and {shown:?} was shown"));
            }
        };
        let thought = iri::message_id(&header.session, &format!("{}/thought", header.name), header.attempt);
        check(thought, event["thought"].as_str());
        let place = if header.name.as_iteration().is_some() { "final" } else { header.name.as_str() };
        let answer = event["answer_message_id"].as_str().and(event["content"].as_str());
        check(iri::message_id(&header.session, place, header.attempt), answer);
    }

    /// What was sent under the id of the last message is the answer.
    fn check_answer(&mut self, message: &AgentResponse, item: &Item) {
        let sent = self.answers.entry(message.message_id.clone()).or_default();
        if message.message_type == message_type::ANSWER {
            sent.push_str(&message.content);
        }
        if !message.end_of_dialog {
            return;
        }
        self.ends += 1;
        let Item::Record(record) = item else { return self.wrong.push("text ended the dialog".to_owned()) };
        let answer = record.body.as_ended().and_then(|ended| ended.answer.as_ref()).map_or("", |answer| answer.text());
        if message.message_type == message_type::ANSWER && !sent.starts_with(answer) {
            self.wrong.push(format!("the answer is {answer:?}, and {sent:?} was sent"));
        }
    }
}
