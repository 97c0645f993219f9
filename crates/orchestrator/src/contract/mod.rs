//! The contract suites: what every adapter of a port must do. Each suite panics with the broken promise.
#![allow(clippy::disallowed_methods, reason = "the suites stand outside: they wait for what they test")]

pub mod cancels;
pub mod config;
pub mod disorder;
mod dying;
pub mod embedder;
pub mod graph;
pub mod journal;
pub mod knowledge;
pub mod layer;
pub mod library;
pub mod notes;
pub mod play;
pub mod prompter;
pub mod queue;
pub mod runs;
pub mod search;
pub mod stream;
pub mod tables;
pub mod teams;
pub mod trouble;

use crate::ports::{Commit, NewRecord, NewTurn};
use trellis_domain::document::Document;
use trellis_domain::limits::{Limits, SomeLimits};
use trellis_domain::record::{Accepted, Body, Cause, Ended, Name, Observed, Routed};
use trellis_domain::run::Termination;
use trellis_domain::usage::Usage;
use trellis_domain::{Collection, Hash, RunId, Scope, SessionId, Timestamp, Workspace};

pub(crate) fn scope(workspace: &str) -> Scope {
    Scope { workspace: Workspace::new(workspace).expect("test workspaces are valid"), ..Scope::default() }
}

pub(crate) fn id(id: &str) -> SessionId {
    SessionId::new(id).expect("test ids are valid")
}

pub(crate) fn record(session: &str, name: Name, causes: &[Name], body: Body) -> NewRecord {
    let time = Timestamp::from_micros(1_000_000);
    NewRecord {
        session: id(session),
        name,
        causes: causes.iter().cloned().map(Cause::from).collect(),
        config: Hash::ZERO,
        attempt: 1,
        time,
        body,
    }
}

pub(crate) fn accepted(question: &str) -> Body {
    Body::from(Accepted {
        question: question.into(),
        request: Hash::of(question),
        group: None,
        state: String::new(),
        collection: Collection::default(),
        streaming: false,
        conversation: None,
        pattern: None,
        task_type: None,
        framing: "".into(),
        limits: SomeLimits::default(),
        history: Vec::new(),
        request_id: None,
        earlier: Vec::new(),
        parent: None,
        by: None,
        configured: None,
        operator: None,
        revision: 0,
        mark: None,
        routed_apart: false,
        room: None,
        not_here: Vec::new(),
        selection: trellis_domain::Selection::default(),
    })
}

pub(crate) fn routed() -> Body {
    Body::Routed(Routed {
        task_type: "general".into(),
        pattern: "react".into(),
        framing: "".into(),
        told: std::sync::Arc::default(),
        termination: String::new(),
        limits: Limits::default(),
        decisions: Vec::new(),
    })
}

pub(crate) fn observed(text: &str) -> Body {
    Body::Observed(Observed {
        result: Document::stored(text),
        error: None,
        ms: 1,
        state: None,
        idempotency_key: Some("k".to_owned()),
        usage: Usage { in_token: Some(2), ..Usage::default() },
        calls: Vec::new(),
        trace: Vec::new(),
    })
}

pub(crate) fn ended(reason: Termination) -> Body {
    Body::from(Ended {
        reason,
        answer: Document::stored("42"),
        error: None,
        usage: Usage::default(),
        total: None,
        criteria: String::new(),
        missing: Vec::new(),
        outage_ms: 0,
        by: None,
        left_out: Vec::new(),
    })
}

pub(crate) fn turn(session: &str, name: Name) -> NewTurn {
    NewTurn { session: id(session), name, due: None }
}

/// A commit on a session of a run.
pub(crate) fn commit(workspace: &str, run: &str, session: &str, seen: u64) -> Commit {
    let run: RunId = id(run);
    Commit {
        scope: scope(workspace),
        run,
        session: id(session),
        seen,
        seen_of_others: vec![],
        records: vec![],
        close: vec![],
        open: vec![],
    }
}
