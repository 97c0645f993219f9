//! Questions to a model and their replies.

use crate::text::cut;
use trellis_domain::decision::Decision;
use trellis_domain::document::Document;
use trellis_domain::record::{Header, Name, Reading, Replied};
use trellis_domain::usage::Usage;

/// So much of the reason why a call failed is in the graph; all of it is in the record.
const SHOWN_OF_FAILURE: usize = 1000;

/// A question and the replies to it: the first, and the one to the same question asked once more.
#[derive(Debug, Default)]
pub(crate) struct Asking {
    replies: Vec<Reply>,
}

/// What is kept of a reply until a node tells of it.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) name: Name,
    pub(crate) attempt: u32,
    pub(crate) replied: Replied,
}

impl Asking {
    pub(crate) fn one(header: &Header, replied: &Replied) -> Self {
        let mut asking = Self::default();
        asking.add(header, replied);
        asking
    }

    pub(crate) fn add(&mut self, header: &Header, replied: &Replied) {
        let (name, attempt) = (header.name.clone(), header.attempt);
        self.replies.push(Reply { name, attempt, replied: replied.clone() });
    }

    pub(crate) fn replies(&self) -> &[Reply] {
        &self.replies
    }

    /// The reply that counts: the last.
    pub(crate) fn counting(&self) -> Option<&Replied> {
        self.replies.last().map(|reply| &reply.replied)
    }

    pub(crate) fn reading(&self) -> Option<&Reading> {
        self.counting().map(|replied| &replied.reading)
    }

    /// Nobody will be asked again: the reply could be used, or was the second, or there will never be one.
    pub(crate) fn is_settled(&self) -> bool {
        self.replies.len() > 1 || self.reading().is_some_and(|reading| !matches!(reading, Reading::Unusable { .. }))
    }

    /// Why the question got no usable reply.
    pub(crate) fn problem(&self) -> Option<&str> {
        self.reading()?.problem()
    }

    pub(crate) fn attempt(&self) -> u32 {
        self.replies.iter().map(|reply| reply.attempt).max().unwrap_or(1)
    }

    /// What all replies took: one that could not be used was paid for, too.
    pub(crate) fn cost(&self) -> Usage {
        let mut total = Usage::default();
        self.replies.iter().for_each(|reply| total.add(&cost(&reply.replied)));
        total
    }

    /// The calls that brought no reply, each with the model and the reason.
    pub(crate) fn failures(&self) -> impl Iterator<Item = String> {
        let failures = self.replies.iter().flat_map(|reply| &reply.replied.failures);
        failures.map(|attempt| {
            let reason = cut(&attempt.reason, SHOWN_OF_FAILURE);
            attempt.model.as_ref().map_or_else(|| reason.clone(), |model| format!("{model}: {reason}"))
        })
    }

    /// The choices of the reply that counts, then those of a rejected one that say what was rejected.
    pub(crate) fn decisions(&self) -> Vec<&Decision> {
        let Some((counting, rejected)) = self.replies.split_last() else { return Vec::new() };
        let rejected = rejected.iter().flat_map(|reply| &reply.replied.decision);
        counting.replied.decision.iter().chain(rejected.filter(|decision| decision.rejected.is_some())).collect()
    }

    /// The reason that the model gave for its choice.
    pub(crate) fn rationale(&self) -> Option<&str> {
        self.counting()?.decision.iter().find_map(|decision| decision.rationale.as_ref()).map(Document::text)
    }
}

/// What one reply took.
pub(crate) fn cost(replied: &Replied) -> Usage {
    Usage {
        in_token: replied.in_token,
        out_token: replied.out_token,
        model: replied.model.clone(),
        model_ms: replied.ms,
        model_calls: u32::from(!replied.was_declined()),
        details: replied.prompt.details,
        ..Usage::default()
    }
}
