//! A small shell for tests: it keeps the commit contract, lets turns overlap in any order, handles turns twice and
//! loses workers, and checks at each commit what must never happen.

use super::fixture_tests::Planning;
use super::script_tests::Script;
use crate::contract::{Effect, Ending, Order, PromptOrder};
use crate::plan::DIRECT_STEP;
use crate::plan::PlanDecision;
use crate::plan::PlanNames;
use crate::plan::PlanTurn;
use crate::plan::PlannedStep;
use crate::session::Session;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use trellis_domain::record::{Body, Name};

/// Numbers that look random and are the same for the same seed.
#[derive(Debug)]
pub(super) struct Chance(pub(super) u64);

impl Chance {
    /// A number below `n`.
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % n
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// One worker's handling of one turn.
#[derive(Debug)]
struct Handling {
    turn: Name,
    /// The session as it was loaded.
    loaded: Planning,
    pending: Option<(Name, Body)>,
}

impl Handling {
    /// The session with the outcome that is not committed yet.
    fn view(&self) -> Planning {
        let mut view = self.loaded.clone();
        if let Some((name, body)) = &self.pending {
            view.record(name.clone(), body.clone());
        }
        view
    }
}

/// A run of one session to its end.
#[derive(Debug)]
pub(super) struct Shell<'s> {
    script: &'s Script,
    chance: Chance,
    journal: Planning,
    open: BTreeSet<Name>,
    pub(super) opened: Vec<Name>,
    /// What the model was asked, by the record of the reply.
    pub(super) asked: BTreeMap<Name, Map<String, Value>>,
    pub(super) endings: Vec<Ending>,
    /// With which orders each turn was closed.
    closings: Vec<(Name, Vec<Order>)>,
    crashes_left: u32,
}

impl<'s> Shell<'s> {
    pub(super) fn run(script: &'s Script, seed: u64, crashes: u32) -> Self {
        let mut shell = Self {
            script,
            chance: Chance(seed),
            journal: Planning::with(script.limits.clone()),
            open: BTreeSet::from([Name::plan(0)]),
            opened: vec![Name::plan(0)],
            asked: BTreeMap::new(),
            endings: Vec::new(),
            closings: Vec::new(),
            crashes_left: crashes,
        };
        shell.play();
        shell
    }

    pub(super) fn session(&self) -> &Session {
        self.journal.session()
    }

    /// Until no turn is open: takes a turn, or lets a worker do its next act, or loses one.
    fn play(&mut self) {
        let mut workers: Vec<Handling> = Vec::new();
        for _ in 0..100_000 {
            if self.open.is_empty() {
                return;
            }
            let turn = self.open.iter().nth(self.chance.below(self.open.len())).unwrap().clone();
            let is_taken = workers.iter().any(|worker| worker.turn == turn);
            if !is_taken || self.crashes_left > 0 && self.chance.one_in(20) {
                workers.push(Handling { turn, loaded: self.journal.clone(), pending: None });
                continue;
            }
            let mut worker = workers.swap_remove(self.chance.below(workers.len()));
            if self.crashes_left > 0 && self.chance.one_in(10) {
                self.crashes_left -= 1;
            } else if !self.act(&mut worker) {
                workers.push(worker);
            }
        }
        panic!("the session does not end: {:?}", self.open);
    }

    /// One act of a worker. True when it is done with its turn.
    fn act(&mut self, worker: &mut Handling) -> bool {
        let view = worker.view();
        if view.session().ended().is_some() {
            return self.close(worker, &[]);
        }
        let orders = view.decide(&worker.turn);
        match orders.as_slice() {
            [Order::Perform(name, effect)] => {
                if worker.pending.is_some() {
                    self.commit_pending(worker);
                } else {
                    worker.pending = Some((name.clone(), self.perform(name, effect)));
                }
                false
            }
            // An outcome is committed before the end, and may be committed before any other closing.
            orders if worker.pending.is_some() && (matches!(orders, [Order::End(_)]) || self.chance.one_in(4)) => {
                self.commit_pending(worker);
                false
            }
            orders => {
                assert!(!orders.is_empty(), "{} orders nothing", worker.turn);
                self.close(worker, orders)
            }
        }
    }

    fn perform(&mut self, name: &Name, effect: &Effect) -> Body {
        match effect {
            Effect::AskModel(order) => {
                self.remember(name, order);
                self.script.reply(name, order)
            }
            Effect::CallTool { tool, .. } => self.script.tool(name, tool),
            Effect::Report { error } => Script::told(error),
            Effect::Decline { reason, .. } => panic!("{reason}"),
            Effect::Take { tool, .. } | Effect::Bring { tool, .. } => panic!("nobody told what `{tool}` brought"),
        }
    }

    /// The same question is asked in the same words, however often it has to be asked.
    fn remember(&mut self, name: &Name, order: &PromptOrder) {
        let first = self.asked.entry(name.clone()).or_insert_with(|| order.variables.clone());
        assert_eq!(*first, order.variables, "{name} is asked in other words");
    }

    /// An outcome needs only its name to be free; one that is taken is adopted.
    fn commit_pending(&mut self, worker: &mut Handling) {
        if let Some((name, body)) = worker.pending.take()
            && !self.session().has(&name)
        {
            self.journal.record(name, body);
        }
        worker.loaded = self.journal.clone();
    }

    /// What was decided needs the session to be as it was seen, and the turn to be open.
    fn close(&mut self, worker: &mut Handling, orders: &[Order]) -> bool {
        let is_taken = worker.pending.as_ref().is_some_and(|(name, _)| self.session().has(name));
        let is_stale = worker.loaded.session().seen() != self.session().seen();
        if is_taken || is_stale || !self.open.contains(&worker.turn) {
            worker.loaded = self.journal.clone();
            worker.pending = worker.pending.take().filter(|(name, _)| !self.journal.session().has(name));
            return !self.open.contains(&worker.turn);
        }
        if let Some((name, body)) = worker.pending.take() {
            self.journal.record(name, body);
        }
        self.open.remove(&worker.turn);
        for order in orders {
            match order {
                Order::Close => {}
                Order::Open(turn) => self.open_turn(turn),
                Order::End(ending) => {
                    self.endings.push(ending.clone());
                    let body = Body::from(
                        ending.clone().into_ended(self.journal.session(), trellis_domain::Timestamp::from_micros(0)),
                    );
                    self.journal.record(Name::end(), body);
                }
                Order::Perform(..) | Order::Become(_) | Order::FanOut(_) | Order::Park(_) => {
                    panic!("{order:?} closes no turn")
                }
            }
        }
        if !orders.is_empty() {
            self.closings.push((worker.turn.clone(), orders.to_vec()));
        }
        true
    }

    /// Whether each turn, decided once more from all that is recorded by now, would be closed as it was.
    pub(super) fn is_decided_the_same_again(&self) -> bool {
        self.closings.iter().all(|(turn, orders)| self.journal.decide(turn) == *orders)
    }

    fn open_turn(&mut self, turn: &Name) {
        assert!(!self.opened.contains(turn), "{turn} is opened twice");
        self.opened.push(turn.clone());
        self.open.insert(turn.clone());
        let running = self.open.iter().filter(|turn| self.outcome_of(turn) == Some(Outcome::Open)).count();
        let at_once = self.script.limits.steps_at_once.map_or(8, |most| usize::try_from(most).unwrap());
        assert!(running <= at_once, "{running} steps run at once");
        if let Some(PlanTurn::Step(number)) = PlanTurn::of(turn) {
            for other in &self.steps()[usize::try_from(number).unwrap()].0.depends_on {
                assert_ne!(self.outcome(*other), Outcome::Open, "step {number} is opened before step {other} is done");
            }
        } else {
            assert_eq!(running, 0, "{turn} is opened while steps are running");
        }
    }

    fn outcome_of(&self, turn: &Name) -> Option<Outcome> {
        if let Some(PlanTurn::Step(number)) = PlanTurn::of(turn) { Some(self.outcome(number)) } else { None }
    }

    /// How a step ended, read from its records alone.
    pub(super) fn outcome(&self, number: u32) -> Outcome {
        let name = Name::step(number);
        let replies = [name.clone(), name.retry()].into_iter().filter_map(|name| self.session().replied(&name));
        let answered = replies.into_iter().any(|reply| reply.reading.text().is_some());
        match self.session().observed(&Name::step_result(number)) {
            Some(observed) if observed.error.is_some() => Outcome::Failed,
            Some(_) => Outcome::Completed,
            None if answered => Outcome::Completed,
            None => Outcome::Open,
        }
    }

    /// All steps of all plans with the plan that brought each, read from the plans alone.
    pub(super) fn steps(&self) -> Vec<(PlannedStep, u32)> {
        let mut steps = Vec::new();
        for k in 0..self.opened.len() {
            let k = u32::try_from(k).unwrap();
            let names = [Name::plan(k), Name::plan(k).retry()];
            for reply in names.iter().filter_map(|name| self.session().replied(name)) {
                let new = PlanDecision::of(&reply.reading).and_then(|planning| planning.steps);
                steps.extend(new.into_iter().flatten().map(|step| (step, k)));
            }
            if k == 0 && steps.is_empty() {
                steps.push((PlannedStep { goal: DIRECT_STEP.into(), ..PlannedStep::default() }, 0));
            }
        }
        steps
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Open,
    Completed,
    Failed,
}
