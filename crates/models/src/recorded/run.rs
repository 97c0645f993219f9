//! The replies in the records of one run, by what was asked.

use crate::remote::KEY_TAKEN_OUT;
use crate::thinking::{CUT_THOUGHT, UNMARKED};
use std::sync::Arc;
use trellis_domain::parts::ReplyPart;
use trellis_domain::record::{Body, FailedAttempt, Incomplete, ModelCall, PromptUse, Reading, Record, Replied};
use trellis_domain::sealed::ERASED;
use trellis_domain::{Hash, RunId};
use trellis_orchestrator::ports::{PromptReply, ReplyContent};

/// Begins the reason of a call that no model answered.
const UNANSWERED: &str = "the model did not answer: ";

/// What is noted of a reply before anybody reads it. What its reader had to put right is found anew.
const BEFORE_READING: [&str; 3] = [KEY_TAKEN_OUT, UNMARKED, CUT_THOUGHT];

/// What models said in one run.
#[derive(Debug, Clone)]
pub struct RecordedRun {
    pub(super) run: RunId,
    pub(super) model: String,
    pub(super) replies: Vec<(Hash, RecordedReply)>,
    /// Task type and pattern were asked for one after the other.
    pub(super) routed_apart: bool,
    /// What its models could read.
    pub(super) room: Option<u64>,
}

#[derive(Debug, Clone)]
pub(super) enum RecordedReply {
    Said(Box<PromptReply>),
    None(NoReply),
}

/// A call that no model answered.
#[derive(Debug, Clone)]
pub(super) struct NoReply {
    pub(super) reason: String,
    pub(super) failures: Vec<FailedAttempt>,
}

impl RecordedReply {
    pub(super) fn failures(&self) -> &[FailedAttempt] {
        match self {
            Self::Said(reply) => &reply.failures,
            Self::None(none) => &none.failures,
        }
    }
}

impl RecordedRun {
    /// Reads all records of one run, in the order of the run. None if they do not say what was asked: the run asked nobody,
    /// or is older than these hashes, or was answered from a recording itself.
    pub fn of(records: &[Arc<Record>]) -> Option<Self> {
        let run = records.first()?.header.run.clone();
        let (mut model, mut found) = (None, Vec::new());
        let mut take = |(asked, reply): (PromptUse, RecordedReply)| {
            let said = asked.said?;
            // Whoever was asked first, whether or not it answered.
            let first = reply.failures().first().and_then(|failure| failure.model.clone());
            model = model.take().or(first).or(asked.model);
            found.push((said, reply));
            Some(())
        };
        for record in records {
            match &record.body {
                Body::Replied(replied) => {
                    reply_of(replied).and_then(&mut take);
                }
                Body::Observed(observed) => {
                    for call in &observed.calls {
                        reply_of_call(call).and_then(&mut take);
                    }
                }
                Body::Accepted(_)
                | Body::Routed(_)
                | Body::FannedOut(_)
                | Body::Joined(_)
                | Body::Intended(_)
                | Body::InputRequired(_)
                | Body::Parked(_)
                | Body::Settled(_)
                | Body::Told(_)
                | Body::Ended(_) => {}
            }
        }
        let mut accepted = records.iter().filter_map(|record| record.body.as_accepted());
        let first = accepted.next();
        let (routed_apart, room) = (first.is_some_and(|it| it.routed_apart), first.and_then(|it| it.room));
        model.map(|model| Self { run, model, replies: found, routed_apart, room })
    }

    /// The model that was asked first.
    pub fn model(&self) -> &str {
        &self.model
    }
}

fn reply_of(replied: &Replied) -> Option<(PromptUse, RecordedReply)> {
    let failures = || replied.failures.iter().map(without_question).collect::<Vec<_>>();
    if let Reading::Failed { reason } = &replied.reading {
        return unanswered_call(&replied.failures, reason, failures());
    }
    if replied.incomplete == Some(Incomplete::Context) {
        return unanswered_call(&replied.failures, "the prompt was too long", failures());
    }
    let reply = replied.reply();
    if is_erased(&reply.parts) {
        return None;
    }
    let repairs = replied.repairs.iter().filter(|note| BEFORE_READING.contains(&note.as_str()));
    let said = PromptReply {
        raw: reply.text().into_owned(),
        parts: replied.parts.clone(),
        stop: replied.stop,
        content: ReplyContent::Text,
        prompt: replied.prompt.clone(),
        model: replied.model.clone(),
        in_token: replied.in_token,
        out_token: replied.out_token,
        enforced: replied.enforced,
        cut_short: replied.incomplete == Some(Incomplete::Tokens),
        ms: replied.ms,
        failures: failures(),
        repairs: repairs.cloned().collect(),
    };
    Some((replied.prompt.clone(), RecordedReply::Said(Box::new(said))))
}

/// What a tool asked a model.
fn reply_of_call(call: &ModelCall) -> Option<(PromptUse, RecordedReply)> {
    let failures = || call.failures.iter().map(without_question).collect::<Vec<_>>();
    let Some(reply) = &call.reply else {
        let reason = call.failures.last().map_or("", |failure| &failure.reason);
        return unanswered_call(&call.failures, reason, failures());
    };
    if reply.text() == ERASED {
        return None;
    }
    let said = PromptReply {
        raw: reply.text().to_owned(),
        parts: Vec::new(),
        stop: None,
        content: ReplyContent::Text,
        prompt: call.prompt.clone(),
        model: call.model.clone(),
        in_token: call.in_token,
        out_token: call.out_token,
        enforced: false,
        cut_short: false,
        ms: call.ms,
        failures: failures(),
        repairs: Vec::new(),
    };
    Some((call.prompt.clone(), RecordedReply::Said(Box::new(said))))
}

/// What was asked is on record with each attempt.
fn unanswered_call(
    asked: &[FailedAttempt],
    reason: &str,
    failures: Vec<FailedAttempt>,
) -> Option<(PromptUse, RecordedReply)> {
    let asked = asked.first()?.asked.as_deref()?.clone();
    let reason = reason.strip_prefix(UNANSWERED).unwrap_or(reason).to_owned();
    Some((asked, RecordedReply::None(NoReply { reason, failures })))
}

fn without_question(failure: &FailedAttempt) -> FailedAttempt {
    FailedAttempt { asked: None, ..failure.clone() }
}

fn is_erased(parts: &[ReplyPart]) -> bool {
    parts.iter().any(|part| match part {
        ReplyPart::Thought { text, .. } | ReplyPart::Text { text } | ReplyPart::Refusal { text } => {
            text.text() == ERASED
        }
        ReplyPart::Call { arguments, .. } => arguments.text() == ERASED,
    })
}
