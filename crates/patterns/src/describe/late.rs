//! What came after the end: kept and marked, never acted on.

use super::asked::described;
use super::asking::Asking;
use super::decision::place;
use super::described_session::DescribedSession;
use trellis_domain::record::Header;
use trellis_provenance::node::Node;
use trellis_provenance::vocabulary::{prov, trellis};
use trellis_provenance::{Act, iri};

/// A reply that came too late gets a node under its record's own name, because it was paid for. `with` says where it
/// hangs, and `about` what was asked.
pub(crate) fn reply(
    session: &DescribedSession,
    header: &Header,
    asking: &Asking,
    about: &str,
    with: impl FnOnce(Node) -> Node,
) -> Act {
    let id = iri::named(&session.id, &header.name);
    let main = Node::new(&id)
        .types(&[prov::class::ENTITY, trellis::class::LATE_REPLY])
        .label("Late Reply")
        .error(asking.problem())
        .marks(header.attempt, header.late);
    let nodes = described(session, with(main), Some(asking), place(&id, asking.decisions()), about);
    Act { id, nodes }
}
