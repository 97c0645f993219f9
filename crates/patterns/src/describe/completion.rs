//! The specification's record of a subagent's end.

use super::described_session::DescribedSession;
use trellis_domain::record::Ended;
use trellis_provenance::iri;
use trellis_provenance::node::Node;
use trellis_provenance::vocabulary::{prov, tg};

/// The word for every end that brought no answer.
const ERROR: &str = "error";

/// What the parent waits for. It goes with the subagent's last event, and points at the activity, as the
/// specification's `prov:wasGeneratedBy` links do.
pub(super) fn completion(session: &DescribedSession, ended: &Ended) -> Option<Node> {
    let parent = session.parent()?;
    let stored = ended.answer.as_ref().is_some_and(|answer| answer.stored);
    let document = if ended.reason.is_synthesis() { iri::synthesis_document } else { iri::answer };
    let failed = !ended.reason.is_answer();
    let problem = ended.error.as_deref().unwrap_or(ended.reason.as_str());
    let completion = Node::new(iri::completion(&session.id))
        .types(&[prov::class::ENTITY, tg::class::SUBAGENT_COMPLETION])
        .label("Subagent Completion")
        .text(tg::CORRELATION_ID, &parent.correlation)
        .text(tg::SUBAGENT_SESSION_ID, &session.id)
        .text(tg::PARENT_SESSION_ID, &parent.session)
        .text(tg::SUBAGENT_GOAL, session.question())
        .links(tg::RESULT, stored.then(|| document(&session.id)))
        .link(prov::WAS_GENERATED_BY, iri::run(&session.id))
        .texts(tg::STATUS, failed.then_some(ERROR))
        .texts(tg::TOOL_ERROR, failed.then_some(problem));
    Some(completion)
}
