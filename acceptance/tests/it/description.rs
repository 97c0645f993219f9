//! The description of our own API, tried out by a fuzzer that knows nothing but the description.

use acceptance::Stage;

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn no_request_that_the_description_allows_or_forbids_brings_the_server_down() {
    let stage = Stage::open().await;
    let description = format!("{}api/openapi.json", stage.url());
    let checks = "not_a_server_error,response_schema_conformance,content_type_conformance,status_code_conformance";
    let bounds = ["--max-examples", "12", "--max-time", "75", "--request-timeout", "20", "--seed", "1"];
    // One worker: CPython before 3.11.8 reports a "recursion depth mismatch" when two threads parse Python at once,
    // which the fuzzer does to describe what it generates.
    let how = ["--checks", checks, "--workers", "1", "--phases", "examples,coverage,fuzzing", "--no-color"];
    let arguments = [&["run", &description][..], &bounds, &how].concat();
    let told = stage.program("schemathesis", &arguments).await;
    assert!(told.succeeded, "{told}");
    // Whichever pattern there is by now: what the fuzzer was allowed to write may have taken others away.
    stage.tg("tg-invoke-agent", &["-q", "Who was Ada?"]).await.ok().says(&["Who was Ada?"]);
}
