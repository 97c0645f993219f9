use super::*;
use crate::outcome::CalledTool;
use proptest::prelude::*;
use serde_json::json;

fn check(check: Value) -> Check {
    serde_json::from_value(check).unwrap()
}

fn answered(answer: &str) -> Outcome {
    Outcome { answer: Some(answer.to_owned()), ..Outcome::default() }
}

fn is_right(kind: Value, answer: &str) -> bool {
    check(kind).judge(&answered(answer)).is_ok()
}

fn called(calls: &[(&str, Value)]) -> Outcome {
    let call = |(name, arguments): &(&str, Value)| CalledTool {
        name: (*name).to_owned(),
        arguments: arguments.as_object().cloned().unwrap(),
    };
    Outcome { tool_calls: calls.iter().map(call).collect(), ..Outcome::default() }
}

#[test]
fn exact_looks_past_case_blanks_and_punctuation_around() {
    let october = || json!({"kind": "exact", "value": "October"});
    for answer in ["October", " october. ", "**October**", "“October”!", "OCTOBER\n"] {
        assert!(is_right(october(), answer), "{answer}");
    }
    assert!(is_right(october(), "October [1]") && is_right(october(), "October [1][23]."), "a citation is no part");
    assert!(!is_right(october(), "October [sic]"));
    assert!(!is_right(october(), "In October") && !is_right(october(), "Oct") && !is_right(october(), "."));
    assert!(is_right(json!({"kind": "exact", "value": "New  York."}), "new york"));
}

#[test]
fn contains_wants_every_value() {
    let glazes = || json!({"kind": "contains", "values": ["slate", "Honey  glaze"]});
    assert!(is_right(glazes(), "Honey\nglaze and SLATE"));
    assert_eq!(check(glazes()).judge(&answered("slate")), Err("\"Honey  glaze\" does not occur in the answer".into()));
}

#[test]
fn f1_wants_enough_of_the_same_words() {
    let motto = || json!({"kind": "f1", "value": "Ask twice, measure once, share always", "at_least": 0.6});
    assert!(is_right(motto(), "The motto is: ask twice, measure once, share always."));
    let wrong = check(motto()).judge(&answered("Ask always and never share a measure of your tin")).unwrap_err();
    assert_eq!(wrong, "the F1 with \"Ask twice, measure once, share always\" is 0.50, less than 0.6");
}

#[test]
fn no_answer_is_wrong_whatever_is_asked() {
    for kind in [json!({"kind": "number", "value": 0}), json!({"kind": "exact", "value": "x"})] {
        assert_eq!(check(kind.clone()).judge(&Outcome::default()), Err("there is no answer".into()));
        assert_eq!(check(kind).judge(&answered(" ")), Err("there is no answer".into()));
    }
}

#[test]
fn a_call_is_compared_by_what_it_means() {
    let expected = check(json!({"kind": "call", "calls": [
        {"name": "f", "arguments": {"x": [1, 2], "town": "Oslo", "unit": ["km", ""], "at": {"a": 1, "b": [2]}}}]}));
    let judged = |arguments: Value| expected.judge(&called(&[("other", json!({})), ("f", arguments)]));
    let at = || json!({"b": [2.0], "a": 1});
    assert_eq!(judged(json!({"x": 2.0, "town": " Oslo", "at": at()})), Ok(()));
    assert_eq!(judged(json!({"x": 1, "town": "Oslo", "at": at(), "unit": "km"})), Ok(()));
    for wrong in [
        json!({"x": 3, "town": "Oslo", "at": at()}),
        json!({"x": "1", "town": "Oslo", "at": at()}),
        json!({"x": 1, "town": "oslo", "at": at()}),
        json!({"x": 1, "town": "Oslo", "at": at(), "unit": "miles"}),
        json!({"x": 1, "town": "Oslo", "at": at(), "more": 1}),
        json!({"x": 1, "at": at()}),
    ] {
        let why = judged(wrong.clone()).unwrap_err();
        assert!(
            why.starts_with("no call of `f` with {\"x\":[1,2]") && why.ends_with("`other`, `f` was called"),
            "{why}"
        );
    }
}

#[test]
fn each_call_stands_for_one_expected_call_and_the_order_does_not_matter() {
    let expected = |calls: Value| check(json!({"kind": "call", "calls": calls}));
    let two = expected(json!([{"name": "f", "arguments": {"x": [1, 2]}}, {"name": "f", "arguments": {"x": 1}}]));
    assert_eq!(two.judge(&called(&[("f", json!({"x": 1})), ("f", json!({"x": 2}))])), Ok(()));
    assert!(two.judge(&called(&[("f", json!({"x": 1}))])).is_err());
    let none = expected(json!([]));
    assert_eq!(none.judge(&called(&[])), Ok(()));
    assert_eq!(none.judge(&called(&[("f", json!({}))])), Err("no tool fits the question, but `f` was called".into()));
    let whole = expected(json!([{"name": "f", "arguments": {"x": [9_007_199_254_740_993_u64]}}]));
    assert!(whole.judge(&called(&[("f", json!({"x": 9_007_199_254_740_992_u64}))])).is_err());
    assert!(whole.judge(&called(&[])).unwrap_err().ends_with("nothing was called"));
}

proptest! {
    #[test]
    fn any_value_is_its_own_right_answer(value in "[a-zA-Z0-9 äß-]{0,12}[a-z]", number in -1e12..1e12_f64) {
        let checks = [
            (json!({"kind": "exact", "value": value}), value.clone()),
            (json!({"kind": "contains", "values": [value]}), format!("So: {value}!")),
            (json!({"kind": "f1", "value": value, "at_least": 1}), value.clone()),
            (json!({"kind": "number", "value": number}), format!("{number} km")),
        ];
        for (kind, answer) in checks {
            let right = is_right(kind.clone(), &answer);
            prop_assert!(right, "{} {}", kind, answer);
        }
    }
}
