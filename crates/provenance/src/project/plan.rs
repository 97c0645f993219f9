//! Plans and their revisions.

use super::asked::told;
use super::decision::place;
use super::planned::{planned_steps, superseded_steps};
use super::review::carried;
use crate::asking::{Asking, Question};
use crate::iri;
use crate::node::Node;
use crate::session::Session;
use crate::vocabulary::{prov, tg, trellis};
use trellis_domain::reading::{DIRECT_STEP, PlannedStep};
use trellis_domain::record::{Header, Reading};

/// The plan that a reply settles; nothing if the question is asked again, if the plan stays as it is, or if there will
/// never be a reply. A plan that is kept is told of by the next event.
pub(super) fn settled(session: &mut Session, header: &Header, k: u32) -> Option<(String, Vec<Node>)> {
    let asking = session.pending.get(&Question::Plan(k)).filter(|asking| asking.is_settled())?;
    let (steps, mended) = match asking.reading()? {
        Reading::Plan { steps, mended } => (steps.clone(), mended.clone()),
        Reading::Revision { steps: Some(steps), mended } => (steps.clone(), mended.clone()),
        Reading::Unreadable { .. } if k == 0 => (vec![direct_step()], Vec::new()),
        Reading::Unreadable { .. }
        | Reading::Revision { steps: None, .. }
        | Reading::Failed { .. }
        | Reading::Action { .. }
        | Reading::Answer { .. }
        | Reading::Chosen { .. }
        | Reading::Step { .. }
        | Reading::Goals { .. }
        | Reading::Review { .. } => return None,
    };
    let asking = session.pending.remove(&Question::Plan(k))?;
    Some(plan(session, header, k, &asking, &steps, &mended))
}

fn direct_step() -> PlannedStep {
    PlannedStep { goal: DIRECT_STEP.to_owned(), ..PlannedStep::default() }
}

fn plan(
    session: &mut Session,
    header: &Header,
    k: u32,
    asking: &Asking,
    steps: &[PlannedStep],
    mended: &[String],
) -> (String, Vec<Node>) {
    let iri = iri::plan_number(&session.id, k);
    let before = session.plan.in_force.clone();
    let parents = before.map_or_else(|| session.first_parents(), |plan| vec![plan]);
    // What was kept before is told before the new plan takes its place.
    let reviews = carried(session);
    let superseded = session.plan.put_in_force(&iri, steps);
    let planned = planned_steps(session, &iri);
    let main = Node::new(&iri)
        .types(&[prov::class::ENTITY, tg::class::PLAN])
        .label(format!("Plan with {} steps", steps.len()))
        .derived_from(parents)
        .texts(tg::PLAN_STEP, steps.iter().map(|step| &step.goal))
        .texts(trellis::REPLAN_REASON, asking.rationale().filter(|_| k > 0))
        .links_to(trellis::PLANNED_STEP, &planned)
        .texts(trellis::SUPERSEDED_STEP, superseded.iter().map(|i| session.plan.goal(*i)))
        .texts(trellis::MENDED, mended)
        .error(asking.problem())
        .links(trellis::REVIEW, &reviews.iris)
        .marks(asking.attempt(), header.late);
    let decisions = place(&iri, asking.decisions());
    let mut nodes = told(session, main, Some(asking), decisions, "plan");
    nodes.extend(reviews.nodes);
    nodes.extend(planned);
    nodes.extend(superseded_steps(session, &superseded, &iri));
    (iri, nodes)
}

/// A revision that keeps the plan is no plan: stock readers must not list it as one.
pub(super) fn plan_review(session: &Session, k: u32, asking: &Asking) -> Vec<Node> {
    let iri = iri::plan_number(&session.id, k);
    let main = Node::new(&iri)
        .types(&[prov::class::ENTITY, trellis::class::PLAN_REVIEW])
        .label("Plan Review")
        .derived_from(session.plan.in_force.iter().cloned())
        .marks(asking.attempt(), false);
    told(session, main.error(asking.problem()), Some(asking), place(&iri, asking.decisions()), "plan")
}
