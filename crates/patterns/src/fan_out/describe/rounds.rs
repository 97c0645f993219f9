//! The rounds of subagents, as far as they were told, and what the end rests on.

use crate::describe::Rest;
use crate::describe::asking::Asking;
use crate::describe::described_session::DescribedSession;
use trellis_domain::SessionId;
use trellis_domain::fan_out::{FannedOut, Joined, Member};
use trellis_domain::record::Ended;
use trellis_provenance::iri;
use trellis_provenance::vocabulary::trellis;

#[derive(Debug, Default)]
pub(crate) struct Rounds {
    /// The correlation of each fan-out so far, first round first.
    correlations: Vec<String>,
    /// How many of them were joined.
    joined: usize,
    findings: Vec<FindingNode>,
}

/// A finding and where it came from.
#[derive(Debug)]
pub(crate) struct FindingNode {
    pub(crate) index: u32,
    pub(crate) iri: String,
    /// IRI of the node that the subagent ended with; none if that could not be read.
    terminal: Option<String>,
}

/// The node that a subagent ended with, as far as that was known when it was joined.
pub(super) fn terminal(member: &Member) -> Option<String> {
    (!member.was_unreadable()).then(|| iri::terminal(&member.session, member.reason))
}

impl Rounds {
    pub(super) fn add(&mut self, fan_out: &FannedOut) {
        self.correlations.push(fan_out.correlation.clone());
    }

    pub(super) fn join(&mut self, session: &SessionId, joined: &Joined) {
        self.joined += 1;
        self.findings.extend(joined.members.iter().map(|member| FindingNode {
            index: member.index,
            iri: iri::finding(session, member.index),
            terminal: terminal(member),
        }));
    }

    /// Findings of others: where their sessions ended is not known here.
    pub(super) fn take_up(&mut self, session: &SessionId, members: &[Member]) {
        self.findings.extend(members.iter().map(|member| FindingNode {
            index: member.index,
            iri: iri::finding(session, member.index),
            terminal: None,
        }));
    }

    fn correlations(&self) -> &[String] {
        &self.correlations
    }

    /// What all joins so far brought, in the order of the goals.
    pub(crate) fn found(&self) -> &[FindingNode] {
        &self.findings
    }

    /// The number of the newest round, if nothing came of it yet.
    fn open_round(&self) -> Option<u32> {
        (self.correlations.len() > self.joined).then_some(u32::try_from(self.correlations.len()).unwrap_or(u32::MAX))
    }

    /// What the end of the session rests on: every finding and, if it is a synthesis, what each subagent ended with. What
    /// was not waited for is no parent.
    pub(crate) fn rest(&self, session: &DescribedSession, ended: &Ended, closing: Option<Asking>) -> Rest {
        let found = self.found();
        let findings = found.iter().map(|finding| finding.iri.clone());
        let terminals =
            found.iter().filter(|_| ended.reason.is_synthesis()).filter_map(|finding| finding.terminal.clone());
        let open = self.open_round().map(|round| iri::decomposition(&session.id, round));
        let citations = closing.as_ref().and_then(Asking::counting).into_iter().flat_map(|replied| &replied.citations);
        let cites = citations.filter(|citation| found.iter().any(|finding| finding.index == citation.index));
        Rest {
            parents: findings.chain(terminals).chain(open).collect(),
            correlations: self.correlations().to_vec(),
            missing_property: trellis::MISSING_FINDING,
            missing: ended.missing.iter().map(|index| iri::finding(&session.id, *index)).collect(),
            cites: cites.map(|cited| (iri::finding(&session.id, cited.index), cited.confidence.clone())).collect(),
            closing,
            ..Rest::default()
        }
    }
}
