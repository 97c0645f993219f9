//! Steps: a routing, a model's reply, what came of a tool.

use super::OptionSet;
use crate::messages::{answer_id, thought_id};
use serde::Serialize;
use serde_json::{Map, Value};
use trellis_domain::document::Document;
use trellis_domain::record::{Header, InputRequired, Intended, Observed, Replied, ReplyFormat, Routed};
use trellis_patterns::describe::{Notice, Spoken};
use trellis_patterns::notice;
use utoipa::ToSchema;

/// A tool is about to be called that may change something, and is not called twice unasked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct CallIntended {
    pub tool: String,
}

impl CallIntended {
    pub(super) fn new(intended: &Intended) -> Self {
        Self { tool: intended.tool.to_string() }
    }
}

/// A tool was called and asks for input first. The question to a person follows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ToolAsked {
    pub tool: String,
    /// How many forms it asks for
    pub forms: usize,
}

impl ToolAsked {
    pub(super) fn new(asked: &InputRequired) -> Self {
        Self { tool: asked.tool.to_string(), forms: asked.forms.len() }
    }
}

/// A step is done.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(untagged)]
pub enum StepCompleted {
    Routing(RoutingStep),
    Reply(Box<ReplyStep>),
    Observation(ObservationStep),
}

/// Task type and pattern were chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct RoutingStep {
    #[schema(inline)]
    pub kind: RoutingKind,
    pub task_type: String,
    pub pattern: String,
    pub option_sets: Vec<OptionSet>,
}

/// The word for a routing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum RoutingKind {
    Routing,
}

/// A model has replied. The members of each kind are the pattern's, such as `tool` and `arguments`, `goals` or `content`.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ReplyStep {
    /// Such as `analysis`, `plan` or `answer`
    pub kind: &'static str,
    #[serde(flatten)]
    pub details: Map<String, Value>,
    /// The message of the answer, if the reply has one
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub answer_message_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub thought: Option<String>,
    /// The message of the thought
    pub message_id: String,
    pub ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub in_token: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub out_token: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub model: Option<String>,
    pub attempt: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub option_sets: Vec<OptionSet>,
    /// The form that was asked for
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<String>)]
    pub format: Option<ReplyFormat>,
}

/// What came of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ObservationStep {
    #[schema(inline)]
    pub kind: ObservationKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub error: Option<String>,
    pub ms: u64,
    /// What the tool spent on models of its own
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub in_token: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub out_token: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub model: Option<String>,
}

/// The word for an observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ObservationKind {
    Observation,
}

impl StepCompleted {
    pub(super) fn routing(routed: &Routed) -> Self {
        Self::Routing(RoutingStep {
            kind: RoutingKind::Routing,
            task_type: routed.task_type.to_string(),
            pattern: routed.pattern.to_string(),
            option_sets: OptionSet::all(&routed.decisions),
        })
    }

    pub(super) fn reply(header: &Header, replied: &Replied) -> Self {
        let Header { session, name, attempt, .. } = header;
        let Notice { kind, mut details, spoken, .. } = notice(name, replied);
        details.retain(|_, value| !value.is_null());
        let answers = matches!(spoken, Some(Spoken::Answer(_)));
        Self::Reply(Box::new(ReplyStep {
            kind,
            details,
            answer_message_id: answers.then(|| answer_id(session, name, *attempt)),
            thought: replied.thought.as_ref().map(Document::text).map(str::to_owned),
            message_id: thought_id(session, name, *attempt),
            ms: replied.ms,
            in_token: replied.in_token,
            out_token: replied.out_token,
            model: replied.model.clone(),
            attempt: *attempt,
            option_sets: OptionSet::all(&replied.decision),
            format: replied.prompt.format,
        }))
    }

    pub(super) fn observation(observed: &Observed) -> Self {
        let usage = &observed.usage;
        Self::Observation(ObservationStep {
            kind: ObservationKind::Observation,
            content: observed.result.as_ref().map(Document::text).map(str::to_owned),
            error: observed.error.clone(),
            ms: observed.ms,
            in_token: usage.in_token,
            out_token: usage.out_token,
            model: usage.model.clone(),
        })
    }
}
