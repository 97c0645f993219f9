//! Who may come in.

use acceptance::Stage;

const TOKEN: &str = "tg_open-sesame";

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn whoever_needs_no_token_is_told_who_they_are() {
    let stage = Stage::open().await;
    stage.tg("tg-whoami", &[]).await.ok().says(&["username", "workspace", "default", "roles", "enabled"]);
    stage.tg("tg-list-my-workspaces", &[]).await.ok().says(&["default"]);
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn the_right_token_opens_every_door() {
    let stage = Stage::behind(TOKEN).await;
    stage.tg_as(TOKEN, "tg-whoami", &[]).await.ok().says(&["username"]);
    stage.tg_as(TOKEN, "tg-show-config", &[]).await.ok().says(&["Version: "]);
    stage.tg_as(TOKEN, "tg-show-flows", &[]).await.ok().says(&["default"]);
    let answer = stage.tg_as(TOKEN, "tg-invoke-agent", &["-q", "Who was Ada?", "-x"]).await.ok();
    let document = answer.stderr.lines().rev().find_map(|line| line.trim().strip_prefix("Document: ")).unwrap();
    stage.tg_as(TOKEN, "tg-get-document-content", &[document]).await.ok().says(&["The script answers"]);
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn a_wrong_token_or_none_is_told_in_words() {
    let stage = Stage::behind(TOKEN).await;
    for token in ["", "tg_wrong"] {
        let refused = |command: &'static str, arguments: &'static [&'static str], words: &'static str| {
            let stage = &stage;
            async move { stage.tg_as(token, command, arguments).await.refused(words) }
        };
        refused("tg-whoami", &[], "HTTP 401: auth failure").await;
        refused("tg-show-config", &[], "401").await;
        refused("tg-invoke-agent", &["-q", "Who was Ada?"], "auth failure").await;
        refused("tg-show-flows", &[], "auth failure").await;
        refused("tg-list-explain-traces", &[], "auth failure").await;
        refused("tg-get-document-content", &["urn:x"], "401").await;
    }
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn an_unknown_workspace_is_told_in_words() {
    let stage = Stage::open().await;
    stage.tg("tg-show-config", &["-w", "nowhere"]).await.refused("404");
    stage.tg("tg-invoke-agent", &["-w", "nowhere", "-q", "Who was Ada?"]).await.refused("workspace");
}
