//! Supervisors under test: what they order, and what they make of replies.

use super::*;
use crate::contract::Effect;
use crate::fan_out::child;
use crate::fixture::{Fixture, asked, question, settings, turn};
use crate::react::IterationNames;
use crate::supervisor::TeamNames;
use crate::synthesis::SynthesisName;
use serde_json::json;
use trellis_domain::config::Settings;
use trellis_domain::decision::{Decision, DecisionKind};
use trellis_domain::document::Document;
use trellis_domain::fan_out::Member;
use trellis_domain::fan_out::{FannedOut, JoinCause, Joined};
use trellis_domain::limits::SomeLimits;
use trellis_domain::record::{Accepted, Body, Replied};
use trellis_domain::usage::Usage;
use trellis_domain::{ConversationId, RequestId, Timestamp};

fn configured() -> Settings {
    settings(&[
        ("agent-pattern", "react", r#"{"description":"thinks and acts"}"#),
        ("agent-pattern", "supervisor", "{}"),
        ("agent-pattern", "delphi", "{}"),
        ("agent-task-type", "general", r#"{"framing":"Be thorough.","termination":"Stop at three sources."}"#),
        ("tool", "ledger", r#"{"type":"text-completion","name":"ledger","description":"d","group":["money"]}"#),
        ("tool", "news", r#"{"type":"text-completion","name":"news","description":"d","group":["press"]}"#),
    ])
}

fn supervising() -> Accepted {
    Accepted {
        pattern: Some("supervisor".into()),
        group: Some(vec!["money".into(), "press".into()]),
        ..question("Is X sound?")
    }
}

fn begun() -> Fixture {
    Fixture::routed(configured(), supervising())
}

fn limited(limits: SomeLimits) -> Fixture {
    Fixture::routed(configured(), Accepted { limits, ..supervising() })
}

fn decide(fixture: &Fixture, name: Name) -> Vec<Order> {
    Supervisor.decide(&fixture.session, &turn(name))
}

/// Decides a turn after the model replied so.
#[track_caller]
fn after(fixture: &mut Fixture, name: Name, reply: &str) -> Vec<Order> {
    let orders = decide(fixture, name.clone());
    fixture.reply(&orders, reply);
    decide(fixture, name)
}

#[track_caller]
fn fan_out(orders: Vec<Order>) -> FannedOut {
    match <[Order; 1]>::try_from(orders) {
        Ok([Order::FanOut(fan_out)]) => *fan_out,
        other => panic!("no fan-out: {other:?}"),
    }
}

#[track_caller]
fn end(orders: Vec<Order>) -> Ending {
    match <[Order; 1]>::try_from(orders) {
        Ok([Order::End(ending)]) => ending,
        other => panic!("no end: {other:?}"),
    }
}

fn member(index: u32, reason: Termination, answer: &str) -> Member {
    let session = trellis_domain::SessionId::new("S").unwrap().child(1, index);
    let error = (!reason.is_answer()).then(|| "it broke".to_owned());
    let (goal, answer) = (format!("goal {index}"), Document::stored(answer));
    Member { index, session, goal, reason, answer, error, usage: Usage::default() }
}

fn join(fixture: &mut Fixture, round: u32, members: Vec<Member>) {
    let joined = Joined { round, correlation: format!("c{round}"), cause: JoinCause::AllEnded, members, outage_ms: 0 };
    fixture.record(Name::join(round), Body::Joined(joined));
}

/// A supervisor whose first round is joined.
fn joined(limits: SomeLimits, members: Vec<Member>) -> Fixture {
    let mut fixture = limited(limits);
    let goals: Vec<_> = members.iter().map(|member| member.goal.clone()).collect();
    let fanned_out = fan_out(after(&mut fixture, Name::decompose(), &json!({ "goals": goals }).to_string()));
    fixture.record(Name::fan_out(1), Body::FannedOut(fanned_out));
    join(&mut fixture, 1, members);
    fixture
}

fn of_kind(decisions: &[Decision], kind: DecisionKind) -> Vec<&Decision> {
    decisions.iter().filter(|decision| decision.kind == kind).collect()
}

#[test]
fn the_model_is_told_the_question_its_frame_the_tools_and_what_it_may_choose() {
    let orders = decide(&begun(), Name::decompose());
    let (name, prompt) = asked(&orders);
    assert_eq!((name.as_str(), prompt.id), ("decompose", "supervisor-decompose"));
    let variables = &prompt.variables;
    assert_eq!(variables["question"], "Is X sound?");
    assert_eq!(variables["framing"], "Be thorough.");
    assert_eq!(variables["context"], "Be thorough.\n\nWhen to stop: Stop at three sources.");
    assert_eq!(variables["max_subagents"], 8);
    assert_eq!(variables["groups"], json!(["money", "press"]));
    let names = |list: &str| variables[list].as_array().unwrap().iter().map(|x| x["name"].clone()).collect::<Vec<_>>();
    assert_eq!(names("tools"), ["ledger", "news"]);
    assert_eq!(names("patterns"), ["react", "supervisor"]);
    let patterns = of_kind(&prompt.offered, DecisionKind::SubagentPattern);
    let excluded: Vec<_> = patterns[0].excluded.iter().map(|x| (x.name.as_str(), x.reason.as_str())).collect();
    assert_eq!(excluded, [("delphi", "not implemented")]);
}

#[test]
fn each_goal_has_its_own_pattern_group_and_slice_of_context() {
    let reply = json!({"goals": [
        {"goal": "finances", "pattern": "react", "group": ["money"], "context": "Only the last year."},
        {"goal": "press", "pattern": "supervisor", "group": "press"},
        "everything else",
    ]});
    let mut fixture = begun();
    let fanned_out = fan_out(after(&mut fixture, Name::decompose(), &reply.to_string()));
    let goals: Vec<_> =
        fanned_out.goals.iter().map(|g| (g.goal.as_str(), g.pattern.as_str(), g.group.clone().unwrap())).collect();
    let (money, press) = (vec!["money".into()], vec!["press".into()]);
    let both = vec!["money".into(), "press".into()];
    assert_eq!(
        goals,
        [("finances", "react", money), ("press", "supervisor", press), ("everything else", "react", both)]
    );
    let by: Vec<_> =
        of_kind(&fanned_out.decisions, DecisionKind::SubagentPattern).iter().map(|d| d.decided_by).collect();
    assert_eq!(by, [DecidedBy::Model, DecidedBy::Model, DecidedBy::Rule], "the usual is nobody's choice");
    let (accepted, routed) = child(&fixture.session, &fanned_out, &fanned_out.goals[0]).unwrap();
    assert_eq!(accepted.question.text(), "finances");
    assert_eq!(&*routed.framing, "Be thorough.\n\nOnly the last year.");
    assert_eq!((routed.task_type.as_str(), routed.pattern.as_str()), ("general", "react"));
    assert!(routed.decisions.iter().all(|decision| decision.decided_by == DecidedBy::Supervisor));
}

#[test]
fn a_group_may_be_narrower_than_the_supervisors_but_never_wider() {
    let tool = |name: &str, groups: &str| {
        format!(r#"{{"type":"text-completion","name":"{name}","description":"d","group":[{groups}]}}"#)
    };
    let (ledger, vault, news) = (
        tool("ledger", r#""default","money""#),
        tool("vault", r#""secret""#),
        tool("news", r#""default","press","secret""#),
    );
    let items = settings(&[("tool", "ledger", &ledger), ("tool", "vault", &vault), ("tool", "news", &news)]);
    let mut fixture = Fixture::routed(items, Accepted { group: None, ..supervising() });
    let orders = decide(&fixture, Name::decompose());
    assert_eq!(asked(&orders).1.variables["groups"], json!(["default", "money", "press"]), "`secret` holds more");
    let reply =
        json!({"goals": [{"goal": "a", "group": ["money"]}, {"goal": "b"}, {"goal": "c", "group": ["secret"]}]});
    let fanned_out = fan_out(after(&mut fixture, Name::decompose(), &reply.to_string()));
    let groups: Vec<_> = fanned_out.goals.iter().map(|goal| goal.group.clone()).collect();
    assert_eq!(groups, [Some(vec!["money".into()]), None, None]);
    let chosen: Vec<_> = of_kind(&fanned_out.decisions, DecisionKind::SubagentGroup);
    let chosen: Vec<_> = chosen.iter().map(|decision| (decision.chosen.join(","), decision.decided_by)).collect();
    let inherited = || ("default".to_owned(), DecidedBy::Rule);
    assert_eq!(chosen, [("money".to_owned(), DecidedBy::Model), inherited(), inherited()]);
}

#[test]
fn names_outside_the_sets_are_left_out_and_kept_as_rejected() {
    let reply = json!({"goals": [{"goal": "g", "pattern": "delphi", "group": ["money", "secrets"]}]});
    let fanned_out = fan_out(after(&mut begun(), Name::decompose(), &reply.to_string()));
    let goal = &fanned_out.goals[0];
    assert_eq!((goal.pattern.as_str(), goal.group.clone()), ("react", Some(vec!["money".into()])));
    let rejected =
        |kind| of_kind(&fanned_out.decisions, kind)[0].rejected.as_ref().map(|document| document.text().to_owned());
    assert_eq!(rejected(DecisionKind::SubagentPattern).as_deref(), Some("delphi"));
    assert_eq!(rejected(DecisionKind::SubagentGroup).as_deref(), Some("secrets"));
    for decision in &fanned_out.decisions {
        let inside = |chosen: &String| decision.options.contains(chosen) || decision.kind == DecisionKind::Goals;
        assert!(decision.chosen.iter().all(inside), "{decision:?}");
    }
}

#[test]
fn equal_goals_are_kept_and_told_apart_by_number() {
    let fanned_out = fan_out(after(&mut begun(), Name::decompose(), r#"["same", "same", "same"]"#));
    let numbers: Vec<_> = fanned_out.goals.iter().map(|goal| goal.index).collect();
    assert_eq!(numbers, [0, 1, 2]);
    let sessions: std::collections::BTreeSet<_> = fanned_out.goals.iter().map(|goal| &goal.session).collect();
    assert_eq!(sessions.len(), 3);
}

#[test]
fn more_goals_than_allowed_are_cut_and_it_is_said() {
    let mut fixture = limited(SomeLimits { max_siblings: Some(2), ..SomeLimits::default() });
    let fanned_out = fan_out(after(&mut fixture, Name::decompose(), r#"["a", "b", "c"]"#));
    assert_eq!(fanned_out.goals.len(), 2);
    let Some(Replied { repairs, .. }) = fixture.session.replied(&Name::decompose()) else { panic!("goals") };
    assert_eq!(repairs.as_slice(), ["3 goals were named; the limit is 2, the rest was left out"]);
}

#[test]
fn unusable_goals_are_asked_for_once_more_and_then_the_question_is_the_only_goal() {
    let mut fixture = begun();
    let again = after(&mut fixture, Name::decompose(), "I would rather not.");
    let (name, prompt) = asked(&again);
    assert_eq!(name.as_str(), "decompose/retry");
    assert!(prompt.variables["problem"].as_str().unwrap().starts_with("it is not JSON"));
    fixture.reply(&again, "{\"goals\": []}");
    let fanned_out = fan_out(decide(&fixture, Name::decompose()));
    assert_eq!(fanned_out.goals.len(), 1);
    assert_eq!(fanned_out.goals[0].goal, "Is X sound?");
    assert_eq!(of_kind(&fanned_out.decisions, DecisionKind::Goals)[0].decided_by, DecidedBy::Fallback);
}

#[test]
fn a_dead_model_ends_the_session_with_the_reason() {
    let mut fixture = begun();
    let orders = decide(&fixture, Name::decompose());
    fixture.fail(&orders, "connection refused");
    let ending = end(decide(&fixture, Name::decompose()));
    assert_eq!((ending.reason, ending.error.as_deref()), (Termination::Error, Some("connection refused")));
}

#[test]
fn a_fan_out_keeps_what_its_synthesis_needs_to_be_built_again() {
    let request_id = Some(RequestId::new("request-9").unwrap());
    let accepted = Accepted {
        request_id: request_id.clone(),
        state: "open".into(),
        conversation: Some(ConversationId::new("c").unwrap()),
        ..supervising()
    };
    let mut fixture = Fixture::routed(configured(), accepted);
    let fanned_out = fan_out(after(&mut fixture, Name::decompose(), r#"["a"]"#));
    let resume = &fanned_out.resume;
    assert_eq!((&resume.reply_to, resume.streaming, resume.state.as_str()), (&request_id, true, "open"));
    assert_eq!((&*resume.framing, resume.history), ("Be thorough.", 0));
    assert_eq!(resume.group, supervising().group);
    let (child, _) = child(&fixture.session, &fanned_out, &fanned_out.goals[0]).unwrap();
    assert_eq!(child.conversation, Some(ConversationId::new("c").unwrap()), "subagents belong to the conversation");
    assert_eq!((child.state.as_str(), child.request_id), ("open", request_id));
}

#[test]
fn subagents_stand_below_all_their_ancestors_and_only_so_deep() {
    let mut fixture = limited(SomeLimits { max_depth: Some(2), ..SomeLimits::default() });
    let goals = r#"{"goals": [{"goal": "a", "pattern": "supervisor"}]}"#;
    let first = fan_out(after(&mut fixture, Name::decompose(), goals));
    let mut below = Fixture::subagent(&fixture.session, &first, 0);
    assert_eq!(below.session.depth(), 1);
    let second = fan_out(after(&mut below, Name::decompose(), goals));
    assert_eq!(second.goals[0].pattern, "react", "a supervisor would need a third level");
    let excluded = &of_kind(&second.decisions, DecisionKind::SubagentPattern)[0].excluded;
    let reason = excluded.iter().find(|option| option.name == "supervisor").map(|option| option.reason.as_str());
    assert_eq!(reason, Some("subagents are limited to depth 2"));
    let parent = child(&below.session, &second, &second.goals[0]).unwrap().0.parent.unwrap();
    assert_eq!(parent.ancestors.len(), 2);
    let none = limited(SomeLimits { max_depth: Some(0), ..SomeLimits::default() });
    assert_eq!(end(decide(&none, Name::decompose())).reason, Termination::Limit);
}

#[test]
fn a_deadline_leaves_the_parent_time_for_its_own_synthesis() {
    let limits = SomeLimits { fan_in_timeout_ms: Some(1_000), ..SomeLimits::default() };
    let mut fixture = limited(limits);
    let first =
        fan_out(after(&mut fixture, Name::decompose(), r#"{"goals": [{"goal": "a", "pattern": "supervisor"}]}"#));
    assert_eq!(first.deadline, Timestamp::from_micros(1_000_000));
    let mut below = Fixture::subagent(&fixture.session, &first, 0);
    let second = fan_out(after(&mut below, Name::decompose(), r#"["b"]"#));
    assert_eq!(second.deadline, Timestamp::from_micros(800_000), "80 % of what is left to the parent");
    let mut short = limited(SomeLimits { run_timeout_ms: Some(100), ..SomeLimits::default() });
    let hurried = fan_out(after(&mut short, Name::decompose(), r#"["a"]"#));
    assert_eq!(hurried.deadline, Timestamp::from_micros(80_000), "a run's own time is shared in the same way");
}

#[test]
fn after_a_join_the_findings_are_judged_as_long_as_another_round_is_possible() {
    let found = || vec![member(0, Termination::FinalAnswer, "a")];
    let fixture = joined(SomeLimits::default(), found());
    assert_eq!(Supervisor.after_join(&fixture.session, 1), Name::review(1));
    let last = joined(SomeLimits { max_rounds: Some(1), ..SomeLimits::default() }, found());
    assert_eq!(Supervisor.after_join(&last.session, 1), Name::synthesis());
    let few = joined(SomeLimits { max_iterations: Some(3), ..SomeLimits::default() }, found());
    assert_eq!(Supervisor.after_join(&few.session, 1), Name::synthesis(), "a round takes two iterations");
}

#[test]
fn a_review_may_ask_for_another_round_with_refined_goals() {
    let found = vec![member(0, Termination::FinalAnswer, "a"), member(1, Termination::Error, "")];
    let mut fixture = joined(SomeLimits::default(), found);
    let orders = decide(&fixture, Name::review(1));
    let variables = &asked(&orders).1.variables;
    assert_eq!(variables["results"], json!([{"index": 0, "goal": "goal 0", "status": "completed", "result": "a"}]));
    assert_eq!(variables["missing"], json!([{"index": 1, "goal": "goal 1", "reason": "it broke"}]));
    assert_eq!((&variables["round"], &variables["max_rounds"]), (&json!(1), &json!(3)));
    let reply = r#"{"decision": "again", "reason": "one is missing", "goals": [{"goal": "once more"}]}"#;
    let fanned_out = fan_out(after(&mut fixture, Name::review(1), reply));
    assert_eq!((fanned_out.round, fanned_out.goals[0].index), (2, 2), "numbers are never used again");
    assert_ne!(fanned_out.correlation, fixture.session.fan_out(1).unwrap().correlation);
    let review = fixture.session.replied(&Name::review(1)).unwrap();
    let round = of_kind(&review.decision, DecisionKind::Round)[0];
    assert_eq!((round.chosen.as_slice(), round.options.len()), (["again".to_owned()].as_slice(), 2));
    assert_eq!(round.rationale.as_ref().map(Document::text), Some("one is missing"));
}

#[test]
fn a_judgement_that_cannot_be_had_means_to_answer_and_is_recorded_as_fallback() {
    let mut fixture = joined(SomeLimits::default(), vec![member(0, Termination::FinalAnswer, "a")]);
    let again = after(&mut fixture, Name::review(1), "{\"decision\": \"again\"}");
    let problem = &asked(&again).1.variables["problem"];
    assert_eq!(problem, "another round needs goals; write them, or decide to answer");
    fixture.fail(&again, "overloaded");
    assert_eq!(decide(&fixture, Name::review(1)), [Order::Open(Name::synthesis())]);
    let orders = decide(&fixture, Name::synthesis());
    let round = &asked(&orders).1.offered[0];
    assert_eq!((round.kind, round.decided_by), (DecisionKind::Round, DecidedBy::Fallback));
    assert_eq!(round.chosen, ["answer"]);
}

#[test]
fn the_answer_rests_on_the_frozen_join_and_cites_it() {
    let found = vec![member(0, Termination::FinalAnswer, "sound"), member(1, Termination::Timeout, "")];
    let mut fixture = joined(SomeLimits { max_rounds: Some(1), ..SomeLimits::default() }, found);
    let ending = end(after(&mut fixture, Name::synthesis(), "Sound [finding 0] (confidence: 0.8), [finding 7]."));
    assert_eq!((ending.reason, ending.missing.as_slice()), (Termination::SubagentsPartial, [1].as_slice()));
    let replied = fixture.session.replied(&Name::synthesis()).unwrap();
    let cited: Vec<_> = replied.citations.iter().map(|c| (c.index, c.confidence.as_deref())).collect();
    assert_eq!(cited, [(0, Some("0.8"))], "only findings that exist");
    let round = &replied.decision[0];
    assert_eq!((round.decided_by, round.excluded[0].name.as_str()), (DecidedBy::Rule, "again"));
}

#[test]
fn an_answer_made_of_nothing_but_partial_findings_is_a_partial_one() {
    let once = SomeLimits { max_rounds: Some(1), ..SomeLimits::default() };
    let reason = |found: &[Termination]| {
        let found = found.iter().zip(0..).map(|(reason, index)| member(index, *reason, "a")).collect();
        let mut fixture = joined(once.clone(), found);
        end(after(&mut fixture, Name::synthesis(), "So [finding 0].")).reason
    };
    let (partial, whole) = (Termination::AnswerPartial, Termination::FinalAnswer);
    assert_eq!(reason(&[partial, Termination::PlanPartial]), Termination::SubagentsPartial);
    assert_eq!(reason(&[partial, whole]), Termination::SubagentsComplete);
    let mut older = Fixture::routed(configured(), Accepted { revision: 6, limits: once.clone(), ..supervising() });
    let fanned_out = fan_out(after(&mut older, Name::decompose(), r#"["a"]"#));
    older.record(Name::fan_out(1), Body::FannedOut(fanned_out));
    join(&mut older, 1, vec![member(0, partial, "a")]);
    let ending = end(after(&mut older, Name::synthesis(), "So [finding 0]."));
    assert_eq!(ending.reason, Termination::SubagentsComplete, "older teams end as they did");
}

#[test]
fn findings_without_a_synthesis_are_still_told() {
    let found = vec![member(0, Termination::FinalAnswer, "sound")];
    let mut fixture = joined(SomeLimits { max_rounds: Some(1), ..SomeLimits::default() }, found);
    let orders = decide(&fixture, Name::synthesis());
    fixture.fail(&orders, "overloaded");
    let ending = end(decide(&fixture, Name::synthesis()));
    assert_eq!((ending.reason, ending.error.as_deref()), (Termination::SubagentsPartial, Some("overloaded")));
    assert!(ending.answer.contains("[finding 0] goal 0\nsound"), "{}", ending.answer);
    let mut nothing =
        joined(SomeLimits { max_rounds: Some(1), ..SomeLimits::default() }, vec![member(0, Termination::Error, "")]);
    let orders = decide(&nothing, Name::synthesis());
    nothing.fail(&orders, "overloaded");
    assert_eq!(end(decide(&nothing, Name::synthesis())).reason, Termination::Error);
}

#[test]
fn findings_that_are_too_much_for_the_model_are_shown_in_part() {
    let long = "x".repeat(60_000);
    let found = vec![member(0, Termination::FinalAnswer, &long), member(1, Termination::FinalAnswer, "sound")];
    let mut fixture = joined(SomeLimits { max_rounds: Some(1), ..SomeLimits::default() }, found);
    let shown = |orders: &[Order]| {
        let results = asked(orders).1.variables["results"].as_array().unwrap().clone();
        let length = |result: &serde_json::Value| result["result"].as_str().unwrap().len();
        results.iter().map(length).collect::<Vec<_>>()
    };
    let orders = decide(&fixture, Name::synthesis());
    assert_eq!(shown(&orders), [60_000, 5]);
    fixture.overflow(&orders);
    let again = decide(&fixture, Name::synthesis());
    assert_eq!((asked(&again).0, &asked(&again).1.variables["problem"]), (&Name::synthesis().retry(), &json!(null)));
    let less = shown(&again);
    assert!((10_000..20_000).contains(&less[0]) && less[1] == 5, "{less:?}");
    fixture.fail(&again, "the model did not answer: its context is too small");
    let ending = end(decide(&fixture, Name::synthesis()));
    assert_eq!(ending.reason, Termination::SubagentsPartial);
    assert!(ending.answer.contains("[finding 1] goal 1\nsound"), "what was found is told all the same");
}

#[test]
fn a_turn_that_a_supervisor_does_not_have_ends_the_session() {
    assert_eq!(end(decide(&begun(), Name::iteration(1))).reason, Termination::Error);
    let effects = decide(&begun(), Name::decompose());
    assert!(matches!(effects.as_slice(), [Order::Perform(_, Effect::AskModel(_))]));
}

#[test]
fn goals_that_were_cut_are_told_of_at_the_end() {
    let mut fixture = limited(SomeLimits { max_siblings: Some(1), max_rounds: Some(1), ..SomeLimits::default() });
    let fanned_out = fan_out(after(&mut fixture, Name::decompose(), r#"["a", "b", "c"]"#));
    fixture.record(Name::fan_out(1), Body::FannedOut(fanned_out));
    join(&mut fixture, 1, vec![member(0, Termination::FinalAnswer, "a")]);
    let ending = end(after(&mut fixture, Name::synthesis(), "Only [finding 0]."));
    assert_eq!((ending.reason, ending.missing.as_slice()), (Termination::SubagentsPartial, [].as_slice()));
    let left_out = ending.into_ended(&fixture.session, trellis_domain::Timestamp::from_micros(0)).left_out;
    assert_eq!(left_out, ["3 goals were named; the limit is 1, the rest was left out"]);
}

/// What goes to every subagent lies in memory once.
#[test]
fn subagents_share_their_framing() {
    let mut fixture = begun();
    let goals = r#"{"goals": [{"goal": "a"}, {"goal": "b"}, {"goal": "c", "context": "Look at 2025."}]}"#;
    let fanned_out = fan_out(after(&mut fixture, Name::decompose(), goals));
    let own = &fixture.session.routed().unwrap().framing;
    let framing = |place: usize| child(&fixture.session, &fanned_out, &fanned_out.goals[place]).unwrap().1.framing;
    for framing in [&framing(0), &framing(1), &fanned_out.resume.framing] {
        assert!(std::sync::Arc::ptr_eq(framing, own));
    }
    assert_eq!(&*framing(2), "Be thorough.\n\nLook at 2025.");
}

/// Every prompt of a supervisor is told the steps that its caller brought along.
#[test]
fn a_history_is_shown_to_every_prompt() {
    let step = trellis_domain::message::AgentStep { observation: "X owns Y.".into(), ..Default::default() };
    let limits = SomeLimits { max_rounds: Some(2), ..SomeLimits::default() };
    let mut fixture = Fixture::routed(configured(), Accepted { history: vec![step], limits, ..supervising() });
    let shows = |orders: &[Order]| asked(orders).1.variables["context"].as_str().unwrap().contains("X owns Y.");
    assert!(shows(&decide(&fixture, Name::decompose())));
    let fanned_out = fan_out(after(&mut fixture, Name::decompose(), r#"["a"]"#));
    fixture.record(Name::fan_out(1), Body::FannedOut(fanned_out));
    join(&mut fixture, 1, vec![member(0, Termination::FinalAnswer, "a")]);
    assert!(shows(&decide(&fixture, Name::review(1))));
    assert!(shows(&decide(&fixture, Name::synthesis())));
}

#[test]
fn what_others_have_joined_is_put_together_at_once() {
    let results = [("debt", "little"), ("law", "none")].map(|(goal, found)| (goal.to_owned(), found.to_owned()));
    let step = AgentStep {
        observation: "{}".into(),
        step_type: "synthesise".into(),
        subagent_results: results.into(),
        ..AgentStep::default()
    };
    let brought = Accepted { history: vec![step], ..supervising() };
    // Also where nobody could be sent out any more.
    let limits = SomeLimits { max_depth: Some(0), max_agents: Some(1), ..SomeLimits::default() };
    let mut fixture = Fixture::routed(configured(), Accepted { limits, ..brought.clone() });
    assert_eq!(decide(&fixture, Name::decompose()), [Order::Open(Name::synthesis())]);
    let orders = decide(&fixture, Name::synthesis());
    let prompt = asked(&orders).1;
    assert_eq!(
        prompt.variables["results"],
        json!([
            {"index": 0, "goal": "debt", "status": "completed", "result": "little"},
            {"index": 1, "goal": "law", "status": "completed", "result": "none"},
        ])
    );
    assert!(!prompt.variables["context"].to_string().contains("little"), "findings have a place of their own");
    let round = of_kind(&prompt.offered, DecisionKind::Round)[0];
    assert_eq!((round.decided_by, round.chosen.as_slice()), (DecidedBy::Rule, ["answer".to_owned()].as_slice()));
    let ending = end(after(&mut fixture, Name::synthesis(), "Sound [finding 0]."));
    assert_eq!((ending.reason, ending.missing), (Termination::SubagentsComplete, Vec::new()));
    let replied = fixture.session.replied(&Name::synthesis()).unwrap();
    assert_eq!(replied.citations.iter().map(|citation| citation.index).collect::<Vec<_>>(), [0]);

    // A run that began before goes on by its own rules.
    let earlier = Fixture::routed(configured(), Accepted { revision: 7, ..brought });
    assert_eq!(asked(&decide(&earlier, Name::decompose())).1.id, "supervisor-decompose");
}

#[test]
fn findings_of_others_are_not_lost_if_nobody_puts_them_together() {
    let results = [("debt".to_owned(), "little".to_owned())].into();
    let step = AgentStep { step_type: "synthesise".into(), subagent_results: results, ..AgentStep::default() };
    let mut fixture = Fixture::routed(configured(), Accepted { history: vec![step], ..supervising() });
    let orders = decide(&fixture, Name::synthesis());
    fixture.fail(&orders, "overloaded");
    let ending = end(decide(&fixture, Name::synthesis()));
    assert_eq!(ending.reason, Termination::SubagentsPartial);
    assert!(ending.answer.contains("[finding 0] debt\nlittle"), "{}", ending.answer);
}
