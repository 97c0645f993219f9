use super::*;
use proptest::prelude::*;
use serde_json::json;

fn error(text: &str) -> String {
    Suite::parse(text).unwrap_err().to_string()
}

#[test]
fn an_item_has_all_that_its_line_says() {
    let line = json!({
        "id": "b", "question": "Q", "pattern": "react", "tools": ["search"], "task_types": ["general"],
        "patterns": ["react", "plan-then-execute"], "check": {"kind": "number", "value": 3},
        "budget": {"max_tokens": 900, "max_calls": 4}, "injection": {"choice": "debate"},
        "recorded": {"weather": [{"arguments": {"town": "Oslo"}, "result": "rain"}]}
    });
    let text = format!("{}\n\n{line}\n", r#"{"id": "a", "question": "Why?"}"#);
    let suite = Suite::parse(&text).unwrap();
    let [a, b] = &suite.items[..] else { panic!("two items: {suite:?}") };
    assert_eq!(a, &Item { id: "a".into(), question: "Why?".into(), ..Item::default() });
    assert_eq!(b.budget, Some(Budget { max_tokens: Some(900), max_ms: None, max_calls: Some(4) }));
    assert_eq!(b.recorded["weather"][0].result, "rain");
    assert_eq!(b.injection.as_ref().and_then(|injection| injection.choice.as_deref()), Some("debate"));
    assert_eq!(suite.tools().into_iter().collect::<Vec<_>>(), ["search", "weather"]);
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    let good = r#"{"id": "a", "question": "Why?"}"#;
    let unknown = error(r#"{"id": "a", "question": "Why?", "chek": {}}"#);
    assert!(unknown.starts_with("line 1 is no item: unknown field `chek`"), "{unknown}");
    let broken = error(&format!("{good}\n\n{{"));
    assert!(broken.starts_with("line 3 is no item: EOF while parsing"), "{broken}");
    let twice = error(&format!("{good}\n{good}"));
    assert_eq!(twice, "line 2: the item \"a\" is there already, in line 1; give each item an id of its own");
    let empty = error(r#"{"id": "a", "question": " "}"#);
    assert_eq!(empty, "line 1, item \"a\": the question is empty; write what is to be asked");
    assert!(error("\n \n").starts_with("the suite has no items"));
    assert!(error(r#"{"id": "a", "question": "?", "tools": [""]}"#).contains("`tools` contains an empty name"));
    assert!(error(r#"{"id": "a", "question": "?", "injection": {}}"#).contains("give it a `text` or a `choice`"));
}

#[test]
fn a_checker_that_can_judge_nothing_is_refused() {
    let check = |check: &str| error(&format!(r#"{{"id": "a", "question": "?", "check": {check}}}"#));
    assert!(check(r#"{"kind": "telepathy"}"#).contains("unknown variant `telepathy`, expected one of `exact`"));
    assert!(check(r#"{"kind": "exact", "value": "x", "values": []}"#).contains("unknown field `values`"));
    assert!(check(r#"{"kind": "contains", "values": []}"#).contains("`values` is empty"));
    assert!(check(r#"{"kind": "exact", "value": "?!"}"#).contains("`value` has no letters or digits"));
    assert!(check(r#"{"kind": "f1", "value": "x", "at_least": 60}"#).contains("between 0 and 1"));
}

#[test]
fn the_suites_of_this_repository_can_be_read() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../eval");
    let mut read = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "jsonl") {
            let suite = Suite::parse(&std::fs::read_to_string(&path).unwrap());
            read += suite.unwrap_or_else(|error| panic!("{}: {error}", path.display())).items.len();
        }
    }
    assert!(read >= 284, "only {read} items");
}

/// As `eval/README.md` says.
#[test]
fn the_routing_suites_are_balanced() {
    for (file, of_type, of_pattern) in [("routing.jsonl", 54, 9), ("routing-48.jsonl", 12, 2)] {
        let text = std::fs::read_to_string(format!("{}/../../eval/{file}", env!("CARGO_MANIFEST_DIR"))).unwrap();
        let items = Suite::parse(&text).unwrap().items;
        let count = |is: &dyn Fn(&Item) -> bool| items.iter().filter(|item| is(item)).count();
        for task_type in ["general", "research", "risk-assessment", "summarisation"] {
            assert_eq!(count(&|item| item.task_types[0] == task_type), of_type, "{file}: {task_type}");
        }
        for pattern in ["react", "plan-then-execute", "supervisor", "reflexion", "dispatch", "debate"] {
            let best = |item: &Item| item.task_types[0] == "general" && item.patterns[0] == pattern;
            assert_eq!(count(&best), of_pattern, "{file}: {pattern}");
        }
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,80}|[{}\\[\\]\":,a-z0-9 \n]{0,80}") {
        let read = Suite::parse(&text);
        prop_assert!(read.is_ok_and(|suite| !suite.items.is_empty()) || !error(&text).is_empty());
    }
}
