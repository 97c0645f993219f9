use super::*;
use trellis_domain::config::StoredItem;

fn settings(items: &[(&str, &str, &str)]) -> Settings {
    let item = |(kind, key, value): &(&str, &str, &str)| StoredItem {
        kind: (*kind).into(),
        key: (*key).into(),
        value: (*value).into(),
    };
    Settings::take(5, items.iter().map(item)).0
}

fn routed(items: &[(&str, &str, &str)], wishes: Wishes<'_>) -> Routed {
    route(&settings(items), &Workspace::default(), wishes, &OperatorLimits::default())
}

const REACT_ITEM: (&str, &str, &str) = ("agent-pattern", "react", r#"{"name":"react"}"#);
const GENERAL_ITEM: (&str, &str, &str) =
    ("agent-task-type", "general", r#"{"valid_patterns":["supervisor","react"],"framing":"Be brief."}"#);

#[test]
fn empty_configuration_gives_general_and_react() {
    let routed = routed(&[], Wishes::default());
    assert_eq!((routed.task_type.as_str(), routed.pattern.as_str()), ("general", "react"));
    assert!(routed.decisions.iter().all(|decision| decision.decided_by == DecidedBy::OnlyOption));
}

#[test]
fn one_option_needs_no_model_and_says_so() {
    let routed = routed(&[REACT_ITEM, GENERAL_ITEM], Wishes::default());
    let pattern = &routed.decisions[1];
    assert_eq!(pattern.options, ["react"]);
    assert_eq!(pattern.decided_by, DecidedBy::OnlyOption);
    assert_eq!(pattern.source, "urn:trellis:config:default:agent-task-type:general");
    assert_eq!(pattern.config_version, 5);
    assert_eq!(
        pattern.excluded,
        [Excluded { name: "supervisor".into(), reason: "not defined in the configuration".into() }]
    );
    assert_eq!(routed.framing, "Be brief.");
}

#[test]
fn a_defined_pattern_that_is_not_implemented_is_excluded_and_said_so() {
    let debate = ("agent-pattern", "debate", "{}");
    let routed = routed(&[REACT_ITEM, debate], Wishes::default());
    let excluded: Vec<_> = routed.decisions[1].excluded.iter().map(|e| (e.name.as_str(), e.reason.as_str())).collect();
    assert_eq!(excluded, [("debate", "not implemented")]);
}

#[test]
fn a_caller_may_name_the_pattern() {
    let routed = routed(&[REACT_ITEM, GENERAL_ITEM], Wishes { pattern: "react", ..Wishes::default() });
    assert_eq!(routed.decisions[1].decided_by, DecidedBy::Caller);
}

#[test]
fn a_caller_bypasses_what_the_task_type_allows() {
    let nothing = ("agent-task-type", "general", r#"{"valid_patterns":["nope"]}"#);
    let routed = routed(&[REACT_ITEM, nothing], Wishes { pattern: "react", ..Wishes::default() });
    let decision = &routed.decisions[1];
    assert_eq!((decision.decided_by, decision.chosen.as_slice()), (DecidedBy::Caller, &["react".to_owned()][..]));
    assert_eq!(decision.source, "urn:trellis:config:default:agent-pattern");
}

#[test]
fn an_unknown_pattern_falls_back_and_is_recorded_as_fallback() {
    let routed = routed(&[REACT_ITEM], Wishes { pattern: "telepathy", ..Wishes::default() });
    assert_eq!((routed.pattern.as_str(), routed.decisions[1].decided_by), ("react", DecidedBy::Fallback));
}

#[test]
fn strict_surfaces_refuse_unknown_names_and_list_the_known_ones() {
    let settings = settings(&[REACT_ITEM, ("tool", "t", r#"{"type":"text-completion","group":["read"]}"#)]);
    let refused = |wishes, group: Option<&[String]>| check(&settings, wishes, group).unwrap_err().to_string();
    assert_eq!(
        refused(Wishes { pattern: "x", ..Wishes::default() }, None),
        "there is no pattern `x`; choose one of react"
    );
    assert_eq!(
        refused(Wishes { task_type: "y", ..Wishes::default() }, None),
        "there is no task type `y`; choose one of general"
    );
    assert_eq!(
        refused(Wishes::default(), Some(&["z".to_owned()])),
        "no tool is in group `z`; choose from default, read, or * for all"
    );
    assert!(check(&settings, Wishes::default(), Some(&["read".to_owned(), "*".to_owned()])).is_ok());
}

#[test]
fn limits_rise_from_task_type_to_pattern_to_request_and_stop_at_the_maximum() {
    let items = [
        ("agent-task-type", "general", r#"{"limits":{"max-iterations":4,"max-rounds":9}}"#),
        ("agent-pattern", "react", r#"{"limits":{"max-iterations":6}}"#),
    ];
    let request = SomeLimits { max_iterations: Some(100), ..SomeLimits::default() };
    let operator = OperatorLimits {
        usual: Limits::default(),
        maximum: SomeLimits { max_iterations: Some(20), ..SomeLimits::default() },
    };
    let limits = |wish| {
        let wishes = Wishes { limits: wish, ..Wishes::default() };
        route(&settings(&items), &Workspace::default(), wishes, &operator).limits
    };
    assert_eq!((limits(None).max_iterations, limits(None).max_rounds), (6, 9));
    assert_eq!(limits(Some(&request)).max_iterations, 20);
}

#[test]
fn a_task_type_that_allows_nothing_that_can_run_falls_back_and_says_so() {
    let nothing = ("agent-task-type", "general", r#"{"valid_patterns":["nope"]}"#);
    let routed = routed(&[REACT_ITEM, nothing], Wishes::default());
    let decision = &routed.decisions[1];
    assert_eq!((routed.pattern.as_str(), decision.decided_by), ("react", DecidedBy::Fallback));
    assert_eq!(decision.source, "urn:trellis:config:default:agent-pattern");
    assert!(decision.excluded.iter().all(|option| option.name != "react"), "what was chosen is not ruled out");
}
