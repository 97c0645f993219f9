//! Records: everything a run does, under names that can be computed in advance.
//!
//! A record is written as two lines of JSON, header and body. The header's content hash is taken over
//! the body's bytes as stored, so that it can be checked without knowing what they mean.

use crate::decision::Decision;
use crate::document::{Document, INLINE_BYTES, Payload};
use crate::fan_out::{FannedOut, Joined, Parent};
use crate::limits::{Limits, SomeLimits};
use crate::message::AgentStep;
use crate::reading::Citation;
use crate::run::Termination;
use crate::usage::Usage;
use crate::{Caller, Collection, Configured, ConversationId, Flow, Hash, RunId, SessionId, Timestamp, Workspace};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

pub use crate::name::{Name, TurnKind};
pub use crate::prompt_use::{FailedAttempt, ModelCall, PromptUse, ReplyFormat};
pub use crate::reading::Reading;

/// The newest record format. Older ones keep loading.
pub const FORMAT: u16 = 2;

/// What the committer knows and the body does not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    pub format: u16,
    pub workspace: Workspace,
    pub flow: Flow,
    pub run: RunId,
    pub session: SessionId,
    pub name: Name,
    /// Position among the run's events, gapless from 1.
    pub seq: u64,
    /// The session's version after the commit that wrote this record.
    pub version: u64,
    /// Names of the records in the same session that this one follows from.
    pub causes: Vec<Name>,
    pub parents: Vec<Hash>,
    pub content: Hash,
    /// The configuration snapshot that the session is pinned to.
    pub config: Hash,
    /// Counts from 1; higher when the effect was begun again.
    pub attempt: u32,
    /// Arrived after the session's end: kept, never acted on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub late: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    pub time: Timestamp,
}

/// One record. As JSON it is an object of header and body, with all texts in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    pub header: Header,
    pub body: Body,
}

/// Why stored bytes are not a record.
#[derive(Debug, thiserror::Error)]
pub enum UnreadableRecord {
    #[error("the record has no header line")]
    NoHeader,
    #[error("the record was written in format {found}, this program knows up to {FORMAT}; use a newer version")]
    NewerFormat { found: u16 },
    #[error("the record's JSON does not fit format {FORMAT}: {0}")]
    Json(#[from] serde_json::Error),
    #[error("the record {name} of session {session} does not have the content that its hash says")]
    Content { session: SessionId, name: Name },
}

impl Record {
    /// The stored form.
    pub fn to_bytes(&self) -> Result<Vec<u8>, serde_json::Error> {
        let mut bytes = serde_json::to_vec(&self.header)?;
        bytes.push(b'\n');
        serde_json::to_writer(&mut bytes, &self.body)?;
        Ok(bytes)
    }

    /// Reads the stored form, without checking the hash.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, UnreadableRecord> {
        let (header, body) = split(bytes)?;
        Ok(Self { header: read_header(header)?, body: serde_json::from_slice(body)? })
    }

    /// Reads the stored form and checks that the body has the content its header names.
    pub fn from_bytes_checked(bytes: &[u8]) -> Result<Self, UnreadableRecord> {
        let (_, body) = split(bytes)?;
        let record = Self::from_bytes(bytes)?;
        if Hash::of(body) == record.header.content {
            Ok(record)
        } else {
            Err(UnreadableRecord::Content { session: record.header.session, name: record.header.name })
        }
    }
}

fn split(bytes: &[u8]) -> Result<(&[u8], &[u8]), UnreadableRecord> {
    let end = bytes.iter().position(|byte| *byte == b'\n').ok_or(UnreadableRecord::NoHeader)?;
    Ok((&bytes[..end], &bytes[end + 1..]))
}

fn read_header(bytes: &[u8]) -> Result<Header, UnreadableRecord> {
    #[derive(Deserialize)]
    struct Format {
        format: u16,
    }
    let Format { format } = serde_json::from_slice(bytes)?;
    if format > FORMAT {
        return Err(UnreadableRecord::NewerFormat { found: format });
    }
    Ok(serde_json::from_slice(bytes)?)
}

/// What happened. The two that say most are boxed, so that the others do not take up their room.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Body {
    Accepted(Box<Accepted>),
    Routed(Routed),
    Replied(Box<Replied>),
    Observed(Observed),
    FannedOut(FannedOut),
    Joined(Joined),
    Ended(Ended),
}

impl From<Accepted> for Body {
    fn from(accepted: Accepted) -> Self {
        Self::Accepted(Box::new(accepted))
    }
}

impl From<Replied> for Body {
    fn from(replied: Replied) -> Self {
        Self::Replied(Box::new(replied))
    }
}

macro_rules! as_kind {
    ($($method:ident: $variant:ident),*) => {
        impl Body {
            $(
                pub fn $method(&self) -> Option<&$variant> {
                    if let Self::$variant(body) = self { Some(body) } else { None }
                }
            )*
        }
    };
}

as_kind!(
    as_accepted: Accepted,
    as_routed: Routed,
    as_replied: Replied,
    as_observed: Observed,
    as_fanned_out: FannedOut,
    as_joined: Joined,
    as_ended: Ended
);

impl Body {
    /// The stored form, and the large texts that lie beside it.
    pub fn written(&mut self) -> (Vec<u8>, Vec<(Hash, Arc<str>)>) {
        let large = self.payloads_mut().iter().any(|payload| payload.text().len() > INLINE_BYTES);
        let mut small = large.then(|| self.clone());
        let payloads = small.iter_mut().flat_map(Self::payloads_mut);
        let blobs = payloads.filter_map(Payload::detach).collect();
        let written = serde_json::to_vec(small.as_ref().unwrap_or(self)).expect("record bodies are always JSON");
        (written, blobs)
    }

    /// Every text that may be large.
    pub fn payloads_mut(&mut self) -> Vec<&mut Payload> {
        fn text(document: &mut Option<Document>) -> Option<&mut Payload> {
            document.as_mut().map(|document| &mut document.text)
        }
        fn failures(failures: &mut [FailedAttempt]) -> impl Iterator<Item = &mut Payload> {
            failures.iter_mut().filter_map(|failure| text(&mut failure.asked.as_mut()?.request))
        }
        fn decisions(decisions: &mut [Decision]) -> impl Iterator<Item = &mut Payload> {
            decisions.iter_mut().flat_map(|d| text(&mut d.rationale).into_iter().chain(text(&mut d.rejected)))
        }
        match self {
            Self::Accepted(accepted) => vec![&mut accepted.question],
            Self::Routed(routed) => decisions(&mut routed.decisions).collect(),
            Self::Replied(replied) => {
                let mut all: Vec<_> = decisions(replied.decision.as_mut_slice()).collect();
                all.push(&mut replied.raw);
                all.extend(text(&mut replied.thought));
                all.extend(text(&mut replied.prompt.request));
                all.extend(failures(&mut replied.failures));
                match &mut replied.reading {
                    Reading::Answer { answer } | Reading::Step { answer: Some(answer), .. } => all.push(answer),
                    Reading::Step { answer: None, .. }
                    | Reading::Action { .. }
                    | Reading::Chosen { .. }
                    | Reading::Plan { .. }
                    | Reading::Revision { .. }
                    | Reading::Goals { .. }
                    | Reading::Review { .. }
                    | Reading::Unreadable { .. }
                    | Reading::Failed { .. } => {}
                }
                all
            }
            Self::Observed(observed) => {
                let mut all: Vec<_> = text(&mut observed.result).into_iter().collect();
                for call in &mut observed.calls {
                    all.extend(&mut call.reply);
                    all.extend(text(&mut call.prompt.request));
                    all.extend(failures(&mut call.failures));
                }
                all
            }
            Self::FannedOut(fan_out) => decisions(&mut fan_out.decisions).collect(),
            Self::Joined(joined) => joined.members.iter_mut().filter_map(|member| text(&mut member.answer)).collect(),
            Self::Ended(ended) => text(&mut ended.answer).into_iter().collect(),
        }
    }
}

/// A question was accepted: the root of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Accepted {
    pub question: Payload,
    /// Hash of the whole request, to tell a repetition from a different request under the same id.
    pub request: Hash,
    pub group: Option<Vec<String>>,
    pub state: String,
    pub collection: Collection,
    pub streaming: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<ConversationId>,
    /// What the caller named; empty if nothing.
    #[serde(default)]
    pub pattern: String,
    #[serde(default)]
    pub task_type: String,
    #[serde(default)]
    pub framing: String,
    #[serde(default)]
    pub limits: SomeLimits,
    /// Caller-supplied history: context, not iterations of this session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<AgentStep>,
    /// Names the caller's request, to which all of the run's replies go.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub request_id: String,
    /// What was asked and answered before in the same conversation, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<Exchange>,
    /// The fan-out that began this session; none for the root of a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
    /// Who asked; none for subagents, and in records of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Caller>,
    /// Who made the configuration that the run began with what it is; none if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configured: Option<Configured>,
}

/// An earlier question of a conversation and its answer, each cut to what is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    pub run: RunId,
    pub question: String,
    pub answer: String,
}

/// Task type and pattern are chosen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Routed {
    pub task_type: String,
    pub pattern: String,
    pub framing: String,
    /// The task type's own words on when to stop; empty if it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub termination: String,
    /// The limits that hold from here on.
    pub limits: Limits,
    pub decisions: Vec<Decision>,
}

/// A model call returned, or gave up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Replied {
    pub prompt: PromptUse,
    pub raw: Payload,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thought: Option<Document>,
    pub reading: Reading,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decision: Vec<Decision>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_token: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_token: Option<u64>,
    pub ms: u64,
    /// The steps or findings that the text rests on, by its own account.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub citations: Vec<Citation>,
    /// Attempts of the same call that failed before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<FailedAttempt>,
    /// What had to be put right before the reply could be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mended: Vec<String>,
}

/// A tool returned, or the runtime had to tell the model why none was called.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Observed {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Document>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    pub ms: u64,
    /// The state that holds afterwards, if the tool changed it. Only a success changes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// The key the tool was called with; absent if no tool was called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// What the tool spent on models of its own.
    #[serde(default, skip_serializing_if = "Usage::is_nothing")]
    pub usage: Usage,
    /// What it asked them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ModelCall>,
}

/// The session ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ended {
    pub reason: Termination,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Document>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What the session itself cost.
    pub usage: Usage,
    /// The same with all its subagents; absent if it had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<Usage>,
    /// The task type's words on when to stop, which the end was decided under.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub criteria: String,
    /// Steps or findings that the answer has to do without.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<u32>,
}

impl Ended {
    /// What the session and all its subagents cost.
    pub fn total(&self) -> &Usage {
        self.total.as_ref().unwrap_or(&self.usage)
    }
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
