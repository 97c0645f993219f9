//! Words of the record in the reader's own: the same as on the page.

use crate::show::clean;
use trellis_domain::decision::{DecidedBy, DecisionKind, Enforcement};
use trellis_provenance::trace::Word;

pub(crate) fn kind_word(kind: Option<&Word<DecisionKind>>) -> String {
    let Some(kind) = kind else { return "Choice".to_owned() };
    let kind = match kind {
        Word::Known(kind) => kind,
        Word::Unknown(word) => return clean(word),
    };
    match kind {
        DecisionKind::TaskType => "Task type",
        DecisionKind::Pattern => "Pattern",
        DecisionKind::Tool => "Tool",
        DecisionKind::Goals => "Goals of the agents",
        DecisionKind::SubagentPattern => "Pattern of an agent",
        DecisionKind::SubagentGroup => "Tools of an agent",
        DecisionKind::Replan => "Keep or change the plan",
        DecisionKind::Round => "Answer, or another round",
        DecisionKind::Approval => "Approval by a person",
        DecisionKind::UncertainCall => "A call of which nobody knows whether it was made",
        DecisionKind::ToolInput => "Input that a tool asks for",
        DecisionKind::Edges => "Facts to be used",
    }
    .to_owned()
}

/// Who chose, and what that means.
pub(crate) fn decided_by(by: Option<&Word<DecidedBy>>) -> (String, &'static str) {
    let by = match by {
        Some(Word::Known(by)) => by,
        Some(Word::Unknown(word)) => return (clean(word), "This program does not know the word."),
        None => return ("somebody whom the record does not name".to_owned(), ""),
    };
    let (word, means) = match by {
        DecidedBy::Model => ("the model", "A model was asked, and chose from these options."),
        DecidedBy::OnlyOption => ("nobody: there was only one", "There was only one option, so no model was asked."),
        DecidedBy::Fallback => ("the fallback", "The reply could not be used, so the default was taken."),
        DecidedBy::Caller => ("the caller", "The request said so, so no model was asked."),
        DecidedBy::Supervisor => ("the supervisor", "The agent that sent this one out had chosen it."),
        DecidedBy::Rule => ("a rule", "The program's own rule decides this; no model was asked."),
    };
    (word.to_owned(), means)
}

/// Whether the set was enforced, and what that means.
pub(crate) fn enforced(enforcement: Option<&Word<Enforcement>>) -> (String, &'static str) {
    let enforcement = match enforcement {
        Some(Word::Known(enforcement)) => enforcement,
        Some(Word::Unknown(word)) => return (clean(word), "This program does not know the word."),
        None => return ("not recorded".to_owned(), "Whether the set was enforced is not recorded."),
    };
    let (word, means) = match enforcement {
        Enforcement::Decoding => ("enforced while decoding", "The model could not write anything outside the set."),
        Enforcement::Validated => ("checked afterwards", "The reply was held against the set before it was acted on."),
        Enforcement::None => ("not enforced", "There was no closed set to hold the choice against."),
    };
    (word.to_owned(), means)
}

/// `agent-task-type “risk-assessment”`, from the name of a configuration item in the graph.
pub(crate) fn source_words(source: Option<&str>) -> String {
    let Some(source) = source.filter(|source| !source.is_empty()) else {
        return "a place that is not recorded".to_owned();
    };
    let Some(item) = source.strip_prefix("urn:trellis:config:") else { return clean(source) };
    let mut parts = item.splitn(3, ':').skip(1);
    match (parts.next(), parts.next()) {
        (Some(kind), Some(key)) => format!("{} “{}”", clean(kind), clean(key)),
        (Some(kind), None) => format!("all items of {}", clean(kind)),
        (None, _) => clean(source),
    }
}
