//! What people tell a session while it is under way. The same for every pattern.

use super::beginning::person;
use super::described_session::DescribedSession;
use trellis_domain::document::Document;
use trellis_domain::record::{Core, Header, Name};
use trellis_domain::told::Told;
use trellis_provenance::node::Node;
use trellis_provenance::vocabulary::{prov, trellis};
use trellis_provenance::{Act, iri};

/// A message, and whoever sent it. Whatever heard it says so.
pub(crate) fn message(session: &DescribedSession, header: &Header, told: &Told) -> Act {
    let id = iri::named(&session.id, &header.name);
    let text = Document::stored(told.text.text());
    let by = person(format!("{id}/by"), &told.by);
    // One behind the other: readers look at few of the nodes that derive from a session.
    let parents = match header.name.core() {
        Some(Core::Told(n)) if n > 1 => vec![iri::named(&session.id, &Name::told(n - 1))],
        _ => session.first_parents(),
    };
    let main = Node::new(&id)
        .types(&[prov::class::ENTITY, trellis::class::ACT, trellis::class::TOLD])
        .label("Message to the run")
        .text(trellis::ACT, "told")
        .derived_from(parents)
        .links(prov::WAS_ATTRIBUTED_TO, by.as_ref().map(Node::iri))
        .text(trellis::SURFACE, told.by.surface)
        .document(&id, "Message to the run", text.as_ref())
        .marks(header.attempt, header.late);
    Act { id, nodes: std::iter::once(main).chain(by).collect() }
}
