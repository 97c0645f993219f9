//! What came after the end: kept and marked, never acted on.

use super::asked::told;
use super::decision::place;
use super::iteration::with_tool_facts;
use super::step::with_step_facts;
use crate::asking::{Asking, Question};
use crate::iri;
use crate::node::{Node, first_chars};
use crate::session::Session;
use crate::vocabulary::{prov, trellis};
use trellis_domain::record::{Header, Observed, Replied};

/// A reply that came too late gets a node under its record's own name, because it was paid for.
pub(super) fn reply(session: &Session, header: &Header, question: Question, replied: &Replied) -> (String, Vec<Node>) {
    let iri = iri::named(&session.id, &header.name);
    let asking = Asking::one(header, replied);
    let main = Node::new(&iri)
        .types(&[prov::class::ENTITY, trellis::class::LATE_REPLY])
        .label("Late Reply")
        .error(asking.problem())
        .marks(header.attempt, header.late);
    let main = match question {
        Question::Step(i) => with_step_facts(main, session, i, &asking),
        Question::TaskType
        | Question::Pattern
        | Question::Plan(_)
        | Question::Decompose
        | Question::Review(_)
        | Question::Synthesis => main.derived_from(session.first_parents()),
    };
    let nodes = told(session, main, Some(&asking), place(&iri, asking.decisions()), question.name().as_str());
    (iri, nodes)
}

/// What the tool of a step brought too late. The step itself was told of as unfinished, so this is a node of its own.
pub(super) fn step_result(session: &Session, header: &Header, i: u32, observed: &Observed) -> (String, Vec<Node>) {
    let iri = iri::late_step_result(&session.id, i);
    let title = format!("Step result: {}", first_chars(session.plan.goal(i), 60));
    let node = Node::new(&iri)
        .types(&[prov::class::ENTITY, trellis::class::LATE_RESULT])
        .label("Late Result")
        .derived_from([iri::step(&session.id, i)])
        .document(&iri::step_document(&session.id, i), title, observed.result.as_ref())
        .error(observed.error.as_deref())
        .marks(header.attempt, header.late);
    (iri, vec![with_tool_facts(node, observed).cost(&observed.usage)])
}
