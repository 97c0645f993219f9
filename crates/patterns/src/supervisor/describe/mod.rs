//! What fan-outs, findings and reviews mean to a reader.

use super::Goals;
use super::names::TeamTurn;
use crate::describe::asked::described;
use crate::describe::asking::Asking;
use crate::describe::decision::{NamedDocument, place};
use crate::describe::described_session::DescribedSession;
use crate::describe::inside::{Inside, unused};
use crate::describe::{Describer, Notice, Rest, Shown, ShownLine, Tone, late};
use crate::fan_out::describe::{Rounds, SentOut};
use std::collections::BTreeMap;
use trellis_domain::counted;
use trellis_domain::decision::{Decision, DecisionKind};
use trellis_domain::fan_out::FannedOut;
use trellis_domain::record::{Body, Ended, Header, Name, Record, Replied};
use trellis_provenance::node::Node;
use trellis_provenance::vocabulary::{prov, trellis};
use trellis_provenance::{Act, iri};

#[derive(Debug, Default)]
pub(super) struct TeamActs {
    /// Replies that no node tells of yet.
    pending: BTreeMap<TeamTurn, Asking>,
    rounds: Rounds,
}

impl Describer for TeamActs {
    fn begin(&mut self, session: &DescribedSession, header: &Header) -> Vec<Act> {
        self.rounds.found_before(session, header)
    }

    fn describe(&mut self, session: &DescribedSession, Record { header, body }: &Record) -> Vec<Act> {
        match body {
            Body::Replied(replied) => self.reply(session, header, replied).into_iter().collect(),
            Body::FannedOut(fan_out) => vec![self.decomposition(session, header, fan_out)],
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
        let closing = self.pending.remove(&TeamTurn::Synthesis);
        let (reviews, unused) = self.leftovers(session);
        Rest { reviews, unused, ..self.rounds.rest(session, ended, closing) }
    }
}

impl TeamActs {
    fn reply(&mut self, session: &DescribedSession, header: &Header, replied: &Replied) -> Option<Act> {
        let asked = TeamTurn::asked(&header.name)?;
        if header.late {
            let asking = Asking::one(header, replied);
            let first = |node: Node| node.derived_from(session.first_parents());
            return Some(late::reply(session, header, &asking, asked.name().as_str(), first));
        }
        self.pending.entry(asked).or_default().add(header, replied);
        None
    }

    fn decomposition(&mut self, session: &DescribedSession, header: &Header, fan_out: &FannedOut) -> Act {
        let asking = self.pending.remove(&TeamTurn::Decompose);
        let reviews = self.carried(session);
        let label = format!("Decomposed into {} research threads", fan_out.goals.len());
        self.rounds.fan_out(session, header, fan_out, SentOut { label, asking, reviews, ..SentOut::default() })
    }

    /// The judgements that are settled and that no event told of yet. They are events of nobody's: stock readers know no
    /// such thing, so they travel inside the next event of their session. Another round's goals and their choices are
    /// told by its decomposition, so a review tells of the round only.
    fn carried(&mut self, session: &DescribedSession) -> Inside {
        let settled =
            |asked: &TeamTurn, asking: &mut Asking| matches!(asked, TeamTurn::Review(_)) && asking.is_settled();
        let taken: Vec<_> = self.pending.extract_if(.., settled).collect();
        let rounds = |asking: &'_ Asking| -> Vec<Decision> {
            let decisions = asking.decisions().into_iter().filter(|decision| decision.kind == DecisionKind::Round);
            decisions.cloned().collect()
        };
        self.reviews(session, &taken, rounds)
    }

    fn reviews(
        &self,
        session: &DescribedSession,
        taken: &[(TeamTurn, Asking)],
        choices: fn(&Asking) -> Vec<Decision>,
    ) -> Inside {
        let mut inside = Inside::default();
        for (asked, asking) in taken {
            if let TeamTurn::Review(round) = asked {
                inside.add(self.review(session, *round, asking, &choices(asking)));
            }
        }
        inside
    }

    /// A judgement after a round. Its reason is the document of the same name.
    fn review(&self, session: &DescribedSession, round: u32, asking: &Asking, choices: &[Decision]) -> Vec<Node> {
        let iri = iri::review(&session.id, round);
        let mut decisions = place(&iri, choices);
        if let Some(placed) = decisions.iter_mut().find(|placed| placed.is(DecisionKind::Round)) {
            placed.rationale = NamedDocument { id: iri.clone(), title: format!("Review of round {round}") };
        }
        let main = Node::new(&iri)
            .types(&[prov::class::ENTITY, trellis::class::REVIEW])
            .label(format!("Review of round {round}"))
            .link(prov::WAS_INFLUENCED_BY, iri::decomposition(&session.id, round))
            .links(trellis::REVIEWED_FINDING, self.rounds.found().iter().map(|finding| &finding.iri))
            .error(asking.problem())
            .marks(asking.attempt(), false);
        described(session, main, Some(asking), decisions, "review")
    }

    /// Reviews and replies that the session's end finds unsaid.
    fn leftovers(&mut self, session: &DescribedSession) -> (Inside, Inside) {
        let pending = std::mem::take(&mut self.pending);
        let is_review = |asked: &TeamTurn| matches!(asked, TeamTurn::Review(_));
        let (judged, rest): (Vec<_>, Vec<_>) = pending.into_iter().partition(|(asked, _)| is_review(asked));
        let all = |asking: &Asking| asking.decisions().into_iter().cloned().collect();
        let reviews = self.reviews(session, &judged, all);
        let mut without = Inside::default();
        for (asked, asking) in &rest {
            without.add(unused(session, &asked.name(), asking));
        }
        (reviews, without)
    }
}

/// What a reply of the supervisor means.
pub(super) fn notice<'r>(name: &Name, replied: &'r Replied) -> Option<Notice<'r>> {
    let Goals { goals } = Goals::of(&replied.reading)?;
    if TeamTurn::asked(name)? == TeamTurn::Decompose {
        let notice = Notice::new("decomposition").with("goals", goals).with("mended", &replied.repairs);
        return Some(Notice { shown: Shown::Later, ..notice });
    }
    let (text, if_missing) = match &goals {
        Some(goals) => (format!("another round with {}", counted(goals.len(), "agent")), None),
        None => ("enough to answer".to_owned(), Some("answers now")),
    };
    let line = ShownLine { if_missing, with_reasons: true, ..ShownLine::new(Tone::Choice, "review", text) };
    let notice = Notice::new("review").with("again", goals).with("mended", &replied.repairs);
    Some(Notice { shown: Shown::Line(line), ..notice })
}
