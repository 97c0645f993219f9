//! The tools, as clients and their models are told of them.

use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use trellis_domain::run::RunState;

pub(super) const ASK: &str = "ask";
pub(super) const WAIT_FOR_RUN: &str = "wait_for_run";
pub(super) const DECIDE: &str = "decide";
pub(super) const CANCEL_RUN: &str = "cancel_run";
pub(super) const EXPLAIN_RUN: &str = "explain_run";
pub(super) const LIST_DECISIONS: &str = "list_decisions";
pub(super) const LIST_RUNS: &str = "list_runs";
pub(super) const SEARCH_KNOWLEDGE: &str = "search_knowledge";

/// For how many seconds a call waits unless it is told, and at most. Many clients give up after a minute.
pub(super) const USUAL_WAIT: u64 = 50;
pub(super) const LONGEST_WAIT: u64 = 600;
/// How many runs are listed unless it is told, and at most.
pub(super) const USUAL_RUNS: u64 = 20;
pub(super) const MOST_RUNS: u64 = 100;
/// How many passages and statements are found unless it is told, and at most.
pub(super) const USUAL_FOUND: u64 = 8;
pub(super) const MOST_FOUND: u64 = 50;

pub(super) fn all() -> Vec<Tool> {
    let runs = [ask(), wait_for_run(), decide(), cancel_run(), explain_run(), list_decisions(), list_runs()];
    runs.into_iter().chain([search_knowledge()]).collect()
}

fn ask() -> Tool {
    let takes = json!({
        "question": {"type": "string", "minLength": 1, "description": "What you want to know"},
        "pattern": text("How to go about it, such as react, plan-then-execute or supervisor; left out, the router chooses"),
        "task_type": text("The kind of task; left out, the router chooses"),
        "conversation_id": text("The conversation that the question belongs to: any id, the same for each question of it"),
        "collection": text("The collection of documents and knowledge that agents look into"),
        "limits": {
            "type": "object", "additionalProperties": {"type": "integer", "minimum": 0},
            "description": "How much the run may do, such as {\"max-iterations\": 5, \"run-timeout-ms\": 60000}; never more \
                than the operator allows",
        },
        "wait": wait(),
    });
    let does = "Ask a question. Agents work on it with the tools of their workspace, and every decision is recorded. Brings \
        the answer and the id of the run. A run that takes longer than `wait` goes on, also if this call is given up: \
        wait_for_run brings its answer, cancel_run ends it.";
    let hints = ToolAnnotations::with_title("Ask a question").read_only(false).destructive(true).idempotent(false);
    tool((ASK, does), &takes, &["question"], &outcome(), hints.open_world(true))
}

fn wait_for_run() -> Tool {
    let does = "Wait for a run that was begun with ask, and bring its answer, or tell that it still goes on.";
    let takes = json!({"run_id": run_id(), "wait": wait()});
    tool((WAIT_FOR_RUN, does), &takes, &["run_id"], &outcome(), looks("Wait for a run"))
}

fn decide() -> Tool {
    let takes = json!({
        "run_id": run_id(),
        "choice": text("One of the options of the question"),
        "reason": text("Why, as the person said; it is recorded"),
        "arguments": {"type": "object", "description": "What the tool is to be called with instead"},
        "result": text("What the call brought; only with the choice `result`"),
        "content": {"type": "object", "description": "What the tool asks for, by the fields of its form; only with the choice \
            `answer`"},
        "session_id": text("Which question, if the run waits for several: its session"),
        "park": text("Which question, if the run waits for several: its name, such as park/1"),
    });
    let does = "Answer a question that a run waits for (`waiting_for`) with what a person has told you. Do not answer it \
        yourself: it was asked so that a person decides. Who answered is on record. Some questions are for certain people \
        only, and nobody may answer more than over the API.";
    let brings = json!({
        "run_id": run_id(), "session_id": text("The session that goes on"), "park": text("The question"),
        "choice": text("What was chosen"),
    });
    let brings = object(&brings, &["run_id", "session_id", "park", "choice"]);
    let hints = ToolAnnotations::with_title("Answer a question of a run").read_only(false).destructive(true);
    tool((DECIDE, does), &takes, &["run_id", "choice"], &brings, hints.idempotent(false).open_world(true))
}

fn cancel_run() -> Tool {
    let does = "End a run that has not ended. What it has recorded stays, and so does who ended it.";
    let brings = object(&json!({"run_id": run_id(), "state": state()}), &["run_id", "state"]);
    let hints = ToolAnnotations::with_title("End a run").read_only(false).destructive(true).idempotent(true);
    tool((CANCEL_RUN, does), &json!({"run_id": run_id()}), &["run_id"], &brings, hints.open_world(false))
}

fn explain_run() -> Tool {
    let takes = json!({
        "run_id": run_id(),
        "full": {"type": "boolean", "description": "Whole texts instead of their beginnings"},
    });
    let brings = json!({
        "run_id": run_id(), "state": state(), "reason": maybe("Why it ended, such as final-answer"),
        "question": text("What was asked"), "answer": maybe("The answer, if there is one"),
        "error": maybe("Why there is none"), "asked_by": {"type": ["object", "null"]},
        "explanation": text("The steps of the run as a tree"),
    });
    let does = "Tell how a run came to its answer: why this and nothing else, every step, every choice with the options that \
        there were, and what tools brought.";
    let brings = object(&brings, &["run_id", "state", "question", "explanation"]);
    tool((EXPLAIN_RUN, does), &takes, &["run_id"], &brings, looks("Explain a run"))
}

fn list_decisions() -> Tool {
    let excluded = json!({"id": {"type": "string"}, "why_excluded": {"type": "string"}});
    let decision = json!({
        "decision": text("What was chosen, such as tool or pattern"),
        "options": texts("What could be chosen"),
        "excluded": {"type": "array", "items": object(&excluded, &["id", "why_excluded"])},
        "chosen": texts("What was chosen; empty if something outside of the options was named"),
        "decided_by": text("Who chose, such as model, only-option or person"),
        "enforcement": text("What held the choice to its options"),
        "source": text("The configuration that the options came from"),
        "config_version": {"type": "integer"},
        "signals": texts("What spoke for it"),
        "rationale": maybe("The reason that was given: a claim, not a fact"),
        "session_id": text("The agent whose choice it was"),
        "record": text("The record that has it"),
        "at": text("When"),
    });
    let needed = ["decision", "options", "excluded", "chosen", "decided_by", "enforcement", "source", "config_version"];
    let decisions = json!({"type": "array", "items": object(&decision, &needed)});
    let brings = object(&json!({"run_id": run_id(), "decisions": decisions}), &["run_id", "decisions"]);
    let does = "List the choices of a run: what was chosen, out of which options, what was not offered and why, by whom, \
        what held it to them, and the reason that was given.";
    tool((LIST_DECISIONS, does), &json!({"run_id": run_id()}), &["run_id"], &brings, looks("List decisions"))
}

fn list_runs() -> Tool {
    let takes = json!({
        "limit": {"type": "integer", "minimum": 1, "maximum": MOST_RUNS, "description": "How many"},
        "search": text("Only runs whose question contains this"),
        "state": state(),
        "conversation_id": text("Only runs of this conversation"),
        "cursor": text("Go on where an earlier list ended: its `next`"),
    });
    let run = json!({
        "run_id": run_id(), "state": state(), "question": text("Its first 300 characters"), "started": text("When it began"),
    });
    let runs = json!({"type": "array", "items": object(&run, &["run_id", "state", "question", "started"])});
    let brings = object(&json!({"runs": runs, "next": maybe("Where the next page begins")}), &["runs"]);
    tool((LIST_RUNS, "List runs, newest first."), &takes, &[], &brings, looks("List runs"))
}

fn search_knowledge() -> Tool {
    let takes = json!({
        "query": text("Words to look for in documents"),
        "about": text("The IRI of a thing: what loaded knowledge says of it, and who names it"),
        "collection": text("The collection that is searched"),
        "limit": {"type": "integer", "minimum": 1, "maximum": MOST_FOUND, "description": "How many of each"},
    });
    let passage = json!({
        "title": text("Of the document"), "document": text("The stored document"), "source": text("What it was loaded as"),
        "headings": texts("Where it stands"), "lines": {"type": "array", "items": {"type": "integer"}},
        "text": text("The passage"), "score": {"type": "number"},
    });
    let statement = json!({
        "subject": {"type": "string"}, "predicate": {"type": "string"}, "object": {"type": "string"},
        "graph": {"type": ["string", "null"]},
    });
    let brings = json!({
        "collection": {"type": "string"},
        "passages": {"type": "array", "items": object(&passage, &["title", "document", "text", "score"])},
        "statements": {"type": "array", "items": object(&statement, &["subject", "predicate", "object"])},
        "notes": texts("What else there is to know of the search"),
    });
    let does = "Search what was loaded: passages of documents for some words, and statements about a thing. No model is asked, \
        and nothing is recorded.";
    let brings = object(&brings, &["collection", "passages", "statements", "notes"]);
    tool((SEARCH_KNOWLEDGE, does), &takes, &[], &brings, looks("Search documents and knowledge"))
}

/// What came of a run.
fn outcome() -> Value {
    let members = json!({
        "run_id": run_id(),
        "state": state(),
        "ended": {"type": "boolean"},
        "answer": maybe("The answer, if there is one"),
        "reason": maybe("Why the run ended, such as final-answer; null while it has not"),
        "error": maybe("Why there is no answer"),
        "partial": {"type": "boolean", "description": "The answer does without something that was planned"},
        "left_out": texts("What a limit did not let be done"),
        "verified": {"type": ["boolean", "null"], "description": "Every record of the run is in the signed log, unchanged, and \
            follows from those before it; null while it has not ended, and if it was not checked"},
        "not_checked": maybe("Why the records were not checked, if they were not; `trellis verify` does"),
        "faults": texts("What is wrong with the records, if they are not verified"),
        "pattern": {"type": "string"},
        "task_type": {"type": "string"},
        "conversation_id": {"type": ["string", "null"]},
        "waiting_for": {"type": "array", "items": {"type": "object"}, "description": "Questions to people that it waits for"},
        "model": maybe("The language model that was seen last"),
        "model_calls": {"type": "integer"},
        "tool_calls": {"type": "integer"},
        "ms": {"type": "integer"},
    });
    object(&members, &["run_id", "state", "ended", "answer", "reason", "partial", "verified"])
}

fn tool(
    (name, does): (&'static str, &'static str),
    takes: &Value,
    required: &[&str],
    brings: &Value,
    hints: ToolAnnotations,
) -> Tool {
    let mut takes = object(takes, required);
    takes["additionalProperties"] = json!(false);
    let title = hints.title.clone().unwrap_or_default();
    Tool::new(name, does, members(&takes))
        .with_title(title)
        .with_raw_output_schema(Arc::new(members(brings)))
        .with_annotations(hints)
}

/// A tool that changes nothing, here or elsewhere.
fn looks(title: &str) -> ToolAnnotations {
    ToolAnnotations::with_title(title).read_only(true).open_world(false)
}

fn object(members: &Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": members, "required": required})
}

fn members(schema: &Value) -> Map<String, Value> {
    schema.as_object().cloned().unwrap_or_default()
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn maybe(description: &str) -> Value {
    json!({"type": ["string", "null"], "description": description})
}

fn texts(description: &str) -> Value {
    json!({"type": "array", "items": {"type": "string"}, "description": description})
}

fn run_id() -> Value {
    text("The whole id of a run")
}

fn state() -> Value {
    json!({"type": "string", "enum": RunState::WORDS})
}

fn wait() -> Value {
    json!({
        "type": "integer", "minimum": 0, "maximum": LONGEST_WAIT,
        "description": format!("Seconds to wait for the end; {USUAL_WAIT} if left out"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::{ask, explain, search};

    #[test]
    fn tools_take_what_they_are_said_to_take() {
        let takes = |name: &str| {
            let tool = all().into_iter().find(|tool| tool.name == name).unwrap();
            tool.input_schema["properties"].as_object().unwrap().keys().cloned().collect::<Vec<_>>()
        };
        assert_eq!(takes(ASK), ask::ASK);
        assert_eq!(takes(WAIT_FOR_RUN), ask::WAIT);
        assert_eq!(takes(DECIDE), ask::DECIDE);
        assert_eq!(takes(EXPLAIN_RUN), explain::EXPLAIN);
        assert_eq!(takes(LIST_RUNS), explain::RUNS);
        assert_eq!(takes(SEARCH_KNOWLEDGE), search::SEARCH);
    }
}
