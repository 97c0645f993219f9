//! The documents that the graph refers to, as a librarian keeps them.

use crate::iri;
use crate::project::decision::{PlacedDecision, place};
use crate::project::iteration::action;
use crate::session::{Session, is_step, iteration, sessions};
use std::borrow::Borrow;
use trellis_domain::decision::{Decision, DecisionKind};
use trellis_domain::document::{Document, Payload};
use trellis_domain::record::{Body, Header, Record, Replied};
use trellis_domain::{ConversationId, Hash, SessionId};

/// One stored text with the id that the graph has for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentRef {
    pub id: String,
    pub title: String,
    pub sha256: Hash,
    pub text: Payload,
    pub session: SessionId,
    pub conversation: Option<ConversationId>,
}

/// Every stored document of these records, session by session, in order of their sequence.
///
/// ```
/// use trellis_domain::record::Record;
///
/// assert!(trellis_provenance::documents::<Record>(&[]).is_empty());
/// ```
pub fn documents<R: Borrow<Record>>(records: &[R]) -> Vec<DocumentRef> {
    sessions(records).iter().flat_map(session_documents).collect()
}

fn session_documents(session: &Session<'_>) -> Vec<DocumentRef> {
    session.records.iter().flat_map(|record| record_documents(session, record)).collect()
}

fn record_documents(session: &Session<'_>, record: &Record) -> Vec<DocumentRef> {
    let of = |id: String, title: String, document: Option<&Document>| reference(session, id, title, document);
    match (&record.body, iteration(&record.header)) {
        (Body::Accepted(_), _) => Vec::new(),
        (Body::Routed(routed), _) => decision_documents(session, &iri::pattern_decision(session.id), &routed.decisions),
        (Body::Replied(replied), Some(n)) => reply_documents(session, &record.header, n, replied),
        (Body::Observed(observed), Some(n)) => {
            let id = iri::observation(session.id, n);
            of(id, "Agent Observation".to_owned(), observed.result.as_ref()).into_iter().collect()
        }
        (Body::Ended(ended), _) => {
            let title = format!("Agent Answer: {}...", first_chars(session.question(), 50));
            of(iri::answer(session.id), title, ended.answer.as_ref()).into_iter().collect()
        }
        (Body::Replied(_) | Body::Observed(_), None) => Vec::new(),
    }
}

/// The thought of a reply that ended the session belongs to the conclusion, as in the graph.
fn reply_documents(session: &Session<'_>, header: &Header, n: u32, replied: &Replied) -> Vec<DocumentRef> {
    let (node, thought) = if is_step(&replied.reading) || header.late {
        (iri::iteration(session.id, n), iri::thought(session.id, n))
    } else {
        (iri::conclusion(session.id), iri::conclusion_thought(session.id))
    };
    let title = format!("Agent Thought: {}", action(&replied.reading));
    let mut documents = decision_documents(session, &node, &replied.decision);
    documents.extend(reference(session, thought, title, replied.thought.as_ref()));
    documents
}

fn decision_documents(session: &Session<'_>, node: &str, decisions: &[Decision]) -> Vec<DocumentRef> {
    let of = |placed: PlacedDecision<'_>| {
        let kind = placed.decision.kind;
        let rationale = placed.stored_rationale().map(|(id, document)| (id, rationale_title(kind), document));
        let rejected = placed.stored_rejected().map(|(id, document)| (id, format!("Rejected reply: {kind}"), document));
        let found = [rationale, rejected].into_iter().flatten();
        found.filter_map(|(id, title, text)| reference(session, id.to_owned(), title, Some(text))).collect::<Vec<_>>()
    };
    place(session.id, node, decisions).into_iter().flat_map(of).collect()
}

fn rationale_title(kind: DecisionKind) -> String {
    if kind == DecisionKind::Pattern { "Routing rationale".to_owned() } else { format!("Rationale: {kind}") }
}

fn reference(session: &Session<'_>, id: String, title: String, document: Option<&Document>) -> Option<DocumentRef> {
    let document = document.filter(|document| document.stored)?;
    Some(DocumentRef {
        id,
        title,
        sha256: document.sha256,
        text: document.text.clone(),
        session: session.id.clone(),
        conversation: session.conversation().cloned(),
    })
}

/// Cuts by Unicode scalar, as the original does.
fn first_chars(text: &str, count: usize) -> &str {
    text.char_indices().nth(count).map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
#[path = "documents_tests.rs"]
mod tests;
