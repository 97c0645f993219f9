//! A run's stream as the messages of the agent protocol.
//!
//! Workers never say that a dialog is over: this projection does, once, from the record of the root's end.

mod answer;

use self::answer::{DialogAnswer, Piece};
use crate::hub::{Item, TextKind};
use crate::messages::{answer_id, thought_id};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use trellis_domain::document::Document;
use trellis_domain::fan_out::Member;
use trellis_domain::message::{AgentResponse, ErrorInfo, message_type};
use trellis_domain::record::{Body, Ended, Header, Name, Record, Replied};
use trellis_domain::run::Termination;
use trellis_domain::{RunId, SessionId};
use trellis_patterns::Projector;
use trellis_patterns::describe::Spoken;
use trellis_patterns::notice;
use trellis_provenance::vocabulary::GRAPH_RETRIEVAL;
use trellis_provenance::{Draft, Event, iri};

/// Projects one subscriber's items to messages.
#[derive(Debug)]
pub struct Dialog {
    run: RunId,
    streaming: bool,
    /// An event's quads depend on what came before it.
    projector: Projector,
    answer: DialogAnswer,
    /// The message under which the answer was streamed.
    answered: Option<String>,
    /// How much of each open thought was sent, and the piece held back so that the last one can say so.
    open: HashMap<Arc<str>, Progress>,
    /// The ids that messages were sent under. What takes the place of a message that broke off needs another one.
    taken: HashSet<String>,
    over: bool,
}

#[derive(Debug)]
struct Progress {
    session: SessionId,
    /// The id that it is sent under.
    shown: String,
    sent: usize,
    held: String,
}

impl Dialog {
    pub fn new(run: RunId, streaming: bool) -> Self {
        let (projector, open, taken) = (Projector::default(), HashMap::new(), HashSet::new());
        let answer = DialogAnswer::default();
        Self { run, streaming, projector, answer, answered: None, open, taken, over: false }
    }

    /// Notes what an earlier process sent of a thought or an answer. Whether it could finish it is told by the record.
    pub fn sent_before(&mut self, kind: &str, id: &str, text: &str) {
        self.taken.insert(id.to_owned());
        if kind == message_type::ANSWER {
            self.answer.sent_before(id, text);
        }
    }

    /// The dialog is over: its last message was given out.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// The messages that an item causes.
    pub fn project(&mut self, item: Item) -> Vec<AgentResponse> {
        self.project_with_drafts(item).0
    }

    /// The same, and what the item adds to the graph: what the messages tell of it is less.
    pub fn project_with_drafts(&mut self, item: Item) -> (Vec<AgentResponse>, Vec<Draft>) {
        if self.over {
            return (Vec::new(), Vec::new());
        }
        match item {
            Item::Text { session, message_id, kind, text } => {
                (self.live(&session, &message_id, kind, text), Vec::new())
            }
            Item::Record(record) => self.durable(&record),
        }
    }

    fn live(&mut self, session: &SessionId, id: &Arc<str>, kind: TextKind, text: String) -> Vec<AgentResponse> {
        // A subagent's text arrives whole and never as the answer: stock clients would glue parallel text together.
        if !self.streaming || *session != self.run {
            return Vec::new();
        }
        if kind == TextKind::Answer {
            // A thought is over when the answer that rests on it begins.
            let mut out = self.finish_thoughts(session);
            let pieces = self.answer.more(id, &text, &mut self.taken);
            out.extend(pieces.into_iter().map(|piece| answer_piece(session, piece)));
            return out;
        }
        let taken = &mut self.taken;
        let fresh = || Progress { session: session.clone(), shown: free_id(taken, id), sent: 0, held: String::new() };
        let progress = self.open.entry(Arc::clone(id)).or_insert_with(fresh);
        let piece = std::mem::replace(&mut progress.held, text);
        if piece.is_empty() {
            return Vec::new();
        }
        progress.sent += piece.len();
        vec![message(session, message_type::THOUGHT, &progress.shown, piece)]
    }

    /// Sends what is held back of a session's thoughts.
    fn finish_thoughts(&mut self, session: &SessionId) -> Vec<AgentResponse> {
        let held = self.open.values_mut().filter(|open| open.session == *session && !open.held.is_empty());
        held.map(|open| {
            let piece = std::mem::take(&mut open.held);
            open.sent += piece.len();
            AgentResponse { end_of_message: true, ..message(session, message_type::THOUGHT, &open.shown, piece) }
        })
        .collect()
    }

    fn durable(&mut self, record: &Arc<Record>) -> (Vec<AgentResponse>, Vec<Draft>) {
        let header = &record.header;
        let mut out = Vec::new();
        match &record.body {
            // Late: kept, and nobody's concern any more.
            _ if header.late => {}
            Body::Replied(replied) => out.extend(self.reply(header, replied)),
            Body::Observed(observed) => {
                let text = observed.result.as_ref().map_or("", Document::text);
                let id = observation_id(&header.session, &header.name);
                let observation = message(&header.session, message_type::OBSERVATION, &id, text.to_owned());
                out.push(AgentResponse { end_of_message: true, ..observation });
            }
            Body::Joined(joined) => {
                out.extend(joined.members.iter().filter_map(|member| finding(&header.session, member)));
            }
            Body::Parked(parked) => {
                let id = iri::message_id(&header.session, header.name.as_str(), 1);
                let asked = format!("Waiting for an answer: {}", parked.question.text());
                let thought = message(&header.session, message_type::THOUGHT, &id, asked);
                out.push(AgentResponse { end_of_message: true, ..thought });
            }
            Body::Accepted(_)
            | Body::Routed(_)
            | Body::Intended(_)
            | Body::InputRequired(_)
            | Body::FannedOut(_)
            | Body::Settled(_)
            | Body::Told(_)
            | Body::Ended(_) => {}
        }
        let drafts = self.projector.drafts(record);
        out.extend(drafts.iter().map(|draft| explanation(draft.event.clone())));
        if let (Body::Ended(ended), true) = (&record.body, header.session == self.run) {
            out.extend(self.last(&header.session, ended));
            self.over = true;
        }
        (out, drafts)
    }

    fn reply(&mut self, header: &Header, replied: &Replied) -> Vec<AgentResponse> {
        let Header { session, name, attempt, .. } = header;
        let thought = replied.thought.as_ref().map_or("", Document::text);
        let (id, sent) = self.take(&thought_id(session, name, *attempt));
        // What an attempt that broke off left unsent is nobody's thought.
        let place = thought_id(session, name, 1);
        self.open.retain(|id, _| id.split('#').next() != Some(&place));
        let ended = |rest| AgentResponse { end_of_message: true, ..rest };
        let mut out: Vec<_> = rest_of_thought(session, &id, thought, sent).map(ended).into_iter().collect();
        match notice(name, replied).spoken {
            Some(Spoken::Answer(answer)) if *session == self.run && self.streaming => {
                let id = answer_id(session, name, *attempt);
                let (pieces, id) = self.answer.whole(&id, answer, &mut self.taken);
                out.extend(pieces.into_iter().map(|piece| answer_piece(session, piece)));
                self.answered = Some(id);
            }
            Some(Spoken::Answer(_)) if *session == self.run => {
                self.answered = Some(free_id(&mut self.taken, &answer_id(session, name, *attempt)));
            }
            // A subagent's is not the caller's.
            Some(Spoken::Answer(_)) => {}
            Some(Spoken::Observation(text)) => {
                let id = observation_id(session, name);
                let observation = message(session, message_type::OBSERVATION, &id, text.clone().into_owned());
                out.extend((!text.is_empty()).then_some(AgentResponse { end_of_message: true, ..observation }));
            }
            // An answer that was cut short does not count, and what comes next may have the same id.
            None if *session == self.run => self.answer.break_off(),
            None => {}
        }
        out
    }

    /// The id that a message is sent under, and how much of it was sent: its record brings it whole.
    fn take(&mut self, id: &str) -> (String, usize) {
        match self.open.remove(id) {
            Some(progress) => (progress.shown, progress.sent),
            None => (free_id(&mut self.taken, id), 0),
        }
    }

    /// The one message that ends the dialog.
    fn last(&mut self, session: &SessionId, ended: &Ended) -> Vec<AgentResponse> {
        let answer = ended.answer.as_ref().map_or("", Document::text);
        let mut out = Vec::new();
        let terminal = terminal_id(session, ended.reason);
        let last = match (&ended.error, self.answered.take()) {
            (Some(error), _) if answer.is_empty() => error_message(session, error),
            (None, Some(id)) if self.streaming => message(session, message_type::ANSWER, &id, String::new()),
            (_, _) if self.streaming => {
                let (pieces, id) = self.answer.whole(&terminal, answer, &mut self.taken);
                out.extend(pieces.into_iter().map(|piece| answer_piece(session, piece)));
                message(session, message_type::ANSWER, &id, String::new())
            }
            (_, answered) => {
                let id = answered.unwrap_or_else(|| free_id(&mut self.taken, &terminal));
                message(session, message_type::ANSWER, &id, answer.to_owned())
            }
        };
        let usage = ended.total();
        let (in_token, out_token) = (usage.in_token, usage.out_token);
        let positive = |count: Option<u64>| count.filter(|count| *count > 0);
        out.push(AgentResponse {
            end_of_message: true,
            end_of_dialog: true,
            in_token: positive(in_token),
            out_token: positive(out_token),
            model: usage.model.clone(),
            ..last
        });
        out
    }
}

/// The id itself, or the next attempt's if a message that broke off was sent under it.
fn free_id(taken: &mut HashSet<String>, id: &str) -> String {
    let plain = id.split('#').next().unwrap_or(id);
    let others = (2..).map(|attempt| format!("{plain}#{attempt}"));
    let mut ids = std::iter::once(id.to_owned()).chain(others);
    ids.find(|id| taken.insert(id.clone())).expect("there is always another attempt")
}

/// What is left of a thought that was sent in part.
fn rest_of_thought(session: &SessionId, id: &str, text: &str, sent: usize) -> Option<AgentResponse> {
    let rest = text.get(sent..).unwrap_or(text);
    (!rest.is_empty()).then(|| message(session, message_type::THOUGHT, id, rest.to_owned()))
}

fn answer_piece(session: &SessionId, piece: Piece) -> AgentResponse {
    let Piece { id, text, ends } = piece;
    AgentResponse { end_of_message: ends, ..message(session, message_type::ANSWER, &id, text) }
}

fn explanation(event: Event) -> AgentResponse {
    AgentResponse {
        message_type: message_type::EXPLAIN.to_owned(),
        session_id: event.session.as_str().to_owned(),
        explain_id: Some(event.explain_id.clone()),
        explain_graph: Some(GRAPH_RETRIEVAL.to_owned()),
        explain_triples: event.into_inline(),
        ..AgentResponse::default()
    }
}

/// What a subagent brought, as its supervisor observes it: whole, and never as an answer. One that brought nothing is
/// told of by its explanation.
fn finding(session: &SessionId, member: &Member) -> Option<AgentResponse> {
    let answer = member.answer.as_ref().map(Document::text).filter(|answer| !answer.is_empty())?;
    let id = iri::finding(session, member.index);
    let observation = message(session, message_type::OBSERVATION, &id, answer.to_owned());
    Some(AgentResponse { end_of_message: true, ..observation })
}

/// What a tool brought is streamed under the name of its node: a plan step's is the step.
fn observation_id(session: &SessionId, name: &Name) -> String {
    let name = name.first_asking();
    iri::message_id(session, name.as_str().strip_suffix("/result").unwrap_or(name.as_str()), 1)
}

/// The answer of a session that ended without a reply that is one.
fn terminal_id(session: &SessionId, reason: Termination) -> String {
    iri::message_id(session, if reason.is_synthesis() { "synthesis" } else { "final" }, 1)
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
