//! What was promised to others and is not done yet, as it is noted: who asked and how much they were told, and ends that are
//! on their way. A process that takes over goes on where the other one stopped, in the middle of an answer as well.

use serde::{Deserialize, Serialize};
use trellis_domain::message::AgentRequest;
use trellis_domain::{Hash, RunId, Scope};
use trellis_orchestrator::ports::Note;

/// A dialog that is not over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OpenDialog {
    pub(crate) scope: Scope,
    pub(crate) run: RunId,
    /// The id that every response carries.
    pub(crate) id: String,
    pub(crate) streaming: bool,
    pub(crate) collection: String,
    /// The last record of the run that was told.
    pub(crate) told: u64,
    /// The request of somebody else's subagent, without its history: its end is told to whoever sent it.
    pub(crate) subagent: Option<AgentRequest>,
    /// What the question follows from in somebody else's part of the graph.
    pub(crate) follows: Option<String>,
}

/// The end of a subagent that somebody else sent out, on its way to whoever that was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StrayEnd {
    pub(crate) scope: Scope,
    pub(crate) id: String,
    pub(crate) request: AgentRequest,
    /// How often it was handed on.
    pub(crate) rounds: u32,
}

/// A piece of a thought or an answer that was told: a line of its dialog's note.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ToldText {
    pub(crate) kind: String,
    /// Of the message that it is a piece of.
    pub(crate) id: String,
    pub(crate) text: String,
}

impl OpenDialog {
    pub(crate) const KIND: &str = "dialog";

    pub(crate) fn note(&self) -> Note {
        let Self { scope, run, id, .. } = self;
        note(Self::KIND, scope, &[run.as_str(), id], self)
    }
}

impl StrayEnd {
    pub(crate) const KIND: &str = "end";

    pub(crate) fn note(&self) -> Note {
        let AgentRequest { session_id, correlation_id, .. } = &self.request;
        // Handed on, it may be back before the note of this round is gone.
        let parts = [&self.id, session_id, correlation_id, &self.rounds.to_string()];
        note(Self::KIND, &self.scope, &parts.map(String::as_str), self)
    }
}

fn note(kind: &'static str, scope: &Scope, parts: &[&str], promise: &impl Serialize) -> Note {
    let place = [kind, scope.workspace.as_str(), scope.flow.as_str()];
    let name = Hash::of_parts(place.iter().chain(parts).map(|part| part.as_bytes())).to_string();
    let text = serde_json::to_string(promise).expect("these have texts and numbers only");
    Note { name, kind, scope: scope.clone(), text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_is_read_as_it_was_noted() {
        let dialog = OpenDialog {
            scope: Scope::default(),
            run: RunId::new("r1").unwrap(),
            id: "id/1".to_owned(),
            streaming: true,
            collection: "default".to_owned(),
            told: 0,
            subagent: Some(AgentRequest::default()),
            follows: None,
        };
        let note = dialog.note();
        assert_eq!(serde_json::from_str::<OpenDialog>(&note.text).unwrap(), dialog);
        let later = OpenDialog { told: 7, ..dialog };
        assert_eq!(later.note().name, note.name, "it is the same promise");
        assert_ne!(later.note().text, note.text);

        let request = AgentRequest { correlation_id: "c".to_owned(), ..AgentRequest::default() };
        let end = StrayEnd { scope: Scope::default(), id: "i".to_owned(), request, rounds: 3 };
        assert_eq!(serde_json::from_str::<StrayEnd>(&end.note().text).unwrap(), end);
        assert_ne!(StrayEnd { rounds: 4, ..end.clone() }.note().name, end.note().name);
    }
}
