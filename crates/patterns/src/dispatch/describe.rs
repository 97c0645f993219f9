//! What a dispatch means to a reader: a call with its result, or one agent that was sent out.

use super::choice::Forward;
use crate::describe::asked::described;
use crate::describe::asking::Asking;
use crate::describe::decision::place;
use crate::describe::described_session::DescribedSession;
use crate::describe::inside::unused;
use crate::describe::{Describer, Notice, Rest, Shown, late};
use crate::fan_out::describe::{Rounds, SentOut};
use crate::react::{IterationNames, Iterations, with_action};
use trellis_domain::record::{Body, Ended, Header, Name, Reading, Record, Replied};
use trellis_provenance::node::Node;
use trellis_provenance::vocabulary::tg;
use trellis_provenance::{Act, iri};

#[derive(Debug, Default)]
pub(super) struct DispatchActs {
    /// The choice, as long as no node tells of it.
    choice: Option<Asking>,
    call: Iterations,
    rounds: Rounds,
}

impl Describer for DispatchActs {
    fn describe(&mut self, session: &DescribedSession, record: &Record) -> Vec<Act> {
        let header = &record.header;
        match &record.body {
            Body::Replied(replied) => self.reply(session, header, replied).into_iter().collect(),
            Body::Observed(_) => self.call.describe(session, record),
            Body::FannedOut(fan_out) => {
                let agent = fan_out.goals.first().map(|goal| goal.pattern.as_str()).unwrap_or_default();
                let label = format!("Forwarded to {agent}");
                let by = SentOut { label, asking: self.choice.take(), ..SentOut::default() };
                vec![self.rounds.fan_out(session, header, fan_out, by)]
            }
            Body::Joined(joined) => self.rounds.findings(session, header, joined),
            Body::Accepted(_)
            | Body::Routed(_)
            | Body::Intended(_)
            | Body::InputRequired(_)
            | Body::Parked(_)
            | Body::Settled(_)
            | Body::Told(_)
            | Body::Ended(_) => Vec::new(),
        }
    }

    /// The choice that failed for good is told by the end.
    fn end(&mut self, session: &DescribedSession, ended: &Ended) -> Rest {
        let choice = self.choice.take();
        let failed = choice.as_ref().is_some_and(|asking| matches!(asking.reading(), Some(Reading::Failed { .. })));
        let (closing, left) = if failed { (choice, None) } else { (None, choice) };
        let forwarded = self.rounds.rest(session, ended, None);
        let mut rest = if forwarded.parents.is_empty() { self.call.end(session, ended) } else { forwarded };
        rest.closing = closing;
        if let Some(asking) = left {
            rest.unused.add(unused(session, &Name::iteration(1), &asking));
        }
        rest
    }
}

impl DispatchActs {
    /// A call is told at once; an agent by the fan-out.
    fn reply(&mut self, session: &DescribedSession, header: &Header, replied: &Replied) -> Option<Act> {
        if header.late {
            let asking = Asking::one(header, replied);
            let first = |node: Node| node.derived_from(session.first_parents());
            return Some(late::reply(session, header, &asking, header.name.as_str(), first));
        }
        self.choice.get_or_insert_default().add(header, replied);
        let is_call = |asking: &Asking| asking.is_settled() && asking.reading().is_some_and(|it| it.call().is_some());
        self.choice.as_ref().filter(|asking| is_call(asking))?;
        let asking = self.choice.take()?;
        let id = iri::iteration(&session.id, 1);
        let decisions = place(&id, asking.decisions());
        let reading = asking.reading()?;
        let main = with_action(Node::new(&id), reading, &decisions)
            .text(tg::STEP_NUMBER, 1)
            .derived_from(session.first_parents())
            .marks(asking.attempt(), false);
        let nodes = described(session, main, Some(&asking), decisions, "dispatch");
        self.call.follow(id.clone());
        Some(Act { id, nodes })
    }
}

/// What the choice means to whoever follows. A call means what any call means.
pub(super) fn notice(replied: &Replied) -> Option<Notice<'_>> {
    let forward: Forward = replied.reading.decision()?;
    let notice = Notice::new("dispatch").with("agent", &forward.agent).with("question", &forward.question);
    Some(Notice { shown: Shown::Later, ..notice })
}
