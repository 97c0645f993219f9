//! What a caller may send, and what makes two requests the same.

use crate::Hash;
use crate::message::{AgentRequest, AgentStep, PlanStep};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Names: of a pattern, a task type, a state, a group.
const NAME_BYTES: usize = 200;
/// Groups that a request names.
const GROUPS: usize = 100;
/// Words on how to go about a question. They go along to every subagent.
pub const FRAMING_BYTES: usize = 64 << 10;
/// Steps that were taken elsewhere.
const HISTORY_STEPS: usize = 200;

/// A part of a request that is too large.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} has {size} {unit}; at most {limit} are allowed")]
pub struct TooLarge {
    pub field: &'static str,
    pub size: u64,
    pub unit: &'static str,
    pub limit: u64,
}

/// Whether each part of a request but the question and the ids, which have rules of their own, is small enough. A
/// history may be as long as a question.
///
/// ```
/// use trellis_domain::message::AgentRequest;
/// use trellis_domain::request::check_sizes;
///
/// let request = AgentRequest { framing: "x".repeat(2_000_000), ..AgentRequest::default() };
/// let refused = check_sizes(&request, 1 << 20).unwrap_err();
/// assert_eq!(refused.to_string(), "`framing` has 2000000 bytes; at most 65536 are allowed");
/// ```
pub fn check_sizes(request: &AgentRequest, longest_history: u64) -> Result<(), TooLarge> {
    let groups = request.group.as_deref().unwrap_or_default();
    let longest = groups.iter().map(String::len).max().unwrap_or(0);
    let bytes = |field, size: usize, limit: usize| (field, size as u64, "bytes", limit as u64);
    let sizes = [
        bytes("`framing`", request.framing.len(), FRAMING_BYTES),
        bytes("`state`", request.state.len(), NAME_BYTES),
        bytes("`pattern`", request.pattern.len(), NAME_BYTES),
        bytes("`task_type`", request.task_type.len(), NAME_BYTES),
        bytes("`correlation_id`", request.correlation_id.len(), NAME_BYTES),
        bytes("`parent_session_id`", request.parent_session_id.len(), NAME_BYTES),
        bytes("`subagent_goal`", request.subagent_goal.len(), FRAMING_BYTES),
        ("`group`", groups.len() as u64, "names", GROUPS as u64),
        bytes("the longest name in `group`", longest, NAME_BYTES),
        ("`history`", request.history.len() as u64, "steps", HISTORY_STEPS as u64),
        ("`history`", request.history.iter().map(step_bytes).sum(), "bytes", longest_history),
    ];
    match sizes.into_iter().find(|(_, size, _, limit)| size > limit) {
        Some((field, size, unit, limit)) => Err(TooLarge { field, size, unit, limit }),
        None => Ok(()),
    }
}

fn step_bytes(step: &AgentStep) -> u64 {
    let AgentStep { thought, action, arguments, observation, step_type, plan, subagent_results } = step;
    let texts = [thought, action, observation, step_type].map(String::len).into_iter().sum::<usize>();
    let pairs = arguments.iter().chain(subagent_results).map(|(key, value)| key.len() + value.len()).sum::<usize>();
    let planned =
        |step: &PlanStep| step.goal.len() + step.tool_hint.len() + step.result.len() + 4 * step.depends_on.len();
    (texts + pairs + plan.iter().map(planned).sum::<usize>()) as u64
}

/// What two requests have in common that are the same: a hash over a form that is written down here, so that a
/// repetition is recognised whatever becomes of the messages that carry requests.
///
/// The form: the tag `trellis-request-1`, then each member in the order below. A text is its length in bytes as eight
/// bytes, the highest first, and its bytes in UTF-8; a number is eight bytes; a list is its length and its items, a map
/// the same with keys and values in the order of the keys; what may be absent is a byte 0, or a byte 1 and the value.
pub fn fingerprint(request: &AgentRequest) -> Hash {
    Hash::of(canonical(request))
}

const TAG: &str = "trellis-request-1";

fn canonical(request: &AgentRequest) -> Vec<u8> {
    let mut form = CanonicalForm(TAG.as_bytes().to_vec());
    form.text(&request.question);
    form.text(&request.state);
    match &request.group {
        None => form.byte(0),
        Some(group) => {
            form.byte(1);
            form.list(group, |form, name| form.text(name));
        }
    }
    form.list(&request.history, CanonicalForm::step);
    form.text(&request.collection);
    form.byte(u8::from(request.streaming));
    form.text(&request.session_id);
    form.text(&request.conversation_id);
    form.text(&request.pattern);
    form.text(&request.task_type);
    form.text(&request.framing);
    form.text(&request.correlation_id);
    form.text(&request.parent_session_id);
    form.text(&request.subagent_goal);
    form.number(request.expected_siblings.into());
    form.0
}

struct CanonicalForm(Vec<u8>);

impl CanonicalForm {
    fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_be_bytes());
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
    }

    fn list<T>(&mut self, items: &[T], mut item: impl FnMut(&mut Self, &T)) {
        self.number(items.len() as u64);
        for one in items {
            item(self, one);
        }
    }

    fn map(&mut self, entries: &BTreeMap<String, String>) {
        self.number(entries.len() as u64);
        for (key, value) in entries {
            self.text(key);
            self.text(value);
        }
    }

    fn step(&mut self, step: &AgentStep) {
        self.text(&step.thought);
        self.text(&step.action);
        self.map(&step.arguments);
        self.text(&step.observation);
        self.text(&step.step_type);
        self.list(&step.plan, Self::planned);
        self.map(&step.subagent_results);
    }

    fn planned(&mut self, step: &PlanStep) {
        self.text(&step.goal);
        self.text(&step.tool_hint);
        self.list(&step.depends_on, |form, number| form.number((*number).into()));
        self.text(status(step));
        self.text(&step.result);
    }
}

fn status(step: &PlanStep) -> &'static str {
    use crate::message::StepStatus;
    match step.status {
        StepStatus::Pending => "pending",
        StepStatus::Running => "running",
        StepStatus::Completed => "completed",
        StepStatus::Failed => "failed",
        StepStatus::Revised => "revised",
    }
}

/// The same as records of version 0.1 have it: a hash over the request as JSON, frozen as it was written then.
pub fn earlier_fingerprint(request: &AgentRequest) -> Hash {
    Hash::of(earlier_form(request).to_string())
}

fn earlier_form(request: &AgentRequest) -> Value {
    let planned = |step: &PlanStep| {
        json!({
            "goal": step.goal, "tool_hint": step.tool_hint, "depends_on": step.depends_on, "status": status(step),
            "result": step.result,
        })
    };
    let step = |step: &AgentStep| {
        json!({
            "thought": step.thought, "action": step.action, "arguments": step.arguments,
            "observation": step.observation, "step_type": step.step_type,
            "plan": step.plan.iter().map(planned).collect::<Vec<_>>(), "subagent_results": step.subagent_results,
        })
    };
    json!({
        "question": request.question,
        "state": request.state,
        "group": request.group,
        "history": request.history.iter().map(step).collect::<Vec<_>>(),
        "collection": request.collection,
        "streaming": request.streaming,
        "session_id": request.session_id,
        "conversation_id": request.conversation_id,
        "pattern": request.pattern,
        "task_type": request.task_type,
        "framing": request.framing,
        "correlation_id": request.correlation_id,
        "parent_session_id": request.parent_session_id,
        "subagent_goal": request.subagent_goal,
        "expected_siblings": request.expected_siblings,
    })
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
