//! The shapes of requests and replies, as the API's document tells them.

#![expect(dead_code, reason = "of most only the schema is used; tests hold every reply against it")]

use serde::Serialize;
use serde_json::Value;
use std::collections::HashMap;
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
}

/// A question that was accepted.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Begun {
    pub(crate) run_id: String,
    /// Whether the run was there already
    pub(crate) attached: bool,
    pub(crate) links: Links,
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
}

/// Where a run stands. The last five are ends.
#[derive(Debug, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum State {
    Queued,
    Running,
    Waiting,
    Answered,
    AnsweredPartial,
    Limit,
    Failed,
    Cancelled,
}

/// A page of the list of runs.
#[derive(Debug, ToSchema)]
#[expect(clippy::struct_field_names, reason = "the members have these names")]
pub(crate) struct Runs {
    runs: Vec<ListedRun>,
    /// The cursor of the next page; null on the last one
    #[schema(required)]
    next: Option<String>,
    /// Runs in between that are damaged
    unreadable: Option<Vec<UnreadableRun>>,
}

/// A run that is known and cannot be read.
#[derive(Debug, ToSchema)]
pub(crate) struct UnreadableRun {
    run_id: String,
    reason: String,
}

/// A run in the list.
#[derive(Debug, ToSchema)]
pub(crate) struct ListedRun {
    run_id: String,
    state: State,
    /// At most 300 characters of it
    question: String,
    /// True if the question is longer than what is told here
    #[schema(nullable = false)]
    question_truncated: Option<bool>,
    /// Empty until it is chosen
    pattern: String,
    /// Empty until it is chosen
    task_type: String,
    #[schema(required)]
    conversation_id: Option<String>,
    #[schema(format = DateTime)]
    started: String,
    /// How long it took, or has taken so far
    ms: u64,
    #[schema(required)]
    in_token: Option<u64>,
    #[schema(required)]
    out_token: Option<u64>,
}

/// A run and how it ended, as far as it has.
#[derive(Debug, ToSchema)]
pub(crate) struct WholeRun {
    run_id: String,
    session_id: String,
    state: State,
    question: String,
    pattern: String,
    task_type: String,
    #[schema(required)]
    conversation_id: Option<String>,
    #[schema(format = DateTime)]
    started: String,
    ms: u64,
    /// The number of the newest event
    seq: u64,
    /// Why it ended, such as `final-answer`; null while it has not
    #[schema(required)]
    reason: Option<String>,
    #[schema(required)]
    answer: Option<String>,
    #[schema(required)]
    error: Option<String>,
    /// Steps or findings that the answer does without
    #[schema(nullable = false)]
    missing: Option<Vec<u32>>,
    /// What a limit did not let be done, in words
    #[schema(nullable = false)]
    left_out: Option<Vec<String>>,
    /// The questions to people that the run waits for, while its state is `waiting`
    #[schema(nullable = false, value_type = Option<Vec<Object>>)]
    waiting_for: Option<Vec<Value>>,
    /// Who cancelled the run, in the same form as `asked_by`; only in runs that were cancelled
    #[schema(nullable = false, value_type = Option<Object>)]
    cancelled_by: Option<Value>,
    /// Who asked: `name`, if it is known, and `surface`, the way in; absent in runs that are older
    #[schema(nullable = false, value_type = Option<Object>)]
    asked_by: Option<Value>,
    /// Together with `asked_by`
    #[schema(nullable = false)]
    workspace: Option<String>,
    /// The request that the run answers; together with `asked_by`
    #[schema(nullable = false)]
    request_id: Option<String>,
    /// The configuration that the run began with: its `version`, its `time`, and `by` whom it was made
    #[schema(nullable = false, value_type = Option<Object>)]
    configured: Option<Value>,
    /// The model seen last
    #[schema(required)]
    model: Option<String>,
    model_calls: u32,
    tool_calls: u32,
    #[schema(required)]
    in_token: Option<u64>,
    #[schema(required)]
    out_token: Option<u64>,
}

/// One server-sent event, as its fields say.
#[derive(Debug, ToSchema)]
pub(crate) struct EventFrame {
    /// The number of a durable event; text that is still being written has none
    #[schema(nullable = false)]
    id: Option<String>,
    /// Such as `step.completed`, `chunk` or, with `format=records`, `record`
    event: String,
    /// One JSON object: the event, with its `type` and `session_id`, or the record
    data: String,
}

/// Records of a run, in order.
#[derive(Debug, ToSchema)]
pub(crate) struct Records {
    records: Vec<RunRecord>,
    /// Ask for more with `after` this; null if these are the newest for now
    #[schema(required)]
    next: Option<u64>,
}

/// A record as the journal has it, with all texts in it.
#[derive(Debug, ToSchema)]
pub(crate) struct RunRecord {
    header: RecordHeader,
    #[schema(value_type = Object)]
    body: Value,
}

/// What the journal knows of a record.
#[derive(Debug, ToSchema)]
pub(crate) struct RecordHeader {
    format: u16,
    workspace: String,
    flow: String,
    run: String,
    session: String,
    /// Such as `i3/observation`
    name: String,
    /// Position among the run's events, gapless from 1
    seq: u64,
    version: u64,
    causes: Vec<String>,
    parents: Vec<String>,
    content: String,
    config: String,
    attempt: u32,
    /// Arrived after the session's end
    #[schema(nullable = false)]
    late: Option<bool>,
    #[schema(nullable = false)]
    trace: Option<String>,
    /// Microseconds since 1970
    time: i64,
}

/// Every step of a run, with the texts that they refer to.
#[derive(Debug, ToSchema)]
pub(crate) struct RunTrace {
    run_id: String,
    state: State,
    task_type: String,
    pattern: String,
    #[schema(required)]
    conversation_id: Option<String>,
    ms: u64,
    #[schema(value_type = Object)]
    usage: Value,
    /// Who cancelled the run, in the same form as `asked_by`; only in runs that were cancelled
    #[schema(nullable = false, value_type = Option<Object>)]
    cancelled_by: Option<Value>,
    /// Who asked: `name`, if it is known, and `surface`, the way in; absent in runs that are older
    #[schema(nullable = false, value_type = Option<Object>)]
    asked_by: Option<Value>,
    /// Together with `asked_by`
    #[schema(nullable = false)]
    workspace: Option<String>,
    /// The request that the run answers; together with `asked_by`
    #[schema(nullable = false)]
    request_id: Option<String>,
    /// The configuration that the run began with: its `version`, its `time`, and `by` whom it was made
    #[schema(nullable = false, value_type = Option<Object>)]
    configured: Option<Value>,
    /// The sessions of the run, the root first; each has its `steps`
    sessions: Vec<HashMap<String, Value>>,
    /// Texts by the ids that steps refer to
    documents: HashMap<String, String>,
    #[schema(nullable = false)]
    missing: Option<Vec<u32>>,
    #[schema(nullable = false)]
    left_out: Option<Vec<String>>,
}

/// An answer to a question that a run waits for.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "only its description is used")]
pub(crate) struct Decision {
    /// One of the options
    choice: String,
    /// In the answerer's own words
    #[schema(nullable = false)]
    reason: Option<String>,
    /// What a call is to be made with instead
    #[schema(nullable = false, value_type = Option<Object>)]
    arguments: Option<Value>,
    /// Together with `park`, which question is meant; not needed if only one is open
    #[schema(nullable = false)]
    session_id: Option<String>,
    /// Such as `park/1`
    #[schema(nullable = false)]
    park: Option<String>,
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
