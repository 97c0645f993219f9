//! Random plans: steps that answer, call, fail or stay open; revisions; an end at any moment.

use crate::plan::PlanNames;
use crate::plan::{PlanDecision, PlannedStep};
use crate::projector::tests::fixture::{
    Script, ending, failure, planned, reply, result, revision, routed, routing, step_answer, step_call, unreadable,
};
use crate::synthesis::SynthesisName;
use proptest::prelude::*;
use trellis_domain::reading::Citation;
use trellis_domain::record::{Body, Ended, Name, Reading, Record, Replied};
use trellis_domain::run::Termination;

#[derive(Debug, Clone, Copy)]
enum Way {
    Answers,
    Calls,
    Fails,
    /// The first reply cannot be used.
    AsksAgain,
    /// No reply can be used.
    Unreadable,
}

/// What happens between two plans.
#[derive(Debug, Clone)]
struct Leg {
    ways: Vec<Way>,
    /// How many more steps were planned, but not begun.
    more: usize,
    /// What the planner says then: a new plan, or that this one stays.
    revises: bool,
    asked_twice: bool,
}

#[derive(Debug, Clone, Copy)]
enum End {
    Answer,
    /// Cancelled while a step is at work; what comes back is late.
    Cancelled {
        replied: bool,
    },
    NotYet,
}

#[derive(Debug, Clone)]
pub(super) struct PlanCourse {
    text: String,
    legs: Vec<Leg>,
    unplanned: bool,
    end: End,
}

pub(super) fn plan_course() -> impl Strategy<Value = PlanCourse> {
    let way = prop_oneof![
        Just(Way::Answers),
        Just(Way::Calls),
        Just(Way::Fails),
        Just(Way::AsksAgain),
        Just(Way::Unreadable)
    ];
    let leg = (prop::collection::vec(way, 1..3), 0..2usize, any::<bool>(), any::<bool>())
        .prop_map(|(ways, more, revises, asked_twice)| Leg { ways, more, revises, asked_twice });
    let end = prop_oneof![
        2 => Just(End::Answer),
        1 => any::<bool>().prop_map(|replied| End::Cancelled { replied }),
        1 => Just(End::NotYet)
    ];
    (".{0,8}", prop::collection::vec(leg, 1..4), prop::bool::weighted(0.1), end)
        .prop_map(|(text, legs, unplanned, end)| PlanCourse { text, legs, unplanned, end })
}

pub(super) fn any_plan_run() -> impl Strategy<Value = Vec<Record>> {
    (plan_course(), any::<bool>()).prop_map(|(course, talks)| {
        let mut script = Script::new("s-2");
        script.accepted(&course.text, talks.then_some("talk"));
        let mut decisions = routing();
        decisions[1].options.push("plan-then-execute".to_owned());
        decisions[1].chosen = vec!["plan-then-execute".to_owned()];
        script.push(Name::pattern_decision(), Body::Routed(routed("plan-then-execute", decisions)));
        course.play(&mut script);
        script.records
    })
}

impl PlanCourse {
    pub(super) fn ending(self) -> Self {
        let end = if matches!(self.end, End::NotYet) { End::Answer } else { self.end };
        Self { end, ..self }
    }

    pub(super) fn play(&self, script: &mut Script) {
        let (mut next, mut finished, mut skipped) = (0, Vec::new(), Vec::new());
        if self.unplanned {
            script.said(Name::plan(0), unreadable(&self.text)).said(Name::plan(0).retry(), unreadable(""));
            self.take(script, 0, Way::Calls);
            (next, finished) = (1, vec![0]);
        } else {
            let mut fresh = true;
            for (k, leg) in (0..).zip(&self.legs) {
                let number = u32::try_from(leg.ways.len() + leg.more).unwrap();
                let steps = (next..next + number).map(|i| planned(&format!("{} {i}", self.text), &finished)).collect();
                self.plan(script, k, fresh, leg, steps);
                if !(fresh || leg.revises) {
                    continue;
                }
                skipped.clear();
                for way in &leg.ways {
                    self.take(script, next, *way);
                    finished.push(next);
                    next += 1;
                }
                let more = u32::try_from(leg.more).unwrap();
                skipped.extend(next..next + more);
                next += more;
                fresh = false;
            }
        }
        self.finish(script, next, &finished, skipped);
    }

    fn plan(&self, script: &mut Script, k: u32, fresh: bool, leg: &Leg, steps: Vec<PlannedStep>) {
        let replied = match (fresh, leg.revises) {
            (true, _) => reply(&self.text, Reading::decided(PlanDecision { steps: Some(steps) })),
            (false, true) => revision(Some(steps), &self.text),
            (false, false) => revision(None, &self.text),
        };
        if leg.asked_twice {
            script.said(Name::plan(k), unreadable("What?")).said(Name::plan(k).retry(), replied);
        } else {
            script.said(Name::plan(k), replied);
        }
    }

    fn take(&self, script: &mut Script, i: u32, way: Way) {
        let (step, again) = (Name::step(i), Name::step(i).retry());
        let observed = match way {
            Way::Answers => {
                script.said(step, step_answer(&self.text, &self.text));
                return;
            }
            Way::AsksAgain => {
                script.said(step, unreadable(&self.text)).said(again, step_answer("Now.", &self.text));
                return;
            }
            Way::Calls => {
                script.said(step, step_call(&self.text, "weather"));
                result(&self.text)
            }
            Way::Fails => {
                script.said(step, step_call("", "knowledge-query"));
                failure(&self.text)
            }
            Way::Unreadable => {
                script.said(step, unreadable("")).said(again, unreadable(""));
                failure("neither tool nor answer")
            }
        };
        script.push(Name::step_result(i), Body::Observed(observed));
    }

    fn finish(&self, script: &mut Script, next: u32, finished: &[u32], skipped: Vec<u32>) {
        let late = |header: &mut trellis_domain::record::Header| header.late = true;
        match self.end {
            End::Answer => {
                let cite = |index: &u32| Citation { index: *index, confidence: Some(self.text.clone()) };
                let citations = finished.iter().take(2).map(cite).collect();
                let answer = reply(&self.text, Reading::answered(self.text.as_str()));
                script.said(Name::synthesis(), Replied { citations, ..answer });
                let ended = ending(Termination::PlanPartial, &self.text, None);
                script.push(Name::end(), Body::from(Ended { missing: skipped, ..ended }));
            }
            End::Cancelled { replied } => {
                if replied {
                    script.said(Name::step(next), step_call(&self.text, "weather"));
                }
                script.push(Name::end(), Body::from(ending(Termination::Cancelled, "", None)));
                if replied {
                    script.push(Name::step_result(next), Body::Observed(result(&self.text))).header(late);
                } else {
                    script.said(Name::step(next), step_answer(&self.text, &self.text)).header(late);
                }
            }
            End::NotYet => {}
        }
    }
}
