use super::*;

fn read(given: &Value) -> Result<Vec<ScoredQuestion>, String> {
    questions(given.as_object().unwrap())
}

fn answered(given: &Value, reply: &Value) -> Result<Value, String> {
    answers(&read(given).unwrap(), reply).map(Value::Object)
}

fn team() -> Value {
    json!({"team": {"type": "choice", "options": ["sales", "billing"]}})
}

#[test]
fn a_choice_is_one_of_the_options_with_shares_for_all() {
    let reply = json!({"q1": {"reason": " overcharged ", "choice": "billing", "points": {"o1": 25, "o2": 75}}});
    let expected = json!({"team": {
        "type": "choice", "choice": "billing", "probabilities": {"sales": 0.25, "billing": 0.75}, "confidence": 0.75,
        "reason": "overcharged",
    }});
    assert_eq!(answered(&team(), &reply).unwrap(), expected);
    let schema = schema(&read(&team()).unwrap());
    assert_eq!(schema["properties"]["q1"]["properties"]["choice"]["enum"], json!(["sales", "billing"]));
    assert_eq!(schema["properties"]["q1"]["properties"]["points"]["required"], json!(["o1", "o2"]));
}

#[test]
fn what_is_not_among_the_options_is_no_answer() {
    for reply in [json!({"q1": {"choice": "legal"}}), json!({"q1": {}}), json!({"q2": {"choice": "sales"}}), json!([])]
    {
        assert!(answered(&team(), &reply).is_err(), "{reply}");
    }
}

#[test]
fn what_was_chosen_is_never_less_likely_than_the_rest() {
    let shares = |points: Value| {
        let reply = json!({"q1": {"choice": "sales", "points": points}});
        answered(&team(), &reply).unwrap()["team"]["probabilities"].clone()
    };
    assert_eq!(shares(json!({"o1": 10, "o2": 90})), json!({"sales": 0.5, "billing": 0.5}));
    assert_eq!(shares(json!({"o1": 0, "o2": 0})), json!({"sales": 1.0, "billing": 0.0}));
    assert_eq!(shares(json!(null)), json!({"sales": 1.0, "billing": 0.0}));
    assert_eq!(shares(json!({"o1": 1e300, "o2": -5})), json!({"sales": 1.0, "billing": 0.0}));
    assert_eq!(shares(json!({"sales": 60, "billing": 20})), json!({"sales": 0.75, "billing": 0.25}), "by name as well");
}

#[test]
fn a_score_is_where_its_levels_balance() {
    let given = json!({"anger": {"type": "score", "criteria": ["calm", "cross", "furious"]}});
    let reply = json!({"q1": {"choice": "2", "points": {"o1": 0, "o2": 50, "o3": 50}}});
    let answer = &answered(&given, &reply).unwrap()["anger"];
    assert_eq!((&answer["score"], &answer["confidence"]), (&json!(1.5), &json!(0.5)));
    assert_eq!(answer["legend"], json!({"0": "calm", "1": "cross", "2": "furious"}));
}

#[test]
fn a_noul_is_how_likely_something_is_whatever_was_chosen() {
    let given = json!({"refund": {"type": "noul", "instructions": "Is a refund wanted?"}});
    let reply = json!({"q1": {"choice": "false", "points": {"o1": 20, "o2": 80}}});
    let answer = &answered(&given, &reply).unwrap()["refund"];
    assert_eq!((&answer["noul"], &answer["confidence"]), (&json!(0.2), &json!(0.8)));
}

#[test]
fn options_may_be_described() {
    let given = json!({"team": {"criteria": {"sales": "sells", "billing": null}, "instructions": {"who": "decides"}}});
    let shown = shown(&read(&given).unwrap());
    assert_eq!(shown[0]["options"][0], json!({"id": "o1", "name": "sales", "about": "sells"}));
    assert_eq!(shown[0]["instructions"], "{\"who\":\"decides\"}");
}

#[test]
fn what_is_wrong_with_a_question_is_named() {
    for (given, words) in [
        (json!({}), "has none"),
        (json!({"q": 1}), "must be an object"),
        (json!({"q": {"type": "guess"}}), "choice, score, noul"),
        (json!({"q": {"type": "choice"}}), "needs `options`"),
        (json!({"q": {"options": ["a"]}}), "at least two"),
        (json!({"q": {"options": ["a", "a"]}}), "twice"),
        (json!({"q": {"options": ["a", " "]}}), "without a name"),
        (json!({"q": {"type": "score", "criteria": {"a": "b"}}}), "lowest first"),
        (json!({"q": {"options": ["a", "x".repeat(5_000)]}}), "bytes"),
    ] {
        let wrong = read(&given).unwrap_err();
        assert!(wrong.contains(words), "{given}: {wrong}");
    }
    let many: Vec<String> = (0..101).map(|at| at.to_string()).collect();
    assert!(read(&json!({"q": {"options": many}})).unwrap_err().contains("101 options"));
    let crowd: Map<_, _> = (0..33).map(|at| (at.to_string(), json!({"type": "noul"}))).collect();
    assert!(questions(&crowd).unwrap_err().contains("33 questions"));
}
