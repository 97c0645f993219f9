//! Routing as far as no model is needed for it.

use super::*;
use crate::fixture::settings;
use trellis_domain::GroupName;
use trellis_domain::decision::{DecidedBy, DecisionKind, Enforcement};
use trellis_domain::document::Document;
use trellis_domain::limits::Limits;

type Item = (&'static str, &'static str, &'static str);

const REACT: Item = ("agent-pattern", "react", r#"{"name":"react"}"#);
const PLAN: Item = ("agent-pattern", "plan-then-execute", "{}");
const SUPERVISOR: Item = ("agent-pattern", "supervisor", "{}");
const DEBATE: Item = ("agent-pattern", "delphi", "{}");
const GENERAL_ITEM: Item =
    ("agent-task-type", "general", r#"{"valid_patterns":["supervisor","react"],"framing":"Be brief."}"#);
const RESEARCH: Item = ("agent-task-type", "research", r#"{"valid_patterns":["react"],"framing":"Cite."}"#);

fn try_route(items: &[Item], wishes: Wishes<'_>) -> Option<Routed> {
    without_model(&settings(items), &Workspace::default(), wishes, &OperatorLimits::default())
}

#[track_caller]
fn routed(items: &[Item], wishes: Wishes<'_>) -> Routed {
    let routed = try_route(items, wishes).expect("no model is needed");
    for decision in &routed.decisions {
        assert!(decision.chosen.iter().all(|chosen| decision.options.contains(chosen)), "{decision:?}");
        assert!(decision.excluded.iter().all(|excluded| !decision.options.contains(&excluded.name)), "{decision:?}");
        assert_eq!(decision.enforcement, Enforcement::None, "nobody was asked");
        assert_eq!(decision.config_version, 5);
    }
    routed
}

/// What was chosen and by whom: task type, then pattern.
fn choices(routed: &Routed) -> [(&str, DecidedBy); 2] {
    let [task_type, pattern] = routed.decisions.as_slice() else { panic!("{:?}", routed.decisions) };
    assert_eq!((task_type.kind, pattern.kind), (DecisionKind::TaskType, DecisionKind::Pattern));
    assert_eq!((&*task_type.chosen[0], &*pattern.chosen[0]), (&*routed.task_type, &*routed.pattern));
    [(&routed.task_type, task_type.decided_by), (&routed.pattern, pattern.decided_by)]
}

fn excluded(routed: &Routed) -> Vec<(&str, &str)> {
    routed.decisions[1].excluded.iter().map(|option| (option.name.as_str(), option.reason.as_str())).collect()
}

fn naming(pattern: &PatternName) -> Wishes<'_> {
    Wishes { pattern: Some(pattern), ..Wishes::default() }
}

const IN_THE_MIDDLE: Wishes<'_> =
    Wishes { pattern: None, task_type: None, framing: "", limits: None, brings_history: true };

#[test]
fn an_empty_configuration_gives_general_and_react() {
    let routed = routed(&[], Wishes::default());
    assert_eq!(choices(&routed), [("general", DecidedBy::OnlyOption), ("react", DecidedBy::OnlyOption)]);
    assert_eq!((&*routed.framing, routed.termination.as_str()), ("", ""));
}

#[test]
fn one_option_needs_no_model_and_says_so() {
    let routed = routed(&[REACT, GENERAL_ITEM], Wishes::default());
    assert_eq!(choices(&routed), [("general", DecidedBy::OnlyOption), ("react", DecidedBy::OnlyOption)]);
    assert_eq!(routed.decisions[0].source, "urn:trellis:config:default:agent-task-type");
    assert_eq!(routed.decisions[1].source, "urn:trellis:config:default:agent-task-type:general");
    assert_eq!(excluded(&routed), [("supervisor", "not defined in the configuration")]);
    assert_eq!(&*routed.framing, "Be brief.");
}

#[test]
fn several_options_need_a_model() {
    assert!(try_route(&[REACT, GENERAL_ITEM, RESEARCH], Wishes::default()).is_none(), "task types");
    assert!(try_route(&[REACT, SUPERVISOR, GENERAL_ITEM], Wishes::default()).is_none(), "patterns");
}

#[test]
fn definitions_that_are_not_json_exist_under_their_key() {
    let items = [REACT, ("agent-pattern", "supervisor", "not json"), ("agent-task-type", "odd", "{broken")];
    let routed = routed(&items, naming(&"supervisor".into()));
    assert_eq!(choices(&routed), [("odd", DecidedBy::OnlyOption), ("supervisor", DecidedBy::Caller)]);
}

#[test]
fn a_task_type_without_a_list_allows_every_pattern_that_can_run() {
    let general = ("agent-task-type", "general", "{}");
    let routed = routed(&[REACT, DEBATE, general], Wishes::default());
    assert_eq!(routed.decisions[1].options, ["react"]);
    assert_eq!(routed.decisions[1].source, "urn:trellis:config:default:agent-pattern");
    assert_eq!(excluded(&routed), [("delphi", "not implemented")]);
}

#[test]
fn patterns_outside_the_task_types_list_are_excluded_with_the_reason() {
    let routed = routed(&[REACT, PLAN, SUPERVISOR, RESEARCH], Wishes::default());
    assert_eq!(routed.decisions[1].options, ["react"]);
    let reason = "not a valid pattern of this task type";
    assert_eq!(excluded(&routed), [("plan-then-execute", reason), ("supervisor", reason)]);
}

#[test]
fn a_pattern_listed_twice_is_one_option() {
    let twice = ("agent-task-type", "general", r#"{"valid_patterns":["react","nope","react","nope"]}"#);
    let routed = routed(&[REACT, twice], Wishes::default());
    assert_eq!(choices(&routed)[1], ("react", DecidedBy::OnlyOption));
    assert_eq!(excluded(&routed), [("nope", "not defined in the configuration")]);
}

#[test]
fn a_task_type_that_allows_nothing_that_can_run_falls_back_and_says_so() {
    for list in [r#"{"valid_patterns":["nope"]}"#, r#"{"valid_patterns":[]}"#] {
        for patterns in [&[REACT][..], &[]] {
            let items = [patterns, &[("agent-task-type", "general", list)]].concat();
            let routed = routed(&items, Wishes::default());
            assert_eq!(choices(&routed)[1], ("react", DecidedBy::Fallback));
            assert_eq!(routed.decisions[1].source, "urn:trellis:config:default:agent-pattern");
        }
    }
    assert_eq!(choices(&routed(&[DEBATE], Wishes::default()))[1], ("react", DecidedBy::Fallback));
}

#[test]
fn a_caller_who_names_a_pattern_bypasses_routing_completely() {
    let items = [REACT, PLAN, SUPERVISOR, GENERAL_ITEM, RESEARCH];
    for pattern in ["react", "plan-then-execute", "supervisor"] {
        let routed = routed(&items, naming(&pattern.into()));
        assert_eq!(choices(&routed), [("general", DecidedBy::Rule), (pattern, DecidedBy::Caller)]);
        assert_eq!(routed.decisions[1].source, "urn:trellis:config:default:agent-pattern");
        assert_eq!(&*routed.framing, "Be brief.", "the task type still frames the question");
    }
}

#[test]
fn a_caller_may_name_the_task_type_too() {
    let items = [REACT, PLAN, GENERAL_ITEM, RESEARCH];
    let pattern = "plan-then-execute".into();
    let both = Wishes { task_type: Some(&"research".into()), ..naming(&pattern) };
    let routed = routed(&items, both);
    assert_eq!(choices(&routed), [("research", DecidedBy::Caller), ("plan-then-execute", DecidedBy::Caller)]);
}

#[test]
fn a_task_type_that_the_caller_names_leaves_the_pattern_to_its_list() {
    let research = Wishes { task_type: Some(&"research".into()), ..Wishes::default() };
    let routed = routed(&[REACT, PLAN, GENERAL_ITEM, RESEARCH], research);
    assert_eq!(choices(&routed), [("research", DecidedBy::Caller), ("react", DecidedBy::OnlyOption)]);
}

#[test]
fn a_workspace_that_says_nothing_about_patterns_leaves_the_caller_all_of_them() {
    for pattern in ["react", "plan-then-execute", "supervisor"] {
        assert_eq!(choices(&routed(&[], naming(&pattern.into())))[1], (pattern, DecidedBy::Caller));
    }
}

#[test]
fn an_unknown_pattern_falls_back_to_react_and_the_name_is_kept() {
    let routed = routed(&[PLAN, REACT, SUPERVISOR, GENERAL_ITEM, RESEARCH], naming(&"telepathy".into()));
    assert_eq!(choices(&routed), [("general", DecidedBy::Rule), ("react", DecidedBy::Fallback)]);
    assert_eq!(routed.decisions[1].rejected.as_ref().map(Document::text), Some("telepathy"));
}

#[test]
fn a_pattern_that_is_not_implemented_falls_back_too() {
    let routed = routed(&[PLAN, SUPERVISOR, DEBATE], naming(&"delphi".into()));
    assert_eq!(choices(&routed)[1], ("plan-then-execute", DecidedBy::Fallback), "react is not in this set");
    assert_eq!(excluded(&routed), [("delphi", "not implemented")]);
}

#[test]
fn an_unknown_task_type_falls_back_to_general_or_the_first_and_the_name_is_kept() {
    let unknown = Wishes { task_type: Some(&"poetry".into()), ..Wishes::default() };
    let analysis = ("agent-task-type", "analysis", "{}");
    let by_name = routed(&[REACT, analysis, GENERAL_ITEM, RESEARCH], unknown);
    assert_eq!(choices(&by_name)[0], ("general", DecidedBy::Fallback));
    assert_eq!(by_name.decisions[0].rejected.as_ref().map(Document::text), Some("poetry"));
    assert_eq!(choices(&routed(&[REACT, RESEARCH, analysis], unknown))[0], ("analysis", DecidedBy::Fallback));
}

#[test]
fn a_request_in_the_middle_of_something_is_not_routed() {
    let items = [REACT, PLAN, SUPERVISOR, GENERAL_ITEM, RESEARCH];
    assert_eq!(choices(&routed(&items, IN_THE_MIDDLE)), [("general", DecidedBy::Rule), ("react", DecidedBy::Rule)]);
    let supervisor = "supervisor".into();
    let named = Wishes { brings_history: true, ..naming(&supervisor) };
    assert_eq!(choices(&routed(&items, named))[1], ("supervisor", DecidedBy::Caller));
    let typed = Wishes { task_type: Some(&"research".into()), ..IN_THE_MIDDLE };
    assert_eq!(choices(&routed(&items, typed)), [("research", DecidedBy::Caller), ("react", DecidedBy::OnlyOption)]);
}

#[test]
fn a_request_in_the_middle_of_something_goes_on_with_what_the_task_type_allows() {
    let strict = ("agent-task-type", "general", r#"{"valid_patterns":["supervisor","plan-then-execute"]}"#);
    let routed = routed(&[REACT, PLAN, SUPERVISOR, strict], IN_THE_MIDDLE);
    assert_eq!(choices(&routed)[1], ("supervisor", DecidedBy::Rule));
}

#[test]
fn the_framing_is_read_under_both_names_and_the_callers_wins() {
    for member in ["framing", "framing_prompt"] {
        let value = format!(r#"{{"{member}":"Be exact."}}"#);
        let settings = settings(&[("agent-task-type", "general", &value)]);
        let framing = |framing| {
            let wishes = Wishes { framing, ..Wishes::default() };
            let routed = without_model(&settings, &Workspace::default(), wishes, &OperatorLimits::default());
            routed.map(|routed| routed.framing)
        };
        assert_eq!(framing("").as_deref(), Some("Be exact."), "{member}");
        assert_eq!(framing("Be kind.").as_deref(), Some("Be kind."));
    }
}

#[test]
fn the_task_types_words_on_when_to_stop_come_along() {
    let general = ("agent-task-type", "general", r#"{"termination":"Two sources agree."}"#);
    assert_eq!(routed(&[general], Wishes::default()).termination, "Two sources agree.");
}

#[test]
fn limits_rise_from_task_type_to_pattern_to_request_and_stop_at_the_maximum() {
    let settings = settings(&[
        ("agent-task-type", "general", r#"{"limits":{"max-iterations":4,"max-rounds":9}}"#),
        ("agent-pattern", "react", r#"{"limits":{"max-iterations":6}}"#),
    ]);
    let request = SomeLimits { max_iterations: Some(100), ..SomeLimits::default() };
    let operator = OperatorLimits {
        usual: Limits { max_depth: 7, ..Limits::default() },
        maximum: SomeLimits { max_iterations: Some(20), max_depth: Some(5), ..SomeLimits::default() },
    };
    let limits = |limits| {
        let wishes = Wishes { limits, ..Wishes::default() };
        without_model(&settings, &Workspace::default(), wishes, &operator).map(|routed| routed.limits)
    };
    let unasked = limits(None).unwrap();
    assert_eq!((unasked.max_iterations, unasked.max_rounds, unasked.max_depth), (6, 9, 5));
    assert_eq!(limits(Some(&request)).unwrap().max_iterations, 20);
    assert_eq!(limits_for(&settings, &"general".into(), &"react".into(), None, &operator), unasked);
    assert_eq!(limits_for(&settings, &"general".into(), &"supervisor".into(), None, &operator).max_iterations, 4);
    assert_eq!(limits_for(&settings, &"poetry".into(), &"telepathy".into(), None, &operator).max_iterations, 10);
}

#[test]
fn strict_surfaces_refuse_unknown_names_and_list_the_known_ones() {
    let settings = settings(&[REACT, DEBATE, ("tool", "t", r#"{"type":"text-completion","group":["read"]}"#)]);
    let refused =
        |wishes: Wishes<'_>, group: Option<&[GroupName]>| check(&settings, wishes, group).unwrap_err().to_string();
    assert_eq!(refused(naming(&"x".into()), None), "there is no pattern `x`; choose one of react");
    assert_eq!(
        refused(naming(&"delphi".into()), None),
        "the pattern `delphi` is defined but not implemented in this version; choose one of react"
    );
    assert_eq!(
        refused(Wishes { task_type: Some(&"y".into()), ..Wishes::default() }, None),
        "there is no task type `y`; choose one of general"
    );
    assert_eq!(
        refused(Wishes::default(), Some(&["z".into()])),
        "no tool is in group `z`; choose from default, read, or * for all"
    );
    assert!(check(&settings, naming(&"react".into()), Some(&["read".into(), "*".into()])).is_ok());
}

#[test]
fn a_pattern_that_cannot_run_is_left_out_with_the_reason() {
    let prompt = ("prompt", "template.agent-react", r#"{"prompt": "Think."}"#);
    let debate: Item = ("agent-pattern", "debate", "{}");
    let without = routed(&[REACT, SUPERVISOR, prompt], Wishes::default());
    assert_eq!(choices(&without)[1], ("react", DecidedBy::OnlyOption));
    assert_eq!(excluded(&without), [("supervisor", "without its prompt `supervisor-decompose`")]);
    let limits = SomeLimits { max_siblings: Some(1), ..SomeLimits::default() };
    let few = Wishes { limits: Some(&limits), ..Wishes::default() };
    let alone = routed(&[REACT, debate], few);
    assert_eq!(choices(&alone)[1], ("react", DecidedBy::OnlyOption));
    assert_eq!(excluded(&alone), [("debate", "limited to 1 subagent, and needs 2")]);
}
