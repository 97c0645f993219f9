//! The examples of the project, each by its own README: what stands there is typed, with the packages that are installed
//! for these tests.

// What the tests of the program have to read pages and to type what they say.
#[path = "../../../crates/trellis/tests/it/documented/pages.rs"]
#[allow(dead_code, reason = "other tests use the rest of it")]
mod pages;
#[path = "../../../crates/trellis/tests/it/documented/reader.rs"]
#[allow(dead_code, reason = "other tests use the rest of it")]
mod reader;

use acceptance::{Folder, ScriptedModel, Stage};
use reader::{Reader, Told};
use std::path::Path;

/// A reader who has Python and Node with their packages.
fn reader() -> Reader {
    let target = pages::project().join("target");
    let reader = Reader::of(&Folder::program()).finding(&target.join("clients/bin"));
    let packages = target.join("node/node_modules");
    reader.finding(&packages.join("node/bin")).set("NODE_PATH", packages.to_str().expect("a plain name"))
}

/// What the README of an example says is done, in its folder.
async fn follows(reader: Reader, example: &'static str, instead: &'static [(&str, &str)]) -> Told {
    let page = format!("examples/{example}/README.md");
    let heading = pages::Page::read(Path::new(&page)).blocks().remove(0).heading;
    let folder = format!("examples/{example}");
    let done = tokio::task::spawn_blocking(move || reader.follows(&page, &heading, &folder, instead));
    done.await.expect("the example is followed to its end")
}

/// A reader with a data folder of their own and a model that calls tools.
fn with_model(model: &ScriptedModel) -> (Reader, Folder) {
    let folder = Folder::new(model);
    let variables = folder.variables();
    let pairs = variables.iter().filter_map(|variable| variable.split_once('='));
    (pairs.fold(reader(), |reader, (name, value)| reader.set(name, value)), folder)
}

/// The service is there before anybody asks it.
const STARTED: &[(&str, &str)] = &[(
    "python3 server.py &",
    "python3 server.py & until (exec 3<>/dev/tcp/127.0.0.1/$PORT) 2>/dev/null; do sleep 0.05; done",
)];

/// The server is there already.
const SERVED: &[(&str, &str)] = &[("trellis serve &", "")];

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn the_tool_of_an_mcp_server_is_discovered_tried_and_used() {
    let model = ScriptedModel::start().await;
    let (reader, _folder) = with_model(&model);
    let told = follows(reader, "mcp-server", &[]).await;
    told.says(&[
        "added 1 tool",
        "High tide in Brest: 05:48 and 18:10",
        "The script answers: When is high tide in Brest?",
    ]);
    told.says(&["→ tool     tide(port: "]);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn a_service_over_http_is_added_tried_and_used() {
    let model = ScriptedModel::start().await;
    let (reader, _folder) = with_model(&model);
    // Another test may have the port.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    for file in ["depth.json", "trellis.toml", "server.py"] {
        let file = reader.project().join("examples/http-tool").join(file);
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.contains("8000"), "{}", file.display());
        std::fs::write(&file, text.replace("8000", &free)).unwrap();
    }
    let reader = reader.set("PORT", &free);
    let told = follows(reader, "http-tool", STARTED).await;
    told.says(&[r#"{"harbour": "Brest", "metres": 12.0}"#, "→ tool     depth(harbour: "]);
    told.says(&["The script answers: What is the depth of the harbour of Brest?"]);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn programs_for_openai_and_our_own_client_need_only_an_address() {
    let stage = Stage::open().await;
    let told = follows(reader().set("TRUSTGRAPH_URL", stage.url()), "openai", SERVED).await;
    let (answer, more) = ("The script answers: What is Company X?", "The script answers: And who owns it?");
    told.says(&[answer, more]);
    assert_eq!(told.stdout.matches(answer).count(), 2 + 1, "Python, Node, and the run that is shown: {told}");
    // What the programs say can be looked at.
    let runs: Vec<_> =
        told.stdout.lines().filter_map(|line| line.strip_prefix("look at it: trellis run show ")).collect();
    assert_eq!(runs.len(), 3, "{told}");
    for run in runs {
        stage.trellis(&["run", "show", run.trim()]).await.ok().says(&["The script answers: "]);
    }

    let told = follows(reader().set("TRUSTGRAPH_URL", stage.url()), "python", SERVED).await;
    told.says(&[answer, ": answered, by react", "pattern: react   out of ", "by model"]);
    let run =
        told.stdout.lines().find_map(|line| line.strip_prefix("run ")?.split(':').next()).expect("the run is named");
    assert!(told.stdout.matches(run).count() > 1, "the run that is shown is the same: {told}");
}
