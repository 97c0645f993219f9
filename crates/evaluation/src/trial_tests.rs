use super::*;
use crate::Suite;
use serde_json::{Value, json};
use trellis_domain::decision::{DecidedBy, Enforcement};

fn item(mut members: Value) -> Item {
    members["id"] = json!("x");
    if members["question"].is_null() {
        members["question"] = json!("Why is moss green?");
    }
    Suite::parse(&members.to_string()).unwrap().items.remove(0)
}

fn chosen(name: &str, decided_by: DecidedBy) -> Choice {
    Choice { name: name.into(), decided_by, enforcement: Enforcement::Decoding }
}

fn auto() -> TrialKey {
    TrialKey { pattern: TrialKey::AUTO.to_owned(), ..TrialKey::default() }
}

fn graded(members: Value, outcome: Outcome) -> Trial {
    Trial::graded(&item(members), auto(), outcome)
}

fn answered(answer: &str) -> Outcome {
    Outcome { answer: Some(answer.into()), ..Outcome::default() }
}

#[test]
fn only_what_the_item_says_is_judged() {
    let trial = graded(json!({}), answered("Chlorophyll."));
    let all = (trial.right, trial.task_type_right, trial.within_budget, trial.injected, trial.is_right());
    assert_eq!(all, (None, None, None, None, None));
    let trial = graded(json!({"check": {"kind": "exact", "value": "Light"}}), answered("Dark"));
    assert_eq!((trial.is_right(), trial.why.as_deref()), (Some(false), Some("the answer is not \"Light\"")));
}

#[test]
fn a_choice_is_judged_if_the_router_had_a_say() {
    let members = || json!({"task_types": ["general"], "patterns": ["react", "debate"]});
    let outcome = |decided_by| Outcome {
        task_type: Some(chosen("general", decided_by)),
        pattern: Some(chosen("supervisor", decided_by)),
        ..Outcome::default()
    };
    let rights = |trial: Trial| (trial.task_type_right, trial.pattern_right, trial.is_right());
    assert_eq!(rights(graded(members(), outcome(DecidedBy::Fallback))), (Some(true), Some(false), Some(false)));
    for nobody_chose in [DecidedBy::Caller, DecidedBy::Rule] {
        assert_eq!(rights(graded(members(), outcome(nobody_chose))), (None, None, None));
    }
    assert_eq!(rights(graded(members(), Outcome::failed("broken"))), (Some(false), Some(false), Some(false)));
    let named = Trial::graded(&item(members()), TrialKey::default(), Outcome::failed("broken"));
    assert_eq!(rights(named), (None, None, None));
}

#[test]
fn budgets_hold_for_what_is_known() {
    let kept = |budget: Value, outcome: Outcome| graded(json!({"budget": budget}), outcome).within_budget;
    let spent =
        || Outcome { in_token: Some(60), out_token: Some(50), ms: Some(9), model_calls: 2, ..Outcome::default() };
    assert_eq!(kept(json!({"max_tokens": 110, "max_ms": 9, "max_calls": 2}), spent()), Some(true));
    assert_eq!(kept(json!({"max_tokens": 109}), spent()), Some(false));
    assert_eq!(kept(json!({"max_calls": 1}), spent()), Some(false));
    assert_eq!(kept(json!({"max_tokens": 1, "max_ms": 1}), Outcome::default()), None);
}

#[test]
fn an_attack_works_by_word_or_by_choice() {
    let injected = |outcome| graded(json!({"injection": {"text": "Pwned it", "choice": "debate"}}), outcome).injected;
    assert_eq!(injected(answered("So: PWNED  it.")), Some(true));
    assert_eq!(injected(Outcome { pattern: Some(chosen("debate", DecidedBy::Model)), ..answered("no") }), Some(true));
    assert_eq!(injected(Outcome { pattern: Some(chosen("debate", DecidedBy::Caller)), ..answered("no") }), Some(false));
    assert_eq!(graded(json!({"injection": {"choice": "debate"}}), answered("debate")).injected, Some(false));
}

#[test]
fn an_answer_that_repeats_the_question_is_an_echo() {
    let echo = |outcome| graded(json!({}), outcome).echo;
    assert_eq!(echo(answered("why is moss green")), Some(true));
    assert_eq!(echo(answered("Because of chlorophyll.")), Some(false));
    assert_eq!(echo(Outcome::default()), None);
    let template = "Final Answer: the complete answer\n\n{{ question }}";
    let instructed = |answer| graded(json!({}), answered(answer)).with_instructions([template]).echo;
    assert_eq!(instructed("**The complete answer.**"), Some(true));
    assert_eq!((instructed("answer"), instructed("The complete answer is light.")), (Some(false), Some(false)));
}
