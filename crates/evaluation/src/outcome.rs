//! What came of one run, read off its records.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use trellis_domain::decision::{DecidedBy, Decision, DecisionKind, Enforcement};
use trellis_domain::record::{Body, Core, ModelCall, Observed, Reading, Record, Replied, Routed};
use trellis_domain::run::Termination;
use trellis_domain::usage::Usage;
use trellis_domain::{RunId, SessionId};
use trellis_patterns::session::add_cost;

/// A run in numbers, subagents included.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// None if there is no run: the question was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// None if the run has not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Termination>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_type: Option<Choice>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<Choice>,
    /// Calls to models, those that tools made included.
    pub model_calls: u64,
    /// None if no provider reported any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_token: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_token: Option<u64>,
    /// What the models cost by the prices that are set for them, in millionths. None if one of them has no price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<u64>,
    /// From the question to the end, without the time that nobody served the store. Waiting for a turn at a model counts.
    /// None if no model was asked, but a recording of its replies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<CalledTool>,
    /// Replies to the agents' own prompts, routing included.
    pub replies: u64,
    pub unreadable_replies: u64,
    pub repaired_replies: u64,
    /// Attempts at model calls that brought no reply.
    pub failed_attempts: u64,
    /// Choices that models made out of a set.
    pub decisions: u64,
    /// Those whose set the provider enforced while the model wrote.
    pub enforced_decisions: u64,
    /// Replies that were not for routing.
    pub iterations: u64,
}

/// What the router chose, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    pub name: String,
    pub decided_by: DecidedBy,
    pub enforcement: Enforcement,
}

impl Choice {
    /// Whether the router chose. It does not for a caller who names a pattern: the task type then follows from a rule.
    pub fn is_routed(&self) -> bool {
        match self.decided_by {
            DecidedBy::Model | DecidedBy::OnlyOption | DecidedBy::Fallback => true,
            DecidedBy::Caller | DecidedBy::Supervisor | DecidedBy::Rule => false,
        }
    }

    pub fn is_fallback(&self) -> bool {
        self.decided_by == DecidedBy::Fallback
    }
}

/// A tool that a model called, and what with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CalledTool {
    pub name: String,
    pub arguments: Map<String, Value>,
}

impl Outcome {
    /// Reads all records of one run, in the order of the run. What arrived after a session's end was never acted on, and
    /// counts for its cost alone.
    pub fn of(records: &[Record]) -> Self {
        let mut outcome = Self::default();
        let mut usage = Usage::default();
        // All sessions of a run have the same.
        let revision = records.iter().find_map(|record| Some(record.body.as_accepted()?.revision)).unwrap_or_default();
        for Record { header, body } in records {
            add_cost(&mut usage, body, revision);
            outcome.run.get_or_insert_with(|| header.run.clone());
            outcome.count_failures(body);
            if header.late {
                continue;
            }
            match body {
                Body::Replied(replied) => outcome.count_reply(replied, header.name.first_asking().core()),
                Body::Routed(routed) if is_root(&header.run, &header.session) => outcome.note_choices(routed),
                Body::Ended(ended) if is_root(&header.run, &header.session) => {
                    outcome.ended = Some(ended.reason);
                    outcome.answer = ended.answer.as_ref().map(|answer| answer.text().to_owned());
                    outcome.error.clone_from(&ended.error);
                }
                Body::Accepted(_)
                | Body::Routed(_)
                | Body::Observed(_)
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
        outcome.model_calls = u64::from(usage.model_calls);
        (outcome.in_token, outcome.out_token) = (usage.in_token, usage.out_token);
        // A part of what was paid is not what was paid.
        let is_priced = !records.iter().any(|record| is_without_price(&record.body));
        outcome.cost_micros = usage.details.cost_micros.filter(|_| is_priced);
        Self { ms: (!records.is_empty()).then(|| duration(records)), ..outcome }
    }

    /// A question that did not become a run, or whose run could not be followed.
    pub fn failed(error: impl Into<String>) -> Self {
        Self { error: Some(error.into()), ..Self::default() }
    }

    /// Tokens in and out; none if no provider reported any.
    pub fn tokens(&self) -> Option<u64> {
        let both = self.in_token.unwrap_or(0).saturating_add(self.out_token.unwrap_or(0));
        self.in_token.or(self.out_token).map(|_| both)
    }

    /// Of the choices that models made, how many were enforced while they wrote.
    pub fn enforced_share(&self) -> Option<f64> {
        crate::Share::new(self.enforced_decisions, self.decisions).map(|share| share.rate)
    }

    fn count_reply(&mut self, replied: &Replied, name: Option<Core>) {
        if matches!(replied.reading, Reading::Failed { .. }) {
            return;
        }
        self.replies += 1;
        self.iterations += u64::from(!matches!(name, Some(Core::Route | Core::RouteTaskType | Core::RoutePattern)));
        self.unreadable_replies += u64::from(matches!(replied.reading, Reading::Unusable { .. }));
        self.repaired_replies += u64::from(!replied.repairs.is_empty());
        for decision in replied.decision.iter().filter(|decision| decision.decided_by == DecidedBy::Model) {
            self.decisions += u64::from(decision.enforcement != Enforcement::None);
            self.enforced_decisions += u64::from(decision.enforcement == Enforcement::Decoding);
        }
        let calls = replied.reading.calls();
        let call = |(name, arguments): (&trellis_domain::ToolName, &Map<String, Value>)| CalledTool {
            name: name.to_string(),
            arguments: arguments.clone(),
        };
        self.tool_calls.extend(calls.map(call));
    }

    fn count_failures(&mut self, body: &Body) {
        let failed = match body {
            Body::Replied(replied) => replied.failures.len(),
            Body::Observed(Observed { calls, .. }) => calls.iter().map(|call| call.failures.len()).sum(),
            Body::Accepted(_)
            | Body::Routed(_)
            | Body::FannedOut(_)
            | Body::Joined(_)
            | Body::Intended(_)
            | Body::InputRequired(_)
            | Body::Parked(_)
            | Body::Settled(_)
            | Body::Told(_)
            | Body::Ended(_) => 0,
        };
        self.failed_attempts += failed as u64;
    }

    fn note_choices(&mut self, routed: &Routed) {
        let choice = |kind: DecisionKind, name: &str| {
            let decision = routed.decisions.iter().find(|decision| decision.kind == kind)?;
            let Decision { decided_by, enforcement, .. } = *decision;
            Some(Choice { name: name.to_owned(), decided_by, enforcement })
        };
        self.task_type = choice(DecisionKind::TaskType, &routed.task_type);
        self.pattern = choice(DecisionKind::Pattern, &routed.pattern);
    }
}

/// Whether a model replied that has no price, or whose provider does not count.
fn is_without_price(body: &Body) -> bool {
    match body {
        Body::Replied(replied) => {
            let is_answered =
                [replied.in_token, replied.out_token].iter().any(Option::is_some) || replied.model.is_some();
            is_answered && replied.prompt.details.cost_micros.is_none()
        }
        Body::Observed(Observed { usage, calls, .. }) => {
            let is_unknown = |call: &ModelCall| call.reply.is_some() && call.prompt.details.cost_micros.is_none();
            usage.model_calls > 0 && usage.details.cost_micros.is_none() || calls.iter().any(is_unknown)
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
        | Body::Ended(_) => false,
    }
}

fn is_root(run: &RunId, session: &SessionId) -> bool {
    run == session
}

fn duration(records: &[Record]) -> u64 {
    let of_root = || records.iter().filter(|record| is_root(&record.header.run, &record.header.session));
    let end = of_root().find(|record| record.body.as_ended().is_some()).or_else(|| records.last());
    let first = of_root().next();
    let ms = first.zip(end).map_or(0, |(first, end)| end.header.time.ms_since(first.header.time));
    let outage = end.and_then(|end| end.body.as_ended()).map_or(0, |ended| ended.outage_ms);
    ms.saturating_sub(outage)
}

#[cfg(test)]
#[path = "outcome_tests.rs"]
mod tests;
