//! A run's stream as events for programs: one JSON object per durable event, with its sequence number, and
//! live text between them.

use crate::hub::{Item, TextKind};
use crate::messages::{answer_id, thought_id};
use serde_json::{Map, Value, json};
use trellis_domain::RunId;
use trellis_domain::decision::Decision;
use trellis_domain::document::Document;
use trellis_domain::fan_out::{FannedOut, Goal, Joined, Member};
use trellis_domain::message::message_type;
use trellis_domain::park::Parked;
use trellis_domain::record::{Accepted, Body, Header, Name, Record, Replied};
use trellis_domain::run::RunState;
use trellis_patterns::describe::{Notice, Spoken};
use trellis_patterns::notice;

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
        Body::Accepted(accepted) => ("agent.started", started(accepted)),
        Body::Routed(routed) => {
            let sets: Vec<_> = routed.decisions.iter().map(option_set).collect();
            let (task_type, pattern) = (&routed.task_type, &routed.pattern);
            (
                "step.completed",
                json!({"kind": "routing", "task_type": task_type, "pattern": pattern, "option_sets": sets}),
            )
        }
        Body::Replied(replied) => ("step.completed", reply(header, replied)),
        Body::Observed(observed) => {
            let text = observed.result.as_ref().map(Document::text);
            let usage = &observed.usage;
            let details = json!({
                "kind": "observation", "content": text, "error": observed.error, "ms": observed.ms,
                "in_token": usage.in_token, "out_token": usage.out_token, "model": usage.model,
            });
            ("step.completed", details)
        }
        Body::FannedOut(fan_out) => ("fanout.started", fanned_out(fan_out)),
        Body::Joined(joined) => ("fanout.joined", join(joined)),
        Body::Parked(parked) => ("decision.requested", asked(parked)),
        Body::Settled(settled) => {
            let details = json!({
                "park": Name::park(settled.number).as_str(), "arguments": settled.arguments, "decided_by": settled.by,
                "option_sets": [option_set(&settled.decision)],
            });
            ("decision.made", details)
        }
        Body::Ended(ended) => {
            let state = ended.reason.run_state();
            let kind = match (root, state) {
                (false, _) => "agent.completed",
                (true, RunState::Failed | RunState::Cancelled) => "run.failed",
                (true, _) => "run.completed",
            };
            let usage = ended.total();
            let missing = (!ended.missing.is_empty()).then_some(&ended.missing);
            let left_out = (!ended.left_out.is_empty()).then_some(&ended.left_out);
            let details = json!({
                "run_id": root.then(|| run.as_str()), "state": state, "reason": ended.reason, "answer": ended.answer.as_ref().map(Document::text),
                "error": ended.error, "missing": missing, "left_out": left_out, "cancelled_by": ended.by,
                "in_token": usage.in_token, "out_token": usage.out_token, "model": usage.model,
                "model_calls": usage.model_calls, "tool_calls": usage.tool_calls,
                "model_ms": usage.model_ms, "tool_ms": usage.tool_ms,
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
    if header.late {
        put("late", json!(true));
    }
    if let Value::Object(details) = details {
        // What is not recorded is left out, never written as zero.
        event.extend(details.into_iter().filter(|(_, value)| !value.is_null()));
    }
    Value::Object(event)
}

/// A question to a person.
pub fn asked(parked: &Parked) -> Value {
    let arguments = parked.tool.as_ref().map(|_| &parked.arguments);
    json!({
        "park": Name::park(parked.number).as_str(), "question": parked.question.text(), "options": parked.offered.options,
        "tool": parked.tool, "arguments": arguments, "who": parked.who, "expires": parked.expires.to_string(),
        "otherwise": parked.otherwise,
    })
}

fn started(accepted: &Accepted) -> Value {
    let parent = accepted.parent.as_ref();
    json!({
        "goal": accepted.question.text(), "pattern": accepted.pattern,
        "parent_session_id": parent.map(|parent| parent.session.as_str()),
        "correlation_id": parent.map(|parent| parent.correlation.as_str()),
        "index": parent.map(|parent| parent.index), "siblings": parent.map(|parent| parent.siblings),
    })
}

fn fanned_out(fan_out: &FannedOut) -> Value {
    let goal = |goal: &Goal| {
        json!({
            "index": goal.index, "session_id": goal.session.as_str(), "goal": goal.goal, "pattern": goal.pattern,
            "group": goal.group,
        })
    };
    json!({
        "round": fan_out.round, "correlation_id": fan_out.correlation, "deadline": fan_out.deadline.to_string(),
        "goals": fan_out.goals.iter().map(goal).collect::<Vec<_>>(),
        "option_sets": fan_out.decisions.iter().map(option_set).collect::<Vec<_>>(),
    })
}

fn join(joined: &Joined) -> Value {
    let member = |member: &Member| {
        json!({
            "index": member.index, "session_id": member.session.as_str(), "reason": member.reason,
            "error": member.error,
        })
    };
    let members: Vec<_> = joined.members.iter().map(member).collect();
    json!({"round": joined.round, "correlation_id": joined.correlation, "cause": joined.cause, "members": members})
}

fn reply(header: &Header, replied: &Replied) -> Value {
    let sets: Vec<_> = replied.decision.iter().map(option_set).collect();
    let cost = json!({
        "thought": replied.thought.as_ref().map(Document::text),
        "message_id": thought_id(&header.session, &header.name, header.attempt),
        "ms": replied.ms, "in_token": replied.in_token, "out_token": replied.out_token, "model": replied.model,
        "attempt": header.attempt, "option_sets": (!sets.is_empty()).then_some(sets),
        "format": replied.prompt.format,
    });
    let Notice { kind, details, spoken, .. } = notice(&header.name, replied);
    let mut said: Map<String, Value> = [("kind".to_owned(), kind.into())].into_iter().chain(details).collect();
    if let Some(Spoken::Answer(_)) = spoken {
        let id = answer_id(&header.session, &header.name, header.attempt);
        said.insert("answer_message_id".to_owned(), id.into());
    }
    if let Value::Object(cost) = cost {
        said.extend(cost);
    }
    Value::Object(said)
}

fn option_set(decision: &Decision) -> Value {
    let excluded: Vec<_> =
        decision.excluded.iter().map(|option| json!({"id": option.name, "why_excluded": option.reason})).collect();
    json!({
        "decision": decision.kind, "options": decision.options, "excluded": excluded, "chosen": decision.chosen,
        "decided_by": decision.decided_by, "enforcement": decision.enforcement, "source": decision.source,
        "config_version": decision.config_version, "signals": decision.signals,
        "rationale": decision.rationale.as_ref().map(Document::text),
    })
}
