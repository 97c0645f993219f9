//! The contract of configuration.

use crate::ports::{Config, ConfigError};
use std::sync::Arc;
use trellis_domain::config::StoredItem;
use trellis_domain::{Caller, Surface, Workspace};

fn item(key: &str, value: &str) -> StoredItem {
    StoredItem { kind: "tool".to_owned(), key: key.to_owned(), value: value.to_owned() }
}

const GOOD: &str = r#"{"type":"text-completion","name":"ask"}"#;
const OTHER: &str = r#"{"type":"text-completion","name":"other"}"#;

pub async fn suite<F: Future<Output = Arc<dyn Config>>>(fresh: impl Fn() -> F) {
    every_change_is_a_version_with_history(&*fresh().await).await;
    invalid_items_are_refused_and_nothing_is_written(&*fresh().await).await;
    a_session_stays_with_the_configuration_it_started_with(&*fresh().await).await;
    workspaces_are_apart_and_watchers_are_told(&*fresh().await).await;
    what_a_deployment_has_is_taken_over_as_it_is(&*fresh().await).await;
}

async fn every_change_is_a_version_with_history(config: &dyn Config) {
    let ws = Workspace::default();
    let first = config.put(&ws, vec![item("a", GOOD), item("b", GOOD)], Caller::program()).await.expect("valid items");
    let alice = Caller::new(Some("alice".to_owned()), Surface::Api);
    let second = config.put(&ws, vec![item("a", OTHER)], alice.clone()).await.expect("valid items");
    let third = config
        .delete(&ws, "tool", "a", Caller::new(None, Surface::CommandLine))
        .await
        .expect("the store works")
        .expect("it was there");
    assert!(first < second && second < third, "versions rise");
    assert_eq!(config.get(&ws, "tool", "a").await.expect("the store works"), None);
    let (version, items) = config.all(&ws).await.expect("the store works");
    assert_eq!((version, items), (third, vec![item("b", GOOD)]));
    let history = config.history(&ws, "tool", "a").await.expect("the store works");
    let seen: Vec<_> = history.iter().map(|entry| (entry.version, entry.value.as_deref())).collect();
    assert_eq!(seen, [(first, Some(GOOD)), (second, Some(OTHER)), (third, None)]);
    let by: Vec<_> = history.into_iter().map(|entry| entry.by.expect("each is somebody's")).collect();
    assert_eq!(by, [Caller::program(), alice.clone(), Caller::new(None, Surface::CommandLine)]);
    let made = config.configured(&ws, second).await.expect("the store works").expect("it was kept");
    assert_eq!((made.version, made.by), (second, alice));
    assert_eq!(config.configured(&ws, third + 1).await.expect("the store works"), None);
    assert_eq!(config.delete(&ws, "tool", "nothing", Caller::program()).await.expect("the store works"), None);
    for (version, items) in [
        (0, vec![]),
        (first, vec![item("a", GOOD), item("b", GOOD)]),
        (second, vec![item("a", OTHER), item("b", GOOD)]),
        (third, vec![item("b", GOOD)]),
    ] {
        assert_eq!(config.all_at(&ws, version).await.expect("the store works"), items, "at version {version}");
    }
    let short = Workspace::new("def").expect("a valid name");
    assert_eq!(config.all_at(&short, third).await.expect("the store works"), []);
}

async fn invalid_items_are_refused_and_nothing_is_written(config: &dyn Config) {
    let ws = Workspace::default();
    let refused =
        config.put(&ws, vec![item("good", GOOD), item("bad", "{"), item("worse", "[]")], Caller::program()).await;
    let Err(ConfigError::Invalid(problems)) = refused else { panic!("{refused:?}") };
    assert_eq!(problems.len(), 2, "every problem is named at once");
    let long = "k".repeat(70_000);
    for bad in [
        vec![item("a", GOOD), item("a", OTHER)],
        vec![item(&long, GOOD)],
        vec![item("", GOOD)],
        vec![item("a\0b", GOOD)],
    ] {
        assert!(config.put(&ws, bad, Caller::program()).await.is_err(), "names are single, and parts of keys");
    }
    assert!(config.all(&ws).await.expect("the store works").1.is_empty(), "nothing of it was written");
    assert_eq!(config.get(&ws, "tool", &long).await.expect("the store works"), None, "nor can it be there");
    assert_eq!(config.delete(&ws, "tool", &long, Caller::program()).await.expect("the store works"), None);
    assert!(config.history(&ws, "tool", &long).await.expect("the store works").is_empty());
}

async fn a_session_stays_with_the_configuration_it_started_with(config: &dyn Config) {
    let ws = Workspace::default();
    config.put(&ws, vec![item("a", GOOD)], Caller::program()).await.expect("valid items");
    let before = config.pin(&ws).await.expect("the store works");
    config.put(&ws, vec![item("a", OTHER)], Caller::program()).await.expect("valid items");
    let after = config.pin(&ws).await.expect("the store works");
    assert!(before.tools.contains_key("ask") && after.tools.contains_key("other"));
    let hash = before.snapshot.expect("a pin has a snapshot");
    assert_eq!(*config.snapshot(&ws, hash).await.expect("it was stored"), *before);
}

async fn workspaces_are_apart_and_watchers_are_told(config: &dyn Config) {
    let (ws, other) = (Workspace::default(), Workspace::new("other").expect("a valid name"));
    let mut watch = config.watch();
    config.put(&ws, vec![item("a", GOOD)], Caller::program()).await.expect("valid items");
    assert!(watch.has_changed(), "a change is announced");
    watch.mark_unchanged();
    assert_eq!(config.get(&other, "tool", "a").await.expect("the store works"), None);
    assert_eq!(config.all(&other).await.expect("the store works"), (0, Vec::new()));
    let pinned = config.pin(&ws).await.expect("the store works");
    assert!(!watch.has_changed());
    config.changed_elsewhere(&ws, pinned.version + 1);
    assert!(watch.has_changed(), "a change of another process is announced");
    assert_eq!(config.pin(&ws).await.expect("the store works"), pinned, "what is there counts, not what is told");
}

async fn what_a_deployment_has_is_taken_over_as_it_is(config: &dyn Config) {
    const QUEUES: &str = r#"{"request-queue":"request:tg:joke","response-queue":"response:tg:joke"}"#;
    let ws = Workspace::default();
    config.put(&ws, vec![item("a", GOOD), item("b", GOOD)], Caller::program()).await.expect("valid items");
    let of = |kind: &str, key: &str, value: Option<&str>| (kind.to_owned(), key.to_owned(), value.map(str::to_owned));
    let changes = vec![
        of("tool", "a", None),
        of("tool", "never-there", None),
        of("tool", "odd", Some("null")),
        of("tool-service", "joke", Some(QUEUES)),
    ];
    config.adopt(&ws, changes, Caller::program()).await.expect("nothing of it is judged");
    let joke = StoredItem { kind: "tool-service".to_owned(), key: "joke".to_owned(), value: QUEUES.to_owned() };
    let (version, items) = config.all(&ws).await.expect("the store works");
    assert_eq!(items, [item("b", GOOD), item("odd", "null"), joke]);
    let settings = config.pin(&ws).await.expect("the store works");
    assert_eq!((settings.version, settings.problems.len()), (version, 1), "what cannot be used is left out alone");
    assert!(settings.tool_services.contains_key("joke"));
    let gone = vec![of("tool", "a", None)];
    config.adopt(&ws, gone, Caller::program()).await.expect("somebody else has deleted it");
}
