//! Random supervisors: rounds of subagents that follow any course, an end at any moment.

use super::plan::{PlanCourse, plan_course};
use super::react::{Course, course};
use crate::fan_out::GoalDraft;
use crate::projector::tests::fixture::{Script, Team, choice, ending, reply, routed, unreadable};
use crate::supervisor::Goals;
use crate::supervisor::TeamNames;
use crate::synthesis::SynthesisName;
use proptest::prelude::*;
use trellis_domain::SessionId;
use trellis_domain::decision::DecisionKind;
use trellis_domain::fan_out::JoinCause;
use trellis_domain::reading::Citation;
use trellis_domain::record::{Body, Ended, Name, Reading, Record, Replied};
use trellis_domain::run::Termination;

#[derive(Debug, Clone)]
enum Below {
    React(Course),
    Plan(PlanCourse),
}

impl Below {
    fn pattern(&self) -> &'static str {
        match self {
            Self::React(_) => "react",
            Self::Plan(_) => "plan-then-execute",
        }
    }

    fn play(&self, script: &mut Script) {
        match self {
            Self::React(course) => course.play(script),
            Self::Plan(course) => course.play(script),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    Answer,
    /// Cancelled after the reply that asks for the next round.
    CancelledBeforeRound,
    /// Cancelled while subagents are at work.
    CancelledInRound,
    NotYet,
}

pub(super) fn any_supervisor_run() -> impl Strategy<Value = Vec<Record>> {
    let below = prop_oneof![
        2 => course().prop_map(|course| Below::React(course.ending())),
        1 => plan_course().prop_map(|course| Below::Plan(course.ending()))
    ];
    let rounds = prop::collection::vec(prop::collection::vec(below, 1..3), 1..3);
    let end = prop_oneof![
        3 => Just(End::Answer),
        1 => Just(End::CancelledBeforeRound),
        1 => Just(End::CancelledInRound),
        1 => Just(End::NotYet)
    ];
    (".{1,8}", rounds, end, any::<bool>()).prop_map(|(text, rounds, end, talks)| run(&text, &rounds, end, talks))
}

fn run(text: &str, rounds: &[Vec<Below>], end: End, talks: bool) -> Vec<Record> {
    let boss = SessionId::new("s-3").unwrap();
    let conversation = talks.then_some("talk");
    let mut script = Script::new(boss.as_str());
    let pattern = choice(DecisionKind::Pattern, &["supervisor", "react"], "supervisor", text);
    script.accepted(text, conversation);
    script.push(Name::pattern_decision(), Body::Routed(routed("supervisor", vec![pattern])));
    let mut first = 0;
    for (round, below) in (1..).zip(rounds) {
        let goals: Vec<_> = below.iter().map(|below| (text, below.pattern())).collect();
        let team = Team::new(&boss, round, first, &goals);
        first += u32::try_from(goals.len()).unwrap();
        ask(&mut script, &team, round);
        let is_last = round as usize == rounds.len();
        if is_last && end == End::CancelledBeforeRound {
            break;
        }
        team.begin(&mut script, conversation);
        if is_last && end == End::CancelledInRound {
            for goal in &team.fan_out.goals {
                script.enter(&goal.session).ended(ending(Termination::Cancelled, "", None));
            }
            break;
        }
        for (goal, below) in team.fan_out.goals.iter().zip(below) {
            below.play(script.enter(&goal.session));
        }
        team.join(&mut script, JoinCause::AllEnded);
    }
    finish(script.enter(&boss), text, end, first);
    script.records
}

/// The reply that a round follows from: of a decomposition the first, of a review the later ones.
fn ask(script: &mut Script, team: &Team, round: u32) {
    let goals = team.fan_out.goals.iter();
    let goals = goals.map(|goal| GoalDraft { goal: goal.goal.clone(), ..GoalDraft::default() }).collect();
    let mut decision = team.fan_out.decisions.clone();
    script.enter(&team.supervisor);
    if round == 1 {
        let reading = Reading::decided(Goals { goals: Some(goals) });
        script.said(Name::decompose(), unreadable("What?"));
        script.said(Name::decompose().retry(), Replied { decision, ..reply("Divide.", reading) });
    } else {
        decision.insert(0, choice(DecisionKind::Round, &["answer", "again"], "again", "More."));
        let reading = Reading::decided(Goals { goals: Some(goals) });
        script.said(Name::review(round - 1), Replied { decision, ..reply("Judge.", reading) });
    }
}

fn finish(script: &mut Script, text: &str, end: End, findings: u32) {
    match end {
        End::Answer => {
            let citations = (0..findings).map(|index| Citation { index, confidence: None }).collect();
            let answer = reply("", Reading::answered(text));
            script.said(Name::synthesis(), Replied { citations, ..answer });
            let ended = ending(Termination::SubagentsPartial, text, None);
            script.push(Name::end(), Body::from(Ended { missing: vec![findings - 1], ..ended }));
        }
        End::CancelledBeforeRound | End::CancelledInRound => {
            script.ended(ending(Termination::Cancelled, "", None));
        }
        End::NotYet => {}
    }
}
