//! What a debate means to a reader: its rounds, what was decided between them, and the verdict.

use super::names::DebateTurn;
use super::read::{Moderation, Stances, Verdict};
use crate::describe::asked::described;
use crate::describe::asking::Asking;
use crate::describe::decision::place;
use crate::describe::described_session::DescribedSession;
use crate::describe::inside::{Inside, unused};
use crate::describe::{Describer, Notice, Rest, Shown, ShownLine, Tone, late};
use crate::fan_out::describe::{Rounds, SentOut};
use serde::Deserialize;
use std::collections::BTreeMap;
use trellis_domain::counted;
use trellis_domain::fan_out::FannedOut;
use trellis_domain::record::{Body, Ended, Header, Name, Reading, Record, Replied};
use trellis_provenance::node::Node;
use trellis_provenance::vocabulary::{prov, tg, trellis};
use trellis_provenance::{Act, iri};

#[derive(Debug, Default)]
pub(super) struct DebateActs {
    /// Replies that no node tells of yet.
    pending: BTreeMap<DebateTurn, Asking>,
    rounds: Rounds,
    /// The newest round.
    round: u32,
}

impl Describer for DebateActs {
    fn describe(&mut self, session: &DescribedSession, Record { header, body }: &Record) -> Vec<Act> {
        match body {
            Body::Replied(replied) => self.reply(session, header, replied).into_iter().collect(),
            Body::FannedOut(fan_out) => vec![self.round(session, header, fan_out)],
            Body::Joined(joined) => self.rounds.findings(session, header, joined),
            Body::Accepted(_)
            | Body::Routed(_)
            | Body::Observed(_)
            | Body::Intended(_)
            | Body::InputRequired(_)
            | Body::Parked(_)
            | Body::Settled(_)
            | Body::Told(_)
            | Body::Ended(_) => Vec::new(),
        }
    }

    fn end(&mut self, session: &DescribedSession, ended: &Ended) -> Rest {
        let closing = self.pending.remove(&DebateTurn::Judge);
        let mut reviews = self.moderations(session, |_| true);
        let verdict = closing.as_ref().and_then(|asking| self.verdict(session, asking.reading()?));
        if let Some(node) = verdict {
            reviews.add(vec![node]);
        }
        let mut left = Inside::default();
        for (asked, asking) in std::mem::take(&mut self.pending) {
            left.add(unused(session, &asked.name(), &asking));
        }
        Rest { reviews, unused: left, ..self.rounds.rest(session, ended, closing) }
    }
}

impl DebateActs {
    fn reply(&mut self, session: &DescribedSession, header: &Header, replied: &Replied) -> Option<Act> {
        let asked = DebateTurn::asked(&header.name)?;
        if header.late {
            let asking = Asking::one(header, replied);
            let first = |node: Node| node.derived_from(session.first_parents());
            return Some(late::reply(session, header, &asking, asked.name().as_str(), first));
        }
        self.pending.entry(asked).or_default().add(header, replied);
        None
    }

    fn round(&mut self, session: &DescribedSession, header: &Header, fan_out: &FannedOut) -> Act {
        self.round = fan_out.round;
        let asking = self.pending.remove(&DebateTurn::Stances);
        let reviews = self.moderations(session, Asking::is_settled);
        let label = match fan_out.round {
            1 => format!("Debate of {}", counted(fan_out.goals.len(), "side")),
            later => format!("Rebuttal {}", later - 1),
        };
        self.rounds.fan_out(session, header, fan_out, SentOut { label, asking, reviews, ..SentOut::default() })
    }

    /// What was decided between two rounds, as far as no event told of it yet. It travels inside the next one.
    fn moderations(&mut self, session: &DescribedSession, is_due: impl Fn(&Asking) -> bool) -> Inside {
        let of_rounds =
            |asked: &DebateTurn, asking: &mut Asking| matches!(asked, DebateTurn::Moderate(_)) && is_due(asking);
        let taken: Vec<_> = self.pending.extract_if(.., of_rounds).collect();
        let mut inside = Inside::default();
        for (asked, asking) in &taken {
            let id = iri::named(&session.id, &asked.name());
            let round = if let DebateTurn::Moderate(round) = asked { *round } else { 0 };
            let main = act(&id, trellis::class::MODERATION, "moderation", "Moderation", round)
                .link(prov::WAS_INFLUENCED_BY, iri::decomposition(&session.id, round))
                .error(asking.problem())
                .marks(asking.attempt(), false);
            inside.add(described(session, main, Some(asking), place(&id, asking.decisions()), "moderation"));
        }
        inside
    }

    /// What the judge found that all agree on, and where they do not.
    fn verdict(&self, session: &DescribedSession, reading: &Reading) -> Option<Node> {
        let Reading::Answered { value, .. } = reading else { return None };
        let verdict = Verdict::deserialize(value).ok().filter(|verdict| *verdict != Verdict::default())?;
        let id = iri::named(&session.id, &Name::new("verdict"));
        let node = act(&id, trellis::class::VERDICT, "verdict", "Verdict", self.round)
            .link(prov::WAS_INFLUENCED_BY, iri::decomposition(&session.id, self.round))
            .texts(trellis::AGREEMENT, &verdict.agreement)
            .texts(trellis::DISSENT, &verdict.dissent);
        Some(node)
    }
}

fn act(id: &str, class: &str, word: &str, label: &str, round: u32) -> Node {
    Node::new(id)
        .types(&[prov::class::ENTITY, trellis::class::ACT, class])
        .label(label)
        .text(trellis::ACT, word)
        .text(tg::STEP_NUMBER, round)
}

/// What a reply means to whoever follows.
pub(super) fn notice<'r>(name: &Name, replied: &'r Replied) -> Option<Notice<'r>> {
    match DebateTurn::asked(name)? {
        DebateTurn::Stances => {
            let Stances { stances } = replied.reading.decision()?;
            let notice = Notice::new("stances").with("stances", stances).with("mended", &replied.repairs);
            Some(Notice { shown: Shown::Later, ..notice })
        }
        DebateTurn::Moderate(_) => {
            let Moderation { again } = replied.reading.decision()?;
            let text = if again { "another round of rebuttals" } else { "enough was said" };
            let line = ShownLine { with_reasons: true, ..ShownLine::new(Tone::Choice, "moderate", text) };
            Some(Notice { shown: Shown::Line(line), ..Notice::new("moderation").with("again", again) })
        }
        DebateTurn::Judge => None,
    }
}
