use super::*;
use trellis_domain::config::StoredItem;

fn settings(tools: &[(&str, &str)]) -> Settings {
    let item = |(name, extra): &(&str, &str)| StoredItem {
        kind: "tool".into(),
        key: (*name).into(),
        value: format!(r#"{{"type":"text-completion","name":"{name}"{extra}}}"#),
    };
    Settings::take(1, tools.iter().map(item)).0
}

fn offered(group: Option<&[&str]>, state: &str) -> Vec<String> {
    let settings = settings(&[
        ("plain", ""),
        ("read", r#","group":["read-only","default"]"#),
        ("write", r#","group":["write"]"#),
        ("later", r#","applicable-states":["searched"]"#),
        ("always", r#","applicable-states":["*"]"#),
        ("both", r#","group":["write"],"applicable-states":["searched"]"#),
    ]);
    let group = group.map(|names| names.iter().map(|name| GroupName::from(*name)).collect::<Vec<_>>());
    select(&settings, group.as_deref(), state).offered.iter().map(|tool| tool.name.to_string()).collect()
}

#[test]
fn no_group_means_default_and_an_empty_list_means_no_tools() {
    assert_eq!(offered(None, "undefined"), ["always", "plain", "read"]);
    assert_eq!(offered(Some(&[]), "undefined"), Vec::<String>::new());
}

#[test]
fn a_star_asks_for_all_groups() {
    assert_eq!(offered(Some(&["*"]), "undefined"), ["always", "plain", "read", "write"]);
}

#[test]
fn groups_match_by_intersection_and_case() {
    assert_eq!(offered(Some(&["read-only", "nothing"]), "undefined"), ["read"]);
    assert_eq!(offered(Some(&["Default"]), "undefined"), Vec::<String>::new());
}

#[test]
fn group_and_state_must_both_match() {
    assert_eq!(offered(None, "searched"), ["always", "later", "plain", "read"]);
    assert_eq!(offered(Some(&["write"]), "searched"), ["both", "write"]);
}

#[test]
fn what_is_left_out_says_why() {
    let settings = settings(&[("write", r#","group":["write"]"#), ("later", r#","applicable-states":["searched"]"#)]);
    let reasons: Vec<_> = select(&settings, None, "undefined").excluded.into_iter().map(|e| e.reason).collect();
    assert_eq!(
        reasons,
        ["state: applies in [searched], now undefined", "group: tool is in [write], asked for [default]"]
    );
}

#[test]
fn tools_are_offered_in_the_order_of_the_groups_that_were_asked_for() {
    let tools = [("a", r#"{"type":"text-completion","name":"a","group":["sums","all"]}"#)];
    let tools = tools.into_iter().chain([("b", r#"{"type":"text-completion","name":"b","group":["facts","all"]}"#)]);
    let tools: Vec<_> = tools.map(|(key, value)| ("tool", key, value)).collect();
    let offered = |revision: u32, groups: &[&str]| {
        let group = Some(groups.iter().map(|name| GroupName::from(*name)).collect());
        let accepted = trellis_domain::record::Accepted { group, revision, ..crate::fixture::question("why?") };
        let fixture = crate::fixture::Fixture::begun(crate::fixture::settings(&tools), accepted);
        visible(&fixture.session).offered.iter().map(|tool| tool.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(offered(2, &["facts", "sums"]), ["b", "a"]);
    assert_eq!(offered(2, &["all"]), ["a", "b"]);
    assert_eq!(offered(1, &["facts", "sums"]), ["a", "b"], "by older rules");
}

#[test]
fn tools_that_a_caller_names_are_all_that_is_offered_and_in_their_order() {
    let tools = ["a", "b", "c"].map(|name| (name, format!(r#"{{"type":"text-completion","name":"{name}"}}"#)));
    let tools: Vec<_> = tools.iter().map(|(key, value)| ("tool", *key, value.as_str())).collect();
    let seen = |names: Option<&[&str]>| {
        let tools_named = names.map(|names| names.iter().map(|name| (*name).into()).collect());
        let selection = trellis_domain::Selection { tools: tools_named, model: None };
        let accepted = trellis_domain::record::Accepted { selection, revision: 2, ..crate::fixture::question("why?") };
        let fixture = crate::fixture::Fixture::begun(crate::fixture::settings(&tools), accepted);
        let set = visible(&fixture.session);
        let offered: Vec<_> = set.offered.iter().map(|tool| tool.name.to_string()).collect();
        (offered.join(" "), set.excluded.into_iter().map(|out| format!("{}: {}", out.name, out.reason)).collect())
    };
    let out = |names: &[&str]| names.iter().map(|name| format!("{name}: not asked for")).collect::<Vec<_>>();
    assert_eq!(seen(None), ("a b c".to_owned(), Vec::new()));
    assert_eq!(seen(Some(&["c", "a"])), ("c a".to_owned(), out(&["b"])));
    assert_eq!(seen(Some(&[])), (String::new(), out(&["a", "b", "c"])));
}
