//! A run's stream as events for programs: one JSON object per durable event, with its sequence number, and
//! live text between them.

use crate::hub::{Item, TextKind};
use crate::perform::{answer_id, thought_id};
use serde_json::{Map, Value, json};
use trellis_domain::RunId;
use trellis_domain::decision::Decision;
use trellis_domain::document::Document;
use trellis_domain::message::message_type;
use trellis_domain::record::{Body, Reading, Record};
use trellis_domain::run::RunState;

/// The version of the events' shape; the first event of a stream carries it.
pub const SCHEMA: u32 = 1;

/// The event of an item of this run's stream.
pub fn event(run: &RunId, item: &Item) -> Value {
    match item {
        Item::Text { session, message_id, kind, text } => {
            let kind = match kind {
                TextKind::Thought => message_type::THOUGHT,
                TextKind::Answer => message_type::ANSWER,
            };
            let session = session.as_str();
            json!({"type": "chunk", "session_id": session, "message_id": **message_id, "chunk_type": kind, "content": text})
        }
        Item::Record(record) => durable(run, record),
    }
}

fn durable(run: &RunId, record: &Record) -> Value {
    let header = &record.header;
    let root = header.session == *run;
    let (kind, details) = match &record.body {
        Body::Accepted(accepted) if root => {
            let details = json!({"schema": SCHEMA, "run_id": run.as_str(), "question": accepted.question.text()});
            ("run.started", details)
        }
        Body::Accepted(accepted) => ("agent.started", json!({"goal": accepted.question.text()})),
        Body::Routed(routed) => {
            let sets: Vec<_> = routed.decisions.iter().map(option_set).collect();
            let (task_type, pattern) = (&routed.task_type, &routed.pattern);
            (
                "step.completed",
                json!({"kind": "routing", "task_type": task_type, "pattern": pattern, "option_sets": sets}),
            )
        }
        Body::Replied(_) => ("step.completed", reply(record)),
        Body::Observed(observed) => {
            let text = observed.result.as_ref().map(Document::text);
            let usage = &observed.usage;
            let details = json!({
                "kind": "observation", "content": text, "error": observed.error, "ms": observed.ms,
                "in_token": usage.in_token, "out_token": usage.out_token, "model": usage.model,
            });
            ("step.completed", details)
        }
        Body::Ended(ended) => {
            let state = ended.reason.run_state();
            let kind = match (root, state) {
                (false, _) => "agent.completed",
                (true, RunState::Failed | RunState::Cancelled) => "run.failed",
                (true, _) => "run.completed",
            };
            let usage = &ended.usage;
            let details = json!({
                "run_id": root.then(|| run.as_str()), "state": state, "reason": ended.reason, "answer": ended.answer.as_ref().map(Document::text),
                "error": ended.error, "in_token": usage.in_token, "out_token": usage.out_token, "model": usage.model,
            });
            (kind, details)
        }
    };
    let mut event = Map::new();
    let mut put = |name: &str, value: Value| drop(event.insert(name.to_owned(), value));
    put("type", json!(kind));
    put("seq", json!(header.seq));
    put("session_id", json!(header.session.as_str()));
    put("step_id", json!(trellis_provenance::iri::message_id(&header.session, header.name.as_str(), 1)));
    put("at", json!(header.time.to_string()));
    if let Value::Object(details) = details {
        // What is not recorded is left out, never written as zero.
        event.extend(details.into_iter().filter(|(_, value)| !value.is_null()));
    }
    Value::Object(event)
}

fn reply(record: &Record) -> Value {
    let Body::Replied(replied) = &record.body else { return Value::Null };
    let header = &record.header;
    let n = header.name.as_iteration().unwrap_or(0);
    let sets: Vec<_> = replied.decision.iter().map(option_set).collect();
    let cost = json!({
        "thought": replied.thought.as_ref().map(Document::text),
        "message_id": thought_id(&header.session, n, header.attempt),
        "ms": replied.ms, "in_token": replied.in_token, "out_token": replied.out_token, "model": replied.model,
        "attempt": header.attempt,
    });
    let said = match &replied.reading {
        Reading::Action { tool, arguments } => {
            json!({"kind": "analysis", "tool": tool, "arguments": arguments, "option_sets": sets})
        }
        Reading::Unreadable { reason } => json!({"kind": "analysis", "error": reason, "option_sets": sets}),
        Reading::Failed { reason } => json!({"kind": "error", "error": reason}),
        Reading::Answer { answer } => {
            let id = answer_id(&header.session, header.attempt);
            json!({"kind": "answer", "content": answer.text(), "answer_message_id": id})
        }
    };
    match (said, cost) {
        (Value::Object(mut said), Value::Object(cost)) => {
            said.extend(cost);
            Value::Object(said)
        }
        (said, _) => said,
    }
}

fn option_set(decision: &Decision) -> Value {
    let excluded: Vec<_> =
        decision.excluded.iter().map(|option| json!({"id": option.name, "why_excluded": option.reason})).collect();
    json!({
        "decision": decision.kind, "options": decision.options, "excluded": excluded, "chosen": decision.chosen,
        "decided_by": decision.decided_by, "enforcement": decision.enforcement, "source": decision.source,
        "config_version": decision.config_version,
    })
}
