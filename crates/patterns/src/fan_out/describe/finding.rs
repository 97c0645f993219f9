//! Fan-ins: what the subagents brought, one finding each, also for those that brought nothing.

use super::Rounds;
use super::rounds::terminal;
use crate::describe::described_session::DescribedSession;
use trellis_domain::fan_out::{Joined, Member};
use trellis_domain::record::Header;
use trellis_provenance::node::{Node, first_chars};
use trellis_provenance::vocabulary::{prov, tg, trellis};
use trellis_provenance::{Act, iri};

impl Rounds {
    /// The findings of a join in the order of their goals; the join itself travels with the last one.
    pub(crate) fn findings(&mut self, session: &DescribedSession, header: &Header, joined: &Joined) -> Vec<Act> {
        let each = joined.members.iter().map(|member| {
            let node = finding(session, header, joined, member);
            Act { id: node.iri().to_owned(), nodes: vec![node] }
        });
        let mut findings: Vec<_> = each.collect();
        if let Some(last) = findings.last_mut() {
            last.nodes.extend(join(session, joined));
        }
        self.join(&session.id, joined);
        findings
    }

    /// What others have joined before the session began, as the history that was brought along tells it.
    pub(crate) fn found_before(&mut self, session: &DescribedSession, header: &Header) -> Vec<Act> {
        let members = session.found_before();
        self.take_up(&session.id, members);
        let act = |member: &Member| {
            let node = finding_of_others(session, header, member);
            Act { id: node.iri().to_owned(), nodes: vec![node] }
        };
        members.iter().map(act).collect()
    }
}

/// Nobody here knows who found it, nor what it follows from: it hangs where the session begins.
fn finding_of_others(session: &DescribedSession, header: &Header, member: &Member) -> Node {
    let title = title(member);
    Node::new(iri::finding(&session.id, member.index))
        .types(&[prov::class::ENTITY, tg::class::FINDING, tg::class::ANSWER])
        .label(&title)
        .derived_from(session.first_parents())
        .text(tg::SUBAGENT_GOAL, &member.goal)
        .text(tg::STEP_NUMBER, member.index)
        .document(&iri::finding_document(&session.id, member.index), title, member.answer.as_ref())
        .link(prov::WAS_INFLUENCED_BY, iri::brought_history(&session.id))
        .marks(header.attempt, header.late)
}

fn title(member: &Member) -> String {
    format!("Finding: {}", first_chars(&member.goal, 60))
}

/// A finding derives from the subagent's last node first, as in the original, and then from the decomposition, through
/// which the stock walk reaches it. Of a subagent that could not be read, the last node is not known.
fn finding(session: &DescribedSession, header: &Header, joined: &Joined, member: &Member) -> Node {
    let title = title(member);
    let problem = member.is_missing().then(|| problem(member));
    Node::new(iri::finding(&session.id, member.index))
        .types(&[prov::class::ENTITY, tg::class::FINDING, tg::class::ANSWER])
        .label(&title)
        .derived_from(terminal(member).into_iter().chain([iri::decomposition(&session.id, joined.round)]))
        .text(tg::SUBAGENT_GOAL, &member.goal)
        .text(tg::STEP_NUMBER, member.index)
        .text(tg::CORRELATION_ID, &joined.correlation)
        .document(&iri::finding_document(&session.id, member.index), title, member.answer.as_ref())
        .error(problem)
        .text(trellis::STATUS, member.reason)
        .marks(header.attempt, header.late)
}

fn problem(member: &Member) -> &str {
    member.error.as_deref().unwrap_or(member.reason.as_str())
}

fn join(session: &DescribedSession, joined: &Joined) -> [Node; 2] {
    let findings = joined.members.iter().map(|member| iri::finding(&session.id, member.index));
    let join = Node::new(iri::join(&session.id, &joined.correlation))
        .types(&[prov::class::ENTITY, trellis::class::JOIN])
        .label("Join")
        .text(tg::CORRELATION_ID, &joined.correlation)
        .text(trellis::JOIN_CAUSE, joined.cause)
        .texts(trellis::OUTAGE_MS, Some(joined.outage_ms).filter(|ms| *ms > 0))
        .links(trellis::JOINED, findings);
    let fan_out = Node::new(iri::fan_out(&session.id, &joined.correlation)).link(trellis::JOIN, join.iri());
    [join, fan_out]
}
