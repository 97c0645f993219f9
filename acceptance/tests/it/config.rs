//! Configuration items, one by one and all together.

use acceptance::Stage;
use serde_json::{Value, json};

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn an_item_is_put_read_listed_and_deleted() {
    let stage = Stage::open().await;
    let item = ["--type", "greeting", "--key", "morning"];
    let put = [&item[..], &["--value", "good day, \"Ada\" ☀"]].concat();
    stage.tg("tg-put-config-item", &put).await.ok().says(&["Configuration item set: greeting/morning"]);
    let read = stage.tg("tg-get-config-item", &item).await.ok();
    assert_eq!(read.stdout.trim(), "good day, \"Ada\" ☀");
    let read = stage.tg("tg-get-config-item", &[&item[..], &["--format", "json"]].concat()).await.ok().json();
    assert_eq!(read, json!("good day, \"Ada\" ☀"));
    let listed = stage.tg("tg-list-config-items", &["--type", "greeting"]).await.ok();
    assert_eq!(listed.stdout.trim(), "morning");
    let listed = stage.tg("tg-list-config-items", &["--type", "greeting", "--format", "json"]).await.ok().json();
    assert_eq!(listed, json!(["morning"]));
    stage.tg("tg-delete-config-item", &item).await.ok().says(&["Configuration item deleted: greeting/morning"]);
    let read = stage.tg("tg-get-config-item", &item).await.ok();
    assert_eq!(read.stdout.trim(), "None");
    assert_eq!(stage.tg("tg-list-config-items", &["--type", "greeting"]).await.ok().stdout, "");
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn what_was_never_there_is_none() {
    let stage = Stage::open().await;
    let read = stage.tg("tg-get-config-item", &["--type", "nothing", "--key", "nowhere"]).await.ok();
    assert_eq!(read.stdout.trim(), "None");
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn the_whole_configuration_has_a_version_that_grows() {
    let stage = Stage::open().await;
    let (before, config) = whole(&stage).await;
    assert!(config["prompt"]["system"].is_string(), "{config}");
    assert!(config["agent-pattern"]["supervisor"].is_string(), "{config}");
    stage.tg("tg-put-config-item", &["--type", "greeting", "--key", "a", "--value", "b"]).await.ok();
    let (after, config) = whole(&stage).await;
    assert!(after > before, "{before} then {after}");
    assert_eq!(config["greeting"], json!({ "a": "b" }));
}

async fn whole(stage: &Stage) -> (u64, Value) {
    let shown = stage.tg("tg-show-config", &[]).await.ok();
    let (version, config) = shown.stdout.split_once('\n').unwrap();
    let version = version.strip_prefix("Version: ").unwrap().trim().parse().unwrap();
    (version, serde_json::from_str(config).unwrap())
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn a_tool_that_makes_no_sense_is_refused_in_words() {
    let stage = Stage::open().await;
    let item = ["--type", "tool", "--key", "broken", "--value", "{\"name\": 7}"];
    stage.tg("tg-put-config-item", &item).await.refused("tool/broken");
    let read = stage.tg("tg-get-config-item", &["--type", "tool", "--key", "broken"]).await.ok();
    assert_eq!(read.stdout.trim(), "None");
    let own = ["--type", "trellis", "--key", "seeds", "--value", "{}"];
    stage.tg("tg-put-config-item", &own).await.refused("are the program's own");
    let broken = ["--type", "prompt", "--key", "template.x", "--value", r#"{"prompt": "{% if %}"}"#];
    stage.tg("tg-put-config-item", &broken).await.refused("the template cannot be compiled: line 1");
}
