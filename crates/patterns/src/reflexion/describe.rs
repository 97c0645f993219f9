//! What the critiques mean to a reader. The iterations are those of ReAct.

use super::critique::{Critique, iteration_of, name_of};
use crate::describe::asked::described;
use crate::describe::asking::Asking;
use crate::describe::described_session::DescribedSession;
use crate::describe::inside::unused;
use crate::describe::{Describer, Notice, Rest, Shown, ShownLine, Spoken, Tone, late};
use crate::react::Iterations;
use std::collections::BTreeMap;
use trellis_domain::document::Document;
use trellis_domain::record::{Body, Ended, Header, Name, Reading, Record, Replied};
use trellis_provenance::node::Node;
use trellis_provenance::vocabulary::{prov, tg, trellis};
use trellis_provenance::{Act, iri};

#[derive(Debug)]
pub(super) struct ReflexionActs {
    iterations: Iterations,
    /// Critiques that no node tells of yet, by iteration.
    pending: BTreeMap<u32, Asking>,
}

impl Default for ReflexionActs {
    fn default() -> Self {
        Self { iterations: Iterations::of_nodes(3), pending: BTreeMap::new() }
    }
}

impl Describer for ReflexionActs {
    fn describe(&mut self, session: &DescribedSession, record: &Record) -> Vec<Act> {
        match (&record.body, iteration_of(&record.header.name)) {
            (Body::Replied(replied), Some(n)) => {
                self.critique(session, &record.header, n, replied).into_iter().collect()
            }
            _ => self.iterations.describe(session, record),
        }
    }

    fn end(&mut self, session: &DescribedSession, ended: &Ended) -> Rest {
        let mut rest = self.iterations.end(session, ended);
        for (n, asking) in std::mem::take(&mut self.pending) {
            rest.unused.add(unused(session, &name_of(n), &asking));
        }
        rest
    }
}

impl ReflexionActs {
    /// For stock readers a critique is one more observation: it says what came of the call.
    fn critique(&mut self, session: &DescribedSession, header: &Header, n: u32, replied: &Replied) -> Option<Act> {
        let observation = iri::observation(&session.id, n);
        if header.late {
            let asking = Asking::one(header, replied);
            let name = name_of(n);
            return Some(late::reply(session, header, &asking, name.as_str(), |node| node.derived_from([observation])));
        }
        self.pending.entry(n).or_default().add(header, replied);
        self.pending.get(&n).filter(|asking| asking.is_settled())?;
        let asking = self.pending.remove(&n)?;
        let id = iri::named(&session.id, &name_of(n));
        let critique: Option<Critique> = asking.reading().and_then(Reading::decision);
        let text = critique.as_ref().and_then(|critique| Document::stored(critique.in_words()));
        let main = Node::new(&id)
            .types(&[prov::class::ENTITY, tg::class::OBSERVATION, trellis::class::ACT, trellis::class::CRITIQUE])
            .label("Critique")
            .text(trellis::ACT, "critique")
            .text(tg::STEP_NUMBER, n)
            .derived_from([self.iterations.last().unwrap_or(observation)])
            .links(prov::WAS_INFLUENCED_BY, self.iterations.beside())
            .texts(trellis::SOUND, critique.map(|critique| critique.sound))
            .document(&id, "Agent Critique", text.as_ref())
            .error(asking.problem())
            .marks(asking.attempt(), header.late);
        let nodes = described(session, main, Some(&asking), Vec::new(), "critique");
        self.iterations.follow(id.clone());
        Some(Act { id, nodes })
    }
}

/// What a critique means to whoever follows.
pub(super) fn notice<'r>(name: &Name, replied: &'r Replied) -> Option<Notice<'r>> {
    iteration_of(name)?;
    let critique: Critique = replied.reading.decision()?;
    let text = critique.in_words();
    let tone = if critique.sound { Tone::Good } else { Tone::Choice };
    let line = ShownLine::new(tone, "critique", text.clone());
    let notice = Notice::new("critique").with("sound", critique.sound);
    let notice = notice.with("problem", &critique.problem).with("advice", &critique.advice);
    Some(Notice { shown: Shown::Line(line), spoken: Some(Spoken::Observation(text.into())), ..notice })
}
