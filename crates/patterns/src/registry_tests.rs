use super::*;
use crate::known::{KNOWN, implemented};
use std::collections::BTreeSet;
use trellis_domain::config::StoredItem;

fn item(kind: &str, key: &str, value: &str) -> StoredItem {
    StoredItem { kind: kind.into(), key: key.into(), value: value.into() }
}

#[test]
fn what_is_known_of_a_pattern_is_what_it_is() {
    let patterns: Vec<_> = PATTERNS.iter().map(|pattern| (pattern.name(), pattern.prompts())).collect();
    assert_eq!(KNOWN.iter().map(|known| (known.name, known.prompts)).collect::<Vec<_>>(), patterns);
    for (pattern, known) in PATTERNS.iter().zip(KNOWN) {
        let writes = pattern.prompts().iter().any(|prompt| pattern.form(prompt) == ReplyForm::Answer);
        assert_eq!(known.writes_answers, writes, "{}", known.name);
    }
}

#[test]
fn a_pattern_that_nobody_here_knows_is_named_with_the_reason() {
    let unknown = pattern(&"delphi".into()).unwrap_err();
    assert!(unknown.to_string().contains("no pattern `delphi`"), "{unknown}");
}

#[test]
fn no_two_patterns_share_a_name_or_a_prompt() {
    let names: BTreeSet<_> = implemented().collect();
    let prompts: Vec<_> = PATTERNS.iter().flat_map(|pattern| pattern.prompts()).collect();
    assert_eq!(names.len(), PATTERNS.len());
    assert_eq!(prompts.iter().collect::<BTreeSet<_>>().len(), prompts.len());
}

#[test]
fn a_prompt_is_missed_only_where_a_run_can_come_to_it() {
    let missing = |items: &[StoredItem]| {
        let (settings, _) = Settings::take(1, items.to_vec());
        let keys = missing_prompts(&settings).into_iter().map(|problem| problem.key.replace("template.", ""));
        keys.collect::<Vec<_>>()
    };
    let (react, plan) = (item("agent-pattern", "react", "{}"), item("agent-pattern", "plan-then-execute", "{}"));
    let supervisor = item("agent-pattern", "supervisor", "{}");
    let task_types = ["general", "research"].map(|key| item("agent-task-type", key, "{}"));
    assert_eq!(missing(&[]), ["agent-react"]);
    assert_eq!(missing(&task_types), ["task-type-classify", "agent-react"]);
    let plans = ["plan-create", "plan-step-execute", "plan-revise", "plan-synthesise"];
    assert_eq!(missing(&[react, plan]), [&["pattern-select", "agent-react"][..], &plans].concat());
    let supervises = ["supervisor-decompose", "supervisor-review", "supervisor-synthesise"];
    assert_eq!(missing(&[supervisor]), [&["agent-react"][..], &supervises].concat());
    let problem = &missing_prompts(&Settings::take(1, []).0)[0];
    let told = "prompt/template.agent-react: field `value`: is missing, and pattern `react` needs it; restore it from its \
                history or an export";
    assert_eq!(problem.to_string(), told);
}
