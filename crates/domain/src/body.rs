//! What a record says: one kind of body for every kind of event, and the texts in it.

use crate::decision::{Decision, Excluded};
use crate::document::{Document, Payload};
use crate::fan_out::{FannedOut, Joined, Parent};
use crate::input::InputRequired;
use crate::intent::Intended;
use crate::limits::{Limits, PinnedLimits, SomeLimits};
use crate::message::AgentStep;
use crate::named::empty_is_none;
use crate::park::{Parked, Settled};
use crate::parts::{REVISION, Reply, ReplyPart, StopReason};
use crate::prompt_use::{FailedAttempt, Incomplete, ModelCall, PromptUse};
use crate::rdf::Quad;
use crate::reading::{Citation, Reading, is_left_out};
use crate::run::Termination;
use crate::told::Told;
use crate::usage::Usage;
use crate::{
    Caller, Collection, Configured, ConversationId, GroupName, Hash, PatternName, RequestId, RunId, Selection,
    TaskTypeName,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What happened. Those that say most are boxed, so that the others stay small.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Body {
    Accepted(Box<Accepted>),
    Routed(Routed),
    Replied(Box<Replied>),
    Intended(Intended),
    InputRequired(Box<InputRequired>),
    Observed(Observed),
    FannedOut(FannedOut),
    Joined(Joined),
    Parked(Box<Parked>),
    Settled(Box<Settled>),
    Told(Told),
    Ended(Box<Ended>),
}

impl From<Accepted> for Body {
    fn from(accepted: Accepted) -> Self {
        Self::Accepted(Box::new(accepted))
    }
}

impl From<Ended> for Body {
    fn from(ended: Ended) -> Self {
        Self::Ended(Box::new(ended))
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
    as_intended: Intended,
    as_input_required: InputRequired,
    as_observed: Observed,
    as_fanned_out: FannedOut,
    as_joined: Joined,
    as_parked: Parked,
    as_settled: Settled,
    as_told: Told,
    as_ended: Ended
);

impl Body {
    /// Every text that lay apart if it was large, before format 3.
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
                if let Reading::Answered { text, .. } = &mut replied.reading {
                    all.push(text);
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
            // There were none of these then.
            Self::Intended(_) | Self::InputRequired(_) | Self::Parked(_) | Self::Settled(_) | Self::Told(_) => {
                Vec::new()
            }
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
    pub group: Option<Vec<GroupName>>,
    pub state: String,
    pub collection: Collection,
    pub streaming: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<ConversationId>,
    /// What the caller named, if anything.
    #[serde(default, with = "empty_is_none")]
    pub pattern: Option<PatternName>,
    #[serde(default, with = "empty_is_none")]
    pub task_type: Option<TaskTypeName>,
    #[serde(default)]
    pub framing: Arc<str>,
    #[serde(default)]
    pub limits: SomeLimits,
    /// What the caller chose out of the configured tools and models.
    #[serde(default, skip_serializing_if = "Selection::is_everything")]
    pub selection: Selection,
    /// Caller-supplied history: context, not iterations of this session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<AgentStep>,
    /// Names the caller's request, to which all of the run's replies go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<RequestId>,
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
    /// The operator's limits when the run began. They hold for all of it. None before format 4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator: Option<PinnedLimits>,
    /// The rules by which its replies are read and its turns are decided; see [`REVISION`].
    #[serde(default, skip_serializing_if = "is_first")]
    pub revision: u32,
    /// Drawn once per run, and part of the marks around all that models are shown as material: nobody who writes such a
    /// text can know how to close its mark. None before revision 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<Arc<str>>,
    /// The model that routes it is asked for the task type first, then for the pattern.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub routed_apart: bool,
    /// How many bytes of material the model can read beside its instructions, if that was known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room: Option<u64>,
    /// The tools that could not be called where the run began, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_here: Vec<Excluded>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks this way")]
fn is_first(number: &u32) -> bool {
    *number == 0
}

/// An earlier question of a conversation and its answer, each cut to what is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    /// None if the caller told it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    pub question: String,
    pub answer: String,
}

/// Task type and pattern are chosen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Routed {
    pub task_type: TaskTypeName,
    pub pattern: PatternName,
    /// Shared by all subagents that go without context of their own.
    pub framing: Arc<str>,
    /// What people had told those above before this session began.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub told: Arc<str>,
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
    /// As the model wrote it, if it is nothing but text. Otherwise it is empty, and the parts have it all.
    pub raw: Payload,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<ReplyPart>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<StopReason>,
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
    /// Why it is not all that the model wanted to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<Incomplete>,
    /// The provider could write nothing but what the schema allows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub enforced: bool,
    /// What had to be put right in the reply, and before it could be read.
    #[serde(rename = "mended", default, skip_serializing_if = "Vec::is_empty")]
    pub repairs: Vec<String>,
    /// How many messages the session had been told when the model was asked.
    #[serde(default, skip_serializing_if = "is_first")]
    pub heard: u32,
}

impl Replied {
    /// There is no reply because the model found the prompt too long.
    pub fn was_too_long(&self) -> bool {
        self.incomplete == Some(Incomplete::Context)
    }

    /// What the model said.
    pub fn reply(&self) -> Reply {
        let text = || vec![ReplyPart::Text { text: self.raw.clone() }];
        let parts = if self.parts.is_empty() { text() } else { self.parts.clone() };
        Reply { parts, format: self.prompt.format, revision: REVISION }
    }

    /// How often a model was asked for it. Under rules before revision 6 attempts that failed did not count.
    pub fn calls(&self, revision: u32) -> u32 {
        if self.was_declined() {
            return 0;
        }
        if revision < 6 {
            return 1;
        }
        let failed = self.failures.iter().filter(|attempt| attempt.asked.is_some()).count();
        let is_answered = self.model.is_some() || !self.parts.is_empty() || !self.raw.text().is_empty();
        // What gave up at once may have been cut off before it could tell of its attempt.
        u32::try_from(failed).unwrap_or(u32::MAX).saturating_add(u32::from(is_answered)).max(1)
    }

    /// Whether nobody was asked, because the budget was used up.
    pub fn was_declined(&self) -> bool {
        self.incomplete == Some(Incomplete::Budget)
    }

    /// The notes on what a limit cut off.
    pub fn left_out(&self) -> impl Iterator<Item = &str> {
        let declined = self.reading.problem().filter(|_| self.was_declined());
        self.repairs.iter().map(String::as_str).filter(|note| is_left_out(note)).chain(declined)
    }
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
    /// How it came to its result, as it tells itself, from the step to what was found. Kept as it is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trace: Vec<Explained>,
}

/// What a tool tells of one step of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explained {
    /// IRI of the node that it is about.
    pub id: String,
    pub quads: Vec<Quad>,
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
    /// For how long nobody served the store while the session was open. It did not count as its time.
    #[serde(default, skip_serializing_if = "crate::outage::is_zero")]
    pub outage_ms: u64,
    /// What a model planned and a limit did not let it do, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// Who cancelled the run; only on the root's end, and only if that was the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Caller>,
}

impl Ended {
    /// What the session and all its subagents cost.
    pub fn total(&self) -> &Usage {
        self.total.as_ref().unwrap_or(&self.usage)
    }
}
