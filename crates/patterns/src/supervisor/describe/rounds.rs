//! The rounds of a supervisor and what they brought.

use trellis_domain::SessionId;
use trellis_domain::fan_out::{FannedOut, Joined};
use trellis_provenance::iri;

#[derive(Debug, Default)]
pub(super) struct Rounds {
    /// The correlation of each fan-out so far, first round first.
    correlations: Vec<String>,
    /// How many of them were joined.
    joined: usize,
    findings: Vec<FindingNode>,
}

/// A finding and where it came from.
#[derive(Debug)]
pub(super) struct FindingNode {
    pub(super) index: u32,
    pub(super) iri: String,
    /// IRI of the node that the subagent ended with.
    pub(super) terminal: String,
}

impl Rounds {
    pub(super) fn fan_out(&mut self, fan_out: &FannedOut) {
        self.correlations.push(fan_out.correlation.clone());
    }

    pub(super) fn join(&mut self, session: &SessionId, joined: &Joined) {
        self.joined += 1;
        self.findings.extend(joined.members.iter().map(|member| FindingNode {
            index: member.index,
            iri: iri::finding(session, member.index),
            terminal: iri::terminal(&member.session, member.reason),
        }));
    }

    pub(super) fn correlations(&self) -> &[String] {
        &self.correlations
    }

    /// What all joins so far brought, in the order of the goals.
    pub(super) fn findings(&self) -> &[FindingNode] {
        &self.findings
    }

    /// The number of the newest round, if nothing came of it yet.
    pub(super) fn open_round(&self) -> Option<u32> {
        (self.correlations.len() > self.joined).then_some(u32::try_from(self.correlations.len()).unwrap_or(u32::MAX))
    }
}
