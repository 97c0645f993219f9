//! Fan-outs: what subagents were sent after.

use super::{Rounds, SentOut};
use crate::describe::asked::described;
use crate::describe::asking::Asking;
use crate::describe::decision::{PlacedDecision, place};
use crate::describe::described_session::DescribedSession;
use trellis_domain::decision::{Decision, DecisionKind};
use trellis_domain::document::Document;
use trellis_domain::fan_out::{FannedOut, Goal};
use trellis_domain::record::Header;
use trellis_provenance::node::{Node, first_chars};
use trellis_provenance::vocabulary::{prov, tg, trellis};
use trellis_provenance::{Act, iri};

impl Rounds {
    /// The decomposition as the original knows it, and inside it the fan-out as the specification knows it. Later rounds
    /// derive from the round before alone: a chain through the findings would multiply the stock listing.
    pub(crate) fn fan_out(
        &mut self,
        session: &DescribedSession,
        header: &Header,
        fan_out: &FannedOut,
        by: SentOut,
    ) -> Act {
        let id = iri::decomposition(&session.id, fan_out.round);
        let SentOut { label, asking, reviews, calls } = by;
        let parents = match fan_out.round {
            _ if !calls.is_empty() => calls,
            0 | 1 => session.first_parents(),
            later => vec![iri::decomposition(&session.id, later - 1)],
        };
        let main = Node::new(&id)
            .types(&[prov::class::ENTITY, tg::class::DECOMPOSITION])
            .label(label)
            .derived_from(parents)
            .texts(tg::SUBAGENT_GOAL, fan_out.goals.iter().map(|goal| &goal.goal))
            .links(trellis::REVIEWED_FINDING, self.found().iter().map(|finding| &finding.iri))
            .links(trellis::REVIEW, &reviews.iris)
            .text(tg::CORRELATION_ID, &fan_out.correlation)
            .link(trellis::FAN_OUT, iri::fan_out(&session.id, &fan_out.correlation))
            .marks(asking.as_ref().map_or(header.attempt, Asking::attempt), header.late);
        let decisions = decisions(session, &id, fan_out, asking.as_ref());
        let mut nodes = described(session, main, asking.as_ref(), decisions, "decompose");
        nodes.extend(reviews.nodes);
        nodes.extend(fan_out_nodes(session, &id, fan_out));
        self.add(fan_out);
        Act { id, nodes }
    }
}

/// What the fan-out decided, then what was rejected on the way. A choice that was made for each goal names its goal.
fn decisions<'a>(
    session: &DescribedSession,
    node: &str,
    fan_out: &'a FannedOut,
    asking: Option<&'a Asking>,
) -> Vec<PlacedDecision<'a>> {
    let is_told = |rejected: &Decision| fan_out.decisions.iter().any(|told| told.rejected == rejected.rejected);
    let rejected = asking.map(Asking::decisions).unwrap_or_default().into_iter();
    let rejected = rejected.filter(|decision| decision.rejected.is_some() && !is_told(decision));
    let mut placed = place(node, fan_out.decisions.iter().chain(rejected));
    for kind in [DecisionKind::SubagentPattern, DecisionKind::SubagentGroup] {
        let of_kind = placed.iter_mut().filter(|placed| placed.is(kind)).collect::<Vec<_>>();
        if of_kind.len() == fan_out.goals.len() {
            for (placed, goal) in of_kind.into_iter().zip(&fan_out.goals) {
                placed.goal = Some(goal_iri(session, fan_out, goal));
            }
        }
    }
    placed
}

fn goal_iri(session: &DescribedSession, fan_out: &FannedOut, goal: &Goal) -> String {
    iri::fan_out_goal(&session.id, &fan_out.correlation, goal.index)
}

/// The fan-out with its goals in numbered documents. In the graph they have a name of ours for their text: the stock
/// reader takes every `tg:subagentGoal` of an event for one more goal.
fn fan_out_nodes(session: &DescribedSession, decomposition: &str, fan_out: &FannedOut) -> Vec<Node> {
    let goal = |goal: &Goal| {
        let title = format!("Subagent goal: {}", first_chars(&goal.goal, 60));
        let document = Document::stored(goal.goal.as_str())?;
        let node = Node::pinned(goal_iri(session, fan_out, goal), title, &document)
            .text(trellis::GOAL, &goal.goal)
            .text(trellis::SIBLING_INDEX, goal.index)
            .text(tg::SUBAGENT_SESSION_ID, &goal.session);
        Some(node)
    };
    let goals: Vec<Node> = fan_out.goals.iter().filter_map(goal).collect();
    let main = Node::new(iri::fan_out(&session.id, &fan_out.correlation))
        .types(&[prov::class::ENTITY, tg::class::FAN_OUT])
        .label("Fan-out")
        .derived_from([decomposition])
        .text(tg::CORRELATION_ID, &fan_out.correlation)
        .text(tg::EXPECTED_SIBLINGS, fan_out.goals.len())
        .links_to(tg::SUBAGENT_GOALS, &goals)
        .text(trellis::DEADLINE, fan_out.deadline)
        .texts(trellis::SHARE_MODEL_CALLS, fan_out.share.map(|share| share.model_calls))
        .texts(trellis::SHARE_TOKENS, fan_out.share.map(|share| share.tokens))
        .texts(trellis::SHARE_COST_MICROS, fan_out.share.map(|share| share.cost_micros))
        .texts(trellis::SHARE_AGENTS, fan_out.share.map(|share| share.agents));
    std::iter::once(main).chain(goals).collect()
}
