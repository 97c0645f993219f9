//! What is said between us and a provider, in words that are nobody's dialect.

use super::{Fault, Framing, LeftOut, MemberName, Members, Sampling};
use crate::provider::ModelRequest;
use serde_json::Value;
use trellis_domain::parts::{CallPiece, StopReason};
use trellis_domain::usage::TokenDetails;
use trellis_patterns::react::functions::Functions;

/// Longer than most answers.
const USUAL_TOKENS: u32 = 8192;

/// How a reply is made to follow its schema.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SchemaEnforcement<'s> {
    /// Not at all: it is read and checked afterwards.
    Free,
    /// The provider sees to it that it is JSON, and knows nothing of the schema.
    Json,
    /// The provider is shown the schema and does what it can.
    Guided(&'s Value),
    /// The provider can write nothing else. This is the strict form of the schema.
    Strict(Value),
    /// The model has to call one of these; if strict, nothing but what their schemas allow.
    Functions { functions: &'s Functions, strict: bool },
}

/// How strong an enforcement is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Strength {
    Free,
    Json,
    Guided,
    Strict,
}

impl SchemaEnforcement<'_> {
    pub(super) fn strength(&self) -> Strength {
        match self {
            Self::Free => Strength::Free,
            Self::Json => Strength::Json,
            Self::Guided(_) | Self::Functions { strict: false, .. } => Strength::Guided,
            Self::Strict(_) | Self::Functions { strict: true, .. } => Strength::Strict,
        }
    }
}

/// Why a model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    Finished,
    /// To learn what comes of its calls.
    Calls,
    /// At its limit of tokens.
    Length,
    /// Somebody thought that this must not be said.
    Withheld,
}

impl Stop {
    /// For the record. What was withheld is no reply.
    pub(super) fn reason(self) -> Option<StopReason> {
        match self {
            Self::Finished => Some(StopReason::End),
            Self::Calls => Some(StopReason::Calls),
            Self::Length => Some(StopReason::Length),
            Self::Withheld => None,
        }
    }
}

/// What a message brings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Said {
    /// What was thought before it was said.
    Thought(String),
    /// What the provider wants back with the thought before it, or with what follows.
    Signature(String),
    Text(String),
    Refusal(String),
    Call(CallPiece),
}

/// What a dialect has understood so far, besides the text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Understood {
    pub(crate) model: Option<String>,
    pub(crate) in_token: Option<u64>,
    pub(crate) out_token: Option<u64>,
    /// Parts of both that are counted apart.
    pub(crate) details: TokenDetails,
    pub(crate) stop: Option<Stop>,
    /// Nothing follows.
    pub(crate) over: bool,
    /// Something was said that no schema covers, such as a refusal.
    pub(crate) unenforced: bool,
    /// The first message that is none of those the dialect knows.
    pub(crate) unrecognised: Option<String>,
    /// Calls that came whole, for providers that do not number them.
    pub(crate) calls: u64,
}

/// How a provider wants to be asked, and how its replies are to be understood. Without IO.
pub(crate) trait Dialect: std::fmt::Debug + Send + Sync {
    const FRAMING: Framing;

    /// A request, without what the model does not take.
    fn body(
        &self,
        model: &str,
        request: &ModelRequest,
        enforcement: &SchemaEnforcement<'_>,
        left_out: LeftOut,
    ) -> Value;

    /// Says how words are to be drawn, where that is set.
    fn sample(&self, body: &mut Value, sampling: &Sampling, left_out: LeftOut);

    /// The longest reply if nobody set one, so that no reply runs for ever; none if the body has one already.
    fn usual_tokens(&self) -> Option<u32> {
        Some(USUAL_TOKENS)
    }

    /// Makes room for the request where the provider would cut it in silence. The error says what does not fit.
    fn fit(&self, _body: &mut Value, _size: Option<u64>) -> Result<(), String> {
        Ok(())
    }

    /// What a message brings, in its order.
    fn read(&self, message: &str, understood: &mut Understood) -> Result<Vec<Said>, Fault>;

    /// Whether functions can be enforced, and not only offered.
    fn enforces_functions(&self) -> bool {
        true
    }

    /// Whether a schema can be shown to the provider at all.
    fn can_show(&self, _schema: &Value) -> bool {
        true
    }

    /// Whether the provider can be asked for JSON, whatever is in it, with this request.
    fn has_json_mode(&self, _request: &ModelRequest) -> bool {
        false
    }

    /// Whether a model may call several functions in one reply, if nobody set it.
    fn takes_parallel_calls(&self) -> bool {
        false
    }

    /// What this provider is known not to take.
    fn lacks(&self) -> Members {
        0
    }

    /// What it can do without, as refusals name it.
    fn members(&self) -> &'static [MemberName];

    /// Whether a reply under a strict schema was held to it.
    fn was_held(&self, understood: &Understood, _left_out: LeftOut) -> bool {
        !understood.unenforced
    }
}
