//! The documents that the graph refers to, as a librarian keeps them.

use crate::iri;
use crate::node::StoredText;
use crate::vocabulary::{prov, trellis};
use trellis_domain::document::Payload;
use trellis_domain::rdf::{Term, Triple};
use trellis_domain::record::Header;
use trellis_domain::{ConversationId, Hash, SessionId, Timestamp};

/// One stored text with the id that the graph has for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentRef {
    pub id: String,
    pub title: String,
    pub sha256: Hash,
    pub text: Payload,
    /// When it was recorded.
    pub time: Timestamp,
    pub session: SessionId,
    pub conversation: Option<ConversationId>,
}

impl DocumentRef {
    pub(crate) fn new(header: &Header, conversation: Option<&ConversationId>, stored: StoredText) -> Self {
        let StoredText { id, title, document } = stored;
        Self {
            id,
            title,
            sha256: document.sha256,
            text: document.text,
            time: header.time,
            session: header.session.clone(),
            conversation: conversation.cloned(),
        }
    }

    /// What kind of text it is, as its id ends: `answer`, `observation`, `thought`, …
    pub fn kind(&self) -> &str {
        let path = iri::path_of(&self.id).unwrap_or_default();
        let words = path.rsplit('/').map(|part| part.split('#').next().unwrap_or_default());
        words.into_iter().find(|word| word.contains(|c: char| c.is_ascii_alphabetic())).unwrap_or("text")
    }

    /// What librarians keep beside it: its session and its conversation, by which it is found.
    pub fn about(&self) -> Vec<Triple> {
        let of_it = |p: &str, o| Triple { s: Term::iri(&self.id), p: Term::iri(p), o };
        let session = of_it(prov::WAS_DERIVED_FROM, Term::iri(iri::session(&self.session)));
        let conversation =
            self.conversation.as_ref().map(|id| of_it(trellis::CONVERSATION_ID, Term::literal(id.as_str())));
        [Some(session), conversation].into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_says_what_it_is_and_where_it_belongs() {
        let of = |id: &str| DocumentRef {
            id: format!("urn:trustgraph:agent:s/{id}"),
            title: String::new(),
            sha256: Hash::ZERO,
            text: Payload::from("t"),
            time: Timestamp::from_micros(0),
            session: SessionId::new("s").unwrap(),
            conversation: Some(ConversationId::new("c").unwrap()),
        };
        let kinds = ["answer", "i3/observation", "finding/0", "i2/thought#2"].map(|id| of(id).kind().to_owned());
        assert_eq!(kinds, ["answer", "observation", "finding", "thought"]);
        let said: Vec<_> = of("answer").about().into_iter().map(|triple| (triple.p, triple.o)).collect();
        let session = (Term::iri(prov::WAS_DERIVED_FROM), Term::iri("urn:trustgraph:agent:s"));
        assert_eq!(said, [session, (Term::iri(trellis::CONVERSATION_ID), Term::literal("c"))]);
    }
}
