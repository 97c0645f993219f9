//! Collections of documents and knowledge.

use acceptance::Stage;

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn a_collection_is_set_listed_changed_and_deleted() {
    let stage = Stage::open().await;
    let set = ["history", "-n", "History", "-d", "Old things", "-t", "past", "-t", "people"];
    stage.tg("tg-set-collection", &set).await.ok().says(&["Collection 'history' set successfully.", "past, people"]);
    let listed = stage.tg("tg-list-collections", &[]).await.ok();
    listed.says(&["history", "History", "Old things", "past, people"]);
    stage.tg("tg-list-collections", &["-t", "past"]).await.ok().says(&["history"]);
    stage.tg("tg-list-collections", &["-t", "future"]).await.ok().never_says("history");
    stage.tg("tg-set-collection", &["history", "-n", "Histories"]).await.ok().says(&["Histories", "Old things"]);
    stage.tg("tg-delete-collection", &["history", "-y"]).await.ok();
    stage.tg("tg-list-collections", &[]).await.ok().never_says("history");
}
