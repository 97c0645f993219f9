//! What plans, revisions and steps mean to a reader.

mod begun;
mod planned;
mod step;
mod steps;

use super::names::step_of_result;
use super::{PlanDecision, PlanNames, PlanTurn, PlannedStep, StepAside};
use crate::describe::asked::described;
use crate::describe::asking::Asking;
use crate::describe::decision::place;
use crate::describe::described_session::DescribedSession;
use crate::describe::inside::{Inside, unused};
use crate::describe::{Describer, Notice, Part, Rest, Shown, ShownLine, Spoken, Tone, late, plain};
use planned::{planned_steps, superseded_steps};
use std::collections::{BTreeMap, BTreeSet};
use steps::PlannedSteps;
use trellis_domain::counted;
use trellis_domain::document::Payload;
use trellis_domain::record::{Body, Ended, Header, Name, Observed, Reading, Record, Replied};
use trellis_provenance::node::Node;
use trellis_provenance::vocabulary::{prov, tg, trellis};
use trellis_provenance::{Act, iri};

#[derive(Debug, Default)]
pub(super) struct PlanActs {
    /// Replies that no node tells of yet.
    pending: BTreeMap<PlanTurn, Asking>,
    steps: PlannedSteps,
}

impl Describer for PlanActs {
    fn begin(&mut self, session: &DescribedSession, header: &Header) -> Vec<Act> {
        self.begun(session, header)
    }

    fn describe(&mut self, session: &DescribedSession, Record { header, body }: &Record) -> Vec<Act> {
        let act = match body {
            Body::Replied(replied) => self.reply(session, header, replied),
            Body::Observed(observed) => self.result_of_tool(session, header, observed),
            Body::Accepted(_)
            | Body::Routed(_)
            | Body::FannedOut(_)
            | Body::Joined(_)
            | Body::Intended(_)
            | Body::InputRequired(_)
            | Body::Parked(_)
            | Body::Settled(_)
            | Body::Told(_)
            | Body::Ended(_) => None,
        };
        act.into_iter().collect()
    }

    /// The end derives from the last step alone, so that the stock listing has it once.
    fn end(&mut self, session: &DescribedSession, ended: &Ended) -> Rest {
        let closing = self.pending.remove(&PlanTurn::Synthesis);
        let (reviews, unfinished, unused) = self.leftovers(session, ended);
        let last = self.steps.done().next_back().map(|last| iri::step(&session.id, last));
        let done = self.steps.done().map(|i| iri::step(&session.id, i));
        let known: BTreeSet<u32> = self.steps.done().collect();
        let citations = closing.as_ref().and_then(Asking::counting).into_iter().flat_map(|replied| &replied.citations);
        let cites = citations.filter(|citation| known.contains(&citation.index));
        // A plan of others is nowhere once their history was erased.
        let missing = ended.missing.iter().filter(|i| self.steps.step(**i).is_some());
        Rest {
            parents: last.or_else(|| self.steps.in_force.clone()).into_iter().collect(),
            influenced: done.chain(self.steps.without_steps().map(str::to_owned)).collect(),
            missing_property: trellis::MISSING_STEP,
            missing: missing.map(|i| iri::step(&session.id, *i)).collect(),
            cites: cites.map(|cited| (iri::step(&session.id, cited.index), cited.confidence.clone())).collect(),
            closing,
            reviews,
            unfinished,
            unused,
            ..Rest::default()
        }
    }
}

impl PlanActs {
    fn reply(&mut self, session: &DescribedSession, header: &Header, replied: &Replied) -> Option<Act> {
        let asked = PlanTurn::asked(&header.name)?;
        if header.late {
            return Some(self.late_reply(session, header, asked, replied));
        }
        self.pending.entry(asked).or_default().add(header, replied);
        match asked {
            PlanTurn::Plan(k) => self.settled(session, header, k),
            PlanTurn::Step(i) => self.answered(session, header, i),
            PlanTurn::Synthesis => None,
        }
    }

    fn late_reply(&self, session: &DescribedSession, header: &Header, asked: PlanTurn, replied: &Replied) -> Act {
        let asking = Asking::one(header, replied);
        let with = |node: Node| match asked {
            PlanTurn::Step(i) => self.with_step_facts(node, session, i, &asking),
            PlanTurn::Plan(_) | PlanTurn::Synthesis => node.derived_from(session.first_parents()),
        };
        late::reply(session, header, &asking, asked.name().as_str(), with)
    }

    fn result_of_tool(&mut self, session: &DescribedSession, header: &Header, observed: &Observed) -> Option<Act> {
        let i = step_of_result(&header.name)?;
        if header.late {
            return Some(self.late_result(session, header, i, observed));
        }
        self.observed(session, header, i, observed)
    }

    /// The plan that a reply settles; nothing if the question is asked again, if the plan stays as it is, or if there
    /// will never be a reply. A plan that is kept is told of by the next event.
    fn settled(&mut self, session: &DescribedSession, header: &Header, k: u32) -> Option<Act> {
        let asking = self.pending.get(&PlanTurn::Plan(k)).filter(|asking| asking.is_settled())?;
        let reading = asking.reading()?;
        let no_plan = k == 0 && matches!(reading, Reading::Unusable { .. });
        let steps = if no_plan { vec![PlannedStep::direct()] } else { PlanDecision::of(reading)?.steps? };
        let asking = self.pending.remove(&PlanTurn::Plan(k))?;
        Some(self.plan(session, header, k, &asking, &steps))
    }

    fn plan(
        &mut self,
        session: &DescribedSession,
        header: &Header,
        k: u32,
        asking: &Asking,
        steps: &[PlannedStep],
    ) -> Act {
        let id = iri::plan_number(&session.id, k);
        let before = self.steps.in_force.clone();
        let parents = before.map_or_else(|| session.first_parents(), |plan| vec![plan]);
        // What was kept before is told before the new plan takes its place.
        let reviews = self.carried(session);
        let superseded = self.steps.put_in_force(&id, steps);
        let planned = planned_steps(&self.steps, &id);
        let main = Node::new(&id)
            .types(&[prov::class::ENTITY, tg::class::PLAN])
            .label(format!("Plan with {} steps", steps.len()))
            .derived_from(parents)
            .texts(tg::PLAN_STEP, steps.iter().map(|step| &step.goal))
            .texts(trellis::REPLAN_REASON, asking.rationale().filter(|_| k > 0))
            .links_to(trellis::PLANNED_STEP, &planned)
            .texts(trellis::SUPERSEDED_STEP, superseded.iter().map(|i| self.steps.goal(*i)))
            .error(asking.problem())
            .links(trellis::REVIEW, &reviews.iris)
            .marks(asking.attempt(), header.late);
        let decisions = place(&id, asking.decisions());
        let mut nodes = described(session, main, Some(asking), decisions, "plan");
        nodes.extend(reviews.nodes);
        nodes.extend(planned);
        nodes.extend(superseded_steps(&self.steps, &superseded, &id));
        Act { id, nodes }
    }

    /// The judgements that are settled and that no event told of yet. They are events of nobody's: stock readers know no
    /// such thing, so they travel inside the next event of their session.
    fn carried(&mut self, session: &DescribedSession) -> Inside {
        let settled = |asked: &PlanTurn, asking: &mut Asking| asked.is_review() && asking.is_settled();
        let taken: Vec<_> = self.pending.extract_if(.., settled).collect();
        self.reviews(session, &taken)
    }

    fn reviews(&self, session: &DescribedSession, taken: &[(PlanTurn, Asking)]) -> Inside {
        let mut inside = Inside::default();
        for (asked, asking) in taken {
            if let PlanTurn::Plan(k) = asked {
                inside.add(self.review(session, *k, asking));
            }
        }
        inside
    }

    /// A revision that keeps the plan is no plan: stock readers must not list it as one.
    fn review(&self, session: &DescribedSession, k: u32, asking: &Asking) -> Vec<Node> {
        let iri = iri::plan_number(&session.id, k);
        let main = Node::new(&iri)
            .types(&[prov::class::ENTITY, trellis::class::PLAN_REVIEW])
            .label("Plan Review")
            .derived_from(self.steps.in_force.iter().cloned())
            .marks(asking.attempt(), false);
        described(session, main.error(asking.problem()), Some(asking), place(&iri, asking.decisions()), "plan")
    }

    /// Reviews, steps and replies that the session's end finds unsaid.
    fn leftovers(&mut self, session: &DescribedSession, ended: &Ended) -> (Inside, Inside, Inside) {
        let pending = std::mem::take(&mut self.pending);
        let (judged, rest): (Vec<_>, Vec<_>) = pending.into_iter().partition(|(asked, _)| asked.is_review());
        let reviews = self.reviews(session, &judged);
        let (mut unfinished, mut without) = (Inside::default(), Inside::default());
        let mut begun = BTreeSet::new();
        for (asked, asking) in &rest {
            if let PlanTurn::Step(i) = asked {
                begun.insert(*i);
                unfinished.add(self.unfinished(session, *i, asking));
            } else {
                without.add(unused(session, &asked.name(), asking));
            }
        }
        if self.steps.in_force.is_some() {
            let missing = ended.missing.iter().filter(|i| !begun.contains(i) && !self.steps.is_done(**i));
            missing.for_each(|i| unfinished.add(vec![self.never_begun(session, *i)]));
        }
        (reviews, unfinished, without)
    }
}

/// The step that a record belongs to: `step/3`, `step/3/retry`, `step/3/result`.
pub(super) fn part(name: &Name) -> Option<u32> {
    let chosen = if let Some(PlanTurn::Step(i)) = PlanTurn::asked(name) { Some(i) } else { None };
    chosen.or_else(|| step_of_result(name))
}

/// What a reply of the planner, or of a step, means.
pub(super) fn notice<'r>(name: &Name, replied: &'r Replied) -> Option<Notice<'r>> {
    match (PlanTurn::asked(name)?, &replied.reading) {
        (PlanTurn::Plan(k), Reading::Decided { .. }) => planning_notice(k, replied),
        (PlanTurn::Plan(0), Reading::Unusable { .. }) if *name == Name::plan(0).retry() => {
            Some(Notice { parts: parts(&[PlannedStep::direct()]), ..plain(replied) })
        }
        (PlanTurn::Step(_), Reading::Acted { .. } | Reading::Answered { .. }) => Some(step_notice(replied)),
        (PlanTurn::Plan(_) | PlanTurn::Step(_) | PlanTurn::Synthesis, _) => None,
    }
}

fn planning_notice(k: u32, replied: &Replied) -> Option<Notice<'_>> {
    let PlanDecision { steps } = PlanDecision::of(&replied.reading)?;
    let notice = Notice::new(if k == 0 { "plan" } else { "plan-revision" });
    let notice = notice.with("steps", &steps).with("mended", &replied.repairs);
    let Some(steps) = steps else {
        let line = ShownLine::new(Tone::Choice, "plan", "kept as it is");
        return Some(Notice { shown: Shown::Line(ShownLine { with_reasons: true, ..line }), ..notice });
    };
    let number = counted(steps.len(), "step");
    let line = ShownLine::new(Tone::Many, "plan", if k == 0 { number } else { format!("revised: {number}") });
    let shown = Shown::Line(ShownLine { repairs: replied.repairs.clone(), with_reasons: k > 0, ..line });
    Some(Notice { shown, parts: parts(&steps), ..notice })
}

fn step_notice(replied: &Replied) -> Notice<'_> {
    let (call, answer) = (replied.reading.call(), replied.reading.text().map(Payload::text));
    let nothing = serde_json::Map::new();
    let notice = Notice::new("plan-step")
        .with("tool", call.map(|(tool, _)| tool))
        .with("arguments", call.map_or(&nothing, |(_, arguments)| arguments))
        .with("content", answer)
        .with("surprising", StepAside::of(&replied.reading).surprising);
    let result = ShownLine::new(Tone::Good, "result", answer.unwrap_or_default());
    let shown = if call.is_some() { Shown::Call } else { Shown::Line(result) };
    // A step without a tool is its own observation.
    Notice {
        spoken: answer.map(|answer| Spoken::Observation(answer.into())),
        calls: call.into_iter().collect(),
        shown,
        ..notice
    }
}

fn parts(steps: &[PlannedStep]) -> Vec<Part> {
    let part = |step: &PlannedStep| {
        let after: Vec<_> = step.depends_on.iter().map(u32::to_string).collect();
        let after = if after.is_empty() { String::new() } else { format!("after {}", after.join(", ")) };
        let aside: Vec<_> = [step.tool_hint.clone(), after].into_iter().filter(|words| !words.is_empty()).collect();
        Part { goal: step.goal.clone(), aside: aside.join(", ") }
    };
    steps.iter().map(part).collect()
}
