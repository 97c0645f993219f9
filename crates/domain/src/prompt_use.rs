//! What is on record of a call to a model, besides what the reply says.

use crate::Hash;
use crate::decision::words;
use crate::document::{Document, Payload};
use crate::usage::{TokenDetails, Usage};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What is needed to reconstruct a model call, together with its reply.
///
/// The variables are not here because they follow from what is: a pattern is a pure function, so the records of the
/// session up to this one and the configuration it is pinned to give the same prompt again, with the same variables,
/// schema and tools. The template is in that configuration under its hash, and whether functions were offered is the
/// format. What all of it is rendered to must have the hash of what was sent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptUse {
    pub id: String,
    /// Hash of the template that was rendered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<Hash>,
    /// Hash of the bytes that were sent to the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<Hash>,
    /// Hash of everything that was said and offered, without the model and how it draws its words: the same question in
    /// the same form has the same hash, whoever is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<Hash>,
    /// The model as it was asked for, as `provider/name`. The one that answered may call itself something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How the model was asked to write, where there is more than one way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<ReplyFormat>,
    /// What was sent besides the texts: the model, where it is, how it draws its words. Large members, which follow
    /// from configuration, are there by their hash.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub parameters: Map<String, Value>,
    /// The bytes that were sent, without keys; only if the operator wants them kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Document>,
    /// Hash of the bytes that came back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received: Option<Hash>,
    /// The bytes that came back, without keys; only if the operator wants them kept, and they are not too long for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<Document>,
    /// What the provider calls the request, for whoever asks it about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    #[serde(default, skip_serializing_if = "TokenDetails::is_nothing")]
    pub details: TokenDetails,
    /// Why the schema of this call counts as enforced, or does not although the provider took it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<Box<ProbeUse>>,
    /// What the model refused in earlier calls, so that it was held to less in this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused_before: Option<String>,
}

/// A small request that asked the model for something that its schema forbids.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeUse {
    /// Hash of the bytes that were sent.
    pub sent: Hash,
    /// What the model wrote, or the beginning of it.
    pub reply: String,
    /// It wrote what the schema allows, and not what it was asked for.
    pub obeyed: bool,
}

words!(
    /// How a model is asked to say which tool it wants.
    ReplyFormat {
        /// It calls a function of its provider.
        NativeTools,
        /// It writes the grammar itself.
        Text,
    }
);

words!(
    /// Why a reply is not all that the model wanted to say. It may read well and still mean something else.
    Incomplete {
        /// The model stopped at its limit of tokens.
        Tokens,
        /// It was longer than a reply may be.
        Bytes,
        /// It only repeated itself, and was stopped.
        Repeats,
        /// There is none: the model found the prompt too long.
        Context,
        /// There is none: the budget was used up, and nobody was asked.
        Budget,
    }
);

/// A call that brought no reply, and why.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedAttempt {
    pub reason: String,
    pub ms: u64,
    /// The prompt was longer than the model can read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub too_long: bool,
    /// The model that did not answer, as `provider/name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What it was asked with; none if nothing was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Box<PromptUse>>,
}

/// A call that a tool made to a model. Its variables are the arguments that the tool was called with.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelCall {
    pub prompt: PromptUse,
    /// As the model wrote it; none if it did not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<Payload>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_token: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_token: Option<u64>,
    pub ms: u64,
    /// Attempts that failed before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<FailedAttempt>,
}

impl ModelCall {
    /// What it took. A call that nobody answered took nothing that is known.
    pub fn usage(&self) -> Usage {
        if self.reply.is_none() {
            return Usage::default();
        }
        let Self { model, in_token, out_token, ms, .. } = self;
        let (in_token, out_token, model) = (*in_token, *out_token, model.clone());
        let details = self.prompt.details;
        Usage { in_token, out_token, model, model_ms: *ms, model_calls: 1, details, ..Usage::default() }
    }
}
