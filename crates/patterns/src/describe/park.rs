//! Questions to people, and what became of them. The same for every pattern.

use super::beginning::person;
use super::decision::{decision_nodes, place};
use super::described_session::DescribedSession;
use serde_json::Value;
use trellis_domain::document::Document;
use trellis_domain::park::{Parked, Settled};
use trellis_domain::record::{Header, Name};
use trellis_provenance::node::Node;
use trellis_provenance::vocabulary::{prov, trellis};
use trellis_provenance::{Act, iri};

/// A question, and until when it can be answered.
pub(crate) fn question(session: &DescribedSession, header: &Header, parked: &Parked) -> Act {
    let id = iri::named(&session.id, &header.name);
    let text = Document::stored(parked.question.text());
    // One behind the other: readers look at few of the nodes that derive from a session.
    let parents = match parked.number.checked_sub(1).filter(|before| *before > 0) {
        Some(before) => vec![iri::named(&session.id, &Name::park(before))],
        None => session.first_parents(),
    };
    let main = Node::new(&id)
        .types(&[prov::class::ENTITY, trellis::class::ACT, trellis::class::PARKED_QUESTION])
        .label("Question to a person")
        .text(trellis::ACT, "question")
        .text(trellis::DEADLINE, parked.expires)
        .texts(trellis::TOOL, parked.tool.as_ref())
        .texts(trellis::ARGUMENTS, parked.tool.as_ref().map(|_| Value::Object(parked.arguments.clone())))
        .derived_from(parents)
        .document(&id, "Question to a person", text.as_ref())
        .marks(header.attempt, header.late);
    Act { id, nodes: vec![main] }
}

/// The answer, with the set it was chosen from and whoever chose.
pub(crate) fn answer(session: &DescribedSession, header: &Header, settled: &Settled) -> Act {
    let id = iri::named(&session.id, &header.name);
    let by = settled.by.as_ref().and_then(|by| person(format!("{id}/by"), by));
    let decisions = place(&id, [&settled.decision]);
    let asked = iri::named(&session.id, &Name::park(settled.number));
    let question = Node::new(&asked).link(trellis::ANSWERED_BY, &id);
    let main = Node::new(&id)
        .types(&[prov::class::ENTITY, trellis::class::ACT, trellis::class::PARKED_ANSWER])
        .label("Answer of a person")
        .text(trellis::ACT, settled.decision.chosen.join(", "))
        .derived_from([asked])
        .links(prov::WAS_ATTRIBUTED_TO, by.as_ref().map(Node::iri))
        .texts(trellis::SURFACE, settled.by.as_ref().map(|by| by.surface))
        .links(trellis::DECISION, decisions.iter().map(|placed| &placed.iri))
        .marks(header.attempt, header.late);
    let nodes = [main, question].into_iter().chain(by).chain(decision_nodes(decisions)).collect();
    Act { id, nodes }
}
