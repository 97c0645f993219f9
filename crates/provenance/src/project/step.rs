//! The steps of a plan: what each brought, or why it brought nothing.

use super::asked::{told, told_with_cost};
use super::decision::place;
use super::iteration::{as_json, with_tool_facts};
use super::review::carried;
use crate::asking::{Asking, Question};
use crate::iri;
use crate::node::{Node, as_document, first_chars};
use crate::session::Session;
use crate::vocabulary::{prov, tg, trellis};
use trellis_domain::document::Document;
use trellis_domain::record::{Header, Observed, Reading};

const ENDED_BEFORE: &str = "the session ended before the step did";
const NEVER_BEGUN: &str = "the step was never begun";

/// The result of a step that needs no tool: it is there with the reply.
pub(super) fn answered(session: &mut Session, header: &Header, i: u32) -> Option<(String, Vec<Node>)> {
    let asking = session.pending.get(&Question::Step(i))?;
    let answer = match asking.reading()? {
        Reading::Step { tool: None, answer, .. } => answer.as_ref().and_then(as_document),
        Reading::Step { tool: Some(_), .. }
        | Reading::Unreadable { .. }
        | Reading::Failed { .. }
        | Reading::Action { .. }
        | Reading::Answer { .. }
        | Reading::Chosen { .. }
        | Reading::Plan { .. }
        | Reading::Revision { .. }
        | Reading::Goals { .. }
        | Reading::Review { .. } => return None,
    };
    let asking = session.pending.remove(&Question::Step(i))?;
    Some(result(session, header, i, &asking, answer.as_ref(), None))
}

/// The result of a step as its tool, or the runtime in its place, gave it.
pub(super) fn observed(
    session: &mut Session,
    header: &Header,
    i: u32,
    observed: &Observed,
) -> Option<(String, Vec<Node>)> {
    if session.plan.is_done(i) {
        return None;
    }
    let asking = session.pending.remove(&Question::Step(i)).unwrap_or_default();
    Some(result(session, header, i, &asking, observed.result.as_ref(), Some(observed)))
}

fn result(
    session: &mut Session,
    header: &Header,
    i: u32,
    asking: &Asking,
    document: Option<&Document>,
    observed: Option<&Observed>,
) -> (String, Vec<Node>) {
    let iri = iri::step(&session.id, i);
    let reviews = carried(session);
    let main = with_step_facts(Node::new(&iri), session, i, asking)
        .types(&[prov::class::ENTITY, tg::class::STEP_RESULT, tg::class::ANSWER])
        .label(title(session, i))
        .document(&iri::step_document(&session.id, i), title(session, i), document)
        .error(observed.and_then(|observed| observed.error.as_deref()))
        .links(trellis::REVIEW, &reviews.iris)
        .marks(asking.attempt().max(header.attempt), header.late);
    let main = observed.into_iter().fold(main, with_tool_facts);
    let mut cost = observed.map(|observed| observed.usage.clone()).unwrap_or_default();
    cost.add(&asking.cost());
    let decisions = place(&iri, asking.decisions());
    let mut nodes = told_with_cost(session, main, Some(asking), decisions, &about(i), &cost);
    nodes.extend(reviews.nodes);
    session.plan.finish(i);
    (iri, nodes)
}

fn title(session: &Session, i: u32) -> String {
    format!("Step result: {}", first_chars(session.plan.goal(i), 60))
}

fn about(i: u32) -> String {
    format!("step {i}")
}

/// What was planned and what was chosen. The tool is told in our own words: for the stock reader, only iterations
/// have actions. Dependencies are no derivations, or the stock walk would list what lies behind them again and again.
pub(super) fn with_step_facts(node: Node, session: &Session, i: u32, asking: &Asking) -> Node {
    let planned = session.plan.step(i);
    let plan = planned.map(|planned| &planned.plan).or(session.plan.in_force.as_ref());
    let needs = planned.into_iter().flat_map(|planned| &planned.step.depends_on);
    let node = node
        .derived_from(plan.cloned().map_or_else(|| session.first_parents(), |plan| vec![plan]))
        .texts(tg::PLAN_STEP, planned.map(|planned| &planned.step.goal))
        .text(tg::STEP_NUMBER, i)
        .links(trellis::PLANNED, session.plan.planned_iri(i))
        .links(trellis::DEPENDS_ON_STEP, needs.map(|needed| iri::step(&session.id, *needed)));
    match asking.reading() {
        Some(Reading::Step { tool, arguments, surprising, .. }) => node
            .texts(trellis::TOOL, tool.as_ref())
            .texts(trellis::ARGUMENTS, tool.as_ref().map(|_| as_json(arguments)))
            .flag(trellis::SURPRISING, *surprising),
        Some(
            Reading::Unreadable { .. }
            | Reading::Failed { .. }
            | Reading::Action { .. }
            | Reading::Answer { .. }
            | Reading::Chosen { .. }
            | Reading::Plan { .. }
            | Reading::Revision { .. }
            | Reading::Goals { .. }
            | Reading::Review { .. },
        )
        | None => node,
    }
}

/// A step whose choice was made, but whose session ended before there was a result.
pub(super) fn unfinished(session: &Session, i: u32, asking: &Asking) -> Vec<Node> {
    let main = unfinished_node(session, i, asking)
        .types(&[tg::class::STEP_RESULT])
        .error(Some(ENDED_BEFORE))
        .marks(asking.attempt(), false);
    let iri = main.iri().to_owned();
    told(session, main, Some(asking), place(&iri, asking.decisions()), &about(i))
}

/// A step that the answer has to do without and that nobody began.
pub(super) fn never_begun(session: &Session, i: u32) -> Node {
    unfinished_node(session, i, &Asking::default()).error(Some(NEVER_BEGUN))
}

fn unfinished_node(session: &Session, i: u32, asking: &Asking) -> Node {
    with_step_facts(Node::new(iri::step(&session.id, i)), session, i, asking)
        .types(&[prov::class::ENTITY, trellis::class::UNFINISHED_STEP])
        .label(title(session, i))
        .flag(trellis::UNFINISHED, true)
}
