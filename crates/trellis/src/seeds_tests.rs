use super::*;
use std::sync::Arc;
use trellis_domain::Caller;
use trellis_domain::config::{PromptReply, Settings, validate};
use trellis_orchestrator::memory::MemoryConfig;
use trellis_orchestrator::ports::RealWorld;

fn empty() -> (MemoryConfig, Workspace) {
    (MemoryConfig::new(Arc::new(RealWorld)), Workspace::default())
}

fn seed(key: &str, value: &str) -> StoredItem {
    StoredItem { kind: "note".to_owned(), key: key.to_owned(), value: value.to_owned() }
}

fn report(added: &[&str], updated: &[&str], left_alone: &[&str], config_version: Option<u64>) -> SeedReport {
    let places = |keys: &[&str]| keys.iter().map(|key| format!("note/{key}")).collect();
    let (added, updated, left_alone) = (places(added), places(updated), places(left_alone));
    SeedReport { added, updated, left_alone, config_version, ..SeedReport::default() }
}

/// The values of the notes, and the version of the configuration.
async fn notes(config: &MemoryConfig, workspace: &Workspace) -> (Vec<String>, u64) {
    let (version, items) = config.all(workspace).await.unwrap();
    let notes = items.into_iter().filter(|item| item.kind == "note");
    (notes.map(|item| format!("{}={}", item.key, item.value)).collect(), version)
}

#[test]
fn every_seed_is_valid_and_all_fit_together() {
    for item in items() {
        validate(&item.kind, &item.key, &item.value).unwrap();
    }
    let (settings, _) = Settings::take(1, items());
    assert_eq!((settings.problems.as_slice(), settings.inconsistencies().as_slice()), (&[][..], &[][..]));
    assert_eq!(trellis_patterns::missing_prompts(&settings), []);
    assert!(!settings.system_prompt.is_empty());
    for prompt in settings.prompts.values() {
        trellis_models::check_template(&prompt.text).unwrap();
    }
    let tools = [
        "archive-search",
        "ask-model",
        "financial-data",
        "market-register",
        "news-search",
        "regulatory-filings",
        "search-notes",
        "supply-chain",
    ];
    assert_eq!(settings.tools.keys().collect::<Vec<_>>(), tools);
    let usual = "default".into();
    assert!(settings.tools.values().all(|tool| tool.groups.contains(&usual)), "a request without group sees all tools");
}

/// As the specification names them; the first valid pattern is the fallback.
#[test]
fn the_router_is_seeded_with_the_specifications_sets() {
    let settings = Settings::take(1, items()).0;
    let patterns = ["debate", "dispatch", "plan-then-execute", "react", "reflexion", "supervisor"];
    assert_eq!(settings.patterns.keys().collect::<Vec<_>>(), patterns);
    let valid = settings.task_types.iter().map(|(name, item)| (name.as_str(), item.valid_patterns.clone().unwrap()));
    let expected = [
        ("general", vec!["react", "plan-then-execute", "supervisor", "reflexion", "dispatch", "debate"]),
        ("research", vec!["react", "plan-then-execute"]),
        ("risk-assessment", vec!["supervisor", "plan-then-execute", "react"]),
        ("summarisation", vec!["react"]),
    ];
    let expected = expected.map(|(name, patterns)| (name, patterns.into_iter().map(Into::into).collect()));
    assert_eq!(valid.collect::<Vec<_>>(), expected);
    assert!(settings.patterns.values().all(|item| !item.description.is_empty() && !item.when_to_use.is_empty()));
    assert!(settings.task_types.values().all(|item| !item.description.is_empty() && !item.when_to_use.is_empty()));
    let risk = &settings.task_types["risk-assessment"];
    let framing = "Analyse across financial, reputational, legal and operational dimensions using structured analytic \
                   techniques.";
    assert_eq!((risk.framing.as_str(), settings.task_types["general"].framing.as_str()), (framing, ""));
    assert!(risk.termination.starts_with("Stop when"));
}

/// A decision is JSON under the schema of its call; everything else is text.
#[test]
fn decisions_are_asked_for_as_json() {
    let settings = Settings::take(1, items()).0;
    let json = settings.prompts.iter().filter(|(_, prompt)| prompt.reply == PromptReply::Json { schema: None });
    assert_eq!(
        json.map(|(id, _)| id.as_str()).collect::<Vec<_>>(),
        [
            "debate-moderate",
            "debate-stances",
            "decision-scoring",
            "diagnose-structured-data",
            "dispatch-choose",
            "extract-facts",
            "graphql-generation",
            "kg-edge-scoring",
            "pattern-select",
            "plan-create",
            "plan-revise",
            "plan-step-execute",
            "reflexion-critique",
            "route",
            "schema-selection",
            "supervisor-decompose",
            "supervisor-review",
            "task-type-classify",
        ]
    );
    for id in ["agent-react", "plan-synthesise", "supervisor-synthesise"] {
        assert_eq!(settings.prompts[id].reply, PromptReply::Text, "{id}");
    }
}

/// If this fails, a seed has changed: raise `VERSION` (once per release) and put the new hash here.
#[test]
fn the_seeds_of_this_version_are_known() {
    let written = serde_json::to_vec(&items()).unwrap();
    assert_eq!(
        (VERSION, Hash::of(written).to_string().as_str()),
        (12, "a668936e108bce834b5b9e10ba1847fed3b0cb7c5d283d3fabdadc1bbd33608a")
    );
}

#[tokio::test]
async fn the_first_start_writes_all_seeds_at_once_and_the_second_nothing() {
    let (config, workspace) = empty();
    let first = apply(&config, &workspace).await.unwrap();
    assert_eq!((first.added.len(), first.config_version), (items().len(), Some(1)));
    let (version, stored) = config.all(&workspace).await.unwrap();
    assert_eq!((version, stored.len()), (1, items().len() + 1));
    assert_eq!(apply(&config, &workspace).await.unwrap(), SeedReport::default());
    assert_eq!(config.all(&workspace).await.unwrap().0, 1);
}

#[tokio::test]
async fn a_newer_version_adds_and_updates_only_what_nobody_touched() {
    let (config, workspace) = empty();
    let old = ["same", "touched", "deleted", "changed"].map(|key| seed(key, "1"));
    apply_version(&config, &workspace, 1, old.to_vec()).await.unwrap();
    config.put(&workspace, vec![seed("touched", "mine"), seed("own", "mine")], Caller::program()).await.unwrap();
    config.delete(&workspace, "note", "deleted", Caller::program()).await.unwrap();

    let mut new = ["touched", "deleted", "changed", "own", "added"].map(|key| seed(key, "2")).to_vec();
    new.push(seed("same", "1"));
    let done = apply_version(&config, &workspace, 2, new.clone()).await.unwrap();
    assert_eq!(done, report(&["added"], &["changed"], &["touched", "deleted", "own"], Some(4)));
    let expected = ["added=2", "changed=2", "own=mine", "same=1", "touched=mine"].map(str::to_owned);
    assert_eq!(notes(&config, &workspace).await, (expected.to_vec(), 4));

    assert_eq!(apply_version(&config, &workspace, 2, new).await.unwrap(), SeedReport::default());
    let newest = ["touched", "deleted", "changed"].map(|key| seed(key, "3")).to_vec();
    let done = apply_version(&config, &workspace, 3, newest).await.unwrap();
    assert_eq!(done, report(&[], &["changed"], &["touched", "deleted"], Some(5)), "what was left stays left");
}

#[tokio::test]
async fn a_workspace_in_which_somebody_deleted_a_pattern_gets_no_new_ones() {
    let (config, workspace) = empty();
    let pattern = |key: &str| StoredItem { kind: PATTERN.to_owned(), key: key.to_owned(), value: "{}".to_owned() };
    let old = vec![pattern("react"), pattern("supervisor"), seed("a", "1")];
    apply_version(&config, &workspace, 1, old).await.unwrap();
    config.delete(&workspace, PATTERN, "supervisor", Caller::program()).await.unwrap();
    let new = || vec![pattern("react"), pattern("supervisor"), pattern("debate"), seed("a", "2"), seed("b", "2")];
    for version in [2, 3] {
        let done = apply_version(&config, &workspace, version, new()).await.unwrap();
        assert_eq!(done.withheld, ["agent-pattern/debate"]);
        assert_eq!(done.left_alone, ["agent-pattern/supervisor"]);
    }
    let (_, items) = config.all(&workspace).await.unwrap();
    let patterns: Vec<_> = items.iter().filter(|item| item.kind == PATTERN).map(|item| item.key.as_str()).collect();
    assert_eq!(patterns, ["react"]);
    assert_eq!(notes(&config, &workspace).await.0, ["a=2", "b=2"]);
}

#[tokio::test]
async fn an_edit_that_equals_the_new_seed_follows_later_ones() {
    let (config, workspace) = empty();
    for (version, edit) in [(1, "2"), (2, "2")] {
        apply_version(&config, &workspace, version, vec![seed("a", &version.to_string())]).await.unwrap();
        config.put(&workspace, vec![seed("a", edit)], Caller::program()).await.unwrap();
    }
    let done = apply_version(&config, &workspace, 3, vec![seed("a", "3")]).await.unwrap();
    assert_eq!(done.updated, ["note/a"]);
}

#[tokio::test]
async fn an_older_program_changes_nothing() {
    let (config, workspace) = empty();
    apply_version(&config, &workspace, 2, vec![seed("a", "2")]).await.unwrap();
    let done = apply_version(&config, &workspace, 1, vec![seed("a", "1"), seed("b", "1")]).await.unwrap();
    assert_eq!(done, SeedReport::default());
    assert_eq!(notes(&config, &workspace).await, (vec!["a=2".to_owned()], 1));
}

#[tokio::test]
async fn a_workspace_that_was_configured_before_keeps_its_items() {
    let (config, workspace) = empty();
    config.put(&workspace, vec![seed("a", "mine")], Caller::program()).await.unwrap();
    let done = apply_version(&config, &workspace, 1, vec![seed("a", "1"), seed("b", "1")]).await.unwrap();
    assert_eq!(done, report(&["b"], &[], &["a"], Some(2)));
}

#[tokio::test]
async fn a_memory_that_cannot_be_read_seeds_nothing_and_locks_nobody_out() {
    let (config, workspace) = empty();
    let memory = StoredItem { kind: MEMORY.0.into(), key: MEMORY.1.into(), value: "{}".into() };
    config.put(&workspace, vec![memory], Caller::program()).await.unwrap();
    assert_eq!(apply(&config, &workspace).await.unwrap(), SeedReport::default());
}
