use super::*;
use crate::fixture::question;
use trellis_domain::message::StepStatus::{Completed, Failed, Pending, Revised, Running};

fn plan_of(steps: &[(StepStatus, &[u32])]) -> Vec<PlanStep> {
    let step = |(status, depends_on): &(StepStatus, &[u32])| PlanStep {
        goal: "go".to_owned(),
        tool_hint: String::new(),
        depends_on: depends_on.to_vec(),
        status: *status,
        result: String::new(),
    };
    steps.iter().map(step).collect()
}

fn joined(results: &[(&str, &str)]) -> AgentStep {
    let results = results.iter().map(|(goal, result)| ((*goal).to_owned(), (*result).to_owned()));
    AgentStep {
        step_type: step_type::SYNTHESISE.to_owned(),
        subagent_results: results.collect(),
        ..AgentStep::default()
    }
}

#[test]
fn a_plan_goes_on_if_what_its_steps_rest_on_is_there() {
    let plans = [
        plan_of(&[(Pending, &[])]),
        plan_of(&[(Completed, &[]), (Running, &[0]), (Pending, &[0, 1])]),
        plan_of(&[(Pending, &[1]), (Failed, &[])]),
        plan_of(&[(Completed, &[1]), (Failed, &[])]),
        // What was planned anew may say what it likes.
        plan_of(&[(Completed, &[]), (Revised, &[7, 1]), (Pending, &[0])]),
    ];
    for plan in plans {
        assert_eq!(check_plan(&plan), Ok(()), "{plan:?}");
    }
}

#[test]
fn a_plan_that_cannot_go_on_says_why() {
    let because = |why: &str| Err(why.to_owned());
    let one_of_another = "step 0 cannot build on step 1";
    for (plan, why) in [
        (plan_of(&[]), "no step of it is in force"),
        (plan_of(&[(Revised, &[])]), "no step of it is in force"),
        (plan_of(&[(Pending, &[1])]), one_of_another),
        (plan_of(&[(Pending, &[1]), (Revised, &[])]), one_of_another),
        (plan_of(&[(Completed, &[1]), (Pending, &[])]), one_of_another),
        (plan_of(&[(Pending, &[0])]), "its steps wait for one another"),
        (plan_of(&[(Pending, &[1]), (Pending, &[2]), (Pending, &[0])]), "its steps wait for one another"),
    ] {
        assert_eq!(check_plan(&plan), because(why), "{plan:?}");
    }
    let blank = PlanStep { goal: " ".to_owned(), ..plan_of(&[(Pending, &[])]).remove(0) };
    assert_eq!(check_plan(&[blank]), because("step 0 has no goal"));
    let nothing: &[u32] = &[];
    assert_eq!(check_plan(&plan_of(&[(Pending, nothing); 201])), because("it has 201 steps, and 200 are the most"));
}

#[test]
fn a_plan_that_says_too_much_is_not_gone_on_with() {
    let because = |why: &str| Err(why.to_owned());
    let on_more = "step 0 builds on more steps than there are";
    // Also what was planned anew: all of it would be told.
    assert_eq!(check_plan(&plan_of(&[(Revised, &[0, 0, 0]), (Pending, &[])])), because(on_more));
    assert_eq!(check_plan(&plan_of(&[(Completed, &[]), (Pending, &[0, 0])])), Ok(()));
    let with = |goal: usize, hint: usize| {
        let (goal, tool_hint) = ("ü".repeat(goal), "x".repeat(hint));
        vec![PlanStep { goal, tool_hint, ..plan_of(&[(Pending, &[])]).remove(0) }]
    };
    assert_eq!(check_plan(&with(2_000, 2_000)), Ok(()));
    for long in [with(2_001, 0), with(1, 2_001)] {
        assert_eq!(check_plan(&long), because("step 0 is told with more than 2000 characters"));
    }
    let long_circle: Vec<Vec<u32>> =
        (0..200).map(|number| (0..200).filter(|other| *other != number).collect()).collect();
    let long_circle: Vec<_> = long_circle.iter().map(|others| (Pending, others.as_slice())).collect();
    assert_eq!(check_plan(&plan_of(&long_circle)), because("its steps wait for one another"));
}

#[test]
fn the_plan_that_counts_is_the_newest() {
    let with = |status| AgentStep { plan: plan_of(&[(status, &[])]), ..AgentStep::default() };
    let history = [with(Pending), with(Completed), AgentStep::default()];
    assert_eq!(newest_plan(&history)[0].status, Completed);
    assert!(newest_plan(&history[2..]).is_empty());
}

#[test]
fn findings_are_numbered_join_by_join() {
    let elsewhere = AgentStep { step_type: "react".to_owned(), ..joined(&[("c", "3")]) };
    let history = vec![joined(&[("b", "2"), ("a", "1")]), elsewhere, joined(&[("a", "more")])];
    let session = SessionId::new("S").unwrap();
    let members = findings(&session, &Accepted { history, ..question("why?") });
    let found: Vec<_> = members
        .iter()
        .map(|member| (member.index, member.goal.as_str(), member.answer.as_ref().map(Document::text)))
        .collect();
    assert_eq!(found, [(0, "a", Some("1")), (1, "b", Some("2")), (2, "a", Some("more"))]);
    assert!(members.iter().all(|member| !member.is_missing()));
}

#[test]
fn no_findings_and_too_many_are_not_put_together() {
    assert_eq!(check_findings(&[joined(&[])]), Err("it has none".to_owned()));
    let goals: Vec<_> = (0..201).map(|number| number.to_string()).collect();
    let many: Vec<_> = goals.iter().map(|goal| (goal.as_str(), "x")).collect();
    assert_eq!(check_findings(&[joined(&many[1..])]), Ok(()));
    assert_eq!(check_findings(&[joined(&many)]), Err("it has 201, and 200 are the most".to_owned()));
}

#[test]
fn runs_under_earlier_rules_take_nothing_up() {
    let step = AgentStep { plan: plan_of(&[(Completed, &[])]), ..joined(&[("a", "1")]) };
    let now = Accepted { history: vec![step], ..question("why?") };
    let earlier = Accepted { revision: 7, ..now.clone() };
    let session = SessionId::new("S").unwrap();
    let taken_up = |accepted: &Accepted| (plan(accepted).len(), findings(&session, accepted).len());
    assert_eq!((taken_up(&now), taken_up(&earlier)), ((1, 1), (0, 0)));
}
