//! What a session's end finds unsaid: no recorded choice and no reply that was paid for is missing from the graph.

use super::asked::told;
use super::decision::place;
use super::review::{Inside, is_review, reviews};
use super::step::{never_begun, unfinished};
use crate::asking::{Asking, Question};
use crate::iri;
use crate::node::Node;
use crate::session::Session;
use crate::vocabulary::{prov, trellis};
use std::collections::BTreeSet;
use trellis_domain::record::Ended;

#[derive(Debug, Default)]
pub(super) struct Leftovers {
    pub(super) reviews: Inside,
    /// Steps that were begun and have no result, then those that the answer misses and nobody began.
    pub(super) unfinished: Inside,
    /// Replies that nothing came of.
    pub(super) unused: Inside,
}

impl Leftovers {
    pub(super) fn into_nodes(self) -> impl Iterator<Item = Node> {
        [self.reviews, self.unfinished, self.unused].into_iter().flat_map(|inside| inside.nodes)
    }
}

pub(super) fn leftovers(session: &mut Session, ended: &Ended) -> Leftovers {
    let pending = std::mem::take(&mut session.pending);
    let (judged, rest): (Vec<_>, Vec<_>) = pending.into_iter().partition(|(question, _)| is_review(*question));
    let mut left = Leftovers { reviews: reviews(session, &judged, Asking::decisions), ..Leftovers::default() };
    let mut begun = BTreeSet::new();
    for (question, asking) in &rest {
        if let Question::Step(i) = question {
            begun.insert(*i);
            left.unfinished.add(unfinished(session, *i, asking));
        } else {
            left.unused.add(unused(session, *question, asking));
        }
    }
    if session.plan.in_force.is_some() {
        let missing = ended.missing.iter().filter(|i| !begun.contains(i) && !session.plan.is_done(**i));
        missing.for_each(|i| left.unfinished.add(vec![never_begun(session, *i)]));
    }
    left
}

fn unused(session: &Session, question: Question, asking: &Asking) -> Vec<Node> {
    let name = question.name();
    let iri = iri::named(&session.id, &name);
    let main = Node::new(&iri)
        .types(&[prov::class::ENTITY, trellis::class::UNUSED_REPLY])
        .label("Unused Reply")
        .link(prov::WAS_INFLUENCED_BY, iri::session(&session.id))
        .error(asking.problem())
        .marks(asking.attempt(), false);
    told(session, main, Some(asking), place(&iri, asking.decisions()), name.as_str())
}
