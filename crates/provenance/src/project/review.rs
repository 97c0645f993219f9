//! Judgements between the acts of a session. They are events of nobody's: stock readers know no such thing, so they
//! travel inside the next event of their session.

use super::asked::told;
use super::decision::{NamedDocument, place};
use super::plan::plan_review;
use crate::asking::{Asking, Question};
use crate::iri;
use crate::node::Node;
use crate::session::Session;
use crate::vocabulary::{prov, trellis};
use trellis_domain::decision::{Decision, DecisionKind};

/// Nodes that travel with another, which points at some of them.
#[derive(Debug, Default)]
pub(super) struct Inside {
    pub(super) iris: Vec<String>,
    pub(super) nodes: Vec<Node>,
}

impl Inside {
    /// Takes in a node that is pointed at, followed by what belongs to it.
    pub(super) fn add(&mut self, nodes: Vec<Node>) {
        self.iris.extend(nodes.first().map(|node| node.iri().to_owned()));
        self.nodes.extend(nodes);
    }
}

/// The judgements that are settled and that no event told of yet.
pub(super) fn carried(session: &mut Session) -> Inside {
    let settled = |question: &Question, asking: &mut Asking| is_review(*question) && asking.is_settled();
    let taken: Vec<_> = session.pending.extract_if(.., settled).collect();
    reviews(session, &taken, Asking::rounds)
}

/// Whether a reply to this question is a judgement: the first plan is none.
pub(super) fn is_review(question: Question) -> bool {
    match question {
        Question::Plan(k) => k > 0,
        Question::Review(_) => true,
        Question::TaskType | Question::Pattern | Question::Step(_) | Question::Decompose | Question::Synthesis => false,
    }
}

/// Another round's goals and their choices are told by its decomposition, so a review tells of `choices` only.
pub(super) fn reviews<'a>(
    session: &Session,
    taken: &'a [(Question, Asking)],
    choices: impl Fn(&'a Asking) -> Vec<&'a Decision>,
) -> Inside {
    let mut inside = Inside::default();
    for (question, asking) in taken {
        match question {
            Question::Plan(k) => inside.add(plan_review(session, *k, asking)),
            Question::Review(r) => inside.add(review(session, *r, asking, choices(asking))),
            Question::TaskType | Question::Pattern | Question::Step(_) | Question::Decompose | Question::Synthesis => {}
        }
    }
    inside
}

/// A supervisor's judgement after a round. Its reason is the document of the same name.
fn review(session: &Session, r: u32, asking: &Asking, choices: Vec<&Decision>) -> Vec<Node> {
    let iri = iri::review(&session.id, r);
    let mut decisions = place(&iri, choices);
    if let Some(round) = decisions.iter_mut().find(|placed| placed.is(DecisionKind::Round)) {
        round.rationale = NamedDocument { id: iri.clone(), title: format!("Review of round {r}") };
    }
    let main = Node::new(&iri)
        .types(&[prov::class::ENTITY, trellis::class::REVIEW])
        .label(format!("Review of round {r}"))
        .link(prov::WAS_INFLUENCED_BY, iri::decomposition(&session.id, r))
        .links(trellis::REVIEWED_FINDING, session.rounds.findings().iter().map(|finding| &finding.iri))
        .error(asking.problem())
        .marks(asking.attempt(), false);
    told(session, main, Some(asking), decisions, "review")
}
