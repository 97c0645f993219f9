//! The shapes of requests, which are read member by member so that errors can name what is wrong, and of replies that
//! only HTTP has.

#![expect(dead_code, reason = "of requests only the schema is used")]

use serde::Serialize;
use serde_json::Value;
use std::collections::HashMap;
use trellis_orchestrator::summary::WholeRun;
use utoipa::ToSchema;

/// A question. Unknown members are refused.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewRun {
    /// What you want to know
    #[schema(min_length = 1, pattern = r"\S")]
    question: String,
    /// Use this pattern instead of letting the router choose, such as `react` or `supervisor`
    pattern: Option<String>,
    /// Use this task type instead of letting the router choose
    task_type: Option<String>,
    /// Groups of tools; none for the group `default`, an empty list for no tools, `*` for all
    group: Option<Vec<String>>,
    /// The state that tools depend on
    state: Option<String>,
    /// Collection of knowledge; `default` if none is named
    #[schema(pattern = "^[A-Za-z0-9._~:@+=,-]*$", max_length = 200)]
    collection: Option<String>,
    /// The conversation that the question belongs to
    #[schema(pattern = "^[A-Za-z0-9._~:@+=,-]*$", max_length = 200)]
    conversation_id: Option<String>,
    /// The id of the run; the same question under the same id attaches to it
    #[schema(pattern = "^[A-Za-z0-9._~:@+=,-]*$", max_length = 200)]
    session_id: Option<String>,
    /// Words that are put before the question in every prompt
    framing: Option<String>,
    /// Whether text can be followed while it is written; true if left out
    streaming: Option<bool>,
    /// Steps that were taken elsewhere, as context
    history: Option<Vec<HistoryStep>>,
    limits: Option<RunLimits>,
    /// Only these tools may be offered, by name; an empty list for none. They have to be in the groups that are asked for
    #[schema(max_items = 100, example = json!(["weather"]))]
    tools: Option<Vec<String>>,
    /// The model that is asked, out of those that are configured, as `provider/model`
    #[schema(max_length = 200)]
    model: Option<String>,
}

/// A step that was taken elsewhere.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HistoryStep {
    thought: Option<String>,
    action: Option<String>,
    arguments: Option<HashMap<String, String>>,
    observation: Option<String>,
    step_type: Option<String>,
}

/// Limits of one run, never above those of the server.
#[derive(Debug, Default, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct RunLimits {
    /// Iterations of a ReAct session
    #[schema(maximum = 4_294_967_295_usize)]
    max_iterations: Option<u32>,
    /// Steps of a plan
    #[schema(maximum = 4_294_967_295_usize)]
    max_plan_steps: Option<u32>,
    /// Revisions of a plan
    #[schema(maximum = 4_294_967_295_usize)]
    max_replans: Option<u32>,
    /// Plan steps running at once
    #[schema(maximum = 4_294_967_295_usize)]
    steps_at_once: Option<u32>,
    /// Rounds of a supervisor
    #[schema(maximum = 4_294_967_295_usize)]
    max_rounds: Option<u32>,
    /// Subagents below subagents
    #[schema(maximum = 4_294_967_295_usize)]
    max_depth: Option<u32>,
    /// Siblings of one fan-out
    #[schema(maximum = 4_294_967_295_usize)]
    max_siblings: Option<u32>,
    #[schema(maximum = 18_446_744_073_709_551_615_usize)]
    fan_in_timeout_ms: Option<u64>,
    #[schema(maximum = 18_446_744_073_709_551_615_usize)]
    model_timeout_ms: Option<u64>,
    #[schema(maximum = 18_446_744_073_709_551_615_usize)]
    tool_timeout_ms: Option<u64>,
    #[schema(maximum = 18_446_744_073_709_551_615_usize)]
    run_timeout_ms: Option<u64>,
    #[schema(maximum = 18_446_744_073_709_551_615_usize)]
    max_question_bytes: Option<u64>,
    #[schema(maximum = 18_446_744_073_709_551_615_usize)]
    max_reply_bytes: Option<u64>,
    /// How much of an observation the model is shown
    #[schema(maximum = 18_446_744_073_709_551_615_usize)]
    shown_observation_bytes: Option<u64>,
    /// How much of the steps before a model is shown in all
    #[schema(maximum = 18_446_744_073_709_551_615_usize)]
    conversation_bytes: Option<u64>,
    /// Calls of models in the whole run, also those of tools and subagents
    #[schema(maximum = 4_294_967_295_usize)]
    max_model_calls: Option<u32>,
    /// Tokens that models read and write in the whole run, as far as providers tell
    #[schema(maximum = 18_446_744_073_709_551_615_usize)]
    max_tokens: Option<u64>,
    /// What the whole run costs by the operator's prices, in millionths of their currency
    #[schema(maximum = 18_446_744_073_709_551_615_usize)]
    max_cost_micros: Option<u64>,
    /// Sessions of the whole run, the first one among them
    #[schema(maximum = 4_294_967_295_usize)]
    max_agents: Option<u32>,
}

/// A question that was accepted.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Begun {
    pub(crate) run_id: String,
    /// Whether the run was there already
    pub(crate) attached: bool,
    pub(crate) links: Links,
    /// What came of it, if it was waited for and ended in time, or somebody has to answer a question
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) run: Option<WholeRun>,
}

/// Where to go on.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Links {
    #[serde(rename = "self")]
    pub(crate) own: String,
    pub(crate) events: String,
    pub(crate) records: String,
    pub(crate) trace: String,
    pub(crate) graph: String,
    pub(crate) cancel: String,
    pub(crate) decide: String,
    pub(crate) tell: String,
}

/// One server-sent event, as its fields say.
#[derive(Debug, ToSchema)]
pub(crate) struct EventFrame {
    /// The number of a durable event; text that is still being written has none
    #[schema(nullable = false)]
    id: Option<String>,
    /// Such as `step.completed`, `chunk` or, with `format=records`, `record`
    event: String,
    /// One JSON object: a `RunEvent`, or the record
    data: String,
}

/// An answer to a question that a run waits for.
#[derive(Debug, ToSchema)]
pub(crate) struct Decision {
    /// One of the options
    choice: String,
    /// In the answerer's own words
    #[schema(nullable = false)]
    reason: Option<String>,
    /// What a call is to be made with instead
    #[schema(nullable = false, value_type = Option<Object>)]
    arguments: Option<Value>,
    /// With the choice `result`: what the call has brought
    #[schema(nullable = false)]
    result: Option<String>,
    /// With the choice `answer`: what the tool asks for, by the fields of its form; of several forms, by their names
    #[schema(nullable = false, value_type = Option<Object>)]
    content: Option<Value>,
    /// Together with `park`, which question is meant; not needed if only one is open
    #[schema(nullable = false)]
    session_id: Option<String>,
    /// Such as `park/1`
    #[schema(nullable = false)]
    park: Option<String>,
}

/// A message to a run that is under way.
#[derive(Debug, ToSchema)]
pub(crate) struct Message {
    /// At most 16 KiB
    #[schema(example = "Only look at the last two years.")]
    message: String,
}

/// A run that was told something.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ToldRun {
    pub(crate) run_id: String,
    /// The how manieth message to the run it is
    pub(crate) number: u32,
    /// How many agents were at work and will hear it
    pub(crate) agents: usize,
}

/// A question that was answered.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DecidedRun {
    pub(crate) run_id: String,
    pub(crate) session_id: String,
    pub(crate) park: String,
    pub(crate) choice: String,
}

/// A run that was cancelled.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CancelledRun {
    pub(crate) run_id: String,
    pub(crate) state: String,
}
