//! The ids of messages: live text, and the records that bring it whole.

use std::sync::Arc;
use trellis_domain::SessionId;
use trellis_domain::record::{Body, Header, Name, Record};
use trellis_patterns::react::IterationNames;
use trellis_provenance::iri;

/// The live messages that a record brings whole.
pub(crate) fn messages_of(record: &Record) -> Vec<Arc<str>> {
    let Header { session, name, attempt, .. } = &record.header;
    match &record.body {
        Body::Replied(_) => vec![thought_id(session, name, *attempt).into(), answer_id(session, name, *attempt).into()],
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
        | Body::Ended(_) => Vec::new(),
    }
}

/// The id of the thought that goes with the reply of that name.
pub(crate) fn thought_id(session: &SessionId, name: &Name, attempt: u32) -> String {
    iri::message_id(session, &format!("{name}/thought"), attempt)
}

/// The id of the answer that the reply of that name may hold: an iteration's is the session's conclusion.
pub(crate) fn answer_id(session: &SessionId, name: &Name, attempt: u32) -> String {
    let place = if name.as_iteration().is_some() { "final" } else { name.as_str() };
    iri::message_id(session, place, attempt)
}

/// What a message is about, whichever attempt wrote it, and the attempt.
pub(crate) fn place_and_attempt(message_id: &str) -> (&str, u32) {
    let (place, attempt) = message_id.split_once('#').unwrap_or((message_id, "1"));
    (place, attempt.parse().unwrap_or(1))
}
