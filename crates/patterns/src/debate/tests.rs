//! Each test folds records and reads the orders: no runtime, no clock.

use super::*;
use crate::fixture::{Fixture, asked, question, settings, turn};
use trellis_domain::Timestamp;
use trellis_domain::decision::DecisionKind;
use trellis_domain::fan_out::{FannedOut, JoinCause, Joined};
use trellis_domain::limits::SomeLimits;
use trellis_domain::record::{Accepted, Body, Record};

const ITEMS: [(&str, &str, &str); 2] = [("agent-pattern", "debate", "{}"), ("agent-pattern", "react", "{}")];
const SIDES: &str =
    r#"{"stances": [{"stance": "buy", "brief": "Own it."}, {"stance": "rent", "brief": "Stay free."}]}"#;
const VERDICT: &str = "Rent, for now [finding 3].\n\n## Agreement\n\n- The hall is needed.\n- Debt is a risk.\n\n\
                       ## Dissent\n\n- When to buy.\n\n## Confidence\n\n- [finding 3] confidence: medium (one voice)";

/// A debate, and the records of its voices.
struct Hall(Fixture, Vec<Record>);

impl Hall {
    fn new() -> Self {
        Self::limited(SomeLimits::default())
    }

    fn limited(limits: SomeLimits) -> Self {
        Self::about("Buy the hall?", &ITEMS, limits)
    }

    fn about(about: &str, items: &[(&str, &str, &str)], limits: SomeLimits) -> Self {
        let accepted = Accepted { pattern: Some(Debate::NAME.into()), limits, ..question(about) };
        Self(Fixture::routed(settings(items), accepted), Vec::new())
    }

    fn orders(&self, turn_of: DebateTurn) -> Vec<Order> {
        Debate.decide(&self.0.session, &turn(turn_of.name()))
    }

    fn says(&mut self, turn_of: DebateTurn, text: &str) -> &mut Self {
        let orders = self.orders(turn_of);
        self.0.reply(&orders, text);
        self
    }

    #[track_caller]
    fn sent_out(&self, turn_of: DebateTurn) -> FannedOut {
        match self.orders(turn_of).pop() {
            Some(Order::FanOut(fan_out)) => *fan_out,
            other => panic!("nobody is sent out: {other:?}"),
        }
    }

    /// Records the round that follows, and a join in which every voice said this; nothing means that it broke.
    fn round(&mut self, turn_of: DebateTurn, said: &[&str]) -> &mut Self {
        let fan_out = self.sent_out(turn_of);
        let (round, correlation) = (fan_out.round, fan_out.correlation.clone());
        self.0.record(Name::fan_out(round), Body::FannedOut(fan_out.clone()));
        let mut members = Vec::new();
        for (place, said) in said.iter().enumerate() {
            let said = if said.is_empty() { Err("it broke") } else { Ok(*said) };
            let (member, records) = Fixture::heard(&self.0.session, &fan_out, place, said);
            members.push(member);
            self.1.extend(records);
        }
        let joined = Joined { round, correlation, cause: JoinCause::AllEnded, members, outage_ms: 0 };
        self.0.record(Name::join(round), Body::Joined(joined));
        self
    }

    /// All records, with this end.
    fn ended(mut self, ending: Ending) -> Vec<Record> {
        let ended = ending.into_ended(&self.0.session, Timestamp::from_micros(0));
        self.0.record(Name::end(), Body::from(ended));
        self.0.records().into_iter().chain(self.1).collect()
    }

    fn ending(&self) -> Ending {
        match self.orders(DebateTurn::Judge).pop() {
            Some(Order::End(ending)) => ending,
            other => panic!("it does not end: {other:?}"),
        }
    }
}

/// A whole debate of three rounds, in which a voice breaks, and one that is cancelled at its beginning.
pub(super) fn samples() -> Vec<Vec<Record>> {
    let mut whole = Hall::new();
    whole.says(DebateTurn::Stances, "hm").says(DebateTurn::Stances, SIDES).round(DebateTurn::Stances, &["a", "b"]);
    whole.round(DebateTurn::Moderate(1), &["c", "d"]);
    whole.says(DebateTurn::Moderate(2), r#"{"decision": "again", "reason": "open"}"#);
    whole.round(DebateTurn::Moderate(2), &["e", ""]).says(DebateTurn::Judge, VERDICT);
    let ending = whole.ending();
    let mut early = Hall::new();
    early.says(DebateTurn::Stances, "hm");
    vec![whole.ended(ending), early.ended(Ending::failed(Termination::Cancelled, "enough"))]
}

#[test]
fn every_side_is_an_agent_that_knows_of_no_other() {
    let mut hall = Hall::new();
    assert_eq!(asked(&hall.orders(DebateTurn::Stances)).1.id, "debate-stances");
    hall.says(DebateTurn::Stances, SIDES);
    let sent_out = hall.sent_out(DebateTurn::Stances);
    let goals: Vec<_> = sent_out.goals.iter().map(|goal| goal.goal.as_str()).collect();
    assert_eq!(goals, ["buy: Buy the hall?", "rent: Buy the hall?"]);
    assert!(sent_out.goals[0].context.contains("Own it.") && !sent_out.goals[0].context.contains("Stay free."));
}

#[test]
fn the_first_rebuttal_is_a_rule_and_shows_what_the_others_said() {
    let mut hall = Hall::new();
    hall.says(DebateTurn::Stances, SIDES).round(DebateTurn::Stances, &["Rent is lost.", "Debt is heavy."]);
    assert_eq!(Debate.after_join(&hall.0.session, 1), DebateTurn::Moderate(1).name());
    let second = hall.sent_out(DebateTurn::Moderate(1));
    assert_eq!((second.round, second.goals[1].index), (2, 3), "numbers are never used again");
    assert!(second.goals[0].context.contains("[rent]\nDebt is heavy."), "{}", second.goals[0].context);
    assert!(second.goals[0].context.contains("What you said before:\n\nRent is lost."));
}

#[test]
fn a_voice_that_was_not_heard_is_told_as_such() {
    let mut hall = Hall::new();
    hall.says(DebateTurn::Stances, SIDES).round(DebateTurn::Stances, &["Rent is lost.", ""]);
    let second = hall.sent_out(DebateTurn::Moderate(1));
    assert!(second.goals[0].context.contains("[rent]\n(nothing: this voice was not heard)"));
}

#[test]
fn another_round_is_asked_for_and_bounded() {
    let mut hall = Hall::new();
    hall.says(DebateTurn::Stances, SIDES).round(DebateTurn::Stances, &["a", "b"]);
    hall.round(DebateTurn::Moderate(1), &["c", "d"]);
    assert_eq!(Debate.after_join(&hall.0.session, 2), DebateTurn::Moderate(2).name());
    let orders = hall.orders(DebateTurn::Moderate(2));
    let (_, prompt) = asked(&orders);
    assert_eq!(
        (prompt.id, prompt.offered[0].options.as_slice()),
        ("debate-moderate", &["answer".to_owned(), "again".to_owned()][..])
    );
    assert_eq!(prompt.variables["positions"][1]["result"], "d");
    hall.says(DebateTurn::Moderate(2), r#"{"decision": "again", "reason": "open"}"#);
    assert_eq!(hall.sent_out(DebateTurn::Moderate(2)).round, 3);
    hall.round(DebateTurn::Moderate(2), &["e", "f"]);
    assert_eq!(Debate.after_join(&hall.0.session, 3), Name::synthesis(), "three rounds are the limit");
    let mut short = Hall::limited(SomeLimits { max_rounds: Some(1), ..SomeLimits::default() });
    short.says(DebateTurn::Stances, SIDES).round(DebateTurn::Stances, &["a", "b"]);
    assert_eq!(Debate.after_join(&short.0.session, 1), Name::synthesis());
}

#[test]
fn a_moderator_that_says_enough_or_nothing_leads_to_the_judge() {
    for replies in [vec![r#"{"decision": "answer"}"#], vec!["hm", "hm"]] {
        let mut hall = Hall::new();
        hall.says(DebateTurn::Stances, SIDES).round(DebateTurn::Stances, &["a", "b"]);
        hall.round(DebateTurn::Moderate(1), &["c", "d"]);
        for reply in replies {
            hall.says(DebateTurn::Moderate(2), reply);
        }
        assert_eq!(hall.orders(DebateTurn::Moderate(2)), [Order::Open(Name::synthesis())]);
    }
}

#[test]
fn the_verdict_says_what_is_agreed_on_and_what_is_not() {
    let mut hall = Hall::new();
    hall.says(DebateTurn::Stances, SIDES).round(DebateTurn::Stances, &["a", "b"]);
    hall.round(DebateTurn::Moderate(1), &["c", "d"]);
    hall.says(DebateTurn::Judge, "Rent.");
    let orders = hall.orders(DebateTurn::Judge);
    let (name, prompt) = asked(&orders);
    assert_eq!(name.as_str(), "synthesis/retry");
    assert!(prompt.variables["problem"].as_str().unwrap().contains("Agreement"));
    hall.says(DebateTurn::Judge, VERDICT);
    let ending = hall.ending();
    assert_eq!((ending.reason, ending.answer.as_str()), (Termination::SubagentsComplete, VERDICT));
    let replied = hall.0.session.last_replied(&Name::synthesis()).unwrap();
    let Reading::Answered { value, .. } = &replied.reading else { panic!("{replied:?}") };
    let expected =
        serde_json::json!({"agreement": ["The hall is needed.", "Debt is a risk."], "dissent": ["When to buy."]});
    assert_eq!(*value, expected);
    assert_eq!(replied.citations[0].index, 3);
    // Asked for once is enough: a verdict without the sections is better than none.
    let mut plain = Hall::new();
    plain.says(DebateTurn::Stances, SIDES).round(DebateTurn::Stances, &["a", ""]);
    plain.says(DebateTurn::Judge, "Rent.").says(DebateTurn::Judge, "Rent.");
    let ending = plain.ending();
    assert_eq!((ending.reason, ending.answer.as_str()), (Termination::SubagentsPartial, "Rent."));
    assert_eq!(ending.missing, [1]);
}

#[test]
fn a_long_question_is_told_to_each_side_once_and_to_the_judge_once() {
    let long = format!("Buy the hall? {}", "It is old. ".repeat(100));
    let mut hall = Hall::about(&long, &ITEMS, SomeLimits::default());
    hall.says(DebateTurn::Stances, SIDES);
    for turn_of in [DebateTurn::Stances, DebateTurn::Moderate(1)] {
        for goal in hall.sent_out(turn_of).goals {
            assert!(goal.goal.chars().count() < 240, "{}", goal.goal);
            assert_eq!(format!("{} {}", goal.goal, goal.context).matches(&long).count(), 1);
        }
        hall.round(turn_of, &["a", ""]);
    }
    let orders = hall.orders(DebateTurn::Judge);
    let (_, prompt) = asked(&orders);
    assert_eq!(prompt.variables["statements"][1]["who"], "buy, round 2");
    assert_eq!(prompt.variables["missing"][0]["who"], "rent, round 1");
    assert_eq!(serde_json::json!(prompt.variables).to_string().matches("It is old. It is old.").count(), 50);
}

#[test]
fn a_side_never_debates_unless_nothing_else_is_said() {
    let patterns_of = |items: &[(&str, &str, &str)]| {
        let mut hall = Hall::about("Buy the hall?", items, SomeLimits::default());
        hall.says(DebateTurn::Stances, SIDES);
        let goals = hall.sent_out(DebateTurn::Stances).goals;
        goals.into_iter().map(|goal| goal.pattern).collect::<Vec<_>>()
    };
    let (plan, supervisor) = (("agent-pattern", "plan-then-execute", "{}"), ("agent-pattern", "supervisor", "{}"));
    assert_eq!(patterns_of(&ITEMS[..1]), ["react", "react"], "it stands in for everything");
    assert_eq!(patterns_of(&[ITEMS[0], plan, supervisor]), ["plan-then-execute", "plan-then-execute"]);
    assert_eq!(patterns_of(&[ITEMS[0], supervisor]), ["supervisor", "supervisor"]);
}

#[test]
fn one_side_at_a_time_is_no_debate() {
    let hall = Hall::limited(SomeLimits { max_siblings: Some(1), ..SomeLimits::default() });
    let orders = hall.orders(DebateTurn::Stances);
    let [Order::End(ending)] = &orders[..] else { panic!("{orders:?}") };
    assert_eq!(ending.reason, Termination::Limit);
    assert!(ending.error.as_ref().unwrap().contains("raise max-siblings"), "{ending:?}");
}

#[test]
fn a_side_that_the_limit_left_out_is_missing_in_the_answer() {
    let mut hall = Hall::limited(SomeLimits { max_siblings: Some(2), ..SomeLimits::default() });
    hall.says(DebateTurn::Stances, r#"["a", "b", "c"]"#).round(DebateTurn::Stances, &["a", "b"]);
    hall.round(DebateTurn::Moderate(1), &["c", "d"]).says(DebateTurn::Judge, VERDICT);
    assert_eq!(hall.ending().reason, Termination::SubagentsPartial);
}

#[test]
fn who_decided_on_another_round_is_always_on_record() {
    let round_of = |decisions: &[Decision]| {
        let found = decisions.iter().find(|decision| decision.kind == DecisionKind::Round);
        found.map(|decision| (decision.chosen[0].clone(), decision.decided_by))
    };
    let asked_of = |hall: &Hall| {
        let orders = hall.orders(DebateTurn::Judge);
        round_of(&asked(&orders).1.offered)
    };
    let mut hall = Hall::new();
    hall.says(DebateTurn::Stances, SIDES).round(DebateTurn::Stances, &["a", "b"]);
    let second = hall.sent_out(DebateTurn::Moderate(1));
    assert_eq!(round_of(&second.decisions), Some(("again".to_owned(), DecidedBy::Rule)));
    hall.round(DebateTurn::Moderate(1), &["c", "d"]);
    hall.says(DebateTurn::Moderate(2), "hm").says(DebateTurn::Moderate(2), "hm");
    assert_eq!(asked_of(&hall), Some(("answer".to_owned(), DecidedBy::Fallback)));
    let mut enough = Hall::new();
    enough.says(DebateTurn::Stances, SIDES).round(DebateTurn::Stances, &["a", "b"]);
    enough.round(DebateTurn::Moderate(1), &["c", "d"]).says(DebateTurn::Moderate(2), r#"{"decision": "answer"}"#);
    assert_eq!(asked_of(&enough), None, "the model's reply says it");
    let mut short = Hall::limited(SomeLimits { max_rounds: Some(1), ..SomeLimits::default() });
    short.says(DebateTurn::Stances, SIDES).round(DebateTurn::Stances, &["a", "b"]);
    assert_eq!(asked_of(&short), Some(("answer".to_owned(), DecidedBy::Rule)));
}

#[test]
fn the_moderator_is_shown_as_much_as_the_sides_are() {
    let mut hall = Hall::new();
    let long = "x".repeat(20_000);
    hall.says(DebateTurn::Stances, SIDES).round(DebateTurn::Stances, &["a", "b"]);
    hall.round(DebateTurn::Moderate(1), &[&long, "d"]);
    let orders = hall.orders(DebateTurn::Moderate(2));
    let shown = asked(&orders).1.variables["positions"][0]["result"].as_str().unwrap().to_owned();
    assert!(shown.len() < 9_000 && shown.contains("[cut: "), "{}", shown.len());
}

#[test]
fn a_stance_counts_once_however_it_is_written() {
    let mut hall = Hall::new();
    hall.says(DebateTurn::Stances, r#"["Über", "against", "über", "AGAINST"]"#);
    let goals = hall.sent_out(DebateTurn::Stances).goals;
    assert_eq!(goals.iter().map(|goal| goal.goal.as_str()).collect::<Vec<_>>().len(), 2, "{goals:?}");
}

#[test]
fn stances_that_cannot_be_had_are_for_and_against() {
    let mut hall = Hall::new();
    hall.says(DebateTurn::Stances, "hm").says(DebateTurn::Stances, r#"{"stances": ["only one"]}"#);
    let sent_out = hall.sent_out(DebateTurn::Stances);
    let goals: Vec<_> = sent_out.goals.iter().map(|goal| goal.goal.as_str()).collect();
    assert_eq!(goals, ["for: Buy the hall?", "against: Buy the hall?"]);
    let mut many = Hall::limited(SomeLimits { max_siblings: Some(2), ..SomeLimits::default() });
    many.says(DebateTurn::Stances, r#"["a", "b", "c"]"#);
    assert_eq!(many.sent_out(DebateTurn::Stances).goals.len(), 2);
    assert_eq!(many.0.session.left_out(), ["3 stances were named; the limit is 2, the rest was left out"]);
    let mut dead = Hall::new();
    let orders = dead.orders(DebateTurn::Stances);
    dead.0.fail(&orders, "no model");
    assert_eq!(dead.orders(DebateTurn::Stances), [failed("no model")]);
}

#[test]
fn the_trace_shows_the_rounds_what_was_decided_between_them_and_the_verdict() {
    let trace = trellis_provenance::trace(&crate::project(&samples()[0]));
    let hall = trace.sessions.iter().find(|session| session.session == "S").unwrap();
    let ids = hall.steps.iter().map(|step| step.id().rsplit("agent:S/").next().unwrap().to_owned());
    let expected = [
        "pattern-decision",
        "decompose",
        "finding/0",
        "finding/1",
        "decompose/2",
        "finding/2",
        "finding/3",
        "moderate/2",
        "decompose/3",
        "finding/4",
        "finding/5",
        "verdict",
        "synthesis",
    ];
    assert_eq!(ids.collect::<Vec<_>>(), expected);
}
