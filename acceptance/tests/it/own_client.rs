//! Our own client for Python: its types, and the server behind it.

use acceptance::Stage;

const CLIENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../clients/python/trellis_client.py");

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn the_client_in_one_file_does_what_it_says() {
    let stage = Stage::open().await;
    let notes = stage.trellis(&["config", "get", "tool", "search-notes"]).await.ok().json();
    let mut careful = notes;
    careful["name"] = "careful-notes".into();
    careful["requires-approval"] = true.into();
    stage.trellis(&["tools", "add", "careful-notes", &careful.to_string()]).await.ok();
    let told = stage.python_with("trellis_client_use.py", &[stage.url(), "--approval"]).await;
    told.ok().says(&["client: all well"]);
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn its_types_are_whole() {
    let stage = Stage::open().await;
    stage.program("mypy", &["--strict", "--python-version", "3.10", CLIENT]).await.ok().says(&["no issues found"]);
}
