//! A run's stream as the messages of the agent protocol.
//!
//! Workers never say that a dialog is over: this projection does, once, from the record of the root's end.

use crate::hub::{Item, TextKind};
use crate::perform::{answer_id, thought_id};
use std::collections::HashMap;
use std::sync::Arc;
use trellis_domain::document::Document;
use trellis_domain::message::{AgentResponse, ErrorInfo, message_type};
use trellis_domain::record::{Body, Ended, Reading, Record};
use trellis_domain::{RunId, SessionId};
use trellis_provenance::vocabulary::GRAPH_RETRIEVAL;

/// Projects one subscriber's items to messages.
#[derive(Debug)]
pub struct Dialog {
    run: RunId,
    streaming: bool,
    /// All records so far: an event's quads depend on what came before it.
    records: Vec<Arc<Record>>,
    /// How much of each open message was sent, and the piece held back so that the last one can say so.
    open: HashMap<Arc<str>, Progress>,
    over: bool,
}

#[derive(Debug)]
struct Progress {
    session: SessionId,
    sent: usize,
    held: String,
}

impl Dialog {
    pub fn new(run: RunId, streaming: bool) -> Self {
        Self { run, streaming, records: Vec::new(), open: HashMap::new(), over: false }
    }

    /// The dialog is over: its last message was given out.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// The messages that an item causes.
    pub fn project(&mut self, item: Item) -> Vec<AgentResponse> {
        if self.over {
            return Vec::new();
        }
        match item {
            Item::Text { session, message_id, kind, text } => self.live(&session, &message_id, kind, text),
            Item::Record(record) => self.durable(&record),
        }
    }

    fn live(&mut self, session: &SessionId, id: &Arc<str>, kind: TextKind, text: String) -> Vec<AgentResponse> {
        // A subagent's text is not the caller's answer.
        if !self.streaming || (kind == TextKind::Answer && *session != self.run) {
            return Vec::new();
        }
        // A thought is over when the answer that rests on it begins.
        let mut out = if kind == TextKind::Answer { self.finish_thoughts(session) } else { Vec::new() };
        let fresh = || Progress { session: session.clone(), sent: 0, held: String::new() };
        let progress = self.open.entry(Arc::clone(id)).or_insert_with(fresh);
        let piece = match kind {
            TextKind::Thought => std::mem::replace(&mut progress.held, text),
            TextKind::Answer => text,
        };
        if piece.is_empty() {
            return out;
        }
        progress.sent += piece.len();
        let kind = match kind {
            TextKind::Thought => message_type::THOUGHT,
            TextKind::Answer => message_type::ANSWER,
        };
        out.push(message(session, kind, id, piece));
        out
    }

    /// Sends what is held back of a session's thoughts.
    fn finish_thoughts(&mut self, session: &SessionId) -> Vec<AgentResponse> {
        let held = self.open.iter_mut().filter(|(_, open)| open.session == *session && !open.held.is_empty());
        held.map(|(id, open)| {
            let piece = std::mem::take(&mut open.held);
            open.sent += piece.len();
            AgentResponse { end_of_message: true, ..message(session, message_type::THOUGHT, id, piece) }
        })
        .collect()
    }

    fn durable(&mut self, record: &Arc<Record>) -> Vec<AgentResponse> {
        self.records.push(Arc::clone(record));
        let header = &record.header;
        let mut out = Vec::new();
        match &record.body {
            Body::Replied(replied) => {
                let n = header.name.as_iteration().unwrap_or(0);
                let id = thought_id(&header.session, n, header.attempt);
                let thought = replied.thought.as_ref().map_or("", Document::text);
                out.extend(self.rest(&header.session, message_type::THOUGHT, &id, thought, true));
                let id = answer_id(&header.session, header.attempt);
                match &replied.reading {
                    Reading::Answer { answer } if self.streaming && header.session == self.run => {
                        out.extend(self.rest(&header.session, message_type::ANSWER, &id, answer.text(), false));
                    }
                    // An answer that was cut short does not count.
                    Reading::Answer { .. }
                    | Reading::Action { .. }
                    | Reading::Unreadable { .. }
                    | Reading::Failed { .. } => drop(self.open.remove(id.as_str())),
                }
            }
            Body::Observed(observed) => {
                let text = observed.result.as_ref().map_or("", Document::text);
                let id = trellis_provenance::iri::message_id(&header.session, header.name.as_str(), 1);
                let observation = message(&header.session, message_type::OBSERVATION, &id, text.to_owned());
                out.push(AgentResponse { end_of_message: true, ..observation });
            }
            Body::Accepted(_) | Body::Routed(_) | Body::Ended(_) => {}
        }
        out.extend(self.explain(header.seq));
        if let (Body::Ended(ended), true) = (&record.body, header.session == self.run) {
            out.extend(self.last(&header.session, ended));
            self.over = true;
        }
        out
    }

    /// What is left of a message once its record brings it whole.
    fn rest(&mut self, session: &SessionId, kind: &str, id: &str, text: &str, ends: bool) -> Option<AgentResponse> {
        let sent = self.open.remove(id).map_or(0, |progress| progress.sent);
        let rest = text.get(sent..).unwrap_or(text);
        (!rest.is_empty())
            .then(|| AgentResponse { end_of_message: ends, ..message(session, kind, id, rest.to_owned()) })
    }

    fn explain(&self, seq: u64) -> Option<AgentResponse> {
        let event = trellis_provenance::events(&self.records).into_iter().find(|event| event.seq == seq)?;
        Some(AgentResponse {
            message_type: message_type::EXPLAIN.to_owned(),
            session_id: event.session.as_str().to_owned(),
            explain_id: Some(event.explain_id),
            explain_graph: Some(GRAPH_RETRIEVAL.to_owned()),
            explain_triples: event.inline,
            ..AgentResponse::default()
        })
    }

    /// The attempt under which the answer was streamed: that of its reply, not of the end.
    fn answer_attempt(&self) -> u32 {
        let is_answer = |record: &&Arc<Record>| match &record.body {
            Body::Replied(replied) => matches!(replied.reading, Reading::Answer { .. }),
            Body::Accepted(_) | Body::Routed(_) | Body::Observed(_) | Body::Ended(_) => false,
        };
        self.records.iter().rev().find(is_answer).map_or(1, |record| record.header.attempt)
    }

    /// The one message that ends the dialog.
    fn last(&mut self, session: &SessionId, ended: &Ended) -> Vec<AgentResponse> {
        let answer = ended.answer.as_ref().map_or("", Document::text);
        let (last, mut before) = match &ended.error {
            Some(error) if answer.is_empty() => (error_message(session, error), None),
            Some(_) | None => {
                let attempt = self.answer_attempt();
                let id = answer_id(session, attempt);
                let streamed = ended.error.is_none() && self.streaming;
                let before = (self.streaming && !streamed)
                    .then(|| message(session, message_type::ANSWER, &id, answer.to_owned()));
                let text = if self.streaming { String::new() } else { answer.to_owned() };
                (message(session, message_type::ANSWER, &id, text), before)
            }
        };
        let (in_token, out_token) = (ended.usage.in_token, ended.usage.out_token);
        let positive = |count: Option<u64>| count.filter(|count| *count > 0);
        before
            .take()
            .into_iter()
            .chain([AgentResponse {
                end_of_message: true,
                end_of_dialog: true,
                in_token: positive(in_token),
                out_token: positive(out_token),
                model: ended.usage.model.clone(),
                ..last
            }])
            .collect()
    }
}

fn message(session: &SessionId, kind: &str, id: &str, content: String) -> AgentResponse {
    AgentResponse {
        message_type: kind.to_owned(),
        content,
        message_id: id.to_owned(),
        session_id: session.as_str().to_owned(),
        ..AgentResponse::default()
    }
}

fn error_message(session: &SessionId, error: &str) -> AgentResponse {
    AgentResponse {
        message_type: message_type::ERROR.to_owned(),
        content: error.to_owned(),
        session_id: session.as_str().to_owned(),
        error: Some(ErrorInfo { kind: "agent-error".to_owned(), message: error.to_owned() }),
        ..AgentResponse::default()
    }
}
